//! Changes: what is to be different of a configuration, and what two of them come to (`docs/spec` `[A-14 merged-changes]`).
//!
//! A change is the pair of the configuration that it was made from and the one that it makes of that. What it makes of a later
//! configuration is the merge of three: each field that the change leaves alone is that of the later one. Servers come and go
//! in steps, each of which names a server that goes, one that comes in its place, or both. So changes of different things
//! commute, and both can be made at once. Two contradict each other if they set one thing to different values.

use crate::config::{Configuration, Descriptor, InvalidConfiguration, ServerId};
use crate::tlv::{self, MUST_UNDERSTAND, TlvError};
use bytes::{Bytes, BytesMut};
use std::sync::Arc;

/// A wanted change of a configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    base: Arc<Configuration>,
    made: Arc<Configuration>,
    /// The servers are these and no others.
    names_all: bool,
}

/// The part of a configuration that two changes contradict each other about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contradiction {
    /// One of the changes names all servers.
    Servers,
    /// The server that one of the changes replaces has gone.
    Replaced(ServerId),
    /// Both change the kind.
    Dap,
    /// Both change `delta`.
    Delta,
    /// Both change the decider of later changes.
    Decider,
    /// Both change options that only experiments set.
    Options,
}

/// Why a change cannot be made after another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Obstruction {
    /// The two contradict each other.
    Contradiction(Contradiction),
    /// The configuration with both changes is invalid.
    Invalid(InvalidConfiguration),
}

impl From<Contradiction> for Obstruction {
    fn from(about: Contradiction) -> Obstruction {
        Obstruction::Contradiction(about)
    }
}

/// The configuration that a change makes.
const MADE: u16 = MUST_UNDERSTAND | 1;
/// The field that says if it names all servers, one byte.
const NAMES_ALL: u16 = MUST_UNDERSTAND | 2;

/// A server that goes, one that comes, or one in the place of the other.
type ServerStep = (Option<ServerId>, Option<ServerId>);

impl Change {
    /// The change that makes `wanted` of `base`, but for its index.
    ///
    /// # Errors
    /// [`InvalidConfiguration`].
    pub fn new(
        base: &Arc<Configuration>,
        wanted: &Descriptor,
    ) -> Result<Change, InvalidConfiguration> {
        let made = match (&base.descriptor().lattice, wanted.dap.is_removal()) {
            (None, _) => next(base, wanted)?,
            (Some(membership), true) => base.with_membership(membership.removal())?,
            (Some(_), false) => Configuration::new(wanted.clone())?,
        };
        Ok(Change {
            base: base.clone(),
            made,
            names_all: false,
        })
    }

    /// Makes the change's servers the only ones of the new configuration.
    #[must_use]
    pub fn naming_all(self) -> Change {
        Change {
            names_all: true,
            ..self
        }
    }

    /// The configuration that it was made from.
    pub fn base(&self) -> &Arc<Configuration> {
        &self.base
    }

    /// The one that it makes of that.
    pub fn made(&self) -> &Arc<Configuration> {
        &self.made
    }

    /// True if it ends the domain.
    pub fn is_removal(&self) -> bool {
        self.made.dap().is_removal()
    }

    /// True if the configuration has all of it: nothing is left to do there.
    pub fn is_in(&self, c: &Configuration) -> bool {
        let memberships = [&self.made, c].map(|it| it.descriptor().lattice.as_ref());
        if let [Some(wanted), Some(there)] = memberships {
            return wanted.is_within(there);
        }
        let merged = self.merge(c.descriptor());
        merged.is_ok_and(|merged| merged == *c.descriptor())
    }

    /// The change that is left of it after `last`, which others made.
    ///
    /// # Errors
    /// [`Obstruction`].
    pub fn after(&self, last: &Arc<Configuration>) -> Result<Change, Obstruction> {
        assert!(
            self.base.id().domain == last.id().domain && !last.precedes(&self.base),
            "a configuration of the domain, and no earlier one"
        );
        let merged = self.merge(last.descriptor())?;
        let made = next(last, &merged).map_err(Obstruction::Invalid)?;
        Ok(Change {
            base: last.clone(),
            made,
            names_all: self.names_all,
        })
    }

    /// Joins this change with as many of the others, in their order, as can be made together. All are made from one
    /// configuration.
    #[must_use]
    pub fn join<'a>(&self, others: impl IntoIterator<Item = &'a Change>) -> Change {
        let mut joined = self.clone();
        for other in others {
            if let Some(both) = joined.with(other) {
                joined = both;
            }
        }
        assert!(self.is_in(&joined.made), "a join leaves nothing out");
        joined
    }

    /// Both changes. `None` if they contradict each other, or come to what cannot be, or to what tolerates fewer crashes than each
    /// of them alone. A server that is away and a member of both stays, so that a quorum serves if it does after each of them.
    fn with(&self, other: &Change) -> Option<Change> {
        assert_eq!(self.base, other.base, "of one configuration");
        let crashes = |c: &Configuration| c.n() - c.quorums().quorum();
        let both = |(first, second): &(&Change, &Change)| {
            let merged = second.merge(first.made.descriptor()).ok()?;
            let made = next(&self.base, &merged).ok()?;
            let has_both = self.is_in(&made) && other.is_in(&made);
            let planned = crashes(&self.made).min(crashes(&other.made));
            (has_both && crashes(&made) >= planned).then(|| Change {
                base: self.base.clone(),
                made,
                names_all: self.names_all || other.names_all,
            })
        };
        // A server that was replaced may go, but one that has gone cannot be replaced.
        [(self, other), (other, self)].iter().find_map(both)
    }

    /// The descriptor that it makes of a configuration, but for index and era.
    fn merge(&self, last: &Descriptor) -> Result<Descriptor, Contradiction> {
        let [base, made] = [&self.base, &self.made].map(|c| c.descriptor());
        if made.dap.is_removal() {
            return Ok(last.removal());
        }
        let kept = |it: &Descriptor| (it.dap, it.copy_bytes);
        let kept = pick([base, made, last].map(kept));
        let (dap, copy_bytes) = kept.ok_or(Contradiction::Dap)?;
        let delta = pick([base, made, last].map(|it| it.delta));
        let options = pick([base, made, last].map(|it| it.options));
        let decided_by = pick([base, made, last].map(|it| &it.decided_by));
        let fixed = pick([base, made, last].map(|it| it.fixed));
        Ok(Descriptor {
            members: self.members(&last.members)?,
            dap,
            copy_bytes,
            delta: delta.ok_or(Contradiction::Delta)?,
            options: options.ok_or(Contradiction::Options)?,
            decided_by: decided_by.ok_or(Contradiction::Decider)?.clone(),
            fixed: fixed.expect("of two values there is no third"),
            ..last.clone()
        })
    }

    /// The members that it makes of these.
    fn members(&self, last: &[ServerId]) -> Result<Vec<ServerId>, Contradiction> {
        let [base, made] = [&self.base, &self.made].map(|c| c.members());
        if last == &base[..] || last == &made[..] {
            return Ok(made.to_vec());
        }
        if self.names_all {
            return Err(Contradiction::Servers);
        }
        let mut members = last.to_vec();
        for (leaving, coming) in steps(base, made) {
            let position = |server| members.iter().position(|member| Some(*member) == server);
            let (place, arrived) = (position(leaving), position(coming));
            match (leaving, place, coming.filter(|_| arrived.is_none())) {
                (_, Some(place), Some(coming)) => members[place] = coming,
                (_, Some(place), None) => drop(members.remove(place)),
                (None, None, Some(coming)) => members.push(coming),
                (Some(leaving), None, Some(_)) => return Err(Contradiction::Replaced(leaving)),
                (_, None, None) => {}
            }
        }
        Ok(members)
    }

    /// The bytes in which it is posted.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        tlv::put_field(&mut out, MADE, self.made.encoded());
        if self.names_all {
            tlv::put_field(&mut out, NAMES_ALL, &[1]);
        }
        out.freeze()
    }

    /// Decodes a change that was posted in the mailbox of `base`. `None` if it is of a later version, or no change
    /// that others can make together with theirs.
    pub fn decode(base: &Arc<Configuration>, encoded: &Bytes) -> Option<Change> {
        let (made, names_all) = fields(encoded).ok()?;
        let made = Configuration::decode(made?).ok()?;
        let id = |c: &Configuration| (c.id().domain, c.id().partition, c.id().index);
        let (domain, partition, index) = id(base);
        let comes_next = id(&made) == (domain, partition, index + 1);
        let is_possible = comes_next && base.check_next(&made).is_ok() && !made.dap().is_removal();
        is_possible.then(|| Change {
            base: base.clone(),
            made,
            names_all,
        })
    }
}

fn fields(encoded: &Bytes) -> Result<(Option<Bytes>, bool), TlvError> {
    let (mut made, mut names_all) = (None, false);
    for field in tlv::fields(encoded) {
        match field? {
            (MADE, value) => made = Some(encoded.slice_ref(value)),
            (NAMES_ALL, value) => names_all = tlv::number::<1>(NAMES_ALL, value)? != [0],
            (kind, _) => tlv::unknown(kind)?,
        }
    }
    Ok((made, names_all))
}

/// The wanted descriptor, in the place after this configuration.
pub(super) fn next(
    last: &Configuration,
    wanted: &Descriptor,
) -> Result<Arc<Configuration>, InvalidConfiguration> {
    let next = Configuration::new(Descriptor {
        index: last.id().index + 1,
        era: last.era_of_next(wanted.dap),
        ..wanted.clone()
    })?;
    assert!(
        last.precedes(&next),
        "a configuration is appended to its own domain"
    );
    last.check_next(&next)?;
    Ok(next)
}

/// The value of a field, of which a change made one of another one while it became a third. `None`: both changed it, and not to
/// the same.
fn pick<T: PartialEq>([base, made, last]: [T; 3]) -> Option<T> {
    match (made == base || made == last, last == base) {
        (true, _) => Some(last),
        (false, true) => Some(made),
        (false, false) => None,
    }
}

/// The steps of the members: the first that comes takes the place of the first that goes, and so on.
fn steps(base: &[ServerId], made: &[ServerId]) -> Vec<ServerStep> {
    let lacking = |of: &[ServerId], from: &[ServerId]| -> Vec<ServerId> {
        let lacks = |server: &&ServerId| !from.contains(server);
        of.iter().filter(lacks).copied().collect()
    };
    let (leaving, coming) = (lacking(base, made), lacking(made, base));
    let at = |place| (leaving.get(place).copied(), coming.get(place).copied());
    (0..leaving.len().max(coming.len())).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing;

    fn base() -> Arc<Configuration> {
        testing::coded(7, 3)
    }

    fn change(base: &Arc<Configuration>, of: impl FnOnce(&mut Descriptor)) -> Change {
        let mut wanted = base.descriptor().clone();
        of(&mut wanted);
        Change::new(base, &wanted).unwrap()
    }

    /// A change of servers, by number: those of the base have 1 to 7.
    fn servers(base: &Arc<Configuration>, members: &[u128]) -> Change {
        let members = members.iter().copied().map(ServerId).collect();
        change(base, |wanted| wanted.members = members)
    }

    /// The effect of two changes of one configuration, the second after the first.
    fn both(first: &Change, second: &Change) -> Result<Vec<u128>, Obstruction> {
        let made = second.after(first.made())?.made;
        assert!(second.is_in(&made) && made.id().index == second.base.id().index + 2);
        Ok(made.members().iter().map(|server| server.0).collect())
    }

    #[test]
    fn changes_of_different_things_commute() {
        let base = base();
        let abd = testing::replicated(1).dap();
        let changes = [
            servers(&base, &[1, 8, 3, 4, 5, 6, 7]),
            servers(&base, &[1, 2, 9, 4, 5, 6, 7]),
            change(&base, |wanted| wanted.delta = 9),
            change(&base, |wanted| wanted.dap = abd),
        ];
        for (place, first) in changes.iter().enumerate() {
            for second in &changes[place + 1..] {
                let one = second.after(first.made()).unwrap();
                let other = first.after(second.made()).unwrap();
                assert_eq!(one.made, other.made, "{first:?} and {second:?}");
                let joined = first.join([second]);
                assert!(first.is_in(&joined.made) && second.is_in(&joined.made));
                assert_eq!(joined.made.members(), one.made.members());
            }
        }
        let all = changes[0].join(&changes[1..]);
        let ids: Vec<u128> = all.made.members().iter().map(|it| it.0).collect();
        assert_eq!(ids, [1, 8, 9, 4, 5, 6, 7]);
        assert_eq!((all.made.dap(), all.made.descriptor().delta), (abd, 9));
    }

    #[test]
    fn what_another_change_has_done_already_is_left_out() {
        let base = base();
        let replaced = servers(&base, &[1, 8, 3, 4, 5, 6, 7]);
        assert_eq!(both(&replaced, &replaced), Ok(vec![1, 8, 3, 4, 5, 6, 7]));
        let added = servers(&base, &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(both(&added, &added), Ok(vec![1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(both(&added, &replaced), Ok(vec![1, 3, 4, 5, 6, 7, 8]));
        let removed = servers(&base, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(both(&removed, &removed), Ok(vec![1, 2, 3, 4, 5, 6]));
        assert_eq!(
            both(&replaced, &replaced.clone().naming_all()),
            both(&replaced, &replaced)
        );
        let delta = change(&base, |wanted| wanted.delta = 8);
        assert!(both(&delta, &delta).is_ok());
    }

    /// A server that was replaced may go, and one that has gone cannot be replaced: together both are made.
    #[test]
    fn a_server_is_replaced_before_it_goes() {
        let base = base();
        let replaced = servers(&base, &[1, 8, 3, 4, 5, 6, 7]);
        let removed = servers(&base, &[1, 3, 4, 5, 6, 7]);
        let gone = Contradiction::Replaced(ServerId(2));
        assert_eq!(both(&removed, &replaced), Err(gone.into()));
        assert_eq!(both(&replaced, &removed), Ok(vec![1, 8, 3, 4, 5, 6, 7]));
        for joined in [removed.join([&replaced]), replaced.join([&removed])] {
            assert!(removed.is_in(&joined.made) && replaced.is_in(&joined.made));
        }
    }

    /// Each alone leaves three servers, which tolerate a crash; both leave two, which do not.
    #[test]
    fn nothing_is_merged_that_tolerates_fewer_crashes() {
        let base = testing::replicated(4);
        let (one, other) = (servers(&base, &[2, 3, 4]), servers(&base, &[1, 3, 4]));
        assert_eq!(one.join([&other]), one);
        assert_eq!(one.after(other.made()).unwrap().made.n(), 2);
        let more = servers(&base, &[1, 2, 3, 4, 5]);
        let all = one.join([&other, &more]).made;
        assert!(all.n() == 4 && more.is_in(&all) && !other.is_in(&all));
    }

    #[test]
    fn a_change_survives_and_another_one_is_none() {
        let base = base();
        let made = servers(&base, &[1, 8, 3, 4, 5, 6, 7]);
        for change in [made.clone(), made.clone().naming_all()] {
            assert_eq!(
                Change::decode(&base, &change.encode()),
                Some(change.clone())
            );
            let cut = change.encode();
            assert_eq!(Change::decode(&base, &cut.slice(..cut.len() - 1)), None);
        }
        assert_eq!(
            Change::decode(made.made(), &made.encode()),
            None,
            "of another base"
        );
        let removal = Change::new(&base, &base.descriptor().removal()).unwrap();
        assert!(removal.is_removal());
        assert_eq!(Change::decode(&base, &removal.encode()), None);
        let mut later = BytesMut::from(made.encode().as_ref());
        tlv::put_field(&mut later, MUST_UNDERSTAND | 9, &[]);
        assert_eq!(
            Change::decode(&base, &later.freeze()),
            None,
            "of a later version"
        );
    }
}
