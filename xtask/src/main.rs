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
//! | `dist` | archive and Debian package of a release, with manual pages, licences and a list of what it is built from | `target/dist-files` |
//! | `deploy` | reads the files of `deploy/compose` and `deploy/kubernetes` by the tools that they are for | `target/deploy-tools` |
//! | `clients` | runs real clients of S3 against a cluster on this machine | `clients/.venv-*` |
//! | `console` | runs the tests of the console in Chromium against a cluster on this machine | with `--screenshots`: `docs/console` |
//! | `python` | builds the package for Python, and tests it against a cluster on this machine | `target/python` |
//! | `upgrade` | upgrades a cluster under load from the product to a next version of it, and back | `target/upgrade` |

mod clients;
mod console;
mod deny;
mod deploy;
mod dist;
mod findings;
mod fix;
mod layers;
mod mutants;
mod python;
mod source;
mod tidy;
mod tools;
mod tree;
mod upgrade;
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
  dist     build what is released into target/dist-files: archive, Debian package, checksums
  deploy   read the files of deploy/compose and deploy/kubernetes by the tools that they are for; go and pip install those
  clients  run real clients of S3 against a cluster on this machine; pip installs them
           (--only NAME[,NAME]: these alone)
  console  test the console in Chromium against a cluster on this machine; npm and apt install what is missing
           (--screenshots: write the pictures of docs/console as well)
  python   build the package for Python, and test it against a cluster on this machine; pip installs maturin and pytest
  upgrade  upgrade a cluster under load to a next version of the product, roll back, upgrade, finalize; needs python3
";

/// Commands with the option `--only`.
const SELECTIVE: [&str; 2] = ["mutants", "clients"];
/// The option of `console`.
const SCREENSHOTS: &str = "--screenshots";

/// A command: writes its findings to standard output, returns one sentence if it failed. The text is that of `--only`, or an option.
type Command = fn(&Workspace, Option<&str>) -> Result<(), String>;

fn command_named(name: &str) -> Option<Command> {
    match name {
        "verify" => Some(|workspace, _| verify::run(workspace)),
        "fix" => Some(|workspace, _| fix::run(workspace)),
        "layers" => Some(|workspace, _| layers::run(workspace)),
        "tidy" => Some(|workspace, _| tidy::run(workspace)),
        "advisories" => Some(|workspace, _| deny::advisories(workspace)),
        "mutants" => Some(mutants::run),
        "dist" => Some(|workspace, _| dist::run(workspace)),
        "deploy" => Some(|workspace, _| deploy::run(workspace)),
        "clients" => Some(clients::run),
        "console" => Some(console::run),
        "python" => Some(|workspace, _| python::run(workspace)),
        "upgrade" => Some(|workspace, _| upgrade::run(workspace)),
        _ => None,
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut only = None;
    let name = match arguments.as_slice() {
        [name, option, text] if SELECTIVE.contains(&name.as_str()) && option == "--only" => {
            only = Some(text.as_str());
            name.as_str()
        }
        [name, option] if name == "console" && option == SCREENSHOTS => {
            only = Some(option.as_str());
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
    match Workspace::locate().and_then(|workspace| command(&workspace, only)) {
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
        let expected = [
            "verify",
            "fix",
            "layers",
            "tidy",
            "advisories",
            "mutants",
            "dist",
            "deploy",
            "clients",
            "console",
            "python",
            "upgrade",
        ];
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
