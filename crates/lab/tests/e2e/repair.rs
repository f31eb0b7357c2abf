//! Measuring how servers repair themselves, from the command line. How long anything takes is not asserted.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::line;

#[test]
fn a_server_repairs_itself_rots_and_is_replaced_while_clients_work() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().to_str().unwrap();
    let small = "bench repair --json --seed 3 --time 300ms --objects 40 --size 64KiB --rounds 1";
    let run = line(
        &format!("{small} --flips 30 --kills 2 --clients 2 --data {path}"),
        &[],
    )
    .done();
    let report = run.objects().remove(0);
    assert_eq!(report["failed"], 0, "{report}");
    assert_eq!(report["not_full"], 0, "{report}");
    assert_eq!(report["shape"], "ec [5,3]");
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let round = &report["rounds"][0];
    let (share, received) = (
        number(&round["share_bytes"]),
        number(&round["received_bytes"]),
    );
    // It is sent what it lacks once, and not much else.
    assert!((share..2.0 * share).contains(&received), "{round}");
    // It is killed while a few objects come to it, and goes on with the others.
    let killed = &report["killed"];
    let lacking: Vec<f64> = killed["lacking"]
        .as_array()
        .unwrap()
        .iter()
        .map(number)
        .collect();
    assert_eq!((lacking.len(), lacking[0]), (3, 20.0), "{killed}");
    assert!(
        lacking.is_sorted_by(|before, after| before > after),
        "{killed}"
    );
    let found = number(&report["rot"]["found"]);
    assert!((1.0..=30.0).contains(&found), "{report}");
    let replaced = &report["replaced"];
    assert!(number(&replaced["received_bytes"]) >= number(&replaced["share_bytes"]));
    assert!(number(&report["without"]["operations"]) > 0.0, "{report}");
    assert!(std::fs::read_dir(path).unwrap().next().is_none());
}

#[test]
fn copies_are_no_elements_to_be_measured() {
    let small = line("bench repair --objects 10 --size 1KiB", &[]);
    small.refused(2, &["64 KiB", "copies"]);
}
