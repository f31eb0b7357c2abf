//! Work on many objects: a listing that pages by itself, and the deletion of many keys.

use crate::domain::Domain;
use crate::error::Error;
use crate::object::{Entry, ListOptions, Page};
use areo_core::tag::Tag as Version;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};

/// Deletions that are under way at once.
const DELETIONS: usize = 16;

impl Domain {
    /// All objects whose keys begin with `prefix`, in order, page after page: the next page is asked for when the entries of
    /// the one before are used up. Each page is regular, as [`Domain::list`] says; a key that is written or deleted while the
    /// stream is read may be in it or not. The stream ends after an error.
    ///
    /// # Errors
    /// An item is an error of [`Domain::list`].
    pub fn list_all(&self, prefix: &str) -> BoxStream<'static, Result<Entry, Error>> {
        let first = ListOptions {
            prefix: prefix.into(),
            ..ListOptions::default()
        };
        let domain = self.clone();
        let pages = stream::try_unfold(Some(first), move |wanted: Option<ListOptions>| {
            let domain = domain.clone();
            async move {
                let Some(options) = wanted else {
                    return Ok(None);
                };
                let Page { entries, next, .. } = domain.list_with(options.clone()).await?;
                let rest = next.map(|after| ListOptions { after, ..options });
                let entries = stream::iter(entries.into_iter().map(Ok));
                Ok::<_, Error>(Some((entries, rest)))
            }
        });
        pages.try_flatten().boxed()
    }

    /// Deletes the objects of these keys, 16 at a time, and returns what became of each, in the order of the keys. A key that
    /// fails does not end the others.
    pub async fn delete_many<K: Into<String>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Vec<(String, Result<Version, Error>)> {
        let keys: Vec<String> = keys.into_iter().map(Into::into).collect();
        let deletions = keys.into_iter().map(|key| async move {
            let deleted = self.delete(&key).await;
            (key, deleted)
        });
        stream::iter(deletions).buffered(DELETIONS).collect().await
    }
}
