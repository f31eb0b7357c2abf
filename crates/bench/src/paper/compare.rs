//! Beside the publication: ratios of variants, and whether their order is the published one.

use super::claim::{Order, Relation};
use super::point::MeasuredPoint;
use super::report::{Comparison, Verdict};
use super::scale::show_size;
use crate::spread::Spread;

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
    use crate::paper::experiment::Experiment;
    use crate::paper::variant::{Algorithm, Extras, SequenceEnds, Variant};
    use areo_client::DapKind;
    use std::collections::BTreeMap;

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
