//! `areo-lab bench repair`: how servers repair themselves, and what readers and writers notice of it.

use super::fares;
use crate::args::MeasureRepair;
use crate::cmd::Lab;
use areo::args::DurabilityWord;
use areo::exit::{Failure, Outcome};
use areo::output::{Output, columns};
use areo::progress;
use areo::units::show_size;
use areo_bench::repair::{self, Copied, Options, Report};
use areo_lab::shared::{finish, none_failed};

/// What is aimed at; `docs/benchmarks.md` has the figures that were reached.
const P99_AIM: f64 = 1.3;
/// Elements are fragments: a copy says nothing of their share.
const LEAST_BYTES: usize = 64 << 10;

pub(super) fn run(lab: &Lab<'_>, args: MeasureRepair) -> Outcome {
    let out = lab.out;
    if args.load.size < LEAST_BYTES {
        return Err(Failure::usage(
            "take objects of 64 KiB or more: smaller ones are kept as copies",
        ));
    }
    let options = Options {
        setup: fares::setup(lab, args.servers, DurabilityWord::Fsync, args.load)?,
        rounds: args.rounds,
        time: args.time,
        flips: args.flips,
    };
    fares::announce(out, &options.setup, &format!("{} rounds", options.rounds));
    let bar = progress::spinner(out, "measuring");
    let work = repair::run(options, |what| bar.set_message(what.to_owned()));
    let report = finish(out, ("the measurement", &bar), work, print)?;
    if report.not_full > 0 {
        return Err(Failure::other(format!(
            "{} objects are not at all servers in the end",
            report.not_full
        )));
    }
    none_failed(report.failed, &report.failures, Some(report.seed))
}

fn print(out: Output, report: &Report) -> Outcome {
    fares::print(out, &report.without, ("with repair", &report.with))?;
    out.line("")?;
    let head = columns("what | > bytes | > bytes that moved | > seconds | > MB/s | > cp, MB/s");
    let cell = |what: &str, bytes: f64, moved: Option<f64>, seconds: f64, cp: Option<Copied>| {
        #[allow(clippy::cast_sign_loss, reason = "there are no fewer than none")]
        let size = |bytes: f64| show_size(bytes as u64);
        vec![
            what.to_owned(),
            size(bytes),
            moved.map_or("-".into(), size),
            format!("{seconds:.2}"),
            format!("{:.0}", bytes / seconds / 1e6),
            cp.map_or("-".into(), |cp| format!("{:.0}", cp.speed() / 1e6)),
        ]
    };
    let mut rows: Vec<_> = report
        .rounds
        .iter()
        .map(|round| {
            let moved = Some(round.received_bytes);
            cell(
                "repair",
                round.share_bytes,
                moved,
                round.seconds,
                Some(round.cp),
            )
        })
        .collect();
    let verified = report.verified;
    rows.push(cell(
        "verification",
        verified.bytes,
        None,
        verified.seconds,
        None,
    ));
    let replaced = &report.replaced;
    let moved = Some(replaced.received_bytes);
    rows.push(cell(
        "replacement, with clients",
        replaced.share_bytes,
        moved,
        replaced.seconds,
        None,
    ));
    out.table(&head, &rows)?;
    let rot = &report.rot;
    out.line(&format!(
        "{} bits flipped: {:.0} objects were damaged, and whole again after {:.1} s; the replacement went on after {:.0} of {} objects",
        rot.flips, rot.found, rot.seconds, replaced.moved_before, report.objects
    ))?;
    out.line("")?;
    let ratio = |what: &str, ratio: f64| {
        let aim = format!("{what}, p99: 1.3 times as long with repair");
        (aim, format!("{ratio:.2} times"), ratio <= P99_AIM)
    };
    let aims = [
        (
            "no operation fails".to_owned(),
            report.failed.to_string(),
            report.failed == 0,
        ),
        ratio("reads", report.read_p99_ratio),
        ratio("writes", report.write_p99_ratio),
    ];
    fares::aims(out, &aims)
}
