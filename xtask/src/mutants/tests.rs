use std::fs;
use std::path::PathBuf;

use super::{Harness, Verdict, caught, copy_tree, failed_tests, harness, table, without_row};

#[test]
fn the_last_line_of_a_hunt_is_understood() {
    let text = "drop 3\ncaught by seed 7 after 8 seeds: one_value_per_tag: two values\n";
    let (seeds, rule) = caught(text, "seeds").expect("it was caught");
    assert_eq!((seeds.as_str(), rule.as_str()), ("8", "one_value_per_tag"));
    assert_eq!(caught("8 seeds, 9 operations\n", "seeds"), None);
    let text = "client 0 begins\ncaught by abd-3 after 61 states: linearizable: a read\n";
    let (states, rule) = caught(text, "states").expect("it was caught");
    assert_eq!((states.as_str(), rule.as_str()), ("61", "linearizable"));
}

#[test]
fn a_patch_names_what_must_show_it() {
    let second =
        |line: &str, tested| harness(&format!("What is wrong.\n{line}\n--- a/x\n"), tested);
    let name = |name: &str| name.to_owned();
    let then = Some(name("abd-3"));
    assert_eq!(second("explored: abd-3", None), Harness::Seeds { then });
    let alone = second("explored alone: reconfigure", None);
    assert_eq!(alone, Harness::Case(name("reconfigure")));
    let tests = |package, arguments: &[&str]| Harness::Tests {
        package: name(package),
        arguments: arguments.iter().copied().map(name).collect(),
    };
    let tested = second("tested: areo-core", None);
    assert_eq!(tested, tests("areo-core", &[]));
    let tested = second("tested: areo --lib exit::", Some("areo-store"));
    assert_eq!(tested, tests("areo", &["--lib", "exit::"]));
    assert_eq!(second("", None), Harness::Seeds { then: None });
    let tested = second("", Some("areo-store"));
    assert_eq!(tested, tests("areo-store", &[]));
}

#[test]
fn a_bug_that_was_never_seen_caught_is_named() {
    let record = "| planted bug | by |\n|---|---|\n| sim/1-a | x |\nsim/2-b: | sim/3-c | x |\n";
    let names = ["sim/1-a", "sim/2-b", "sim/3-c", "sim/1"];
    let unseen = without_row(names.into_iter(), record);
    assert_eq!(unseen, ["sim/2-b", "sim/3-c", "sim/1"]);
}

#[test]
fn a_copy_keeps_what_is_equal_and_nothing_else() {
    let directory = std::env::temp_dir().join(format!("areo-mutants-{}", std::process::id()));
    let (from, to) = (directory.join("from"), directory.join("to"));
    let write = |path: PathBuf, content: &str| {
        fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
        fs::write(path, content).expect("a file");
    };
    for (name, content) in [
        ("a/equal", "1"),
        ("a/changed", "2"),
        ("target/CACHEDIR.TAG", "3"),
    ] {
        write(from.join(name), content);
    }
    for (name, content) in [("a/equal", "1"), ("a/changed", "x"), ("b/removed", "4")] {
        write(to.join(name), content);
    }
    let modified = || fs::metadata(to.join("a/equal")).and_then(|it| it.modified());
    let before = modified().expect("a file");
    copy_tree(&from, &to).expect("a copy");
    assert_eq!(modified().expect("a file"), before);
    let changed = fs::read_to_string(to.join("a/changed"));
    assert_eq!(changed.expect("a file"), "2");
    assert!(!to.join("b").exists() && !to.join("target").exists());
    fs::remove_dir_all(directory).expect("it was written here");
}

#[test]
fn failed_tests_are_understood() {
    let text = "running 2 tests\n.F\nfailures:\n\n---- a::b stdout ----\nthread 'a::b' panicked\n\nfailures:\n    a::b\n";
    assert_eq!(failed_tests(text), ["a::b"]);
    assert_eq!(failed_tests("running 2 tests\n..\n"), [""; 0]);
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
