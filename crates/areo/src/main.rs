//! The binary `areo`.

use std::process::ExitCode;

/// The system's allocator took a third of the CPU time of small operations (decision record 0005).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    areo::run()
}
