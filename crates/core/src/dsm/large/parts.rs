//! Uploads in parts: a value in up to [`limits::LISTED_PARTS`](crate::limits::LISTED_PARTS) parts, put by several clients, published as one
//! version (`docs/spec` `[X-44 published-once]`, decision record 0079).
//!
//! An upload in parts is a name space U for blocks, and has no cell. A client puts a part in blocks of a *lane*, which is a writer that it uses
//! for nothing else: so two clients never put one block, and agree on nothing. A *publication* W is an upload with a cell of its own, as
//! every value in blocks has one; its blocks are those of the parts that its *list* names. The list is a block in U, under the name of W.
//!
//! | a publication, in this order | and why |
//! |---|---|
//! | puts its list | a later publication, and a client that ends the upload, see it |
//! | lists the lists and seals of U: a seal ends it; another publication is aborted, or was committed, and then this one gives up | of two publications the one whose list was complete later sees the other: one is committed at most |
//! | lists the blocks of U: all parts must be there | the blocks of a publication that is written over go before its list |
//! | commits its cell, and puts the manifest | as every value in blocks |
//!
//! A client that *ends* an upload:
//!
//! | in this order | and why |
//! |---|---|
//! | puts a seal of its own | a publication whose list it does not see sees the seal |
//! | lists lists and seals, and has each publication aborted, or learns that it is a version | from here on none of them is committed any more |
//! | proposes *abort* in the cell of each other seal | a client that ends the upload, too, has listed before, or stops |
//! | lists the blocks, and has *ends* decided in the cell of its seal; otherwise it stops | another client that goes on lists later |
//! | removes blocks, then lists, then the seals that it has seen, and its own | a seal goes when all is removed that its client may remove |

use super::place::prefix_of_lists;
use super::{BlockPlace, Commit, Condition, Fate, PublishError, WriteDecision, block_name, cell};
use crate::dap::FoundVersion;
use crate::dsm::Domain;
use crate::dsm::sweep::{self, State};
use crate::element::Value;
use crate::env::Env;
use crate::error::{Unavailable, WriteError};
use crate::object::{Blocks, Manifest, Metadata, Name, Part, PartList};
use crate::tag::{Tag, Writer};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Times that a publication is begun which others abort.
const ATTEMPTS: u32 = 16;

/// A value in parts that is to be published.
#[derive(Clone, Debug)]
pub struct Publication<'a> {
    pub upload: Writer,
    /// Its parts, in order.
    pub parts: &'a [Part],
    /// The block that lists them: [`PartList::encode_parts`], with metadata.
    pub list: &'a Value,
    /// Metadata of the version; its `blocks` are set here.
    pub metadata: &'a Metadata,
    /// The condition on the current version, and the name of the request; `None`: no condition.
    pub condition: Option<(Condition, u128)>,
}

/// The outcome of a publication.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PublishOutcome {
    /// It is this version, now or since a publication of the same parts before.
    Written(Tag),
    /// The condition does not hold. The parts are still there.
    Conflict(FoundVersion),
    /// The upload was published as this version, with other parts.
    Differs(Tag),
}

/// The state of another publication of the upload.
enum EarlierPublication {
    /// It is no version, and never will be one.
    Void,
    /// It is a version that is current, or was.
    Version { tag: Tag, list: PartList },
    /// Its cell has a value that only a later version of this software may know.
    Unknown,
}

/// The lists and seals of an upload.
#[derive(Default)]
struct Ends {
    publications: Vec<Writer>,
    /// Clients that end the upload.
    seals: BTreeSet<Writer>,
}

impl<E: Env> Domain<E> {
    /// Publishes parts of an upload as the newest version of `name`. May be called again, also by another client, also after it has succeeded
    /// and until the version is written over: it finds that version.
    ///
    /// # Errors
    /// [`PublishError::Swept`] if the upload has ended, or a part is not there.
    pub async fn publish_parts(
        &self,
        name: &Name,
        publication: &Publication<'_>,
    ) -> Result<PublishOutcome, PublishError> {
        let upload = publication.upload;
        assert!(
            publication.metadata.blocks.is_none(),
            "it has a list of its own"
        );
        for _ in 0..ATTEMPTS {
            let own = self.client.next_upload();
            assert_ne!(own, upload, "a writer has one upload");
            let Some(list) = PartList::of(upload, own, publication.parts) else {
                return Err(PublishError::Swept);
            };
            let manifest = Manifest::List(list);
            let metadata = Metadata {
                blocks: Some(manifest.clone()),
                ..publication.metadata.clone()
            };
            let metadata = metadata
                .encode()
                .expect("it was checked, and a list is short");
            let block = (upload, BlockPlace::List(own));
            if let Err(WriteError::NotApplied(failed) | WriteError::Unknown(failed)) =
                self.put_block(block, publication.list).await
            {
                return Err(self.not_applied(&manifest, failed).await);
            }
            let unlisted = match self.clear_way(&manifest, publication).await {
                Ok(Clearance::Free { unlisted }) => unlisted,
                Ok(Clearance::Published(outcome)) => {
                    self.remove_own(&manifest).await;
                    return Ok(outcome);
                }
                Ok(Clearance::Ended) => {
                    self.remove_own(&manifest).await;
                    return Err(PublishError::Swept);
                }
                Err(failed) => return Err(self.not_applied(&manifest, failed).await),
            };
            let published = match publication.condition {
                None => {
                    let written = self.publish_manifest(name, &manifest, metadata).await;
                    written.map(PublishOutcome::Written)
                }
                Some(on) => {
                    let decided = self
                        .publish_manifest_if(name, &manifest, metadata, on)
                        .await;
                    decided.map(|decided| match decided {
                        WriteDecision::Written { tag, .. } => PublishOutcome::Written(tag),
                        WriteDecision::Conflict(found) => PublishOutcome::Conflict(found),
                    })
                }
            };
            match published {
                // Another publication, or the end of the upload, was faster.
                Err(PublishError::Swept) => self.remove_own(&manifest).await,
                Ok(written @ PublishOutcome::Written(_)) => {
                    if unlisted {
                        // The rest is left to a sweep.
                        let _ = self.end_parts(upload).await;
                    }
                    return Ok(written);
                }
                published => return published,
            }
            crate::dsm::pause(&self.client).await;
        }
        Err(PublishError::Swept)
    }

    /// Ends an upload that is in no version that is current: nothing that was put for it stays, and no publication of it succeeds any more. One
    /// that is published keeps its version.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time: a later call goes on.
    pub async fn abort_parts(&self, upload: Writer) -> Result<(), Unavailable> {
        self.end_parts(upload).await.map(drop)
    }
}

/// The answer to a publication that wants to be committed.
enum Clearance {
    Free { unlisted: bool },
    Published(PublishOutcome),
    Ended,
}

impl<E: Env> Domain<E> {
    /// Sees to it that no other publication of the upload is or will be a version, and that all parts are there.
    async fn clear_way(
        &self,
        manifest: &Manifest,
        publication: &Publication<'_>,
    ) -> Result<Clearance, Unavailable> {
        let upload = publication.upload;
        let ends = self.ends(upload).await?;
        if !ends.seals.is_empty() {
            return Ok(Clearance::Ended);
        }
        let others = ends.publications.into_iter();
        for other in others.filter(|other| *other != manifest.writer()) {
            match self.settle(other).await? {
                EarlierPublication::Void => {}
                EarlierPublication::Unknown => return Ok(Clearance::Ended),
                EarlierPublication::Version { tag, list } => {
                    let parts = self.blocks(&Manifest::List(list)).await?;
                    let differs = parts.is_some_and(|it| it.parts() != publication.parts);
                    return Ok(Clearance::Published(match differs {
                        true => PublishOutcome::Differs(tag),
                        false => PublishOutcome::Written(tag),
                    }));
                }
            }
        }
        assert!(!publication.parts.is_empty(), "a list has a part");
        // In this order: where the list of a version is gone its blocks went before.
        let there = self.content_of(upload).await?;
        let listed = Blocks::listed(upload, publication.parts.to_vec()).expect("it was listed");
        let listed: BTreeSet<BlockPlace> = listed.iter().map(|it| (&it).into()).collect();
        if !listed.iter().all(|place| there.contains_key(place)) {
            return Ok(Clearance::Ended);
        }
        assert!(there.len() >= listed.len(), "all that is listed is there");
        let unlisted = there.len() > listed.len();
        Ok(Clearance::Free { unlisted })
    }

    /// The lists and seals of an upload.
    async fn ends(&self, upload: Writer) -> Result<Ends, Unavailable> {
        let mut ends = Ends::default();
        for found in self.uploads(&prefix_of_lists(upload)).await? {
            assert_eq!(found.id, upload, "the names begin with it");
            for block in found.blocks {
                match block.place {
                    BlockPlace::List(publication) => ends.publications.push(publication),
                    BlockPlace::Seal(owner) => {
                        ends.seals.insert(owner);
                    }
                    BlockPlace::Own(_) | BlockPlace::Lane { .. } => {}
                }
            }
        }
        Ok(ends)
    }

    /// The blocks of an upload that hold bytes of a value, with their lengths.
    async fn content_of(&self, upload: Writer) -> Result<BTreeMap<BlockPlace, u64>, Unavailable> {
        let found = self.uploads(&super::prefix(upload)).await?;
        assert!(found.len() <= 1, "the names begin with one upload");
        let blocks = found.into_iter().flat_map(|it| it.blocks);
        let content = blocks.filter(|block| block.place.is_content());
        Ok(content.map(|block| (block.place, block.bytes)).collect())
    }

    /// The count of blocks that a committed publication lists; `None`: it is not committed.
    pub(in crate::dsm) async fn listed_by(
        &self,
        publication: Writer,
    ) -> Result<Option<u64>, Unavailable> {
        let decided = self.learn(&cell(publication)).await?;
        Ok(match decided.as_ref().map(Fate::decode) {
            Some(Ok(Fate::Commit(commit))) => commit.list().map(|list| list.count),
            _ => None,
        })
    }

    /// Has it decided what becomes of a publication: one that is not committed is aborted, and one that is committed and in no version is
    /// given up.
    async fn settle(&self, publication: Writer) -> Result<EarlierPublication, Unavailable> {
        let state = match self.fate_of(publication).await? {
            State::Unfinished => self.abort(publication).await?,
            state => state,
        };
        match state {
            State::Aborted | State::GivenUp | State::Unfinished => Ok(EarlierPublication::Void),
            State::Live | State::Replaced(_) => {
                let decided = self.learn(&cell(publication)).await?;
                match decided.as_ref().map(Fate::decode) {
                    // It was written over and forgotten meanwhile: its blocks are gone.
                    None => Ok(EarlierPublication::Void),
                    Some(Ok(Fate::Commit(commit))) => match commit.list() {
                        Some(list) => {
                            let tag = self.version_of(&commit).await?;
                            Ok(EarlierPublication::Version { tag, list })
                        }
                        None => Ok(EarlierPublication::Unknown),
                    },
                    Some(_) => Ok(EarlierPublication::Unknown),
                }
            }
        }
    }

    /// The version that an upload which is committed, and in a version, became.
    async fn version_of(&self, commit: &Commit) -> Result<Tag, Unavailable> {
        let is_this = |tag: &Tag| tag.writer == commit.tag.writer;
        if self.is_ranked(&commit.name)
            && let Some((found, lineage)) = self.read_lineage(&commit.name).await?
        {
            let ancestors = lineage.ancestors.iter().map(|it| it.tag);
            let mut all = [found.tag].into_iter().chain(ancestors);
            return Ok(all.find(is_this).unwrap_or(commit.tag));
        }
        let found = self.stat(&commit.name).await?;
        Ok(if is_this(&found.tag) {
            found.tag
        } else {
            commit.tag
        })
    }

    /// The blocks that a manifest names. `None`: the list is gone, and a larger version is complete.
    ///
    /// # Errors
    /// [`Unavailable`], also if the list is not that of the value.
    pub async fn blocks(&self, manifest: &Manifest) -> Result<Option<Blocks>, Unavailable> {
        let list = match manifest {
            Manifest::Parts(blocks) => return Ok(Some(blocks.clone())),
            Manifest::List(list) => list,
        };
        let Some(value) = self.list_of(list).await? else {
            return Ok(None);
        };
        assert!(!value.deleted, "a block that is removed is none");
        let content = value.content.concat();
        let blocks = list.decode_parts(&content).ok_or_else(|| {
            let name = block_name(list.upload, BlockPlace::List(list.publication));
            Unavailable::left(&name, super::block_tag(list.upload))
        });
        blocks.map(Some)
    }

    /// The block that lists parts. `None`: as [`Domain::blocks`].
    ///
    /// # Errors
    /// [`Unavailable`].
    pub async fn list_of(&self, list: &PartList) -> Result<Option<Value>, Unavailable> {
        let place = BlockPlace::List(list.publication);
        self.get_block(list.upload, place).await
    }

    /// Removes the parts of a publication whose version a write has replaced, with its list last: until that is gone, another publication
    /// finds this one. Other blocks of the upload are left to a sweep, which seals it.
    pub(in crate::dsm) async fn remove_replaced_parts(
        &self,
        publication: Writer,
    ) -> Result<(), Unavailable> {
        let cell = cell(publication);
        let decided = self.learn(&cell).await?;
        if let Some(Ok(Fate::Commit(commit))) = decided.as_ref().map(Fate::decode)
            && let Some(list) = commit.list()
            && let Some(blocks) = self.blocks(&Manifest::List(list)).await?
        {
            assert_eq!(
                list.publication, publication,
                "the writer of a version lists its parts"
            );
            assert_eq!(blocks.upload, list.upload, "a list is beside its blocks");
            let places = blocks.iter().map(|block| BlockPlace::from(&block));
            self.remove_blocks(list.upload, places).await?;
            let place = BlockPlace::List(publication);
            self.remove_blocks(list.upload, [place]).await?;
        }
        self.forget(&cell);
        Ok(())
    }
}

/// Count of blocks and bytes that were removed of an upload in parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::dsm) struct RemovedParts {
    pub(in crate::dsm) blocks: u64,
    pub(in crate::dsm) bytes: u64,
    /// A version that is current is left.
    pub(in crate::dsm) is_live: bool,
}

impl<E: Env> Domain<E> {
    /// Ends an upload: removes all of it that no current version has. After an error its seal stays, until a later call has removed the rest.
    pub(in crate::dsm) async fn end_parts(
        &self,
        upload: Writer,
    ) -> Result<RemovedParts, Unavailable> {
        let own = self.client.next_writer();
        self.put_seal(upload, own).await?;
        let mut ends = self.ends(upload).await?;
        ends.seals.remove(&own);
        for other in &ends.seals {
            self.decide(&cell(*other), &Fate::Abort.encode()).await?;
        }
        let judged = self.judge(ends.publications).await?;
        let content = self.content_of(upload).await?;
        let goes_on = Fate::Ends.encode();
        let decided = self.decide_as_owner(&cell(own), &goes_on, own).await?;
        let Some(judged) = judged.filter(|_| decided == goes_on) else {
            // Another client goes on, or what the publications need is not known.
            self.remove_blocks(upload, [BlockPlace::Seal(own)]).await?;
            self.forget_ends(&decided, own);
            return Ok(RemovedParts {
                is_live: true,
                ..RemovedParts::default()
            });
        };
        assert!(!ends.seals.contains(&own), "it does not wait for itself");
        assert!(
            judged.kept.is_empty() || judged.is_live,
            "what a live version needs is kept"
        );
        let unneeded = content
            .iter()
            .filter(|(place, _)| !judged.kept.contains(place));
        let (places, bytes): (Vec<BlockPlace>, Vec<u64>) = unneeded.unzip();
        let removed = RemovedParts {
            blocks: places.len() as u64,
            bytes: bytes.iter().sum(),
            is_live: judged.is_live,
        };
        self.remove_blocks(upload, places).await?;
        let lists = judged.gone.iter().map(|(it, _)| BlockPlace::List(*it));
        self.remove_blocks(upload, lists).await?;
        for (publication, state) in judged.gone {
            if let State::Replaced(_) | State::GivenUp = state {
                self.forget(&cell(publication));
            }
        }
        assert!(
            removed.blocks <= content.len() as u64,
            "of those that it listed"
        );
        let seals = ends.seals.into_iter().chain([own]);
        self.remove_blocks(upload, seals.map(BlockPlace::Seal))
            .await?;
        self.forget_ends(&decided, own);
        Ok(removed)
    }

    /// The cell of a seal that is removed. One that was aborted stays: its client may be slow.
    fn forget_ends(&self, decided: &Bytes, seal: Writer) {
        if Fate::decode(decided) == Ok(Fate::Ends) {
            self.forget(&cell(seal));
        }
    }

    async fn put_seal(&self, upload: Writer, own: Writer) -> Result<(), Unavailable> {
        let empty = Value::new(Bytes::new(), Bytes::new());
        let put = self
            .put_block((upload, BlockPlace::Seal(own)), &empty)
            .await;
        put.map_err(sweep::unavailable)
    }

    /// Has the fates of these publications decided. `None`: it is not known what one of them needs.
    async fn judge(&self, publications: Vec<Writer>) -> Result<Option<Verdicts>, Unavailable> {
        let mut judged = Verdicts::default();
        for publication in publications {
            let state = match self.fate_of(publication).await? {
                State::Unfinished => self.abort(publication).await?,
                state => state,
            };
            if state != State::Live {
                judged.gone.push((publication, state));
                continue;
            }
            judged.is_live = true;
            let decided = self.learn(&cell(publication)).await?;
            let Some(Ok(Fate::Commit(commit))) = decided.as_ref().map(Fate::decode) else {
                return Ok(None);
            };
            let Some(list) = commit.list() else {
                return Ok(None);
            };
            match self.blocks(&Manifest::List(list)).await {
                Ok(Some(blocks)) => {
                    assert_eq!(blocks.count(), list.count, "it was compared");
                    let places = blocks.iter().map(|it| BlockPlace::from(&it));
                    judged.kept.extend(places);
                }
                // It was written over meanwhile.
                Ok(None) => return Ok(None),
                Err(failed) if failed.is_damage() => return Ok(None),
                Err(failed) => return Err(failed),
            }
        }
        Ok(Some(judged))
    }
}

/// The verdict on the publications of an upload that is ended.
#[derive(Default)]
struct Verdicts {
    /// Blocks of a version that is current.
    kept: BTreeSet<BlockPlace>,
    is_live: bool,
    /// The publications that need nothing any more.
    gone: Vec<(Writer, State)>,
}
