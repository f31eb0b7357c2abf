//! Snapshots of a disk that are put back within the start that runs: the start after that is behind what others know of the log
//! (`[X-31 log-position]`).

use super::identity::Platter;
use super::machine::Machine;
use super::trouble::Trouble;
use super::{Event as Happening, World};
use crate::fault::Fault;
use areo_core::message::ServerRecord;
use std::time::Duration;

/// The wait between two looks at whether another server knows of the log.
const LOOK: Duration = Duration::from_millis(100);

impl World {
    /// Takes a snapshot of a server's disk, which is put back within the start that runs.
    pub(super) fn take_snapshot(&self, server: usize) {
        let life = {
            let machine = &mut self.0.machines.borrow_mut().list[server];
            if machine.exchange.snapshot.is_some() || !machine.serves() {
                return;
            }
            machine.exchange.snapshot = Some(Platter {
                position: machine.log_position(),
                ..machine.platter.duplicate()
            });
            machine.life
        };
        let time = Duration::from_millis(self.random().between(100, 2000));
        let returns = Trouble::SnapshotReturns(server, life);
        self.at(time, Happening::Trouble(returns));
        self.remark(&format!(
            "a snapshot of the disk of server {server} is taken"
        ));
    }

    /// The server's disk is put back as it was, as soon as another server knows that its log has come further.
    pub(super) fn restore_snapshot(&self, server: usize, life: u64) {
        let is_known = {
            let machines = &mut *self.0.machines.borrow_mut();
            if machines.list[server].life != life
                || !self.plan().is_planned(Fault::SnapshotRestored)
            {
                machines.list[server].exchange.snapshot = None;
                return;
            }
            // Another server may have taken its place in the same life.
            let Some(snapshot) = &machines.list[server].exchange.snapshot else {
                return;
            };
            let Platter { id, position, .. } = snapshot;
            let is_later = |known: ServerRecord| known.position > *position;
            let knows = |machine: &Machine| machine.registered(*id).is_some_and(is_later);
            let others = machines.list.iter().enumerate();
            let mut others = others.filter(|(other, _)| *other != server);
            others.any(|(_, machine)| knows(machine))
        };
        if !is_known || !self.may_exchange(server) {
            let returns = Trouble::SnapshotReturns(server, life);
            return self.at(LOOK, Happening::Trouble(returns));
        }
        let snapshot = {
            let machine = &mut self.0.machines.borrow_mut().list[server];
            machine.exchange.snapshot.take()
        };
        self.roll_back(server, snapshot.expect("it is there"));
    }
}
