//! The end of an upload: everything goes that is not the object.

use super::{PAGE, UploadPlace, is_of};
use crate::gateway::reply::Reply;
use crate::gateway::{failure, window};
use crate::wire::S3Error;
use areo_client::{Error, RecordEntry, RecordName, RecordsAfter, Version};
use std::collections::BTreeSet;

impl UploadPlace<'_> {
    /// Removes the records of the upload, and all of its bytes that no object has. `published`: the versions of the records of those parts that were
    /// published just now, and nothing else was put.
    ///
    /// # Errors
    /// Those of the store. A later call goes on.
    pub(super) async fn end(&self, published: &BTreeSet<Version>) -> Result<(), S3Error> {
        let mut others = self.remove_parts(published).await?;
        self.remove_record(self.id.to_owned()).await?;
        // A part that found the upload's record has a record by now. One that did not removes its own.
        others |= self.remove_parts(published).await?;
        match others || published.is_empty() {
            true => self.abort().await,
            false => Ok(()),
        }
    }

    /// Sees to it that the upload becomes no object any more, and removes all of its bytes that no object has.
    pub(super) async fn abort(&self) -> Result<(), S3Error> {
        match self.domain.abort_parts(self.upload()?).await {
            // A caller that may write and not delete ends the upload, and a sweep removes the bytes.
            Ok(()) | Err(Error::Unauthorised { .. }) => Ok(()),
            Err(error) => Err(failure::of(&error)),
        }
    }

    /// Removes the records of all parts. True: one was of none of these versions.
    async fn remove_parts(&self, published: &BTreeSet<Version>) -> Result<bool, S3Error> {
        let (mut others, mut after) = (false, None::<RecordName>);
        loop {
            let (entries, next) = self.parts_after(after.as_ref()).await?;
            others |= entries.iter().any(|it| !published.contains(&it.version));
            window::each(entries, |entry| {
                let (domain, key) = (self.domain.clone(), self.key.to_owned());
                async move {
                    let (domain, key, id) = (&domain, key.as_str(), "");
                    let place = UploadPlace { domain, key, id };
                    place.remove_record(entry.name.suffix).await
                }
            })
            .await?;
            match next {
                Some(next) => after = Some(next),
                None => return Ok(others),
            }
        }
    }

    /// A page of the records of parts, and the record after which the next page begins.
    pub(super) async fn parts_after(
        &self,
        after: Option<&RecordName>,
    ) -> Result<(Vec<RecordEntry>, Option<RecordName>), S3Error> {
        let after = after.map_or(RecordsAfter::Nothing, RecordsAfter::Record);
        let begin = format!("{}/", self.id);
        let listed = self.domain.list_records_of(self.key, &begin, after, PAGE);
        let page = listed.await.map_err(|error| failure::of(&error))?;
        Ok((page.entries, page.next))
    }

    /// True if a record of a part is there.
    async fn has_parts(&self) -> Result<bool, S3Error> {
        let mut after = None::<RecordName>;
        loop {
            let (entries, next) = self.parts_after(after.as_ref()).await?;
            match next {
                _ if !entries.is_empty() => return Ok(true),
                Some(next) => after = Some(next),
                None => return Ok(false),
            }
        }
    }

    pub(super) async fn remove_record(&self, suffix: String) -> Result<(), S3Error> {
        match self.domain.delete_record(self.key, &suffix).await {
            Ok(_) | Err(Error::NotFound { key: Some(_), .. }) => Ok(()),
            Err(error) => Err(failure::of(&error)),
        }
    }
}

/// Answers the abortion of an upload.
///
/// # Errors
/// [`Code::NoSuchUpload`](crate::wire::Code::NoSuchUpload), also if it was completed meanwhile, and those of the store.
pub(in crate::gateway) async fn abort(place: UploadPlace<'_>) -> Result<Reply, S3Error> {
    place.upload()?;
    // A gateway that died at this may have left parts of an upload without a record.
    if place.find().await?.is_none() && !place.has_parts().await? {
        return Err(place.none());
    }
    // From here on no completion comes to an object: one did, or none ever will. Only then the records go: a completion that misses them asks for the object, and finds it if there is one.
    place.abort().await?;
    place.end(&BTreeSet::new()).await?;
    match place.domain.stat(place.key).await {
        Ok(info) if is_of(&info.metadata, place.id) => Err(place.none()),
        // A caller that may only write does not learn which.
        Ok(_) | Err(Error::NotFound { key: Some(_), .. } | Error::Unauthorised { .. }) => {
            Ok(Reply::no_content())
        }
        Err(error) => Err(failure::of(&error)),
    }
}
