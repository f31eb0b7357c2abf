//! Servers that are far apart, from the command line. How long anything takes is not asserted, rounds are.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::line;

#[test]
fn a_put_takes_two_rounds_and_a_quiet_get_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (html, again, printed) = (file("page.html"), file("again.html"), file("printed.json"));
    let far = "bench wide-area --json --near 4ms --far 10ms --operations 2 --loss 2 --html";
    let report = line(far, &[&html]).done().objects().remove(0);
    assert_eq!(report["broken"].as_array().unwrap().len(), 0, "{report}");
    let points = report["points"].as_array().unwrap();
    // Of three domains: put and get from three sites, and one that gets what another one puts.
    assert_eq!(points.len(), 3 * (2 * 3 + 1));
    for point in points {
        let trip: f64 = if point["client"] == "C" { 10.0 } else { 4.0 };
        assert_eq!(point["round_trip_ms"], trip, "{point}");
        for by in point["by_rounds"].as_array().unwrap() {
            // Nothing is faster than what the proxy delays.
            let least = if point["operation"] == "put" {
                2.0
            } else {
                1.0
            };
            assert!(
                by["round_trips"].as_f64().unwrap() > 0.999 * least,
                "{point}"
            );
        }
    }
    let count = |of: &dyn Fn(&serde_json::Value) -> bool| {
        let of = points.iter().filter(|point| of(point));
        let by = of.flat_map(|point| point["by_rounds"].as_array().unwrap());
        by.map(|by| by["times"]["count"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!(count(&|point| point["operation"] == "put"), 3 * 3 * 2);
    assert_eq!(count(&|point| point["beside"] == "B"), 3 * 4 * 2);
    std::fs::write(&printed, serde_json::to_vec(&report).unwrap()).unwrap();
    line("bench report", &[&printed, "--html", &again]).done();
    let read = |file: &str| std::fs::read_to_string(file).unwrap();
    assert!(read(&html).contains("by_rounds"));
    assert!(read(&html) == read(&again), "drawn again");
}

#[test]
fn what_cannot_be_far_apart_is_one_sentence() {
    let measure = |more: &[&str]| line("bench wide-area", more);
    measure(&["--near", "0s"]).refused(2, &["0s"]);
    measure(&["--loss", "101"]).refused(2, &["101", "0..=100"]);
    measure(&["--size", "5MiB"]).refused(2, &["4MiB", "5MiB"]);
    measure(&["--data", "/no/such/place"]).refused(2, &["/no/such/place", "no directory"]);
    measure(&["--html", "/nowhere/at/all"]).refused(1, &["/nowhere/at/all"]);
}
