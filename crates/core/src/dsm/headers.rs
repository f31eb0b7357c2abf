//! Reads of many objects at once, without their content, as far as one round can tell.

use super::{Client, Domain};
use crate::dap;
use crate::dap::headers::{self, Header};
use crate::env::Env;
use crate::error::{CallError, Response, Unavailable};
use crate::gather::{self, Visit};
use crate::limits;
use crate::message::Refusal;
use crate::object::Name;
use crate::reconfig::walk::{Step, WalkOutcome};
use crate::tag::Tag;

impl<E: Env> Domain<E> {
    /// The newest version of each object, without its content; with each object the version that the caller has. `None`: one
    /// round could not tell, and it has to be read alone: it is being written, a member is damaged, or the domain is moving.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn headers(
        &self,
        objects: &[(Name, Tag)],
    ) -> Result<Vec<Option<Header>>, Unavailable> {
        let parts = objects.chunks(limits::ACCESSES);
        let reads = parts.map(|part| self.headers_part(part));
        let found = gather::join(limits::HEADERS_WINDOW, reads).await;
        let found: Result<Vec<_>, Unavailable> = found.into_iter().collect();
        let found = found?.concat();
        assert_eq!(found.len(), objects.len(), "each object is spoken of");
        Ok(found)
    }

    async fn headers_part(
        &self,
        objects: &[(Name, Tag)],
    ) -> Result<Vec<Option<Header>>, Unavailable> {
        let mut found = None;
        let get = async |at: &Visit| {
            if objects.iter().any(|(name, _)| at.c().is_ranked(name)) {
                return Ok(Step::End(()));
            }
            let start = self.start();
            if start != *at.c() {
                // A pending configuration: the domain is moving.
                return Ok(if at.c().precedes(&start) {
                    Step::Again(start)
                } else {
                    Step::End(())
                });
            }
            match headers::get(&self.client.env, at, objects).await {
                Ok(headers) => found = Some(headers),
                // Much metadata, or many versions under way: more than a reply holds.
                Err(CallError::Unavailable(failed)) if is_too_large(&failed) => {
                    return Ok(Step::End(()));
                }
                Err(failed) => return Err(failed),
            }
            Ok(Step::GoOn)
        };
        // [F-4 last-configuration]: only where no server knew a later configuration, and said so with the same replies.
        if let WalkOutcome::ToTheEnd(last) = self.walk().until(get).await?
            && last.c().options().piggyback
            && let Some(found) = found
        {
            confirm_again(&self.client, &last, objects, &found);
            return Ok(found);
        }
        Ok(vec![None; objects.len()])
    }
}

/// Confirms versions that are at a quorum to the members that do not know it, as a read of one object does
/// (`[X-4 confirm-write-backs]`).
fn confirm_again<E: Env>(
    client: &Client<E>,
    at: &Visit,
    objects: &[(Name, Tag)],
    found: &[Option<Header>],
) {
    assert_eq!(
        objects.len(),
        found.len(),
        "headers are in the order of objects"
    );
    for ((name, _), header) in objects.iter().zip(found) {
        if let Some(header) = header.as_ref().filter(|header| header.unaware) {
            dap::confirm(&client.env, at, name, header.tag);
        }
    }
}

fn is_too_large(failed: &Unavailable) -> bool {
    let too_large = Response::Refused(Refusal::TooLarge);
    failed.servers.iter().any(|(_, did)| *did == too_large)
}
