//! Atomic read and write: two phases over the data access primitives (`algorithms.md` 1.1, 3.4).
//!
//! | | rounds, quiet | otherwise |
//! |---|---|---|
//! | [`write()`] | 2 | |
//! | [`read`] | 1, when the version is known to be at a quorum (`[F-1]` to `[F-3]`) | 2 |
//! | [`stat`] | 1 | 2, with the content |

use super::Client;
use crate::config::Configuration;
use crate::dap::{self, Found, Known, PutError, Scope};
use crate::element::Value;
use crate::env::Env;
use crate::error::{ReadError, Unavailable, WriteError};
use crate::limits;
use crate::object::Name;
use crate::tag::Tag;
use std::sync::Arc;

/// The newest version of the object. `known` saves the transfer of a value that the caller has.
///
/// # Errors
/// [`ReadError`].
pub async fn read<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    known: Option<&Known>,
) -> Result<Found, ReadError> {
    loop {
        let found = dap::get_data(&client.env, c, name, known, Scope::Whole).await?;
        if at_quorum(client, c, name, &found) {
            confirm_again(client, c, name, &found);
            return Ok(found);
        }
        if write_back(client, c, name, &found).await? {
            return Ok(found);
        }
        // The version may not be returned: it did not get to a quorum, so that a later read may not see it.
        client.env.sleep(limits::ASK_AGAIN).await;
    }
}

/// The newest version without its content. It is a read: where the version may not be at a quorum yet, it reads the
/// content after all, to write it back (`[X-2]`: never get-tag).
///
/// # Errors
/// [`ReadError`].
pub async fn stat<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
) -> Result<Found, ReadError> {
    let found = dap::get_data(&client.env, c, name, None, Scope::Metadata).await?;
    match at_quorum(client, c, name, &found) {
        true => {
            confirm_again(client, c, name, &found);
            Ok(found)
        }
        false => read(client, c, name, None).await,
    }
}

/// Writes the value as a new version and returns its tag.
///
/// # Errors
/// [`WriteError`] says whether the value may have been written.
pub async fn write<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    value: &Value,
) -> Result<Tag, WriteError> {
    let max = dap::get_tag(&client.env, c, name)
        .await
        .map_err(WriteError::NotApplied)?;
    let tag = max.next(client.next_writer());
    let mut handed_over = false;
    loop {
        let failed = match dap::put_data(&client.env, c, name, tag, value, &[]).await {
            Ok(()) => break,
            Err(PutError::Unavailable(unavailable)) => unavailable,
            Err(PutError::Unconfirmed) => {
                // A read finds a version that is at a quorum, or brings it there. Confirming that makes room, also where
                // the version was complete all along and only its confirmation was lost. Then the same pair again.
                handed_over = true;
                match read(client, c, name, None).await {
                    Ok(found) => {
                        dap::confirm(&client.env, c, name, found.tag);
                        continue;
                    }
                    Err(ReadError::Unavailable(unavailable)) => unavailable,
                }
            }
        };
        return Err(not_acknowledged(failed, handed_over));
    }
    client.remember_propagated(c.id(), name, tag);
    Ok(tag)
}

/// `[X-9]`: not applied only if no put was handed to any connection.
fn not_acknowledged(failed: Unavailable, handed_over: bool) -> WriteError {
    match failed.handed_over || handed_over {
        true => WriteError::Unknown(failed),
        false => WriteError::NotApplied(failed),
    }
}

/// Whether a read may return the version as it is: the replies say that it is at a quorum, or this client brought it
/// there itself (`[F-2]`); and nobody is to be repaired by writing it back.
fn at_quorum<E: Env>(client: &Client<E>, c: &Configuration, name: &Name, found: &Found) -> bool {
    let complete = found.complete || client.has_propagated(c.id(), name, found.tag);
    complete && (!found.damaged || found.tag.is_initial())
}

/// Writers confirm and do not wait for it; one that ends at once, or loses a connection, leaves members that keep every
/// version. Whoever sees that says it again (`[X-4]`).
fn confirm_again<E: Env>(client: &Client<E>, c: &Arc<Configuration>, name: &Name, found: &Found) {
    if found.unaware {
        dap::confirm(&client.env, c, name, found.tag);
    }
}

/// Brings the version found to a quorum; false if members have no room for it.
async fn write_back<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    found: &Found,
) -> Result<bool, ReadError> {
    let value = found
        .value
        .as_ref()
        .expect("only the initial version has no value, and that is complete");
    match dap::put_data(&client.env, c, name, found.tag, value, &found.holders).await {
        Ok(()) => {}
        Err(PutError::Unconfirmed) => return Ok(false),
        Err(PutError::Unavailable(unavailable)) => return Err(unavailable.into()),
    }
    client.remember_propagated(c.id(), name, found.tag);
    Ok(true)
}
