//! The binary `areo-lab`: what Areo is tested and measured with. The product depends on nothing of it.

mod args;
mod cmd;

use std::process::ExitCode;

/// The allocator of the product, whose clients run in this process when it is measured (decision record 0005).
#[global_allocator]
static ALLOCATOR: areo_allocator::Allocator = areo_allocator::Allocator;

fn main() -> ExitCode {
    match areo::args::parse(cmd::NAME) {
        Ok(cli) => cmd::run(cli),
        Err(ended) => ended,
    }
}
