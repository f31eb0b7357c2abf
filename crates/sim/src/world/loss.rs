//! The permanent losses that a run may have. A server whose disk was wiped, or whose process kept its records in memory and has ended, is
//! gone: the next process on its machine is another server, which may become a member like any other. No
//! configuration that a client ever wanted loses more members than every configuration of the run tolerates, and nor does any that changes
//! over a lattice may come to together.

use super::departure::DepartedServer;
use super::identity::Platter;
use super::machine::Machines;
use super::{World, id_of, server_of};
use crate::fault::Fault;
use areo_core::config::ServerId;
use areo_node::may_start;
use std::collections::BTreeSet;

/// Servers that are lost, and sets of servers that must not lose more members.
pub(super) struct Losses {
    /// Servers that are gone, that rot, or that end when they have drained.
    lost: BTreeSet<ServerId>,
    /// The members of every configuration that a client has ever wanted.
    wanted: BTreeSet<Vec<ServerId>>,
    /// The servers that clients have ever wanted where changes are joined: a change of one client may be joined with
    /// those of others, at any later time.
    joined: BTreeSet<ServerId>,
    /// Servers that clients take out of all domains.
    pub(super) leaving: Vec<ServerId>,
    /// Servers that a register keeps for ever, because they were on a disk, or their directory was made before their process.
    pub(super) registered: usize,
}

impl Losses {
    pub(super) fn new(servers: usize) -> Losses {
        Losses {
            lost: BTreeSet::new(),
            wanted: BTreeSet::new(),
            joined: BTreeSet::new(),
            leaving: Vec::new(),
            registered: servers,
        }
    }

    pub(super) fn is_lost(&self, id: ServerId) -> bool {
        self.lost.contains(&id)
    }

    pub(super) fn lose(&mut self, id: ServerId) {
        self.lost.insert(id);
    }

    /// No server is lost but this one.
    pub(super) fn is_only(&self, id: ServerId) -> bool {
        self.lost.iter().all(|lost| *lost == id)
    }

    fn of<'a>(&self, members: impl IntoIterator<Item = &'a ServerId>) -> usize {
        members.into_iter().filter(|id| self.is_lost(**id)).count()
    }

    fn may_lose(&self, id: ServerId, tolerated: usize) -> bool {
        let mut wanted = self.wanted.iter().filter(|members| members.contains(&id));
        let is_joined = self.joined.contains(&id) && self.of(&self.joined) >= tolerated;
        self.is_lost(id) || !is_joined && wanted.all(|members| self.of(members) < tolerated)
    }

    /// Notes that a client wants these members together with those that others have wanted and will. False: too many
    /// of all of them are lost.
    fn join(&mut self, members: impl IntoIterator<Item = ServerId>, tolerated: usize) -> bool {
        let mut joined = self.joined.clone();
        joined.extend(members);
        let is_admitted = self.of(&joined) <= tolerated;
        if is_admitted {
            self.joined = joined;
        }
        is_admitted
    }
}

impl World {
    /// The servers that are on these machines now.
    pub(crate) fn ids(&self, servers: &[usize]) -> Vec<ServerId> {
        let list = &self.0.machines.borrow().list;
        let ids = servers.iter().map(|server| list[*server].platter.id);
        ids.collect()
    }

    /// A client wants a configuration of these members. False: it has lost too many of them already.
    pub(crate) fn want(&self, members: &[ServerId]) -> bool {
        let tolerated = self.cluster().tolerated();
        let losses = &mut self.0.machines.borrow_mut().losses;
        let is_admitted = losses.of(members.iter()) <= tolerated;
        if is_admitted {
            losses.wanted.insert(members.to_vec());
        }
        is_admitted
    }

    /// True if a client or a server has ever wanted a configuration of these members.
    pub(super) fn is_wanted(&self, members: &[ServerId]) -> bool {
        let losses = &self.0.machines.borrow().losses;
        losses.wanted.contains(members)
    }

    /// [`World::want`] where the changes of clients are joined; `there`: the members that it begins with.
    pub(crate) fn want_joined(&self, there: &[ServerId], members: &[ServerId]) -> bool {
        let tolerated = self.cluster().tolerated();
        let losses = &mut self.0.machines.borrow_mut().losses;
        losses.join([there, members].concat(), tolerated)
    }

    /// One of these is to leave all domains, and so joins none.
    pub(crate) fn is_any_leaving(&self, members: &[ServerId]) -> bool {
        let leaving = &self.0.machines.borrow().losses.leaving;
        members.iter().any(|member| leaving.contains(member))
    }

    /// No configuration loses too many by the loss of this server.
    pub(super) fn may_lose(&self, server: usize) -> bool {
        if self.is_any_copy() {
            return false;
        }
        let machines = self.0.machines.borrow();
        let id = machines.list[server].platter.id;
        machines.losses.may_lose(id, self.cluster().tolerated())
    }

    /// The end of its process takes nothing that must not be lost.
    pub(super) fn may_end(&self, server: usize) -> bool {
        !self.is_in_memory(server) || self.may_lose(server)
    }

    pub(super) fn is_in_memory(&self, server: usize) -> bool {
        self.0.machines.borrow().list[server].platter.in_memory
    }

    /// The process of a server without a disk has ended. Its directory is another server's from now on, unless the directory was
    /// made before the process and has said nothing under the old id.
    pub(super) fn forget_memory(&self, server: usize) {
        let machines = &mut *self.0.machines.borrow_mut();
        let platter = &machines.list[server].platter;
        let Platter { id, starts, .. } = *platter;
        if platter.stays() {
            return machines.truth(server).wipe(id);
        }
        if !may_start(true, starts) {
            self.plan().note(Fault::MemoryLost);
        }
        self.begin_anew(machines, server);
    }

    /// A new directory, and so another server, on the same machine.
    pub(super) fn begin_anew(&self, machines: &mut Machines, server: usize) {
        let machine = &mut machines.list[server];
        machines.losses.lose(machine.platter.id);
        machines.departures.push(DepartedServer {
            id: machine.platter.id,
            starts: machine.platter.starts,
            in_memory: machine.platter.in_memory,
            is_forgotten: false,
            is_starting: false,
        });
        machines.losses.registered += usize::from(!machine.platter.in_memory);
        // Random, as a new directory's is.
        let random = u128::from(self.random().draw() | 1) << super::MACHINE_BITS;
        let id = ServerId(random | id_of(server).0);
        assert_eq!(server_of(id), server, "an id says where its server is");
        machine.platter = Platter::new(id, machine.platter.in_memory);
        machine.exchange = super::identity::Exchange::default();
        machines.truth(server).wipe(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_configuration_loses_more_members_than_tolerated() {
        let ids = |places: [u128; 3]| places.map(ServerId).to_vec();
        let mut losses = Losses::new(5);
        losses.wanted.extend([ids([1, 2, 3]), ids([3, 4, 5])]);
        losses.lose(ServerId(1));
        let may_lose = |losses: &Losses| {
            let one_more = |place: &u128| losses.may_lose(ServerId(*place), 1);
            (1..=6).filter(one_more).collect::<Vec<_>>()
        };
        assert_eq!(may_lose(&losses), [1, 4, 5, 6]);
        losses.lose(ServerId(5));
        assert_eq!(may_lose(&losses), [1, 5, 6]);
    }

    /// Regression: two changes had one lost member each, and their join had both: with 13 members, of which 8 were
    /// lost, a domain of L-Rambo stood still for ever.
    #[test]
    fn changes_that_are_joined_lose_no_more_together() {
        let [one, other, third] = [1, 2, 3].map(ServerId);
        let mut losses = Losses::new(3);
        assert!(losses.join([one], 1) && losses.join([other, third], 1));
        assert!(losses.may_lose(one, 1) && losses.may_lose(other, 1));
        losses.lose(one);
        assert!(
            !losses.may_lose(other, 1),
            "another change has the first one"
        );
        losses.lose(ServerId(4));
        assert!(!losses.join([ServerId(4)], 1), "it is lost, too");
        assert!(losses.join([ServerId(5)], 1));
        assert!(!losses.may_lose(ServerId(5), 1));
    }
}
