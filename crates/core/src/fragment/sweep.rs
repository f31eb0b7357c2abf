//! Sweeping: blocks of files that were removed.
//!
//! A removal takes the blocks that lead to each other with it ([`super::remove`]). Others stay: those of a removal that ended
//! half way, of a writer that died before it linked them, and of one that was slow and wrote them after. All of
//! them say whose they are ([`Home`]), so that one look at the genesis block tells whether its file is gone. An era that has
//! ended never comes back, and nothing of a later one leads to blocks of an earlier one: they are removed at once, whatever
//! their age.
//!
//! Blocks of a file that is there are left alone, also those that nothing leads to. No number of looks tells them from the
//! blocks that a slow writer is about to link, nor from those that a writer linked who died with its put at some servers only,
//! which the next read brings to the others.

use super::block::{self, Home};
use crate::dap::Scope;
use crate::dsm::Domain;
use crate::env::Env;
use crate::error::Unavailable;
use crate::gather;
use crate::limits;
use crate::message::{ListEntry, ListRequest};
use crate::object::{Kind, Name};
use crate::tag::Tag;
use std::collections::BTreeMap;

/// Files, their blocks, and the bytes in those; genesis blocks are left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    pub files: u64,
    /// Blocks of these files.
    pub blocks: u64,
    /// Bytes in these blocks.
    pub bytes: u64,
}

/// The counts of a sweep of a domain's files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileSweep {
    /// Files that exist.
    pub live: Count,
    /// Files that were removed.
    pub removed: Count,
}

impl<E: Env> Domain<E> {
    /// Goes over all blocks of files in the domain. `removes`: removes those of files that were removed.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time. What was removed stays removed; the next sweep goes on.
    pub async fn sweep_files(&self, removes: bool) -> Result<FileSweep, Unavailable> {
        let mut sweep = Sweep {
            domain: self,
            eras: BTreeMap::new(),
            counts: BTreeMap::new(),
        };
        let mut after = Some(String::new());
        while let Some(begin) = after {
            let request = ListRequest {
                after: begin,
                ..ListRequest::new(Kind::Block, block::PREFIX)
            };
            let page = self.list(&request).await?;
            let gone = sweep.sort(&page.entries).await?;
            if removes {
                sweep.remove(gone).await?;
            }
            after = page.next;
        }
        Ok(sweep.swept())
    }
}

struct Sweep<'a, E> {
    domain: &'a Domain<E>,
    /// The era of each file's name, as it was read.
    eras: BTreeMap<Name, u64>,
    /// Counts for each file; `None`: blocks that do not name their file.
    counts: BTreeMap<Option<Home>, Count>,
}

impl<E: Env> Sweep<'_, E> {
    /// Counts the blocks of a page, and returns those of removed files, with their versions.
    async fn sort(&mut self, entries: &[ListEntry]) -> Result<Vec<(Name, Tag)>, Unavailable> {
        let ids = entries.iter().map(|entry| block::parse_key(&entry.key));
        let (names, entries): (Vec<Name>, Vec<&ListEntry>) = ids
            .zip(entries)
            .filter_map(|(id, entry)| Some((block::name(id?), entry)))
            .unzip();
        let homes = self.homes(&names).await?;
        assert_eq!(homes.len(), names.len(), "each block was asked for");
        let mut gone = Vec::new();
        for ((name, entry), home) in names.into_iter().zip(entries).zip(homes) {
            if self.is_gone(home.as_ref()).await? {
                gone.push((name, entry.tag));
            }
            let count = self.counts.entry(home).or_default();
            count.blocks += 1;
            count.bytes += entry.length;
        }
        Ok(gone)
    }

    /// The file of each block.
    async fn homes(&self, names: &[Name]) -> Result<Vec<Option<Home>>, Unavailable> {
        let domain = self.domain;
        let unread = |name: &Name| (name.clone(), Tag::INITIAL);
        let objects: Vec<(Name, Tag)> = names.iter().map(unread).collect();
        let headers = domain.headers(&objects).await;
        let headers = headers?;
        assert_eq!(headers.len(), names.len(), "each was asked for");
        let homes = names.iter().zip(headers).map(|(name, header)| async move {
            let value = match header {
                Some(header) => header.value,
                // It is the same in all versions.
                None => domain.read_regular(name, Scope::Metadata).await?.value,
            };
            Ok(value.and_then(|value| Home::decode(&value.metadata)))
        });
        let homes = gather::join(limits::SWEEP_WINDOW, homes).await;
        assert_eq!(
            homes.len(),
            names.len(),
            "each block has a home, or names none"
        );
        homes.into_iter().collect()
    }

    /// True if the file was removed. A block that does not name its file (`None`) counts as one of an existing file.
    async fn is_gone(&mut self, home: Option<&Home>) -> Result<bool, Unavailable> {
        let Some(home) = home else { return Ok(false) };
        if !self.eras.contains_key(&home.file) {
            let era = self.domain.file(&home.file).era().await?;
            self.eras.insert(home.file.clone(), era);
        }
        Ok(self.eras[&home.file] > home.era)
    }

    /// Writes tombstones over blocks, each in one round: writers who still go on with them stay below ([`Tag::next_era`]).
    async fn remove(&self, blocks: Vec<(Name, Tag)>) -> Result<(), Unavailable> {
        // One after which no era comes stays: it keeps no other from being removed ([N-1 bounded-numbers]).
        let removals = blocks.into_iter().filter_map(|(name, version)| {
            let tag = version.next_era(self.domain.client.next_writer());
            Some((name, tag.ok()?))
        });
        self.domain.remove_all(removals).await
    }

    fn swept(self) -> FileSweep {
        let mut swept = FileSweep::default();
        for (home, count) in self.counts {
            let is_gone = home
                .as_ref()
                .is_some_and(|home| self.eras[&home.file] > home.era);
            let sum = match is_gone {
                true => &mut swept.removed,
                false => &mut swept.live,
            };
            sum.files += u64::from(home.is_some());
            sum.blocks += count.blocks;
            sum.bytes += count.bytes;
        }
        swept
    }
}
