//! `areo-lab predict`: precision and recall of the autopilot's model of losses, beside its thresholds.

use super::Lab;
use areo::exit::Outcome;
use areo::output::columns;
use areo_lab::prediction::{Judgement, judged, train, weights};
use areo_steward::prediction::Model;

pub(super) fn run(lab: &Lab<'_>, makes_weights: bool) -> Outcome {
    let out = lab.out;
    if makes_weights {
        return out.bytes(weights(&train()).as_bytes());
    }
    let judged = judged(&Model::built_in());
    if out.json {
        return judged.iter().try_for_each(|it| out.object(it));
    }
    let row = |it: &Judgement| {
        vec![
            it.by.to_owned(),
            it.servers.to_string(),
            it.lost.to_string(),
            it.at_risk.to_string(),
            it.hits.to_string(),
            it.precision.to_string(),
            it.recall.to_string(),
        ]
    };
    let head = columns(
        "by | > servers | > lost | > at risk | > lost among those | > precision | > recall",
    );
    let rows: Vec<_> = judged.iter().map(row).collect();
    out.table(&head, &rows)
}
