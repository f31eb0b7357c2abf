//! E7: a sequence of twelve configurations, and who reads from its beginning.

use super::law;
use super::parameters::Parameters;
use super::point::MeasuredPoint;
use super::report::Law;
use super::stage::{Stage, means};
use super::variant::{Extras, SequenceEnds, Variant};
use crate::error::{RunError, failed};
use crate::load::{AnyCaller, Load, Plan, Sample};
use crate::random::Random;
use crate::target::connected;
use areo_client::experimental::{Experimental, LeaveOff};
use areo_client::{Change, Client, DapKind, Domain, ReconfigOutcome};
use std::collections::BTreeMap;

/// The number of reconfigurers, taking turns.
const RECONFIGURERS: usize = 4;
/// Number of reconfigurations in a run.
pub(super) const CHANGES: u64 = 12;

impl SequenceEnds {
    /// The point at which the reconfiguration of this number stops, if it stops early. Without collection no client
    /// notifies the configurations before the predecessor.
    fn leave_off(self, number: u64, extras: Extras) -> Option<LeaveOff> {
        match (self, number) {
            (SequenceEnds::Pending, ..CHANGES) => Some(LeaveOff::Transferred),
            _ if extras == Extras::Collecting => None,
            _ => Some(LeaveOff::Finalized),
        }
    }
}

/// Measures one variant at one point, once.
pub(super) async fn run(
    stage: &Stage<'_>,
    parameters: &Parameters,
    (variant, left, size): (Variant, SequenceEnds, usize),
    random: &Random,
) -> Result<(BTreeMap<&'static str, f64>, Vec<Sample>), RunError> {
    let k = (parameters.servers - parameters.parity) as u8;
    let domain = stage
        .domain(variant, parameters, k, parameters.writers)
        .await?;
    let subject = stage.subject(&domain, parameters, (variant, size));
    let _writer = subject.create(random.derive(0)).await?;
    // They know the first configuration, and none of those that follow.
    let mut readers: Vec<AnyCaller> = Vec::new();
    for number in 0..parameters.readers {
        let reader = subject.actor(random.derive(1 + number as u64)).await?;
        reader.warm_up().await.map_err(failed("connect a reader"))?;
        readers.push(Box::new(reader));
    }
    reconfigure(stage, &domain, (variant, left), k).await?;
    let costs = read(stage, readers, &subject.plan()).await;
    stage.remove(&domain).await?;
    Ok((means(&costs, &[]), costs))
}

/// One after the other.
async fn read(stage: &Stage<'_>, readers: Vec<AnyCaller>, plan: &Plan) -> Vec<Sample> {
    let one = Plan {
        readers: 1,
        operations: Some(1),
        ..plan.clone()
    };
    let mut costs = Vec::new();
    for reader in readers {
        let ended = Load::of(vec![reader], &one, None).finish().await;
        stage.failures.borrow_mut().merge(ended.failures);
        costs.extend(ended.samples);
    }
    costs
}

/// The reconfigurers take turns; the servers stay, erasure coding and replication alternate.
async fn reconfigure(
    stage: &Stage<'_>,
    domain: &str,
    (variant, left): (Variant, SequenceEnds),
    k: u8,
) -> Result<(), RunError> {
    let mut reconfigurers: Vec<(Client, Domain)> = Vec::new();
    for _ in 0..RECONFIGURERS {
        reconfigurers.push(connected(&stage.started.connect, domain).await?);
    }
    for number in 1..=CHANGES {
        let (_, domain) = &reconfigurers[(number - 1) as usize % RECONFIGURERS];
        let (dap, k) = match number % 2 {
            1 => (DapKind::Ec, Some(k)),
            _ => (DapKind::Abd, None),
        };
        let leave_off = left.leave_off(number, variant.extras);
        let change = Change {
            dap: Some(dap),
            k,
            allow_f0: true,
            experimental: Experimental {
                leave_off,
                ..Experimental::default()
            },
            ..Change::default()
        };
        let done = domain.reconfigure(&change, |_| {}).await;
        let done = done.map_err(failed("reconfigure the domain"))?;
        let is_final = matches!(done, ReconfigOutcome::Installed(_));
        if is_final != (leave_off != Some(LeaveOff::Transferred)) {
            let error = format!("nobody else does, and it ended as {done:?}");
            return Err(failed("reconfigure the domain")(error));
        }
    }
    Ok(())
}

/// The rules for the way of a reader from the first configuration to the last one.
pub(super) fn laws(of: &MeasuredPoint, reads: &[Sample]) -> Vec<Law> {
    let (name, at) = (of.name(), of.at());
    // Without collection one after the other, unless a server has missed one altogether: asked for it, that server answers
    // with the last final one of the domain ([X-13 highest-final]).
    let (what, configurations) = match of.variant.extras {
        Extras::Plain | Extras::Piggyback => (
            "configurations from the first to the last one: at most all",
            2..=CHANGES + 1,
        ),
        Extras::Collecting => (
            "configurations from the first to the last one: these two",
            2..=2,
        ),
    };
    let counts = reads.iter().map(|read| read.cost.counts.configurations);
    vec![law::counted(what, (&name, &at), counts, configurations)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eleven_are_pending_or_none_is() {
        let left = |left: SequenceEnds, extras| -> Vec<Option<LeaveOff>> {
            (1..=CHANGES).map(|n| left.leave_off(n, extras)).collect()
        };
        let pending = left(SequenceEnds::Pending, Extras::Piggyback);
        assert_eq!(pending[..11], [Some(LeaveOff::Transferred); 11]);
        assert_eq!(pending[11], Some(LeaveOff::Finalized));
        assert_eq!(left(SequenceEnds::Pending, Extras::Collecting)[11], None);
        assert_eq!(
            left(SequenceEnds::Finalized, Extras::Plain),
            [Some(LeaveOff::Finalized); 12]
        );
        assert_eq!(
            left(SequenceEnds::Finalized, Extras::Collecting),
            [None; 12]
        );
    }
}
