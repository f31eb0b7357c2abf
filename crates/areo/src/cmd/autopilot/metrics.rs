//! `areo autopilot --metrics`: what an instance has seen and done, for Prometheus, beside the metrics of its client.

use crate::exit::Outcome;
use crate::metrics;
use crate::output::Output;
use areo_client::Metrics;
use areo_steward::instance::Seen;
use axum::Router;
use axum::routing::get;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

/// The states of open intents.
const OPEN: [&str; 4] = ["proposed", "waiting", "running", "failed"];

/// The counts of an instance. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Counts(Arc<Mutex<Counted>>);

#[derive(Clone, Default)]
struct Counted {
    intents: BTreeMap<&'static str, u64>,
    is_paused: bool,
    holds_lease: bool,
    acts: u64,
    looks: u64,
    failed_looks: u64,
    spare: BTreeMap<String, isize>,
}

impl Counts {
    /// Answers at this address until the process ends.
    pub(super) fn serve(&self, out: Output, address: SocketAddr, clients: Metrics) -> Outcome {
        let counts = self.clone();
        let text = move || {
            let text = clients.text() + &counts.text();
            async move { metrics::answer(text) }
        };
        metrics::serve_router(out, address, Router::new().route(metrics::PATH, get(text)))
    }

    fn locked(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().expect("no holder of the lock panics")
    }

    /// An instance has looked. What the journal says stays as it was until the journal is read.
    pub(super) fn seen(&self, seen: &Seen) {
        let mut counted = self.locked();
        counted.spare.clone_from(seen.spare_crashes);
        counted.holds_lease = seen.holds_lease;
        if let Some(journal) = seen.journal {
            counted.is_paused = journal.paused;
            counted.intents.clear();
            for intent in journal.open() {
                *counted.intents.entry(intent.state.word()).or_default() += 1;
            }
        }
    }

    /// A look has ended.
    pub(super) fn looked(&self, is_failed: bool) {
        let mut counted = self.locked();
        match is_failed {
            true => counted.failed_looks += 1,
            false => counted.looks += 1,
        }
    }

    /// A change is begun, or gone on with.
    pub(super) fn acts(&self) {
        self.locked().acts += 1;
    }

    fn text(&self) -> String {
        let it = self.locked().clone();
        let mut text = Text(String::new());
        text.head(
            "areo_autopilot_intents",
            "gauge",
            "Open intents of the journal, by their state.",
        );
        for state in OPEN {
            let count = it.intents.get(state).unwrap_or(&0);
            text.labelled("areo_autopilot_intents", ("state", state), count);
        }
        text.head(
            "areo_autopilot_paused",
            "gauge",
            "1 while an operator has paused the autopilot.",
        );
        text.number("areo_autopilot_paused", u8::from(it.is_paused));
        text.head(
            "areo_autopilot_holds_lease",
            "gauge",
            "1 while this instance is the one that acts.",
        );
        text.number("areo_autopilot_holds_lease", u8::from(it.holds_lease));
        text.head(
            "areo_autopilot_acts_total",
            "counter",
            "Tries of changes by this instance.",
        );
        text.number("areo_autopilot_acts_total", it.acts);
        text.head(
            "areo_autopilot_looks_total",
            "counter",
            "Looks at the cluster, by how they ended.",
        );
        for (outcome, looks) in [("ok", it.looks), ("failed", it.failed_looks)] {
            text.labelled("areo_autopilot_looks_total", ("outcome", outcome), looks);
        }
        text.head(
            "areo_domain_spare_crashes",
            "gauge",
            "Crashes that the domain survives now: f without its members that are dead or whose disks are at risk.",
        );
        for (domain, spare) in &it.spare {
            text.labelled("areo_domain_spare_crashes", ("domain", domain), spare);
        }
        text.0
    }
}

/// Metrics as Prometheus reads them.
struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// Begins a metric: its type, and a sentence about it.
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(&format!("# HELP {name} {help}"));
        self.line(&format!("# TYPE {name} {kind}"));
    }

    fn number(&mut self, name: &str, number: impl Display) {
        self.line(&format!("{name} {number}"));
    }

    /// The number for one value of the label of a metric.
    fn labelled(&mut self, name: &str, (label, value): (&str, &str), number: impl Display) {
        let value = value.replace('\\', "\\\\");
        let value = value.replace('"', "\\\"").replace('\n', "\\n");
        self.number(&format!("{name}{{{label}=\"{value}\"}}"), number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_steward::journal::Journal;

    #[test]
    fn an_instance_shows_what_it_has_seen_and_done() {
        let counts = Counts::default();
        counts.seen(&Seen {
            journal: Some(&Journal {
                paused: true,
                ..Journal::default()
            }),
            holds_lease: true,
            spare_crashes: &[("a\"b".to_owned(), -1)].into(),
        });
        // The journal is out of reach at the next look, and one server less.
        counts.seen(&Seen {
            journal: None,
            holds_lease: true,
            spare_crashes: &[("a\"b".to_owned(), -2)].into(),
        });
        counts.looked(true);
        counts.acts();
        let text = counts.text();
        for line in [
            "# TYPE areo_autopilot_intents gauge",
            "areo_autopilot_intents{state=\"failed\"} 0",
            "areo_autopilot_paused 1",
            "areo_autopilot_holds_lease 1",
            "areo_autopilot_acts_total 1",
            "areo_autopilot_looks_total{outcome=\"failed\"} 1",
            "areo_domain_spare_crashes{domain=\"a\\\"b\"} -2",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
    }
}
