//! The holdings of each member of an object. It is for people and for repair: no quorum decides anything by it, and a member may
//! hold something else by the time the answer arrives.

use super::Domain;
use crate::config::{Configuration, Members};
use crate::dap::lost;
use crate::env::Env;
use crate::gather;
use crate::message::{Access, Answer, Refusal, Reply, Want};
use crate::object::Name;
use crate::tag::Tag;
use crate::timing::HOLDINGS_PATIENCE;
use std::sync::Arc;

/// The state of a version of an object at a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberHolding {
    /// An element of the version.
    Version,
    /// No element of it; the newest element is of this version.
    Other(Tag),
    /// No element of any version.
    Nothing,
    /// Its newest version is damaged: it abstains (`[X-11 damage-abstains]`).
    Damaged,
    /// It refused for another reason.
    Refused(Refusal),
    /// Nothing: it knows a final configuration after this one.
    Superseded,
    /// It did not answer in time.
    Silent,
}

impl<E: Env> Domain<E> {
    /// The state of the version `tag` at the members of this configuration, in their order. Waits a short while for silent ones.
    pub async fn holdings(
        &self,
        c: &Arc<Configuration>,
        name: &Name,
        tag: Tag,
    ) -> Vec<MemberHolding> {
        self.holdings_at(c, c.members(), name, tag).await
    }

    /// The holdings of some members.
    pub(super) async fn holdings_at(
        &self,
        c: &Arc<Configuration>,
        members: &Members,
        name: &Name,
        tag: Tag,
    ) -> Vec<MemberHolding> {
        let (want, have) = (Want::Tags, Tag::INITIAL);
        let query = match c.is_ranked(name) {
            true => Access::Rank {
                ballot: None,
                want,
                have,
            },
            false => Access::query(want, have),
        };
        let (env, asked) = (&self.client.env, (c, members));
        let replies = gather::survey_object(env, asked, (name, query), HOLDINGS_PATIENCE).await;
        assert_eq!(replies.len(), members.len(), "a place for each");
        let holdings = replies.into_iter().map(|reply| holding(reply, tag));
        holdings.collect()
    }
}

fn holding(reply: Option<Reply>, tag: Tag) -> MemberHolding {
    // What no execution produces is damaged there ([N-1 bounded-numbers]).
    let Some(reply) = reply.filter(Reply::is_possible) else {
        return MemberHolding::Silent;
    };
    let (successors, reply) = reply.open();
    let mut answers = match reply {
        Some(Reply::Access(answers)) => answers,
        _ if !successors.is_empty() => return MemberHolding::Superseded,
        _ => return MemberHolding::Silent,
    };
    match answers.pop() {
        Some(Answer::Held(held)) if lost::named(&held) == Some(tag) => MemberHolding::Damaged,
        Some(Answer::Held(held)) => {
            let newest = held.stored.iter().rev().map(|(tag, _)| *tag);
            of_versions(newest, tag, |tag| held.stores(tag))
        }
        Some(Answer::Ranked(held)) => {
            let newest = held.versions.iter().rev().map(|it| it.tag);
            of_versions(newest, tag, |tag| held.stores(tag))
        }
        Some(Answer::Refused(Refusal::Damaged)) => MemberHolding::Damaged,
        Some(Answer::Refused(refusal)) => MemberHolding::Refused(refusal),
        _ => MemberHolding::Silent,
    }
}

/// `versions`: the newest first.
fn of_versions(
    mut versions: impl Iterator<Item = Tag>,
    tag: Tag,
    stores: impl Fn(Tag) -> bool,
) -> MemberHolding {
    match versions.find(|tag| stores(*tag)) {
        _ if stores(tag) => MemberHolding::Version,
        Some(other) => MemberHolding::Other(other),
        None => MemberHolding::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Form;
    use crate::message::{Ballot, HeldVersions, Lineage, RankedVersion, RankedVersions};
    use crate::tag::{ClientId, Writer};

    fn tag(number: u64) -> Tag {
        let client = ClientId(1);
        Tag {
            number,
            writer: Writer { client, counter: 1 },
        }
    }

    fn held(stored: &[(u64, Form)]) -> Reply {
        let stored = stored.iter().map(|(number, form)| (tag(*number), *form));
        Reply::Access(vec![Answer::Held(HeldVersions {
            stored: stored.collect(),
            ..HeldVersions::default()
        })])
    }

    /// The largest ballot shows which version of a register is the newest.
    #[test]
    fn a_reply_shows_what_a_member_holds_of_a_register() {
        let listed = |(number, form)| RankedVersion {
            tag: tag(number),
            ballot: Ballot::default(),
            form,
            deleted: false,
            lineage: Lineage::default(),
        };
        let versions = [(3, Form::Copy), (1, Form::Copy), (2, Form::Trimmed)].map(listed);
        let held = RankedVersions {
            versions: versions.into(),
            ..RankedVersions::default()
        };
        let of = |number| {
            let answer = Answer::Ranked(Box::new(held.clone()));
            holding(Some(Reply::Access(vec![answer])), tag(number))
        };
        assert_eq!(of(3), MemberHolding::Version);
        assert_eq!(of(2), MemberHolding::Other(tag(1)));
    }

    #[test]
    fn a_reply_shows_what_a_member_holds() {
        let of = |reply| holding(reply, tag(2));
        assert_eq!(of(None), MemberHolding::Silent);
        assert_eq!(of(Some(held(&[]))), MemberHolding::Nothing);
        let both = [(1, Form::Copy), (2, Form::Copy)];
        assert_eq!(of(Some(held(&both))), MemberHolding::Version);
        // The largest version without its element is one that was lost.
        let lost = [(1, Form::Copy), (2, Form::Trimmed)];
        assert_eq!(of(Some(held(&lost))), MemberHolding::Damaged);
        // Of a trimmed version the tag alone is there.
        let later = [(2, Form::Trimmed), (3, Form::Copy)];
        assert_eq!(of(Some(held(&later))), MemberHolding::Other(tag(3)));
        let trimmed = [(2, Form::Trimmed)];
        assert_eq!(of(Some(held(&trimmed))), MemberHolding::Damaged);
        let refused = |refusal| Some(Reply::Access(vec![Answer::Refused(refusal)]));
        assert_eq!(of(refused(Refusal::Damaged)), MemberHolding::Damaged);
        assert_eq!(
            of(refused(Refusal::Full)),
            MemberHolding::Refused(Refusal::Full)
        );
    }
}
