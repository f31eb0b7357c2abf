//! `cargo xtask mutants`: plants one bug after the other and requires that each is caught: those under
//! `crates/sim/mutants` by the simulator, those under `crates/store/mutants` and `crates/steward/mutants` by the tests of that crate. A harness that has
//! never been seen to fail proves nothing.
//!
//! A bug is a patch whose first line tells what is wrong. A second line names another harness:
//!
//! | second line | what must catch the bug |
//! |---|---|
//! | `explored: CASE` | random seeds, and following every schedule of that case |
//! | `explored alone: CASE` | that case; random seeds hardly ever show the bug |
//! | `tested: CRATE` | the tests of that crate; neither seeds nor a case of the explorer show the bug |
//! | `tested: CRATE ARGUMENTS` | the tests that `cargo test -p CRATE` runs with these arguments |
//!
//! A patch is applied to a copy of the tree, never to the tree itself. The copy and its build stay in `target/mutants`, so that cargo
//! compiles again only the crate that a bug is in and the crates that use it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::workspace::Workspace;

/// Folders of patches, each with the crate whose tests must catch the bugs; `None`: the simulator must.
const PATCHES: &[(&str, Option<&str>)] = &[
    ("crates/sim/mutants", None),
    ("crates/store/mutants", Some("areo-store")),
    ("crates/steward/mutants", Some("areo-steward")),
];
/// The document that records the run that caught a bug.
const RECORD: &str = "docs/track-record.md";
/// A bug that so many seeds do not show counts as not caught.
const SEEDS: &str = "1000";
const OPERATIONS: &str = "300";
/// Schedulers of the simulator. One of them must catch the bug.
const SCHEDULERS: [&str; 2] = ["random", "pct"];

/// The tests that must catch a planted bug.
#[derive(PartialEq, Eq, Debug)]
enum Harness {
    /// Random seeds, one after the other; then every schedule of the case, if there is one.
    Seeds { then: Option<String> },
    /// Every schedule of the case.
    Case(String),
    /// The tests of the crate that `cargo test` runs with the arguments; without arguments, all of them.
    Tests {
        package: String,
        arguments: Vec<String>,
    },
}

/// A planted bug, as its patch describes it.
struct Mutant {
    harness: Harness,
    name: String,
    path: PathBuf,
    description: String,
}

/// The result of running the harness on a planted bug.
struct Verdict {
    name: String,
    description: String,
    /// Seeds until it was caught, if seeds did, and the rule or the test that noticed; or why it was not.
    outcome: Result<(String, String), String>,
}

/// Plants every bug, or those whose names contain `only`, or one of several with commas between them.
pub(crate) fn run(workspace: &Workspace, only: Option<&str>) -> Result<(), String> {
    let mut mutants = all(workspace)?;
    mutants.retain(|mutant| {
        only.is_none_or(|only| only.split(',').any(|part| mutant.name.contains(part)))
    });
    if mutants.is_empty() {
        return Err("no planted bug has such a name".to_owned());
    }
    let target = workspace.root().join("target/mutants");
    let copy = target.join("tree");
    let failed = |error| format!("cannot copy the tree to {}: {error}", copy.display());
    // Two runs would plant their bugs in one copy. The second run waits until the first one closes the file.
    let _alone = lock(&target).map_err(failed)?;
    copy_tree(workspace.root(), &copy).map_err(failed)?;
    let judge = |mutant: Mutant| {
        println!("planting {}: {}", mutant.name, mutant.description);
        let verdict = judge(workspace, &copy, &target, mutant);
        // Printed at once: a run takes long, and may be stopped.
        println!("{}", row(&verdict));
        verdict
    };
    let verdicts: Vec<Verdict> = mutants.into_iter().map(judge).collect();
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

/// Requires that every bug was seen caught, and can still be planted: what is compiled and hunted by hand only must not rot meanwhile.
/// Nothing but a Rust toolchain may be needed to verify: who has the tree without git does not change it for others.
pub(crate) fn can_be_planted(workspace: &Workspace) -> Result<(), String> {
    let mutants = all(workspace)?;
    let record = fs::read_to_string(workspace.root().join(RECORD));
    let record = record.map_err(|error| format!("cannot read {RECORD}: {error}"))?;
    let names = mutants.iter().map(|mutant| mutant.name.as_str());
    let unseen = without_row(names, &record);
    if !unseen.is_empty() {
        return Err(format!("no row in {RECORD}: {}", unseen.join(", ")));
    }
    let git = Command::new("git").arg("--version").output();
    if git.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        println!("not run: `git` is not installed");
        return Ok(());
    }
    let failures: Vec<String> = mutants
        .iter()
        .filter_map(|mutant| {
            let outcome = apply(workspace.root(), &mutant.path, Some("--check"));
            outcome.err().map(|why| format!("{}: {why}", mutant.name))
        })
        .collect();
    if failures.is_empty() {
        println!("{} planted bugs apply", mutants.len());
        return Ok(());
    }
    Err(failures.join("\n"))
}

/// The bugs that no row of a table begins with.
fn without_row<'a>(names: impl Iterator<Item = &'a str>, record: &str) -> Vec<&'a str> {
    let lines = record.lines();
    let rows: BTreeSet<&str> = lines
        .filter_map(|line| Some(line.strip_prefix("| ")?.split_once(" |")?.0))
        .collect();
    names.filter(|name| !rows.contains(*name)).collect()
}

fn all(workspace: &Workspace) -> Result<Vec<Mutant>, String> {
    let mut mutants = Vec::new();
    for (folder, tested) in PATCHES {
        mutants.extend(list(&workspace.root().join(folder), folder, *tested)?);
    }
    Ok(mutants)
}

/// The patches of a folder, named `crate/patch`.
fn list(directory: &Path, folder: &str, tested: Option<&str>) -> Result<Vec<Mutant>, String> {
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
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let krate = folder.split('/').nth(1).unwrap_or_default();
        mutants.push(Mutant {
            harness: harness(&text, tested),
            name: format!("{krate}/{stem}"),
            description: text.lines().next().unwrap_or_default().to_owned(),
            path,
        });
    }
    mutants.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(mutants)
}

fn lock(target: &Path) -> io::Result<fs::File> {
    fs::create_dir_all(target)?;
    let file = fs::File::create(target.join("lock"))?;
    file.lock().map(|()| file)
}

/// Makes a directory equal to another one, except for the directories of git and of cargo's builds. An equal file is not written
/// again, because cargo would compile its crate again.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(to)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        match from.join(name).symlink_metadata() {
            Err(_) if path.is_dir() => fs::remove_dir_all(path)?,
            Err(_) => fs::remove_file(path)?,
            Ok(_) => {}
        }
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        // The copy is below the directory of builds, which cargo marks only with its first build.
        let is_kept = entry.file_name() == ".git" || to.starts_with(&source);
        if kind.is_dir() && !is_kept && !source.join("CACHEDIR.TAG").exists() {
            copy_tree(&source, &target)?;
        } else if kind.is_file() && fs::read(&target).ok() != Some(fs::read(&source)?) {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

fn judge(workspace: &Workspace, copy: &Path, target: &Path, mutant: Mutant) -> Verdict {
    let outcome = apply(copy, &mutant.path, None).and_then(|()| {
        let caught = match &mutant.harness {
            Harness::Tests { package, arguments } => {
                test(workspace, copy, target, package, arguments)
            }
            harness => build(workspace, copy, target).and_then(|()| catch(target, harness)),
        };
        apply(copy, &mutant.path, Some("--reverse"))?;
        caught
    });
    Verdict {
        name: mutant.name,
        description: mutant.description,
        outcome,
    }
}

/// Applies a patch to the tree, or what `how` says instead.
fn apply(tree: &Path, patch: &Path, how: Option<&str>) -> Result<(), String> {
    let mut command = Command::new("git");
    command.current_dir(tree).arg("apply").args(how);
    // The tree may lie inside another repository, whose paths would be meant.
    command.env("GIT_CEILING_DIRECTORIES", tree.parent().unwrap_or(tree));
    let output = command.arg(patch).output();
    let output = output.map_err(|error| format!("cannot start git: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    Err(format!("the patch does not apply: {}", reason.trim()))
}

/// Crates that a planted bug makes cargo compile again, and that the profile optimises.
const OPTIMISED: [&str; 7] = [
    "areo-check",
    "areo-core",
    "areo-fuzzing",
    "areo-node",
    "areo-sim",
    "areo-store",
    "areo-wire",
];
/// Other crates that a planted bug makes cargo compile again.
const COMPILED: [&str; 5] = [
    "areo",
    "areo-client",
    "areo-net",
    "areo-server",
    "areo-trust",
];

/// Cargo in the copy. Compiling takes longer than the tests of most bugs: it is incremental, and optimises little.
fn cargo(workspace: &Workspace, copy: &Path, target: &Path, subcommand: &str) -> Command {
    let mut command = Command::new(workspace.cargo_path());
    command
        .current_dir(copy)
        .env("CARGO_INCREMENTAL", "1")
        .args([subcommand, "--quiet", "--locked", "--profile", "verify"])
        .arg("--target-dir")
        .arg(target)
        .stderr(Stdio::null());
    for package in OPTIMISED {
        let option = format!("profile.verify.package.{package}.opt-level=1");
        command.args(["--config", &option]);
    }
    for package in OPTIMISED.iter().chain(&COMPILED) {
        let option = format!("profile.verify.package.{package}.codegen-units=256");
        command.args(["--config", &option]);
    }
    command
}

fn build(workspace: &Workspace, copy: &Path, target: &Path) -> Result<(), String> {
    let status = cargo(workspace, copy, target, "build")
        .args([
            "-p",
            "areo-sim",
            "--example",
            "hunt",
            "--example",
            "explore",
        ])
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err("the planted bug does not compile".to_owned()),
    }
}

/// Runs the tests of a crate, or those that the arguments select; the first test that fails caught the bug.
fn test(
    workspace: &Workspace,
    copy: &Path,
    target: &Path,
    package: &str,
    arguments: &[String],
) -> Result<(String, String), String> {
    let test = |option| {
        let mut command = cargo(workspace, copy, target, "test");
        command.args(["-p", package, option]);
        match arguments {
            [] => command.arg("--tests"),
            selected => command.args(selected),
        };
        command
    };
    // Only a bug that compiles can be caught.
    let built = test("--no-run").status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("the planted bug does not compile".to_owned());
    }
    let output = test("--no-fail-fast").output();
    let output = output.map_err(|error| format!("cannot start cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let failed = failed_tests(&text);
    match failed.first() {
        None => Err(format!("NOT CAUGHT by the tests of {package}")),
        Some(first) => {
            let tests = if failed.len() == 1 { "test" } else { "tests" };
            Ok((
                "–".to_owned(),
                format!("{first} ({} {tests})", failed.len()),
            ))
        }
    }
}

/// The names of the tests that failed, from what the test harness prints of each.
fn failed_tests(text: &str) -> Vec<String> {
    let panicked = text.lines().filter_map(|line| line.strip_prefix("---- "));
    let names = panicked.filter_map(|line| line.strip_suffix(" stdout ----"));
    names
        .map(|name| name.replace(" - should panic", ""))
        .collect()
}

/// Seeds, every schedule of a case, or both: what must show the bug.
fn catch(target: &Path, harness: &Harness) -> Result<(String, String), String> {
    let (seeds, rule, case) = match harness {
        Harness::Seeds { then } => {
            let (seeds, rule) = hunt(target)?;
            (seeds, Some(rule), then.as_ref())
        }
        Harness::Case(case) => ("–".to_owned(), None, Some(case)),
        Harness::Tests { .. } => unreachable!("tests are not run by the simulator"),
    };
    let Some(case) = case else {
        return Ok((seeds, rule.unwrap_or_default()));
    };
    let text = output(target, "explore", &[case])?;
    let (states, explored) = caught(&text, "states")
        .ok_or_else(|| format!("NOT CAUGHT by following every schedule of {case}"))?;
    let explored = format!("exploring `{case}`: {explored}, {states} states");
    let rules: Vec<String> = rule.into_iter().chain([explored]).collect();
    Ok((seeds, rules.join("; ")))
}

/// Runs seeds until the bug shows, with one scheduler after the other.
fn hunt(target: &Path) -> Result<(String, String), String> {
    let (mut seeds, mut rules) = (Vec::new(), Vec::new());
    for scheduler in SCHEDULERS {
        let text = output(target, "hunt", &["0", SEEDS, OPERATIONS, scheduler])?;
        let (until, rule) = caught(&text, "seeds").unzip();
        seeds.push(until.unwrap_or_else(|| "–".into()));
        rules.extend(rule);
    }
    let rule = rules.into_iter().next();
    let rule = rule.ok_or_else(|| format!("NOT CAUGHT by {SEEDS} seeds"))?;
    Ok((seeds.join(" / "), rule))
}

fn output(target: &Path, example: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(target.join("verify/examples").join(example))
        .args(arguments)
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start the simulator: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The harness that the second line of a patch names; else the tests of the crate that is `tested`; else the
/// simulator.
fn harness(patch: &str, tested: Option<&str>) -> Harness {
    let second = patch.lines().nth(1).unwrap_or_default();
    let tests = |names: &str| {
        let mut words = names.split_whitespace().map(str::to_owned);
        Harness::Tests {
            package: words.next().unwrap_or_default(),
            arguments: words.collect(),
        }
    };
    match second.split_once(": ") {
        Some(("explored", case)) => Harness::Seeds {
            then: Some(case.to_owned()),
        },
        Some(("explored alone", case)) => Harness::Case(case.to_owned()),
        Some(("tested", names)) => tests(names),
        _ => tested.map_or(Harness::Seeds { then: None }, tests),
    }
}

/// The number of runs, and the rule, from the line that reports the caught bug.
fn caught(text: &str, what: &str) -> Option<(String, String)> {
    let line = text.lines().find(|line| line.starts_with("caught by "))?;
    let (_, after) = line.split_once(" after ")?;
    let (number, violation) = after.split_once(&format!(" {what}: "))?;
    let (rule, _) = violation.split_once(':').unwrap_or((violation, ""));
    Some((number.to_owned(), rule.to_owned()))
}

fn table(verdicts: &[Verdict]) -> String {
    let mut text = String::from(
        "| planted bug | | seeds until caught, random / pct | by |\n|---|---|---|---|\n",
    );
    for verdict in verdicts {
        writeln!(text, "{}", row(verdict)).expect("memory takes it");
    }
    text
}

fn row(verdict: &Verdict) -> String {
    let (seeds, rule) = match &verdict.outcome {
        Ok((seeds, rule)) => (seeds.as_str(), rule.as_str()),
        Err(reason) => (reason.as_str(), ""),
    };
    let (name, description) = (&verdict.name, &verdict.description);
    format!("| {name} | {description} | {seeds} | {rule} |")
}

#[cfg(test)]
mod tests;
