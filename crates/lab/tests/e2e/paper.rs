//! The papers' experiments, from the command line. Counts are asserted, by the command itself and here; how long anything
//! takes is not.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::command::on_the_path;
use crate::{lab_with, line, program};
use areo_bench::paper::{ChangesStage, ServerOptions};
use areo_sim::measure::{Experiment, PlannedRun, Reads, WAYS};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Repeats an experiment at the smallest scale. It ends well only if every law holds.
fn repeat(experiment: &str, data: &Path, more: &[&str]) -> Value {
    let data = data.to_str().unwrap();
    let quick = format!("paper {experiment} --scale quick --json --seed 7 --data {data}");
    let run = line(&quick, more).done();
    let report = run.objects().remove(0);
    assert_eq!(report["failed"], 0, "{report}");
    assert_eq!(report["scale"], "quick");
    for law in report["laws"].as_array().unwrap() {
        assert_eq!(law["holds"], true, "{law}");
    }
    assert!(std::fs::read_dir(data).unwrap().next().is_none());
    report
}

/// The median of a quantity of a variant.
fn median(report: &Value, variant: &str, at: &str, quantity: &str) -> f64 {
    let mut points = report["points"].as_array().unwrap().iter();
    let found = points.find(|point| point["variant"] == variant && point["at"] == at);
    let found = found.unwrap_or_else(|| panic!("there is no {variant} at {at}"));
    found["values"][quantity]["median"].as_f64().unwrap()
}

#[test]
fn a_larger_file_is_read_and_written_by_every_variant() {
    let data = tempfile::tempdir().unwrap();
    let report = repeat("E1", data.path(), &[]);
    let rounds = |variant| median(&report, variant, "64 KiB", "read_rounds");
    for variant in ["ARESABD", "ARESEC", "CoARESABD", "CoARESEC"] {
        // A fourth one only where a member lacks the version: writing back to none is no round.
        assert!(rounds(variant) >= 3.0, "{variant}: {report}");
    }
    // Every block has rounds of its own.
    for file in ["CoARESABDF", "CoARESECF"] {
        assert!(rounds(file) > rounds("CoARESABD"), "{file}: {report}");
    }
    // [5,3]: a third of the value to each of five servers, where replication sends all of it to each.
    let sent = |variant| median(&report, variant, "64 KiB", "write_bytes");
    assert!(sent("ARESEC") < sent("ARESABD") / 2.0, "{report}");
}

#[test]
fn pointers_on_replies_save_rounds() {
    let data = tempfile::tempdir().unwrap();
    let report = repeat("E6", data.path(), &[]);
    let rounds = |variant: &str, quantity| median(&report, variant, "64 KiB", quantity);
    for variant in [
        "ARESABD",
        "ARESEC",
        "CoARESABD",
        "CoARESEC",
        "CoARESABDF",
        "CoARESECF",
    ] {
        let with = format!("{variant} PB");
        for quantity in ["read_rounds", "write_rounds"] {
            let (with, without) = (rounds(&with, quantity), rounds(variant, quantity));
            assert!(with < without, "{quantity} of {variant}: {report}");
        }
    }
}

#[test]
fn collection_leads_from_the_first_configuration_to_the_last() {
    let (data, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (csv, html) = (file("e7.csv"), file("e7.html"));
    let report = repeat("E7", data.path(), &["--csv", &csv, "--html", &html]);
    let mut longest = 0.0_f64;
    for at in ["(a) 64 KiB", "(b) 64 KiB"] {
        for variant in ["ARES", "CoARES", "CoARESF"] {
            let visited = |extras: &str| {
                let variant = format!("{variant}{extras}");
                median(&report, &variant, at, "read_configurations")
            };
            let collected = visited(" PB+GC");
            assert!((collected - 2.0).abs() < 1e-9, "{variant} {at}: {report}");
            longest = longest.max(visited("")).max(visited(" PB"));
        }
    }
    // A server that missed a configuration leads on directly; all of them never do.
    assert!(longest > 2.0, "{report}");
    let csv = std::fs::read_to_string(csv).unwrap();
    let points = report["points"].as_array().unwrap().len();
    assert_eq!(points, 18, "{report}");
    let measured = csv.lines().filter(|line| line.starts_with("measured,"));
    assert_eq!(measured.count(), 5 * points, "{csv}");
    // The printed report makes an equal page.
    let (printed, again) = (file("printed.json"), file("again.html"));
    std::fs::write(&printed, serde_json::to_vec(&report).unwrap()).unwrap();
    line("bench report", &[&printed, "--html", &again]).done();
    let read = |file: &str| std::fs::read_to_string(file).unwrap();
    assert!(read(&html) == read(&again), "drawn again");
}

#[test]
fn the_more_fragments_make_a_value_the_less_a_write_sends() {
    let data = tempfile::tempdir().unwrap();
    let report = repeat("E4", data.path(), &[]);
    for variant in ["ARESEC", "CoARESEC"] {
        let sent = |k| median(&report, variant, &format!("64 KiB k={k}"), "write_bytes");
        assert!(sent(4) < sent(2) * 0.6, "{variant}: {report}");
    }
}

/// One of the papers' EC-DAPs writes back every read, and the other does not receive a known version again: the laws
/// count that.
#[test]
fn the_papers_erasure_codes_are_compared() {
    let data = tempfile::tempdir().unwrap();
    let report = repeat("P2", data.path(), &[]);
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), 4, "{report}");
    let sent = |variant| median(&report, variant, "64 KiB", "write_bytes");
    for variant in ["ARESEC", "ARESEC (EC-DAP)", "ARESEC (EC-DAPopt)"] {
        assert!(sent(variant) < sent("ARESABD") / 2.0, "{variant}: {report}");
    }
    let laws = report["laws"].as_array().unwrap();
    let rounds = |variant: &str| {
        let of =
            |law: &&Value| law["variant"] == variant && law["what"] == "rounds of a read, quiet";
        laws.iter().find(of).unwrap()["measured"].clone()
    };
    assert_eq!(rounds("ARESEC (EC-DAP)"), "4");
    assert_eq!(rounds("ARESEC (EC-DAPopt)"), "3");
}

#[test]
fn etcd_decides_where_the_experiment_has_an_external_service() {
    let data = tempfile::tempdir().unwrap();
    let report = repeat("E5", data.path(), &[]);
    let variants = ["ARES (etcd)", "ARES PB+GC (etcd)"];
    if !on_the_path("etcd") {
        let said = variants.map(|variant| format!("{variant}: not run: no etcd on the PATH"));
        assert_eq!(report["not_run"], serde_json::json!(said));
        areo_fuzzing::not_run("there is no etcd on the PATH");
        return;
    }
    assert_eq!(report["not_run"], serde_json::json!([]));
    for variant in variants.iter().chain(&["ARES", "ARES PB+GC"]) {
        for at in ["64 KiB G=1", "64 KiB G=2"] {
            let changed = median(&report, variant, at, "reconfigurations");
            assert!(changed >= 1.0, "{variant} {at}: {report}");
        }
    }
    let mut ratios = report["comparisons"].as_array().unwrap().iter();
    let is_outside = |of: &&Value| {
        of["above"] == "ARES (etcd)"
            && of["below"] == "ARES"
            && of["quantity"] == "reconfiguration_ms"
    };
    assert!(ratios.any(|of| is_outside(&of)), "{report}");
}

#[test]
fn what_there_is_and_what_not_is_said() {
    let listed = line("paper list --json", &[]).done();
    let listed = listed.objects();
    let of = |name: &str| listed.iter().find(|of| of["experiment"] == name).unwrap();
    assert_eq!(of("E7")["missing"], "");
    assert_ne!(of("P5")["missing"], "");
    let without = lab_with(&[("PATH", Path::new("/nowhere"))], &["paper", "list"]);
    let without = without.done();
    assert!(
        without.text().contains("not run: no etcd on the PATH"),
        "{}",
        without.text()
    );
    let paper = |more: &[&str]| line("paper", more);
    paper(&["E9"]).refused(2, &["E9", "there is no experiment", "E1"]);
    paper(&["P5"]).refused(2, &["P5", "one machine"]);
    assert_ne!(of("S4")["missing"], "");
    paper(&["S4"]).refused(2, &["S4", "virtual time", "areo-lab measure S4"]);
    assert_eq!(
        (&of("J1")["missing"], of("J5")["missing"] == ""),
        (&"".into(), false)
    );
    paper(&["J5"]).refused(2, &["J5", "virtual time", "areo-lab measure J5"]);
    paper(&["J1", "--csv", "/nowhere/j1.csv"]).refused(2, &["J1", "--csv", "--json"]);
    paper(&["E1", "--scale", "huge"]).refused(2, &["huge", "quick, default, full"]);
    paper(&["E1", "--data", "/no/such/place"]).refused(2, &["/no/such/place", "no directory"]);
    paper(&["E1", "--csv", "/no/such/place/e1.csv"]).refused(1, &["/no/such/place/e1.csv"]);
    paper(&["E1", "--html", "/no/such/place/e1.html"]).refused(1, &["/no/such/place/e1.html"]);
    paper(&[]).refused(2, &["EXPERIMENT"]);
}

/// Readers pay what they have to, and every change is made, in each way to reconfigure.
#[test]
fn changes_at_once_are_made_beside_thrifty_and_regular_readers() {
    program();
    let data = tempfile::tempdir().unwrap();
    let (servers, quorum, changes) = (4, 3, 2);
    let options = ServerOptions {
        program: areo_lab::shared::servers(None).unwrap(),
        seed: 7,
        data: data.path().into(),
        timeout: Duration::from_secs(30),
        round_trip: None,
    };
    let work = async {
        let margin = Duration::from_millis(50);
        let stage = ChangesStage::start(&options, servers + changes, margin).await;
        let stage = stage.unwrap();
        for way in WAYS {
            for (reads, rounds) in [(Reads::Thrifty, 2), (Reads::Regular, 1)] {
                let experiment = Experiment {
                    servers,
                    readers: 2,
                    bytes: 100,
                    reads,
                    ..*Experiment::find("J1").unwrap()
                };
                let plan = PlannedRun {
                    experiment: &experiment,
                    way,
                    reconfigurers: changes,
                    seed: 7,
                    pause: Some(Duration::from_millis(5)),
                };
                let made = stage.run(&plan).await.unwrap();
                let quiet = made.reads.iter().filter(|read| read.configurations == 1);
                let least = quiet.map(|read| read.requests).min();
                assert_eq!(least, Some(rounds * quorum), "{}", way.name);
                assert_eq!(made.changes.len(), changes, "{}", way.name);
                assert!((1..=4).contains(&made.configurations), "{}", way.name);
            }
        }
    };
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(work);
}
