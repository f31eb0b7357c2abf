//! The sequence of configurations: one member gives its place to the server that has none, and the algorithms take turns.

use crate::load::shape_name;
use areo_client::{Change, Dap, DapKind, DomainOptions, Shape, limits};

/// A domain on all servers but one.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    members: Vec<String>,
    spare: String,
    dap: Dap,
    /// Number of changes so far.
    changes: usize,
}

impl Ring {
    /// Replication on all of these servers but the last one.
    pub(super) fn new(mut servers: Vec<String>) -> Ring {
        let spare = servers.pop().expect("there are several servers");
        Ring {
            members: servers,
            spare,
            dap: Dap::Abd,
            changes: 0,
        }
    }

    /// The domain as it is now, for making one.
    pub(super) fn options(&self) -> DomainOptions {
        DomainOptions {
            dap: self.dap,
            servers: self.members.clone(),
            ..DomainOptions::default()
        }
    }

    /// One member for another, the same algorithm.
    pub(super) fn replace(&mut self) -> Change {
        let place = self.changes % self.members.len();
        self.changes += 1;
        std::mem::swap(&mut self.members[place], &mut self.spare);
        Change {
            add: vec![self.members[place].clone()],
            remove: vec![self.spare.clone()],
            ..Change::default()
        }
    }

    /// One member for another, the other algorithm.
    pub(super) fn turn(&mut self) -> Change {
        let dap = if self.dap.is_coded() {
            DapKind::Abd
        } else {
            DapKind::Ec
        };
        self.dap = dap.with(Shape::default_k(self.members.len()));
        Change {
            dap: Some(dap),
            ..self.replace()
        }
    }

    /// Its name in a history.
    pub(super) fn name(&self) -> String {
        shape_name(self.dap, &self.members)
    }

    /// `abd` or `ec [5,3]`.
    pub(super) fn shape(&self) -> String {
        match self.dap {
            Dap::Ec { k } => format!("ec [{},{k}]", self.members.len()),
            _ => "abd".into(),
        }
    }

    /// Bytes that have to travel for a value of `length` bytes when this becomes `next`: the value once from its
    /// holders, and an element to every member that cannot make it of its own element: of a full copy, or of an equal
    /// one of an equal `[n,k]` (`[X-17 adopted-elements]`).
    pub(super) fn needed_bytes(&self, next: &Ring, length: u64) -> u64 {
        let same = self.dap == next.dap && self.members.len() == next.members.len();
        let adopts = |(place, server): &(usize, &String)| match self.is_copy(length) {
            true => self.members.contains(server),
            false => same && self.members.get(*place) == Some(*server),
        };
        let all = next.members.iter().enumerate();
        let needy = all.filter(|member| !adopts(member)).count() as u64;
        let element = match next.is_copy(length) {
            true => length,
            false => length.div_ceil(next.dap.k().into()),
        };
        length + needy * element
    }

    fn is_copy(&self, length: u64) -> bool {
        self.dap == Dap::Abd || length <= limits::DEFAULT_COPY_BYTES.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> Ring {
        let servers = (1..=6).map(|i| format!("s{i}"));
        Ring::new(servers.collect())
    }

    #[test]
    fn members_rotate_and_algorithms_take_turns() {
        let mut ring = ring();
        assert_eq!(ring.options().servers, ["s1", "s2", "s3", "s4", "s5"]);
        let first = ring.turn();
        assert_eq!(
            (&*first.add, &*first.remove),
            (&["s6".into()][..], &["s1".into()][..])
        );
        assert_eq!(
            (first.dap, ring.shape()),
            (Some(DapKind::Ec), "ec [5,3]".into())
        );
        let second = ring.turn();
        assert_eq!(
            (&*second.add, &*second.remove),
            (&["s1".into()][..], &["s2".into()][..])
        );
        assert_eq!(
            (second.dap, ring.shape()),
            (Some(DapKind::Abd), "abd".into())
        );
        assert_eq!(ring.options().servers, ["s6", "s1", "s3", "s4", "s5"]);
        let third = ring.replace();
        assert_eq!((third.dap, ring.shape()), (None, "abd".into()));
    }

    #[test]
    fn what_is_held_already_need_not_travel() {
        let (small, large) = (1_000, 300_000);
        let before = ring();
        let mut coded = before.clone();
        coded.turn();
        // One newcomer; the others have a copy to make theirs of.
        assert_eq!(before.needed_bytes(&coded, small), 2 * small);
        assert_eq!(before.needed_bytes(&coded, large), large + large / 3);
        let mut replaced = coded.clone();
        replaced.replace();
        assert_eq!(coded.needed_bytes(&replaced, large), large + large / 3);
        let mut replicated = coded.clone();
        replicated.turn();
        assert_eq!(coded.needed_bytes(&replicated, large), 6 * large);
        assert_eq!(coded.needed_bytes(&replicated, small), 2 * small);
    }
}
