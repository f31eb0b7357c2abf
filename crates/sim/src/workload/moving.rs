//! Reconfigurations: of the two domains by clients, as operations of the history.

use super::operation::One;
use super::{End, MOVING};
use crate::history::{Change, Ended, Operation};
use areo_core::config::{Configuration, Descriptor};
use areo_core::manager::reconfiguration;
use areo_core::reconfig::ares::{ReconfigError, Reconfigured};
use areo_core::reconfig::transfer::Progress;
use std::cell::Cell;
use std::sync::Arc;

/// A configuration that is final, if it is not the one that the domain had already; or why there is none.
type Installed = Result<Option<Arc<Configuration>>, ReconfigError>;

impl One<'_> {
    /// Changes the domain's configuration, or finishes what another one began.
    pub(super) async fn reconfigure(mut self) -> End {
        // Objects are many, and rounds as well.
        self.client = self.client.with(self.work.env(self.process, MOVING));
        match self.work.world.random().chance(200) {
            true => self.resume().await,
            false => self.change().await,
        }
    }

    async fn change(&self) -> End {
        let wanted = self.work.any_configuration(&self.c);
        let operation = self.begin_change(Some(&wanted));
        let finalized = Cell::new(false);
        let progress = |step| finalized.set(finalized.get() || step == Progress::Collecting);
        let (client, root) = (&self.client, &self.work.root);
        let moved = reconfiguration::reconfigure(client, root, &self.c, &wanted, &progress).await;
        let installed = moved.map(|moved| match moved {
            Reconfigured::Unchanged(_) => None,
            moved => Some(moved.into_configuration()),
        });
        self.end_change(&operation, &installed, finalized.get())
    }

    /// Finishes what others left pending.
    pub(super) async fn resume(&self) -> End {
        let operation = self.begin_change(None);
        let finalized = Cell::new(false);
        let progress = |step| finalized.set(finalized.get() || step == Progress::Collecting);
        let (client, root) = (&self.client, &self.work.root);
        let installed = reconfiguration::resume(client, root, &self.c, &progress).await;
        self.end_change(&operation, &installed, finalized.get())
    }

    fn begin_change(&self, wanted: Option<&Descriptor>) -> Operation {
        let work = self.work;
        let after = self.client.sequences().start(&self.c).id().index;
        let about = (self.object.0, after);
        let mut history = work.history.borrow_mut();
        let operation = history.begin_change(work.world.now(), self.who, about, wanted);
        work.running.borrow_mut()[self.task] = Some(operation.clone());
        operation
    }

    /// `finalized`: this client itself has made a quorum know that the configuration is final. Otherwise it heard of it
    /// from somebody, and there may be quorums that have not, as yet (decision record 0007).
    fn end_change(&self, operation: &Operation, installed: &Installed, finalized: bool) -> End {
        let work = self.work;
        let (ended, change) = match installed {
            Ok(Some(c)) if finalized => (self.ended(), Change::Decided(c)),
            Ok(Some(_)) => (self.ended(), Change::Unknown),
            Ok(None) => (self.ended(), Change::Nothing),
            Err(ReconfigError::Pending(_) | ReconfigError::Decided(_)) => {
                (Ended::from(work.world.now()), Change::Unknown)
            }
            Err(_) => (Ended::from(work.world.now()), Change::Nothing),
        };
        self.end(None, |history| {
            history.end_change(&ended, operation, &change);
        });
        match installed {
            Ok(Some(_)) => {
                let count = &work.reconfigurations;
                count.set(count.get() + 1);
                End::Done
            }
            Ok(None) => End::Done,
            Err(_) => End::TimedOut,
        }
    }
}
