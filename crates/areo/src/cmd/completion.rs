//! `areo completion`: a script that completes this command line in a shell.

use crate::args::Cli;
use crate::exit::Outcome;
use crate::output::cannot_print;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::Write;

pub(super) fn run(shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "areo", &mut script);
    std::io::stdout().write_all(&script).map_err(cannot_print)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_know_every_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "areo", &mut script);
            let script = String::from_utf8(script).expect("scripts are text");
            for command in Cli::command().get_subcommands() {
                assert!(
                    script.contains(command.get_name()),
                    "{shell}: {}",
                    command.get_name()
                );
            }
        }
    }
}
