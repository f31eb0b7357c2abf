//! `cargo xtask verify`: what must hold before a change is merged. Never writes into the tree.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::workspace::Workspace;
use crate::{deny, layers, mutants, python, tidy};

/// One thing to check. Cheap steps first, so that a slip is found in seconds.
struct Step {
    name: &'static str,
    run: fn(&Workspace) -> Result<(), String>,
    /// Advice for a step that fails.
    advice: &'static str,
}

/// `--locked` everywhere: a stale `Cargo.lock` is a failure, not something to rewrite.
const STEPS: &[Step] = &[
    Step {
        name: "format",
        run: |workspace| {
            workspace.cargo(&["fmt", "--all", "--check"], &[])?;
            let python = ["fmt", "--manifest-path", python::MANIFEST, "--check"];
            workspace.cargo(&python, &[])
        },
        advice: "run `cargo xtask fix`",
    },
    Step {
        name: "tidy",
        run: tidy::run,
        advice: "each line above names the place and what to do; `cargo xtask tidy` runs only this",
    },
    Step {
        name: "layers",
        run: layers::run,
        advice: "dependencies point down only; see ARCHITECTURE.md; `cargo xtask layers` runs only this",
    },
    Step {
        name: "locks",
        // What is outside the workspace: it needs another toolchain, clients of other stores, or Python.
        run: |workspace| {
            let current = |manifest| {
                workspace.cargo(&["fetch", "--locked", "--manifest-path", manifest], &[])
            };
            current("fuzz/Cargo.toml")?;
            current(python::MANIFEST)?;
            current(PEERS)
        },
        advice: "run `cargo fetch --manifest-path DIR/Cargo.toml` for `fuzz`, `peers` and `python`, and commit the locks",
    },
    Step {
        name: "deny",
        run: deny::run,
        advice: "choose another dependency, or extend deny.toml with a decision record",
    },
    Step {
        name: "planted",
        run: mutants::can_be_planted,
        advice: "write the patches named above anew for the code as it is now: each plants one bug that `cargo xtask mutants` hunts",
    },
    Step {
        name: "clippy",
        run: |workspace| {
            workspace.cargo(
                &[
                    "clippy",
                    "--workspace",
                    "--all-targets",
                    // As the tests, so that macros and build scripts are compiled once.
                    "--profile",
                    "verify",
                    "--locked",
                    "--",
                    "-D",
                    "warnings",
                ],
                &[],
            )
        },
        advice: "run `cargo xtask fix` for what a machine can repair; an `#[allow]` needs a reason",
    },
    Step {
        name: "features",
        run: |workspace| {
            let client = ["clippy", "-p", "areo-client", "--no-default-features"];
            let judged = ["--profile", "verify", "--locked", "--", "-D", "warnings"];
            workspace.cargo(&[client.as_slice(), &judged].concat(), &[])?;
            let next = ["clippy", "--workspace", "--features", "areo/next-version"];
            workspace.cargo(&[next.as_slice(), &judged].concat(), &[])
        },
        advice: "the library must compile without its features, and the product as a next version: see `[features]` in crates/client/Cargo.toml and crates/areo/Cargo.toml",
    },
    Step {
        name: "test",
        run: |workspace| {
            let skipped = skipped(workspace);
            // Those of the run before.
            drop(std::fs::remove_file(&skipped));
            workspace.cargo(
                &[
                    "test",
                    "--workspace",
                    // Not the examples: clippy has compiled them, and they have no tests.
                    "--lib",
                    "--bins",
                    "--tests",
                    "--profile",
                    "verify",
                    "--no-fail-fast",
                    "--locked",
                ],
                &[(NOT_RUN, &skipped)],
            )
        },
        advice: "the failing tests are listed above; run one with \
                 `cargo test --profile verify -p CRATE NAME -- --nocapture`",
    },
    Step {
        name: "peers",
        run: peers,
        advice: "the failing tests are listed above; peers/README.md says how they are run",
    },
    Step {
        name: "doctest",
        run: |workspace| {
            let arguments = [
                "test",
                "--workspace",
                "--doc",
                "--profile",
                "verify",
                "--locked",
            ];
            workspace.cargo(&arguments, &[])
        },
        advice: "the examples in the documentation comments named above do not work",
    },
    Step {
        name: "doc",
        run: |workspace| {
            let mut flags = std::env::var("RUSTDOCFLAGS").unwrap_or_default();
            flags.push_str(" -D warnings");
            let arguments = [
                "doc",
                "--workspace",
                "--no-deps",
                "--profile",
                "verify",
                "--locked",
            ];
            workspace.cargo(&arguments, &[("RUSTDOCFLAGS", flags.trim())])
        },
        advice: "mend the documentation comment named above",
    },
];

/// The variable with the file in which tests note that this machine cannot run them (`areo_fuzzing::not_run`).
const NOT_RUN: &str = "TESTS_NOT_RUN";

fn skipped(workspace: &Workspace) -> String {
    let file = workspace.root().join("target/not-run");
    file.to_string_lossy().into_owned()
}

/// The tests that this machine could not run, with what it lacks; empty if it ran all.
fn not_run(noted: &str) -> String {
    let lines: BTreeSet<&str> = noted.lines().collect();
    let lines = lines.iter().map(|line| format!("\nnot run: {line}"));
    lines.collect()
}

/// Other stores beside this one, outside the workspace.
const PEERS: &str = "peers/Cargo.toml";

/// The tests of `peers`, where there is what its clients are built with.
fn peers(workspace: &Workspace) -> Result<(), String> {
    workspace.cargo(&["fmt", "--manifest-path", PEERS, "--check"], &[])?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|folder| folder.join("protoc").is_file()) {
        println!("not run: there is no protoc on the PATH, and `etcd-client` is built with it");
        return Ok(());
    }
    let options = ["--manifest-path", PEERS, "--target-dir", "target/peers"];
    let options = [&options[..], &["--profile", "verify", "--locked"]].concat();
    workspace.cargo(&[&["test"], &options[..]].concat(), &[])
}

/// Runs the steps in order up to the first that fails, then says what was run and how long it took.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let (passed, failure) = run_steps(STEPS, workspace);
    println!("\n{}", summary(STEPS, &passed, failure.as_ref()));
    let noted = std::fs::read_to_string(skipped(workspace)).unwrap_or_default();
    println!("{}", not_run(&noted));
    match failure {
        None => Ok(()),
        Some(failure) => {
            let step = &STEPS[passed.len()];
            Err(format!(
                "{}: {}\n  what to do: {}",
                step.name, failure.sentence, step.advice
            ))
        }
    }
}

struct Failure {
    sentence: String,
    time: Duration,
}

fn run_steps(steps: &[Step], workspace: &Workspace) -> (Vec<Duration>, Option<Failure>) {
    let mut passed = Vec::new();
    for step in steps {
        println!("\n== {} ==", step.name);
        let start = Instant::now();
        let outcome = (step.run)(workspace);
        let time = start.elapsed();
        match outcome {
            Ok(()) => {
                println!("== {} ok in {:.1} s ==", step.name, time.as_secs_f64());
                passed.push(time);
            }
            Err(sentence) => return (passed, Some(Failure { sentence, time })),
        }
    }
    (passed, None)
}

fn summary(steps: &[Step], passed: &[Duration], failure: Option<&Failure>) -> String {
    let mut lines = vec!["verify:".to_owned()];
    for (position, step) in steps.iter().enumerate() {
        let (word, time) = match (passed.get(position), failure) {
            (Some(time), _) => ("ok", Some(*time)),
            (None, Some(failure)) if position == passed.len() => ("FAILED", Some(failure.time)),
            (None, _) => ("not run", None),
        };
        let time = time
            .map(|time| format!("{:8.1} s", time.as_secs_f64()))
            .unwrap_or_default();
        lines.push(
            format!("  {:<10}{word:<8}{time}", step.name)
                .trim_end()
                .to_owned(),
        );
    }
    let total: Duration = passed
        .iter()
        .copied()
        .chain(failure.map(|failure| failure.time))
        .sum();
    let verdict = if failure.is_none() {
        "everything holds"
    } else {
        "FAILED"
    };
    lines.push(format!(
        "  {:<10}{:<8}{:8.1} s  {verdict}",
        "total",
        "",
        total.as_secs_f64()
    ));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{NOT_RUN, STEPS, Step, not_run, run_steps, summary};
    use crate::workspace::Workspace;

    #[test]
    fn tests_that_were_not_run_are_listed_once() {
        assert_eq!(not_run(""), "");
        let noted = "b: there is no cc\na: it needs root\nb: there is no cc\n";
        let listed = "\nnot run: a: it needs root\nnot run: b: there is no cc";
        assert_eq!(not_run(noted), listed);
    }

    /// Programs that the tests start inherit it, and refuse variables of the product that they do not know.
    #[test]
    fn tests_are_run_with_no_variable_of_the_product() {
        assert!(!NOT_RUN.starts_with("AREO_"));
    }

    #[test]
    fn a_failing_step_stops_the_run_and_is_told() {
        let steps = [
            Step {
                name: "first",
                run: |_| Ok(()),
                advice: "",
            },
            Step {
                name: "second",
                run: |_| Err("broken".to_owned()),
                advice: "",
            },
            Step {
                name: "third",
                run: |_| panic!("must not run"),
                advice: "",
            },
        ];
        let workspace = Workspace::locate().expect("tests run inside the workspace");
        let (passed, failure) = run_steps(&steps, &workspace);
        assert_eq!(passed.len(), 1);
        assert_eq!(
            failure.as_ref().map(|failure| failure.sentence.as_str()),
            Some("broken")
        );
        let text = summary(&steps, &passed, failure.as_ref());
        for expected in ["first     ok", "second    FAILED", "third     not run"] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(!text.contains("everything holds"));
    }

    #[test]
    fn every_step_says_what_to_do() {
        assert!(
            STEPS
                .iter()
                .all(|step| !step.name.is_empty() && !step.advice.is_empty())
        );
    }
}
