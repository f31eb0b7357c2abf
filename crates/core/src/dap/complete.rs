//! Bringing a version that is at a quorum to the members that lack it (`[X-25 full-redundancy]`).

use super::PutError;
use super::store::Store;
use crate::element::Value;
use crate::env::Env;
use crate::gather::Visit;
use crate::object::Name;
use crate::tag::Tag;

/// Brings each of the members that lack it, by position, its element of a version that is at a quorum; the others count as
/// holders. Unlike [`super::put_data`] it waits for them, a while. Whether they took it is to be asked: the put succeeds without
/// them.
///
/// # Errors
/// [`PutError`].
pub async fn complete<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    (tag, value): (Tag, &Value),
    lacking: &[bool],
) -> Result<(), PutError> {
    assert_eq!(lacking.len(), at.c().n(), "known of each member, or not");
    let holders: Vec<bool> = lacking.iter().map(|lacks| !lacks).collect();
    let store = |elements| Store::new(at.c(), name, tag, elements, &holders).completing();
    super::put(env, at, name, (tag, value), store).await
}
