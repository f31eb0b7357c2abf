//! Beside the publication: ratios of variants, and whether their order is the published one.

use super::collected::SequenceEnds;
use super::experiment::Experiment;
use super::published;
use super::report::{Comparison, Setting, Verdict};
use super::scale::{Parameters, show_size};
use super::variant::{Algorithm, Extras, Variant};
use crate::peers::Spread;
use areo_client::DapKind;
use std::collections::BTreeMap;

/// Ratios nearer to 1 than this are no difference.
const SAME: f64 = 0.05;
/// Runs of which ratios are judged, at least.
const RUNS: usize = 3;
/// The compared quantities. The first one is what the publication reports.
const QUANTITIES: [&str; 5] = [
    "read_ms",
    "read_rounds",
    "read_bytes",
    "write_ms",
    "reconfiguration_ms",
];

/// A variant at a point, with the measured quantities of each run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct MeasuredPoint {
    pub(super) experiment: &'static Experiment,
    /// Name of the varied parameter's value, and all parameters there.
    pub(super) step: (String, Parameters),
    pub(super) variant: Variant,
    pub(super) size: usize,
    /// After the reconfigurations of E7, which were left so.
    pub(super) left: Option<SequenceEnds>,
    pub(super) runs: BTreeMap<&'static str, Vec<f64>>,
}

/// The part that one variant has and another has not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Relation {
    Piggyback,
    Collecting,
    Coded,
    CodedPublished,
    Corrected,
    Optimized,
    Coverable,
    Fragmented,
    Outside,
    SelfStabilizing,
}

impl Relation {
    const ALL: [Relation; 10] = [
        Relation::Piggyback,
        Relation::Collecting,
        Relation::Coded,
        Relation::CodedPublished,
        Relation::Corrected,
        Relation::Optimized,
        Relation::Coverable,
        Relation::Fragmented,
        Relation::Outside,
        Relation::SelfStabilizing,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Relation::Piggyback => "PB against no PB",
            Relation::Collecting => "GC against no GC",
            Relation::Coded => "EC against ABD",
            Relation::CodedPublished => "a code against MW-ABD",
            Relation::Corrected => "EC-DAP II, corrected, against EC-DAP",
            Relation::Optimized => "EC-DAPopt against EC-DAP",
            Relation::Coverable => "coverable against not",
            Relation::Fragmented => "fragmented against not",
            Relation::Outside => "etcd against the members deciding",
            Relation::SelfStabilizing => "CASSS against CAS",
        }
    }

    /// The variant without it.
    fn without(self, variant: Variant) -> Option<Variant> {
        let Variant {
            algorithm,
            dap,
            extras,
            etcd,
        } = variant;
        Some(match self {
            Relation::Piggyback if extras == Extras::Piggyback => Variant {
                extras: Extras::Plain,
                ..variant
            },
            Relation::Collecting if extras == Extras::Collecting => Variant {
                extras: Extras::Piggyback,
                ..variant
            },
            Relation::Coded if dap.is_coded() => Variant {
                dap: DapKind::Abd,
                ..variant
            },
            Relation::CodedPublished if dap.is_coded() => Variant {
                dap: DapKind::AbdPublished,
                ..variant
            },
            Relation::Corrected if dap == DapKind::Ec => Variant {
                dap: DapKind::EcPublished,
                ..variant
            },
            Relation::Optimized if dap == DapKind::EcOptimized => Variant {
                dap: DapKind::EcPublished,
                ..variant
            },
            Relation::SelfStabilizing if dap == DapKind::CasSs => Variant {
                dap: DapKind::Cas,
                ..variant
            },
            Relation::Coverable if algorithm == Algorithm::CoAres => Variant {
                algorithm: Algorithm::Ares,
                ..variant
            },
            Relation::Fragmented if algorithm == Algorithm::CoAresF => Variant {
                algorithm: Algorithm::CoAres,
                ..variant
            },
            Relation::Outside if etcd => Variant {
                etcd: false,
                ..variant
            },
            _ => return None,
        })
    }

    /// Why the published order need not be the one here.
    fn reason(self, left: Option<SequenceEnds>) -> &'static str {
        match (self, left) {
            (Relation::Piggyback, None) => {
                "PB saves 3 of 4 rounds here, not 2: what is known to be at a quorum is not written back; and of a read that takes milliseconds rounds are a larger part than of one that takes tenths of a second"
            }
            (Relation::Piggyback, Some(_)) => {
                "without PB an operation asks every configuration on the way for its value as well as for its pointer here (decision 0007), where the publication goes to the end first; and without GC superseded configurations go on giving what they hold, where the publication's withhold it: PB only saves rounds"
            }
            (Relation::Collecting, _) => {
                "what GC saves is the way over 12 configurations; files go it once, before the first block"
            }
            (Relation::Coded, _) => {
                "with ABD, too, a read takes the value from one server here and versions from the others: both carry it once, and ABD does not decode. The publication's carries it from every server"
            }
            (Relation::CodedPublished, _) => {
                "on loopback a copy more costs little, and a read of MW-ABD takes the value from one server here"
            }
            (Relation::Corrected | Relation::Optimized, _) => {
                "servers send the elements of one version here, whichever the EC-DAP is: what differs is whether a read writes back, and whether a reader is sent what it has"
            }
            (Relation::Coverable, _) => {
                "a read of CoARES is a read of ARES here, with the same EC-DAP; the publication's CoARES has a better one than its ARES"
            }
            (Relation::Outside, _) => {
                "nothing is published of it: Ares II has an external service, and no other"
            }
            (Relation::SelfStabilizing, _) => {
                "a round more is little where a write takes long for its bytes"
            }
            (Relation::Fragmented, _) => {
                "every block is hashed, and read from and written to a local file, which costs as much as loopback; without PB every block takes its own 4 rounds. It pays where blocks are many and few of them change"
            }
        }
    }
}

/// Every two variants that differ in one thing, at every point.
pub(super) fn compare(all: &[MeasuredPoint]) -> Vec<Comparison> {
    let mut compared = Vec::new();
    for relation in Relation::ALL {
        for above in all {
            let Some(without) = relation.without(above.variant) else {
                continue;
            };
            let is_below = |m: &&MeasuredPoint| {
                let place = |m: &MeasuredPoint| (m.size, m.left, m.step.0.clone());
                m.variant == without && place(m) == place(above)
            };
            if let Some(below) = all.iter().find(is_below) {
                let of = |quantity| one(relation, (above, below), quantity);
                compared.extend(QUANTITIES.into_iter().filter_map(of));
            }
        }
    }
    compared
}

fn one(
    relation: Relation,
    (above, below): (&MeasuredPoint, &MeasuredPoint),
    quantity: &'static str,
) -> Option<Comparison> {
    // Run by run: runs that are compared follow each other closely, and see the same machine.
    let (one, other) = (above.runs.get(quantity)?, below.runs.get(quantity)?);
    let ratio = Spread::of(one.iter().zip(other).map(|(one, other)| one / other));
    let published = match (quantity, above.published(), below.published()) {
        ("read_ms", Some((above, size)), Some((below, _))) => Some((above / below, size)),
        _ => None,
    };
    let runs = above.runs[quantity].len();
    let order = published.map(|(published, _)| order(published));
    // What is published in words.
    let in_words = || {
        let mut words = above.experiment.words.iter();
        let found = words.find(|(of, _, what)| *of == relation && what.contains(&quantity));
        found.map(|(_, order, _)| *order)
    };
    let verdict = match order.or_else(in_words) {
        None => Verdict::Unpublished,
        Some(_) if runs < RUNS => Verdict::Undecided,
        Some(order) => judge(order, ratio),
    };
    let reason = match verdict {
        Verdict::Holds | Verdict::Unpublished => "",
        Verdict::Undecided if runs < RUNS => "fewer than three runs decide nothing",
        Verdict::Undecided => "runs differ more than the variants do",
        Verdict::Differs => relation.reason(above.left),
    };
    Some(Comparison {
        relation: relation.name().into(),
        quantity: quantity.into(),
        above: above.name(),
        below: below.name(),
        at: above.at(),
        ratio,
        published: published.map(|(ratio, _)| ratio),
        published_at: published.map(|(_, size)| show_size(size)),
        verdict,
        reason: reason.into(),
    })
}

impl MeasuredPoint {
    /// Name of the variant in reports.
    pub(super) fn name(&self) -> String {
        match self.experiment.reconfigures() {
            true => self.variant.name_of_both(),
            false if self.experiment.has_virtual_time() => self.variant.name_of_kind(),
            false => self.variant.name(),
        }
    }

    /// Name of the point in reports.
    pub(super) fn at(&self) -> String {
        let size = show_size(self.size);
        match (self.left, &*self.step.0) {
            (Some(left), _) => format!("({}) {size}", left.name()),
            (None, "") => size,
            (None, step) => format!("{size} {step}"),
        }
    }

    /// The point in figures.
    pub(super) fn setting(&self) -> Setting {
        let (_, parameters) = &self.step;
        Setting {
            size: self.size,
            servers: parameters.servers,
            k: parameters.servers - parameters.parity,
            block_bytes: parameters.blocks.1,
            readers: parameters.readers,
            writers: parameters.writers,
            reconfigurers: parameters.reconfigurers,
            left: self.left.map(|left| left.name().into()),
        }
    }

    /// The figure that the publication reports of it.
    pub(super) fn published(&self) -> Option<published::Figure> {
        let table = self.experiment.figures?;
        table.read_ms(self.variant, self.left, self.size)
    }
}

/// The order of two values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// The first one is less.
    Less,
    /// The values are equal, within the tolerance.
    Same,
    /// The first one is more.
    More,
}

fn order(ratio: f64) -> Order {
    match ratio {
        ratio if ratio < 1.0 - SAME => Order::Less,
        ratio if ratio > 1.0 + SAME => Order::More,
        _ => Order::Same,
    }
}

/// Compares the measured order with the published one. If runs fall on both sides the verdict is undecided.
fn judge(published: Order, ratio: Spread) -> Verdict {
    let here = order(ratio.median);
    let agrees = match here {
        Order::Less => ratio.max < 1.0,
        Order::More => ratio.min > 1.0,
        Order::Same => true,
    };
    match agrees {
        false => Verdict::Undecided,
        true if here == published => Verdict::Holds,
        true => Verdict::Differs,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Scale, scale};
    use super::*;

    #[test]
    fn an_order_holds_if_it_is_the_published_one() {
        let judge =
            |published, min, median, max| judge(order(published), Spread { median, min, max });
        assert_eq!(judge(0.5, 0.2, 0.3, 0.4), Verdict::Holds);
        assert_eq!(judge(0.97, 0.9, 1.0, 1.2), Verdict::Holds);
        assert_eq!(judge(0.97, 0.2, 0.3, 0.4), Verdict::Differs);
        assert_eq!(judge(3.1, 0.2, 0.3, 0.4), Verdict::Differs);
        assert_eq!(judge(3.1, 0.9, 1.3, 1.4), Verdict::Undecided);
        assert_eq!(judge(0.5, 0.5, 0.8, 1.1), Verdict::Undecided);
        assert_eq!(judge(2.0, 1.1, 1.8, 2.1), Verdict::Holds);
    }

    #[test]
    fn variants_that_differ_in_one_thing_are_compared() {
        let e7 = Experiment::find("E7").unwrap();
        let parameters = scale::parameters(e7, Scale::Full);
        let measured = |algorithm, extras, left, ms: &[f64]| MeasuredPoint {
            experiment: e7,
            step: (String::new(), parameters.clone()),
            variant: Variant {
                algorithm,
                dap: DapKind::Abd,
                extras,
                etcd: false,
            },
            size: 1 << 20,
            left,
            runs: BTreeMap::from([("read_ms", ms.to_vec()), ("read_rounds", vec![1.0; 3])]),
        };
        let left = Some(SequenceEnds::Pending);
        let all = [
            measured(Algorithm::Ares, Extras::Plain, left, &[1.0, 2.0, 3.0]),
            measured(Algorithm::Ares, Extras::Piggyback, left, &[3.0, 6.0, 9.9]),
            measured(Algorithm::CoAres, Extras::Collecting, left, &[1.0; 3]),
            measured(Algorithm::Ares, Extras::Piggyback, None, &[1.0; 3]),
        ];
        let compared = compare(&all);
        assert_eq!(compared.len(), 2, "{compared:?}");
        let read = &compared[0];
        assert_eq!((&*read.above, &*read.below), ("ARES PB", "ARES"));
        assert_eq!((&*read.at, &*read.quantity), ("(a) 1 MiB", "read_ms"));
        assert!((read.published.unwrap() - 494.0 / 159.0).abs() < 1e-9);
        assert!((read.ratio.median - 3.0).abs() < 1e-9);
        assert_eq!((read.verdict, &*read.reason), (Verdict::Holds, ""));
        assert_eq!(compared[1].verdict, Verdict::Unpublished);
    }

    #[test]
    fn what_is_published_in_words_is_an_order() {
        let verdicts = |name: &str| -> Vec<(String, Verdict)> {
            let experiment = Experiment::find(name).unwrap();
            let measured = |algorithm, ms: f64| MeasuredPoint {
                experiment,
                step: (String::new(), experiment.published.clone()),
                variant: Variant {
                    algorithm,
                    dap: DapKind::Abd,
                    extras: Extras::Piggyback,
                    etcd: false,
                },
                size: 1 << 20,
                left: None,
                runs: ["read_ms", "write_ms"].map(|of| (of, vec![ms; 3])).into(),
            };
            let both = [
                measured(Algorithm::CoAres, 2.0),
                measured(Algorithm::CoAresF, 1.0),
            ];
            let verdict = |of: Comparison| (of.quantity, of.verdict);
            compare(&both).into_iter().map(verdict).collect()
        };
        let (read, write) = ("read_ms".to_owned(), "write_ms".to_owned());
        let holds = Verdict::Holds;
        assert_eq!(
            verdicts("P1"),
            [(read.clone(), holds), (write.clone(), holds)]
        );
        let unpublished = Verdict::Unpublished;
        assert_eq!(verdicts("P4"), [(read, unpublished), (write, holds)]);
    }
}
