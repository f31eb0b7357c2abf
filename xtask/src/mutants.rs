//! `cargo xtask mutants`: plants one bug after the other and requires that the simulator catches each. A harness that
//! nobody has seen fail proves nothing.
//!
//! A bug is a patch under `crates/sim/mutants` whose first line says what is wrong. It is applied to a copy of the tree,
//! never to the tree itself.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::workspace::Workspace;

const PATCHES: &str = "crates/sim/mutants";
/// A bug that so many seeds do not show counts as not caught.
const SEEDS: &str = "1000";
const OPERATIONS: &str = "300";

/// A planted bug.
struct Mutant {
    name: String,
    path: PathBuf,
    description: String,
}

/// What became of it.
struct Verdict {
    name: String,
    description: String,
    /// Seeds until it was caught and the rule that it broke, or why it was not.
    outcome: Result<(String, String), String>,
}

/// Plants every bug, or those whose names contain `only`.
pub(crate) fn run(workspace: &Workspace, only: Option<&str>) -> Result<(), String> {
    let mut mutants = list(&workspace.root().join(PATCHES))?;
    mutants.retain(|mutant| only.is_none_or(|only| mutant.name.contains(only)));
    if mutants.is_empty() {
        return Err(format!("no patch in {PATCHES} has such a name"));
    }
    let copy = std::env::temp_dir().join(format!("areo-mutants-{}", std::process::id()));
    let copied = copy_tree(workspace.root(), &copy);
    let verdicts = copied
        .map_err(|error| format!("cannot copy the tree to {}: {error}", copy.display()))
        .map(|()| {
            let target = workspace.root().join("target/mutants");
            let judge = |mutant: Mutant| {
                println!("planting {}: {}", mutant.name, mutant.description);
                judge(workspace, &copy, &target, mutant)
            };
            mutants.into_iter().map(judge).collect::<Vec<Verdict>>()
        });
    // What is left behind is in the system's temporary directory.
    let _ = fs::remove_dir_all(&copy);
    let verdicts = verdicts?;
    print!("\n{}", table(&verdicts));
    let missed = verdicts.iter().filter(|verdict| verdict.outcome.is_err());
    match missed.count() {
        0 => Ok(()),
        missed => Err(format!(
            "{missed} of {} planted bugs were not caught",
            verdicts.len()
        )),
    }
}

fn list(directory: &Path) -> Result<Vec<Mutant>, String> {
    let failed = |error: io::Error| format!("cannot read {}: {error}", directory.display());
    let mut mutants = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path
            .extension()
            .is_none_or(|extension| extension != "patch")
        {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(failed)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        mutants.push(Mutant {
            name: name.into_owned(),
            description: text.lines().next().unwrap_or_default().to_owned(),
            path,
        });
    }
    mutants.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(mutants)
}

/// Copies everything but what git and cargo keep.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        let is_kept = entry.file_name() == ".git" || source.join("CACHEDIR.TAG").exists();
        if kind.is_dir() && !is_kept {
            copy_tree(&source, &target)?;
        } else if kind.is_file() {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

fn judge(workspace: &Workspace, copy: &Path, target: &Path, mutant: Mutant) -> Verdict {
    let outcome = apply(copy, &mutant.path, false).and_then(|()| {
        let caught = build(workspace, copy, target).and_then(|()| hunt(target));
        apply(copy, &mutant.path, true)?;
        caught
    });
    Verdict {
        name: mutant.name,
        description: mutant.description,
        outcome,
    }
}

fn apply(copy: &Path, patch: &Path, reverse: bool) -> Result<(), String> {
    let mut command = Command::new("git");
    command.current_dir(copy).arg("apply");
    if reverse {
        command.arg("--reverse");
    }
    // The copy may lie inside another repository, whose paths would be meant.
    command.env("GIT_CEILING_DIRECTORIES", copy.parent().unwrap_or(copy));
    let output = command.arg(patch).output();
    let output = output.map_err(|error| format!("cannot start git: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    Err(format!("the patch does not apply: {}", reason.trim()))
}

fn build(workspace: &Workspace, copy: &Path, target: &Path) -> Result<(), String> {
    let status = Command::new(workspace.cargo_path())
        .current_dir(copy)
        .args([
            "build",
            "--quiet",
            "--locked",
            "--profile",
            "verify",
            "-p",
            "areo-sim",
        ])
        .args(["--example", "hunt", "--target-dir"])
        .arg(target)
        // A few seconds of running do not earn the time to optimise every mutant.
        .env("CARGO_PROFILE_VERIFY_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_VERIFY_DEBUG", "0")
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err("the planted bug does not compile".to_owned()),
    }
}

/// Runs seeds until the bug shows.
fn hunt(target: &Path) -> Result<(String, String), String> {
    let output = Command::new(target.join("verify/examples/hunt"))
        .args(["0", SEEDS, OPERATIONS])
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start the simulator: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    caught(&text).ok_or_else(|| format!("NOT CAUGHT by {SEEDS} seeds"))
}

/// Seeds and rule from the last line of the hunt.
fn caught(text: &str) -> Option<(String, String)> {
    let line = text
        .lines()
        .find(|line| line.starts_with("caught by seed"))?;
    let (_, after) = line.split_once(" after ")?;
    let (seeds, violation) = after.split_once(" seeds: ")?;
    let (rule, _) = violation.split_once(':').unwrap_or((violation, ""));
    Some((seeds.to_owned(), rule.to_owned()))
}

fn table(verdicts: &[Verdict]) -> String {
    let mut text = String::from("| planted bug | | seeds until caught | by |\n|---|---|---|---|\n");
    for verdict in verdicts {
        let (seeds, rule) = match &verdict.outcome {
            Ok((seeds, rule)) => (seeds.as_str(), rule.as_str()),
            Err(reason) => (reason.as_str(), ""),
        };
        let (name, description) = (&verdict.name, &verdict.description);
        writeln!(text, "| {name} | {description} | {seeds} | {rule} |").expect("memory takes it");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Verdict, caught, table};

    #[test]
    fn the_last_line_of_a_hunt_is_understood() {
        let text = "drop 3\ncaught by seed 7 after 8 seeds: one_value_per_tag: two values\n";
        let (seeds, rule) = caught(text).expect("it was caught");
        assert_eq!((seeds.as_str(), rule.as_str()), ("8", "one_value_per_tag"));
        assert_eq!(caught("8 seeds, 9 operations\n"), None);
    }

    #[test]
    fn a_bug_that_was_not_caught_stands_out() {
        let verdict = Verdict {
            name: "01-a".into(),
            description: "What.".into(),
            outcome: Err("NOT CAUGHT by 9 seeds".into()),
        };
        assert!(table(&[verdict]).contains("| 01-a | What. | NOT CAUGHT by 9 seeds |"));
    }
}
