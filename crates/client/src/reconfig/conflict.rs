//! Two changes at once: the one that comes second is made of the configuration that the first one left, unless the two contradict
//! each other (`docs/spec` `[A-13 change-after-its-base]`).

use super::change::Change;
use crate::cluster::Names;
use areo_core::config::{Configuration, Descriptor};
use std::fmt;

/// What two changes are both about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// One of them names all servers.
    Servers,
    /// This server, which is to be replaced, has gone.
    Replaced {
        /// Its name.
        server: String,
    },
    /// How values are kept.
    Dap,
    /// Slack of erasure-coded lists.
    Delta,
    /// Who decides about later changes.
    Decider,
    /// What only experiments ask for.
    Experimental,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Contradiction::Servers => "changed its servers, which this one names all",
            Contradiction::Replaced { server } => {
                return write!(f, "removed {server}, which this one replaces");
            }
            Contradiction::Dap => "changed how values are kept, as this one would",
            Contradiction::Delta => "changed --delta, as this one would",
            Contradiction::Decider => "changed --consensus, as this one would",
            Contradiction::Experimental => "changed what experiments ask for, as this one would",
        })
    }
}

/// What is left to do of the change, which made `made` of `base`, now that the sequence ends with `last`.
///
/// # Errors
/// [`Contradiction`] with what came between `base` and `last`.
pub(super) fn rest(
    change: &Change,
    (base, made): (&Configuration, &Configuration),
    last: &Configuration,
    names: &Names,
) -> Result<Change, Contradiction> {
    let [base, made, now] = [base, made, last].map(Configuration::descriptor);
    let members = match change.servers.is_empty() {
        true => members(change, last, names)?,
        false if [base, made].iter().any(|it| it.members == now.members) => change.clone(),
        false => return Err(Contradiction::Servers),
    };
    // Both have changed it, and not to the same.
    let clash = |of: fn(&Descriptor, &Descriptor) -> bool| {
        !of(made, base) && !of(now, base) && !of(now, made)
    };
    let clashes = [
        (clash(|a, b| a.dap == b.dap), Contradiction::Dap),
        (clash(|a, b| a.delta == b.delta), Contradiction::Delta),
        (
            clash(|a, b| a.decided_by == b.decided_by),
            Contradiction::Decider,
        ),
        (
            clash(|a, b| a.options == b.options),
            Contradiction::Experimental,
        ),
    ];
    match clashes.into_iter().find(|(is_one, _)| *is_one) {
        Some((_, contradiction)) => Err(contradiction),
        None => Ok(members),
    }
}

/// The servers that still have to come and to go. A server that is to be replaced must be there, or the server in its place.
fn members(change: &Change, last: &Configuration, names: &Names) -> Result<Change, Contradiction> {
    let is_member = |name: &String| {
        let mut ids = last.members().iter();
        ids.any(|id| names.name(*id) == *name || id.to_string() == *name)
    };
    let mut rest = change.clone();
    (rest.add, rest.remove) = (Vec::new(), Vec::new());
    for position in 0..change.add.len().max(change.remove.len()) {
        let [coming, leaving] = [&change.add, &change.remove].map(|servers| servers.get(position));
        let is_there = leaving.is_some_and(is_member);
        match (leaving, coming) {
            (Some(server), Some(coming)) if !is_there && !is_member(coming) => {
                let server = server.clone();
                return Err(Contradiction::Replaced { server });
            }
            _ => {}
        }
        rest.remove.extend(leaving.filter(|_| is_there).cloned());
        rest.add
            .extend(coming.filter(|server| !is_member(server)).cloned());
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::super::change::wanted;
    use super::*;
    use crate::cluster::tests::names;
    use crate::{Dap, DapKind, ServerId};
    use areo_core::object::DomainId;
    use std::sync::Arc;

    fn base() -> Arc<Configuration> {
        let members = (1..=7).map(ServerId).collect();
        let descriptor = Descriptor::new(DomainId(7), members, Dap::Ec { k: 3 });
        Configuration::new(descriptor).expect("a valid one")
    }

    fn nine() -> Names {
        names(&["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"])
    }

    fn servers(list: &[&str]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    fn replace(leaving: &[&str], coming: &[&str]) -> Change {
        Change {
            add: servers(coming),
            remove: servers(leaving),
            ..Change::default()
        }
    }

    /// What two changes of one configuration come to, the second after the first.
    fn both(first: &Change, second: &Change) -> Result<Arc<Configuration>, Contradiction> {
        let (base, names) = (base(), nine());
        let make = |change: &Change, of: &Configuration| wanted(change, of, &names).expect("valid");
        let last = make(first, &base);
        let made = make(second, &base);
        let rest = rest(second, (&base, &made), &last, &names)?;
        Ok(make(&rest, &last))
    }

    fn ids(c: &Configuration) -> Vec<u128> {
        c.members().iter().map(|server| server.0).collect()
    }

    #[test]
    fn changes_of_different_things_commute() {
        let delta = Change {
            delta: Some(9),
            ..Change::default()
        };
        let dap = Change {
            dap: Some(DapKind::Abd),
            ..Change::default()
        };
        let changes = [
            replace(&["s2"], &["s8"]),
            replace(&["s3"], &["s9"]),
            delta,
            dap,
        ];
        for (i, first) in changes.iter().enumerate() {
            for second in &changes[i + 1..] {
                let (one, other) = (both(first, second), both(second, first));
                assert_eq!(one, other, "{first:?} and {second:?}");
                assert!(one.is_ok());
            }
        }
        let replaced = both(&changes[0], &changes[1]).expect("they commute");
        assert_eq!(ids(&replaced), [1, 8, 9, 4, 5, 6, 7]);
    }

    #[test]
    fn what_another_change_has_done_already_is_left_out() {
        let both = |first, second| both(first, second).map(|c| ids(&c));
        let replaced = replace(&["s2"], &["s8"]);
        assert_eq!(both(&replaced, &replaced), Ok(vec![1, 8, 3, 4, 5, 6, 7]));
        let added = replace(&[], &["s8"]);
        assert_eq!(both(&added, &added), Ok(vec![1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(both(&added, &replaced), Ok(vec![1, 3, 4, 5, 6, 7, 8]));
        let removed = replace(&["s7"], &[]);
        assert_eq!(both(&removed, &removed), Ok(vec![1, 2, 3, 4, 5, 6]));
        let all = Change {
            servers: servers(&["s1", "s8", "s3", "s4", "s5", "s6", "s7"]),
            ..Change::default()
        };
        assert_eq!(both(&replaced, &all), Ok(vec![1, 8, 3, 4, 5, 6, 7]));
    }

    #[test]
    fn changes_that_contradict_each_other_are_named() {
        let server = || "s2".to_owned();
        let replaced = Contradiction::Replaced { server: server() };
        let (to_8, to_9) = (replace(&["s2"], &["s8"]), replace(&["s2"], &["s9"]));
        assert_eq!(both(&to_8, &to_9), Err(replaced));
        let all = Change {
            servers: servers(&["s1", "s2", "s3", "s4", "s5"]),
            ..Change::default()
        };
        assert_eq!(both(&to_8, &all), Err(Contradiction::Servers));
        let delta = |delta| Change {
            delta: Some(delta),
            ..Change::default()
        };
        assert_eq!(both(&delta(8), &delta(9)), Err(Contradiction::Delta));
        assert!(both(&delta(8), &delta(8)).is_ok());
        let k = |k| Change {
            k: Some(k),
            ..Change::default()
        };
        assert_eq!(both(&k(2), &k(1)), Err(Contradiction::Dap));
    }
}
