//! `areo-lab bench repair`: how servers repair themselves, and what readers and writers notice of it.

use super::fares;
use crate::args::MeasureRepair;
use crate::cmd::Lab;
use areo::args::DurabilityWord;
use areo::exit::{Failure, Outcome};
use areo::output::{Output, columns};
use areo::progress;
use areo_bench::repair::{self, Copied, Killed, Options, Report};
use areo_client::units::show_size;
use areo_lab::shared::{finish, none_failed};

/// The goal for the ratio of p99 latencies; `docs/benchmarks.md` has the measured values.
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
        kills: args.kills,
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
    if !report.killed.always_went_on() {
        return Err(Failure::other(format!(
            "after a kill the server lacked no less than before: {:?} objects",
            report.killed.lacking
        )));
    }
    none_failed(report.failed, &report.failures, Some(report.seed))
}

fn print(out: Output, report: &Report) -> Outcome {
    fares::print(out, &report.without, ("with repair", &report.with))?;
    out.line("")?;
    speeds(out, report)?;
    let Killed { kills, lacking, .. } = &report.killed;
    if let (Some(first), Some(last)) = (lacking.first(), lacking.last()) {
        out.line(&format!(
            "{kills} kills while it repaired itself: it lacked {first} objects before the first and {last} after the last one"
        ))?;
    }
    let (rot, replaced) = (&report.rot, &report.replaced);
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
        fares::none_fails("", report.failed),
        ratio("reads", report.read_p99_ratio),
        ratio("writes", report.write_p99_ratio),
    ];
    fares::aims(out, &aims)
}

/// Prints bytes and speeds of the moves, with `cp` of as many bytes where it was measured.
fn speeds(out: Output, report: &Report) -> Outcome {
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
    let repaired = report.rounds.iter().map(|it| {
        let moved = Some(it.received_bytes);
        cell("repair", it.share_bytes, moved, it.seconds, Some(it.cp))
    });
    let (verified, killed, replaced) = (&report.verified, &report.killed, &report.replaced);
    let others = [
        ("verification", verified.bytes, None, verified.seconds),
        (
            "repair, with kills",
            killed.share_bytes,
            Some(killed.received_bytes),
            killed.seconds,
        ),
        (
            "replacement, with clients",
            replaced.share_bytes,
            Some(replaced.received_bytes),
            replaced.seconds,
        ),
    ];
    let others =
        others.map(|(what, bytes, moved, seconds)| cell(what, bytes, moved, seconds, None));
    let rows: Vec<_> = repaired.chain(others).collect();
    out.table(&head, &rows)
}
