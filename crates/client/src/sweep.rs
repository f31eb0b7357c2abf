//! Blocks that are not needed: how much they are, and their removal, of large values (`areo_core::dsm::sweep`) and of files
//! (`areo_core::fragment::sweep`).

use crate::domain::Domain;
use crate::error::Error;
use crate::object::now_ms;
use crate::operation::Operation;
use crate::session::{Context, Deadline};
use crate::span;
use areo_core::dsm::sweep::Ages;
use areo_core::error::Unavailable;
use futures_util::future::BoxFuture;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// Blocks of large values, see [`SweepReport::values`].
pub use areo_core::dsm::sweep::{Count, UploadSweep};
/// Blocks of files, see [`SweepReport::files`].
pub use areo_core::fragment::sweep::{Count as FileCount, FileSweep};

/// The findings of a sweep, and the removed part of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SweepReport {
    /// The sweep of large values.
    pub values: UploadSweep,
    /// The sweep of files.
    pub files: FileSweep,
    /// Removed, of both; files are counted as uploads. `None`: nothing was to be removed.
    pub removed: Option<Count>,
}

/// `live`, `unfinished`, `replaced` and `aborted` large values, `files` and `removed_files`, and `removed` if anything was to
/// be.
impl Serialize for SweepReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Parts {
            #[serde(with = "CountParts")]
            live: Count,
            #[serde(with = "CountParts")]
            unfinished: Count,
            #[serde(with = "CountParts")]
            replaced: Count,
            #[serde(with = "CountParts")]
            aborted: Count,
            #[serde(with = "FileParts")]
            files: FileCount,
            #[serde(with = "FileParts")]
            removed_files: FileCount,
            #[serde(skip_serializing_if = "Option::is_none")]
            removed: Option<Removed>,
        }
        let SweepReport {
            values,
            files,
            removed,
        } = *self;
        let parts = Parts {
            live: values.live,
            unfinished: values.unfinished,
            replaced: values.replaced,
            aborted: values.aborted,
            files: files.live,
            removed_files: files.removed,
            removed: removed.map(Removed),
        };
        parts.serialize(serializer)
    }
}

#[derive(Serialize)]
struct Removed(#[serde(with = "CountParts")] Count);

#[derive(Serialize)]
#[serde(remote = "Count")]
struct CountParts {
    uploads: u64,
    blocks: u64,
    bytes: u64,
}

#[derive(Serialize)]
#[serde(remote = "FileCount")]
struct FileParts {
    files: u64,
    blocks: u64,
    bytes: u64,
}

impl SweepReport {
    /// Uploads, blocks and bytes of the newest versions of objects and of files; a file counts as an upload.
    pub fn live(&self) -> Count {
        sum(self.values.live, self.files.live)
    }

    /// Blocks that are not needed: all others.
    pub fn orphans(&self) -> Count {
        sum(self.values.orphans(), self.files.removed)
    }
}

fn sum(values: Count, files: FileCount) -> Count {
    Count {
        uploads: values.uploads + files.files,
        blocks: values.blocks + files.blocks,
        bytes: values.bytes + files.bytes,
    }
}

/// The ages at which blocks of large values that no object needs are removed. Those of removed files are at any age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepOptions {
    /// Those of writes that have not ended, and have sent nothing for so long: an hour by default. A writer that is only
    /// slower than this fails with [`Error::Swept`].
    pub unfinished: Duration,
    /// Those of versions that were replaced, or deleted, so long ago: a minute by default. Writers remove them at once, if
    /// they are not told otherwise ([`Domain::keeping_replaced`]), and get to it. A reader that is still at them
    /// fails with [`Error::VersionConflict`].
    pub replaced: Duration,
    /// The caller did not ask for it: it is done beside another operation, and its span says so.
    pub aside: bool,
}

impl Default for SweepOptions {
    fn default() -> SweepOptions {
        SweepOptions {
            unfinished: Duration::from_hours(1),
            replaced: Duration::from_mins(1),
            aside: false,
        }
    }
}

impl Domain {
    /// Removes blocks that are not needed, as far as writers have not done so: of large values that were written over or
    /// deleted, or whose writers ended half way, and of removed files, whoever left them. Blocks of a file that is there stay, even if nothing leads to them. May be
    /// called at any time, and by several at once. It goes over all blocks of the domain, and has no deadline as long as it
    /// gets on.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; what was removed by then stays removed.
    pub async fn sweep(&self, options: SweepOptions) -> Result<SweepReport, Error> {
        self.operate(Operation::Sweep, "", self.go_over(Some(options)))
            .await
    }

    /// The findings that [`Domain::sweep`] would have; removes nothing.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn orphans(&self) -> Result<SweepReport, Error> {
        self.go_over(None).await
    }

    fn go_over(&self, options: Option<SweepOptions>) -> BoxFuture<'_, Result<SweepReport, Error>> {
        Box::pin(async move {
            let ms = |age: Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
            let ages = Ages {
                now_ms: now_ms().unwrap_or(0),
                unfinished_ms: options.map(|options| ms(options.unfinished)),
                replaced_ms: options.map(|options| ms(options.replaced)),
            };
            // The count is no operation of the caller either.
            let aside = options.is_none_or(|options| options.aside);
            let sweep = move |context: Context| async move {
                let (domain, removes) = (context.handle(), options.is_some());
                let swept = async {
                    let values = domain.sweep(&ages).await?;
                    let files = domain.sweep_files(removes).await?;
                    let removed = removes.then(|| sum(values.removed, files.removed));
                    Ok(SweepReport {
                        values,
                        files,
                        removed,
                    })
                };
                let swept: Result<SweepReport, Unavailable> =
                    span::watch!(span::sweep(aside), swept);
                swept.map_err(|failed| context.not_applied(&failed))
            };
            self.run(Deadline::Idle, Operation::Sweep, None, sweep)
                .await
        })
    }
}
