//! The page of an experiment of the papers.

use super::{Axis, Line, Page, Place, Plot, Section, Table, head, made, unique};
use crate::paper::{Comparison, Law, Point, Report, Setting, Spread, short};

/// As many lines as there are colours; where there are more variants, each algorithm has plots of its own.
const LINES_MAX: usize = super::plot::COLOURS.len();

/// What is drawn, if it was measured: what it is called, the axis, and in how much of it.
const QUANTITIES: [(&str, &str, &str); 5] = [
    ("read_ms", "Latency of a read", "ms"),
    ("write_ms", "Latency of a write", "ms"),
    ("reconfiguration_ms", "Latency of a reconfiguration", "ms"),
    (
        "read_configurations",
        "Configurations that a read visits",
        "configurations",
    ),
    ("write_success", "Writes that prevailed", "share"),
];

pub(super) fn page(report: &Report, made_at: &str) -> Page {
    let mut sections = vec![about(report)];
    sections.extend(figures(report));
    sections.extend([points(report), comparisons(report), laws(report)]);
    Page {
        title: format!("{}, repeated", report.experiment),
        made: vec![report.command.clone(), made(made_at, &report.machine)],
        sections,
    }
}

fn about(report: &Report) -> Section {
    let failed = match report.failed {
        0 => "No operation failed.".to_owned(),
        failed => format!("{failed} operations failed: {}", report.failures.join("; ")),
    };
    Section {
        heading: format!("Against the publication, at scale {}", report.scale),
        text: format!(
            "{}. {} runs of each point, seed {}. {failed}",
            [&report.changes[..], &report.not_run].concat().join("; "),
            report.runs,
            report.seed
        ),
        ..Section::default()
    }
}

/// What is along the first axis.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Along {
    Size,
    Servers,
    Readers,
    Writers,
    BlockBytes,
    K,
    Reconfigurers,
}

impl Along {
    /// What the figures of the publication have there.
    fn of(experiment: &str) -> &'static [Along] {
        match experiment {
            "E2" => &[Along::Servers, Along::Readers, Along::Writers],
            "E3" => &[Along::BlockBytes],
            "E4" => &[Along::K],
            "E5" => &[Along::Reconfigurers],
            _ => &[Along::Size],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Along::Size => "size, MiB",
            Along::Servers => "servers",
            Along::Readers => "readers",
            Along::Writers => "writers",
            Along::BlockBytes => "size of blocks, KiB",
            Along::K => "k",
            Along::Reconfigurers => "reconfigurers",
        }
    }

    fn at(self, setting: &Setting) -> f64 {
        match self {
            Along::Size => setting.size as f64 / f64::from(1 << 20),
            Along::Servers => setting.servers as f64,
            Along::Readers => setting.readers as f64,
            Along::Writers => setting.writers as f64,
            Along::BlockBytes => setting.block_bytes as f64 / f64::from(1 << 10),
            Along::K => setting.k as f64,
            Along::Reconfigurers => setting.reconfigurers as f64,
        }
    }

    /// Whether this is a place of the line: as much of everything else as usual, which is all servers, and the fewest
    /// readers and writers. (k goes with the servers.)
    fn has(self, setting: &Setting, usual: &Setting) -> bool {
        let others = [Along::Servers, Along::Readers, Along::Writers];
        let mut others = others.into_iter().filter(|other| *other != self);
        others.all(|other| other.at(setting).total_cmp(&other.at(usual)).is_eq())
    }
}

fn usual(points: &[Point]) -> Option<Setting> {
    let all = || points.iter().map(|point| &point.setting);
    Some(Setting {
        servers: all().map(|setting| setting.servers).max()?,
        readers: all().map(|setting| setting.readers).min()?,
        writers: all().map(|setting| setting.writers).min()?,
        ..all().next()?.clone()
    })
}

/// The plots: of every quantity along everything that is varied.
fn figures(report: &Report) -> Vec<Section> {
    let Some(usual) = usual(&report.points) else {
        return Vec::new();
    };
    let mut sections = Vec::new();
    for left in unique(report.points.iter().map(|point| &point.setting.left)) {
        for along in Along::of(&report.experiment) {
            let is_there =
                |point: &&Point| point.setting.left == *left && along.has(&point.setting, &usual);
            let points: Vec<&Point> = report.points.iter().filter(is_there).collect();
            sections.push(section(*along, left.as_deref(), &points));
        }
    }
    sections
}

fn section(along: Along, left: Option<&str>, points: &[&Point]) -> Section {
    let variants = unique(points.iter().map(|point| &point.variant));
    let algorithms = points.iter().map(|point| Some(&*point.algorithm));
    let groups = match variants.len() <= LINES_MAX {
        true => vec![None],
        false => unique(algorithms),
    };
    let mut plots = Vec::new();
    for (quantity, title, unit) in QUANTITIES {
        for group in &groups {
            let is_of = |point: &&&Point| group.is_none_or(|group| point.algorithm == group);
            let points: Vec<&Point> = points.iter().filter(is_of).copied().collect();
            let lines = lines(along, quantity, &points);
            if is_flat(&lines) {
                continue;
            }
            plots.push(Plot {
                title: group.map_or(title.into(), |group| format!("{title}, {group}")),
                x: Axis {
                    name: along.name().into(),
                },
                y: Axis { name: unit.into() },
                lines,
            });
        }
    }
    let left = left.map_or(String::new(), |left| format!(" ({left})"));
    Section {
        heading: format!("By {}{left}", along.name()),
        text: "Medians over the runs of the means of a run, with the least and the most.".into(),
        plots,
        ..Section::default()
    }
}

/// Whether there is nothing to see: nothing was measured, or it is the same everywhere.
fn is_flat(lines: &[Line]) -> bool {
    let mut places = lines.iter().flat_map(|line| &line.places);
    let first = places.next();
    first.is_none_or(|first| {
        let same = |figure: f64| figure.total_cmp(&first.median).is_eq();
        lines
            .iter()
            .flat_map(|line| &line.places)
            .all(|place| same(place.min) && same(place.max))
    })
}

fn lines(along: Along, quantity: &str, points: &[&Point]) -> Vec<Line> {
    let line = |variant: &String| {
        let of = points.iter().filter(|point| point.variant == *variant);
        let place = |point: &&Point| {
            let Spread { median, min, max } = *point.values.get(quantity)?;
            let x = along.at(&point.setting);
            Some(Place {
                x,
                median,
                min,
                max,
            })
        };
        Line {
            name: variant.clone(),
            places: of.filter_map(place).collect(),
        }
    };
    let variants = unique(points.iter().map(|point| &point.variant));
    let lines = variants.into_iter().map(line);
    lines.filter(|line| !line.places.is_empty()).collect()
}

fn cells(spread: Option<&Spread>) -> [String; 3] {
    spread.map_or_else(Default::default, |of| {
        [of.median, of.min, of.max].map(short)
    })
}

fn points(report: &Report) -> Section {
    let names = report.points.iter().flat_map(|point| point.values.keys());
    let mut names = unique(names);
    names.sort_unstable();
    let mut columns = head(&["variant", "at", "published read_ms", "of"]);
    for name in &names {
        columns.extend([(*name).clone(), "least".into(), "most".into()]);
    }
    let row = |point: &Point| {
        let published = point.published_read_ms.map_or(String::new(), short);
        let published_at = point.published_at.clone().unwrap_or_default();
        let mut row = vec![
            point.variant.clone(),
            point.at.clone(),
            published,
            published_at,
        ];
        row.extend(names.iter().flat_map(|name| cells(point.values.get(*name))));
        row
    };
    Section {
        heading: "Everything that was measured".into(),
        table: Some(Table {
            texts: 2,
            head: columns,
            rows: report.points.iter().map(row).collect(),
        }),
        ..Section::default()
    }
}

fn comparisons(report: &Report) -> Section {
    let row = |of: &Comparison| {
        let mut row = vec![
            of.above.clone(),
            of.below.clone(),
            of.quantity.clone(),
            of.at.clone(),
            of.verdict.word().into(),
            of.reason.clone(),
        ];
        row.extend(cells(Some(&of.ratio)));
        row.push(of.published.map_or(String::new(), short));
        row
    };
    Section {
        heading: "Variants beside each other".into(),
        text: "Run by run, the first divided by the second.".into(),
        table: Some(Table {
            texts: 6,
            head: head(&[
                "variant",
                "by",
                "of",
                "at",
                "published order",
                "why not",
                "ratio",
                "least",
                "most",
                "published",
            ]),
            rows: report.comparisons.iter().map(row).collect(),
        }),
        ..Section::default()
    }
}

fn laws(report: &Report) -> Section {
    let row = |law: &Law| {
        vec![
            law.what.clone(),
            law.variant.clone(),
            law.at.clone(),
            law.word().into(),
            law.expected.clone(),
            law.measured.clone(),
        ]
    };
    Section {
        heading: "Counts, which depend on no machine".into(),
        table: Some(Table {
            texts: 4,
            head: head(&["count", "variant", "at", "", "expected", "measured"]),
            rows: report.laws.iter().map(row).collect(),
        }),
        ..Section::default()
    }
}
