//! The project's own commands, run as `cargo xtask <command>`.
//!
//! | command | does | writes |
//! |---|---|---|
//! | `verify` | everything that must hold before a change is merged; what CI runs | never |
//! | `fix` | applies rustfmt and the machine-applicable suggestions of clippy | yes |
//! | `layers` | dependency arrows between crates, and between the modules of `core` | never |
//! | `tidy` | house rules that no other tool checks | never |
//! | `advisories` | known vulnerabilities of dependencies; fetches the list of them | never |
//! | `mutants` | plants bugs in a copy of the tree: simulator or tests must catch each | never |

mod deny;
mod findings;
mod fix;
mod layers;
mod mutants;
mod source;
mod tidy;
mod tree;
mod verify;
mod workspace;

use std::process::ExitCode;

use workspace::Workspace;

const HELP: &str = "\
The project's own commands.

Usage: cargo xtask <command>

  verify   run every check and every test; never writes into the tree (what CI runs)
  fix      apply rustfmt and clippy's machine-applicable suggestions
  layers   check dependency arrows between crates and between the modules of core
  tidy     check the house rules that no other tool checks
  advisories
           look for known vulnerabilities of dependencies; fetches the list of them
  mutants  plant bugs in a copy of the tree and require that simulator or tests catch each; takes long
           (--only NAME[,NAME]: those whose names contain one of these)
";

/// A command: writes its findings to standard output, returns one sentence if it failed.
type Command = fn(&Workspace) -> Result<(), String>;

fn command_named(name: &str) -> Option<Command> {
    match name {
        "verify" => Some(verify::run),
        "fix" => Some(fix::run),
        "layers" => Some(layers::run),
        "tidy" => Some(tidy::run),
        "advisories" => Some(deny::advisories),
        "mutants" => Some(|workspace| mutants::run(workspace, None)),
        _ => None,
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut only = None;
    let name = match arguments.as_slice() {
        [name, option, text] if name == "mutants" && option == "--only" => {
            only = Some(text.as_str());
            name.as_str()
        }
        [name] => name.as_str(),
        [] => "help",
        [_, rest @ ..] => {
            eprintln!("error: unexpected argument '{}'\n\n{HELP}", rest[0]);
            return ExitCode::from(2);
        }
    };
    if matches!(name, "help" | "--help" | "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let Some(command) = command_named(name) else {
        eprintln!("error: unknown command '{name}'\n\n{HELP}");
        return ExitCode::from(2);
    };
    let run = |workspace: Workspace| match only {
        Some(only) => mutants::run(&workspace, Some(only)),
        None => command(&workspace),
    };
    match Workspace::locate().and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("error: {sentence}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HELP, command_named};

    #[test]
    fn the_help_lists_exactly_the_commands_that_exist() {
        let listed: Vec<&str> = HELP
            .lines()
            .filter_map(|line| line.strip_prefix("  "))
            .filter(|line| !line.starts_with(' '))
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        let expected = ["verify", "fix", "layers", "tidy", "advisories", "mutants"];
        assert_eq!(listed, expected);
        for name in listed {
            assert!(
                command_named(name).is_some(),
                "{name} is listed but does nothing"
            );
        }
        assert!(command_named("sim").is_none());
    }
}
