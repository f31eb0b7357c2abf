//! The page of servers that are far apart.

use super::{Axis, Line, Page, Place, Plot, Section, Table, head, made};
use crate::peers::{Operation, Spread};
use crate::wide_area::{ByRounds, Point, Report};

pub(super) fn page(report: &Report, made_at: &str) -> Page {
    Page {
        title: "Servers far apart".into(),
        made: vec![report.command.clone(), made(made_at, &report.machine)],
        sections: vec![sites(report), figures(report), counts(report)],
    }
}

fn sites(report: &Report) -> Section {
    let rows = report.sites.iter().zip(&report.round_trips_ms);
    let row = |(site, trips): (&String, &Vec<f64>)| {
        let trips = trips.iter().map(|trip| format!("{trip:.0}"));
        std::iter::once(site.clone()).chain(trips).collect()
    };
    let lost = match report.loss_percent {
        0 => "Nothing is held up beyond that.".to_owned(),
        percent => format!(
            "{percent} of a hundred pieces of data are held up for 200 ms and a round trip, with all that follow on their \
             connection, as if a packet had been lost."
        ),
    };
    Section {
        heading: "Round trips between sites, ms".into(),
        text: format!(
            "As the proxy between clients and servers was told; everything runs on one machine. {lost}"
        ),
        table: Some(Table {
            texts: 1,
            head: [head(&["site"]), report.sites.clone()].concat(),
            rows: rows.map(row).collect(),
        }),
        ..Section::default()
    }
}

fn figures(report: &Report) -> Section {
    let points = report.points.iter();
    let each = points.flat_map(|point| point.by_rounds.iter().map(move |by| (point, by)));
    Section {
        heading: "Puts and gets".into(),
        text: format!(
            "Values of {} bytes. Round trips are those to the farthest server of the closest quorum: a put takes two of them, \
             a get one, or more if what it found may not be at a quorum yet, because it is being put. The second round of such a get \
             waits only for servers that did not have it.",
            report.size
        ),
        plots: vec![plot(report)],
        table: Some(Table {
            texts: 5,
            head: head(&[
                "domain",
                "servers at",
                "client at",
                "operation",
                "beside a writer at",
                "rounds",
                "operations",
                "round trip, ms",
                "median, ms",
                "99 %, ms",
                "median in round trips",
            ]),
            rows: each.map(|(point, by)| row(point, by)).collect(),
        }),
        ..Section::default()
    }
}

fn row(point: &Point, by: &ByRounds) -> Vec<String> {
    let ms = |us: f64| format!("{:.1}", us / 1e3);
    let figures = [
        format!("{:.0}", point.round_trip_ms),
        ms(by.times.p50_us),
        ms(by.times.p99_us),
        format!("{:.2}", by.round_trips),
    ];
    point.words(by).into_iter().chain(figures).collect()
}

/// Medians of latency by the round trip.
fn plot(report: &Report) -> Plot {
    let gets = |rounds: u64| {
        move |point: &Point, by: &ByRounds| point.operation == Operation::Get && by.rounds == rounds
    };
    Plot {
        title: "Median latency".into(),
        x: Axis {
            name: "round trip to the closest quorum, ms".into(),
        },
        y: Axis { name: "ms".into() },
        lines: vec![
            line(report, "put", |point, _| point.operation == Operation::Put),
            line(report, "get of one round", gets(1)),
            line(report, "get of two rounds", gets(2)),
        ],
    }
}

fn line(report: &Report, name: &str, is_of: impl Fn(&Point, &ByRounds) -> bool) -> Line {
    let mut trips: Vec<f64> = report.points.iter().map(|p| p.round_trip_ms).collect();
    trips.sort_by(f64::total_cmp);
    trips.dedup();
    let place = |trip: f64| {
        let at = report.points.iter();
        let at = at.filter(|point| point.round_trip_ms.total_cmp(&trip).is_eq());
        let by = at.flat_map(|point| point.by_rounds.iter().filter(|by| is_of(point, by)));
        let medians: Vec<f64> = by.map(|by| by.times.p50_us / 1e3).collect();
        let Spread { median, min, max } = Spread::of(medians.iter().copied());
        (!medians.is_empty()).then_some(Place {
            x: trip,
            median,
            min,
            max,
        })
    };
    Line {
        name: name.into(),
        places: trips.into_iter().filter_map(place).collect(),
    }
}

fn counts(report: &Report) -> Section {
    let text = match report.broken.is_empty() {
        true => "All counts of rounds are what they have to be on any machine.".to_owned(),
        false => report.broken.join("; "),
    };
    let failed = match report.failed {
        0 => "No operation failed.".to_owned(),
        failed => format!("{failed} operations failed: {}", report.failures.join("; ")),
    };
    Section {
        heading: "Counts".into(),
        text: format!("{text} {failed}"),
        ..Section::default()
    }
}
