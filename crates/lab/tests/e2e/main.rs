//! The laboratory end to end: real processes of the product, simulated ones, and the judge.

mod availability;
mod built;
mod check;
#[path = "../../../areo/tests/e2e/command.rs"]
mod command;
mod limits;
mod nemesis;
mod paper;
mod predict;
mod probe;
mod product;
mod reconfig;
mod repair;
mod sim;
mod wide_area;

use command::CommandOutput;
use std::path::Path;

pub(crate) use command::run as lab;

const LABORATORY: &str = env!("CARGO_BIN_EXE_areo-lab");

/// The laboratory's program, when there is a product for it to start.
fn program() -> &'static str {
    built::ensure(Path::new(LABORATORY).parent().expect("it is in a folder"));
    LABORATORY
}

/// Runs the laboratory with the words of a line, and more of them.
fn line(words: &str, more: &[&str]) -> CommandOutput {
    let words: Vec<&str> = words.split(' ').chain(more.iter().copied()).collect();
    lab(&words, b"")
}

/// Runs the laboratory with these variables of the environment.
fn lab_with(variables: &[(&str, &Path)], arguments: &[&str]) -> CommandOutput {
    let variables = variables.iter().copied();
    command::ended(command::command().envs(variables).args(arguments), b"")
}

#[test]
fn the_help_fits_a_screen() {
    command::help_fits_a_screen();
}

#[test]
fn commands_of_the_documents_are_known() {
    command::documented_commands_are_known("areo-lab", 50);
}
