//! Measuring what is noticed of servers that fail, from the command line. How long anything takes is not asserted.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::line;

#[test]
fn no_operation_fails_while_as_many_servers_fail_as_may() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().to_str().unwrap();
    let measure = |more: &[&str]| {
        let small = "bench availability --json --seed 3 --time 300ms --objects 50 --data";
        let run = line(&format!("{small} {path}"), more).done();
        run.objects().remove(0)
    };
    for (more, shape, at_once) in [
        (
            ["--failures", "2", "--dap", "ec", "--clients", "4"].as_slice(),
            "ec [5,3]",
            1,
        ),
        (
            &["--failures", "2", "--dap", "abd", "--stop"],
            "abd [5,1]",
            2,
        ),
    ] {
        let report = measure(more);
        assert_eq!(report["failed"], 0, "{report}");
        assert_eq!(
            (&report["shape"], &report["failing_at_once"]),
            (&shape.into(), &at_once.into())
        );
        let sets = report["failed_servers"].as_array().unwrap();
        assert_eq!(sets.len(), 2);
        assert!(
            sets.iter()
                .all(|set| set.as_array().unwrap().len() == at_once),
            "{report}"
        );
        assert_ne!(sets[0], sets[1], "another set of servers each time");
        for phase in ["without", "with"] {
            assert!(
                report[phase]["operations"].as_u64().unwrap() > 0,
                "{report}"
            );
        }
    }
    assert!(std::fs::read_dir(path).unwrap().next().is_none());
}

#[test]
fn what_cannot_be_measured_is_one_sentence() {
    let measure = |more: &[&str]| line("bench availability", more);
    measure(&["--servers", "2"]).refused(2, &["2", "3..=16"]);
    measure(&["--k", "5"]).refused(2, &["ec [5,5]", "all of its servers"]);
    measure(&["--k", "6"]).refused(2, &["6"]);
    measure(&["--dap", "abd", "--k", "2"]).refused(2, &["--dap ec"]);
    measure(&["--durability", "memory"]).refused(2, &["--stop"]);
    measure(&["--data", "/no/such/place"]).refused(2, &["/no/such/place", "no directory"]);
}
