//! The sweeping of uploads in parts (`docs/spec` `[X-44 published-once]`).
//!
//! Such an upload has no cell of its own: its publications have. One that has none, or none that came to a version, is unfinished. Parts may come
//! for days, so that an upload of which there is a record is not ended by its age: its gateway ends it, and removes the record first.

use super::{Ages, Count, State, Upload, UploadSweep, add, is_old, passed};
use crate::dsm::Domain;
use crate::dsm::large::{BlockPlace, parse_writer};
use crate::env::Env;
use crate::error::Unavailable;
use crate::message::ListRequest;
use crate::object::{Kind, key_of_record};
use crate::tag::Writer;
use std::collections::BTreeSet;

impl<E: Env> Domain<E> {
    /// Counts an upload in parts, and ends it if no current version needs it, or all of it. `recorded`: the uploads of which there are records,
    /// if they were listed.
    pub(super) async fn sweep_parts(
        &self,
        upload: &Upload,
        ages: &Ages,
        recorded: &mut Option<BTreeSet<Writer>>,
        swept: &mut UploadSweep,
    ) -> Result<(), Unavailable> {
        assert!(!upload.blocks.is_empty(), "some block of it was listed");
        let state = self.state_of_parts(upload).await?;
        let removes = ages.replaced_ms.is_some();
        let (class, goes) = match state {
            State::Live => {
                let goes = removes && self.has_unlisted(upload).await?;
                (&mut swept.live, goes)
            }
            State::Replaced(at) => (&mut swept.replaced, passed(ages, at, ages.replaced_ms)),
            State::Aborted | State::GivenUp => (&mut swept.aborted, removes),
            State::Unfinished if removes && is_old(upload, ages) => {
                // After the blocks: the record of an upload in progress is older than they are.
                if recorded.is_none() {
                    *recorded = Some(self.recorded_uploads().await?);
                }
                let is_recorded = recorded.as_ref().is_some_and(|it| it.contains(&upload.id));
                match is_recorded {
                    true => (&mut swept.unfinished, false),
                    false => (&mut swept.aborted, true),
                }
            }
            State::Unfinished => (&mut swept.unfinished, false),
        };
        add(class, upload.count());
        if goes {
            let removed = self.end_parts(upload.id).await?;
            let count = Count {
                uploads: u64::from(!removed.is_live),
                blocks: removed.blocks,
                bytes: removed.bytes,
            };
            add(&mut swept.removed, count);
        }
        Ok(())
    }

    async fn state_of_parts(&self, upload: &Upload) -> Result<State, Unavailable> {
        let mut newest = State::Unfinished;
        for block in &upload.blocks {
            let publication = match block.place {
                BlockPlace::List(publication) => publication,
                BlockPlace::Seal(_) => {
                    if newest == State::Unfinished {
                        newest = State::Aborted;
                    }
                    continue;
                }
                BlockPlace::Own(_) | BlockPlace::Lane { .. } => continue,
            };
            match self.fate_of(publication).await? {
                State::Live => return Ok(State::Live),
                replaced @ State::Replaced(_) => newest = replaced,
                State::Aborted | State::GivenUp | State::Unfinished => {}
            }
        }
        Ok(newest)
    }

    /// True if there are blocks beside those of the current version, or the seal of a client that did not end.
    async fn has_unlisted(&self, upload: &Upload) -> Result<bool, Unavailable> {
        let (mut listed, mut lists, mut seals) = (0, 0, false);
        for block in &upload.blocks {
            match block.place {
                BlockPlace::List(publication) => {
                    lists += 1;
                    if let Some(count) = self.listed_by(publication).await? {
                        listed = count;
                    }
                }
                BlockPlace::Seal(_) => seals = true,
                BlockPlace::Own(_) | BlockPlace::Lane { .. } => {}
            }
        }
        Ok(seals || lists > 1 || upload.count().blocks > listed)
    }

    /// The uploads of which there is a record: those with whose digits the suffix of one begins.
    async fn recorded_uploads(&self) -> Result<BTreeSet<Writer>, Unavailable> {
        let mut recorded = BTreeSet::new();
        let mut after = Some(String::new());
        while let Some(begin) = after {
            let request = ListRequest {
                after: begin,
                ..ListRequest::new(Kind::Upload, "")
            };
            let page = self.list(&request).await?;
            let uploads = page.entries.iter().filter_map(|entry| {
                assert!(entry.key.contains('\0'), "a page lists records");
                let suffix = &entry.key[key_of_record(&entry.key).len() + 1..];
                parse_writer(suffix.get(..32)?)
            });
            recorded.extend(uploads);
            after = page.next;
        }
        Ok(recorded)
    }
}
