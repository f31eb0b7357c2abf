//! Hands each part of a history to its judges, and reports on it.

use crate::history::{Effect, History, Name, Operation, Outcome};
use crate::report::{
    Counts, Property, PropertyReport, Report, ShownOperation, UnjudgedPart, Verdict, Violation,
    outcome_text,
};
use crate::versions::{self, Versions};
use crate::view::{self, Finding, View};
use crate::{Kind, configurations, coverable, fragmented, linearizable, regular, winner};
use std::collections::{BTreeMap, HashSet};

/// Judges a history, in time close to linear.
pub fn judge(history: &History) -> Report {
    let mut docket = Docket {
        history,
        properties: [
            Property::Linearizable,
            Property::VersionOrder,
            Property::Regular,
            Property::Coverable,
            Property::OneWinner,
            Property::Fragmented,
            Property::Configurations,
        ]
        .map(|property| PropertyReport {
            property,
            verdict: Verdict::Nothing,
            judged: 0,
            violated: 0,
            violations: Vec::new(),
            unjudged: 0,
            unjudged_first: Vec::new(),
        })
        .into(),
    };
    objects(history, &mut docket);
    files(history, &mut docket);
    domains(history, &mut docket);
    let clients: HashSet<Name> = history
        .operations()
        .iter()
        .map(|operation| operation.client)
        .collect();
    let worst = docket.properties.iter().map(|report| report.verdict).max();
    Report {
        verdict: worst.expect("there are properties"),
        events: history.events() as u64,
        operations: history.operations().len() as u64,
        clients: clients.len() as u64,
        objects: history
            .objects()
            .iter()
            .filter(|object| !history.text(object.key).is_empty())
            .count() as u64,
        counts: counts(history.operations()),
        properties: docket.properties,
    }
}

fn counts(operations: &[Operation]) -> Vec<Counts> {
    let mut counts: BTreeMap<Kind, Counts> = BTreeMap::new();
    for operation in operations {
        let kind = operation.kind;
        let counts = counts.entry(kind).or_insert(Counts {
            kind,
            ok: 0,
            fail: 0,
            unknown: 0,
        });
        match operation.outcome {
            Outcome::Ok => counts.ok += 1,
            Outcome::Fail => counts.fail += 1,
            Outcome::Unknown => counts.unknown += 1,
        }
    }
    counts.into_values().collect()
}

fn objects(history: &History, docket: &mut Docket<'_>) {
    let mut by_object: Vec<Vec<u32>> = vec![Vec::new(); history.objects().len()];
    for (place, operation) in (0_u32..).zip(history.operations()) {
        if operation.kind != Kind::Reconfig {
            by_object[operation.object as usize].push(place);
        }
    }
    for (object, places) in history.objects().iter().zip(&by_object) {
        let view = View { history, places };
        if regular::concerns(&view) {
            let verdict = regular::judge(&view).into();
            docket.hear(Property::Regular, object.domain, Some(object.key), verdict);
        }
        if view
            .iter()
            .all(|(_, operation)| operation.effect() == Effect::Nothing)
        {
            continue;
        }
        let learnt = Versions::learn(&view);
        let mut hear =
            |property, verdict| docket.hear(property, object.domain, Some(object.key), verdict);
        hear(
            Property::Linearizable,
            linearizable::judge(&view, learnt.as_ref().ok()),
        );
        if view
            .iter()
            .any(|(_, operation)| operation.version.is_some())
        {
            let order = learnt.as_ref().map_err(Clone::clone);
            let order = order.and_then(|versions| versions::judge(&view, versions));
            hear(Property::VersionOrder, order.into());
        }
        let on_versions = |judge: fn(&View<'_>, &Versions) -> Result<(), Finding>| match &learnt {
            Ok(versions) => judge(&view, versions).into(),
            Err(finding) => view::Verdict::Violated(finding.clone()),
        };
        if coverable::concerns(&view) {
            hear(Property::Coverable, on_versions(coverable::judge));
        }
        if winner::concerns(&view) {
            hear(Property::OneWinner, on_versions(winner::judge));
        }
    }
}

fn files(history: &History, docket: &mut Docket<'_>) {
    let mut files: BTreeMap<(Name, Name), Vec<u32>> = BTreeMap::new();
    for (place, operation) in (0_u32..).zip(history.operations()) {
        if let Some(file) = operation.file {
            let domain = history.objects()[operation.object as usize].domain;
            files.entry((domain, file)).or_default().push(place);
        }
    }
    for ((domain, file), places) in files {
        let places = &places;
        let verdict = fragmented::judge(&View { history, places });
        docket.hear(Property::Fragmented, domain, Some(file), verdict.into());
    }
}

fn domains(history: &History, docket: &mut Docket<'_>) {
    let mut domains: BTreeMap<Name, Vec<u32>> = BTreeMap::new();
    for (place, operation) in (0_u32..).zip(history.operations()) {
        if configurations::concerns(operation) {
            let domain = history.objects()[operation.object as usize].domain;
            domains.entry(domain).or_default().push(place);
        }
    }
    for (domain, places) in domains {
        let places = &places;
        let verdict = configurations::judge(&View { history, places });
        docket.hear(Property::Configurations, domain, None, verdict.into());
    }
}

struct Docket<'h> {
    history: &'h History,
    properties: Vec<PropertyReport>,
}

impl Docket<'_> {
    fn hear(
        &mut self,
        property: Property,
        domain: Name,
        key: Option<Name>,
        verdict: view::Verdict,
    ) {
        let history = self.history;
        let text = |name: Name| history.text(name).to_owned();
        let mut reports = self.properties.iter_mut();
        let report = reports.find(|report| report.property == property);
        let report = report.expect("every property has its report");
        report.judged += 1;
        let verdict = match verdict {
            view::Verdict::Holds => Verdict::Holds,
            view::Verdict::Violated(Finding { what, operations }) => {
                report.violated += 1;
                if report.violations.len() < Report::SHOWN_MAX {
                    let operations = operations.into_iter();
                    report.violations.push(Violation {
                        property,
                        domain: text(domain),
                        key: key.map(text),
                        what,
                        operations: operations.map(|place| shown(history, place)).collect(),
                    });
                }
                Verdict::Violated
            }
            view::Verdict::Unjudged(reason) => {
                report.unjudged += 1;
                if report.unjudged_first.len() < Report::SHOWN_MAX {
                    report.unjudged_first.push(UnjudgedPart {
                        domain: text(domain),
                        key: key.map(text),
                        reason,
                    });
                }
                Verdict::Unjudged
            }
        };
        report.verdict = report.verdict.max(verdict);
    }
}

fn shown(history: &History, place: u32) -> ShownOperation {
    let operation = &history.operations()[place as usize];
    let text = |name: Name| history.text(name).to_owned();
    ShownOperation {
        invoked_ns: operation.invoked.t_ns,
        ended_ns: operation.ended.map(|ended| ended.t_ns),
        client: text(operation.client),
        op: operation.op,
        kind: operation.kind,
        outcome: outcome_text(operation.outcome),
        key: text(history.objects()[operation.object as usize].key),
        value: operation.output.or(operation.input).map(text),
        version: operation.version,
        based_on: operation.based_on,
        sequence: operation.sequence.as_deref().map(|sequence| {
            let known = sequence.iter().map(|known| {
                let mark = if known.r#final { "!" } else { "" };
                format!(
                    "{}:{}{mark}",
                    known.index,
                    history.text(known.configuration)
                )
            });
            known.collect::<Vec<_>>().join(" ")
        }),
    }
}
