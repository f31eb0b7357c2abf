//! The binary `areo`.

use std::process::ExitCode;

/// The system's allocator took a third of the CPU time of small operations (decision record 0005).
#[global_allocator]
static ALLOCATOR: areo_allocator::Allocator = areo_allocator::Allocator;

/// The runtime of the language opens `/dev/null` in place of a standard stream that is closed. The loader runs this before the runtime
/// begins (decision record 0057).
#[allow(
    unsafe_code,
    reason = "the section names a function that runs before `main`"
)]
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_THE_RUNTIME: extern "C" fn() = areo::note_closed_streams;

fn main() -> ExitCode {
    areo::run()
}
