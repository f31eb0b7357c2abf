//! A look at all elements of one version, to see whether they belong together (`[X-29 cross-check]`). One round; it changes nothing.

use super::Domain;
use crate::config::Configuration;
use crate::dap::{self, CrossCheck};
use crate::element::{Element, ReplyElement};
use crate::env::Env;
use crate::gather;
use crate::message::{Access, Answer, Reply};
use crate::object::Name;
use crate::tag::Tag;
use crate::timing::COMPLETION_PATIENCE;
use std::sync::Arc;

/// The result of a look at all elements of a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckedElement {
    /// The verdict on the element of the member that asked.
    pub outcome: CrossCheck,
    /// Bytes that were read.
    pub bytes: u64,
}

impl<E: Env> Domain<E> {
    /// Reads the elements that the members of `c` hold of the version `tag`, and compares that of the member at `own` with the others.
    /// Waits a while for silent members. Of a ranked register it may not be asked: members drop its elements as they like.
    pub async fn cross_check(
        &self,
        c: &Arc<Configuration>,
        name: &Name,
        tag: Tag,
        own: usize,
    ) -> CheckedElement {
        assert!(!c.is_ranked(name), "its versions have other answers");
        assert!(!tag.is_initial(), "the initial version has no elements");
        let fetch = Access::Fetch { tag, payload: true };
        let (env, asked, fetch) = (&self.client.env, (c, c.members()), (name, fetch));
        let replies = gather::survey_object(env, asked, fetch, COMPLETION_PATIENCE).await;
        let found: Vec<Option<Element>> = replies.into_iter().map(element).collect();
        let payloads = found.iter().flatten().map(|it| it.payload.len() as u64);
        CheckedElement {
            bytes: payloads.sum(),
            outcome: dap::cross_check(c, name, &found, own),
        }
    }
}

fn element(reply: Option<Reply>) -> Option<Element> {
    let (_, reply) = reply?.open();
    let Some(Reply::Access(mut answers)) = reply else {
        return None;
    };
    match answers.pop() {
        Some(Answer::Fetched(ReplyElement::Whole(element))) => Some(element),
        _ => None,
    }
}
