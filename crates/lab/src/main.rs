//! The binary `areo-lab`: what Areo is tested and measured with. The product depends on nothing of it.

mod args;
mod cmd;

use clap::Parser;
use std::process::ExitCode;

/// As in the product, whose clients run in this process when it is measured (decision record 0005).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match args::Cli::try_parse() {
        Ok(cli) => cmd::run(cli),
        Err(error) => areo::args::report(cmd::NAME, &error),
    }
}
