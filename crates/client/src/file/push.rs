//! Copies a local file to blocks.

use super::base::Base;
use super::chunking::{self, Chunking};
use super::error::{Conflict, FileError, check_no_object, explain, local};
use super::{File, Progress};
use crate::error::{Error, Invalid};
use crate::metrics::Metrics;
use crate::object::now_ms;
use crate::operation::Operation;
use crate::session::Context;
use crate::span;
use areo_core::fragment::file::{self as core_file, Chain};
use areo_core::fragment::identify;
use areo_core::fragment::update::{self, Chunk, Source, UpdateError, UpdateReport};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use tokio::task::spawn_blocking;

/// Options of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PushOptions {
    /// The rule of cutting; `None`: as the base was, or as usual.
    pub chunking: Option<Chunking>,
    /// Without a base, write nothing if the stored file differs from the local one: others may have written all of
    /// the difference.
    pub needs_base: bool,
}

/// The result of a push; serialised without `base` and `failed`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PushReport {
    /// The base of the local file from now on.
    #[serde(skip)]
    pub base: Base,
    /// The file was made.
    pub created: bool,
    /// Bytes of the local file.
    pub bytes: u64,
    /// Blocks of the file, the genesis block and empty ones left out.
    pub blocks: usize,
    /// Blocks that were written.
    pub written: usize,
    /// Bytes of their data.
    pub written_bytes: u64,
    /// Blocks that another client has written since: they were not. Pull before you push again.
    pub conflicts: Vec<Conflict>,
    /// The share of the blocks to be written that were written (the papers' update success ratio).
    pub success_ratio: f64,
    /// Blocks whose writes were not acknowledged, if there were such: why not the first of them.
    #[serde(skip)]
    pub failed: Option<Error>,
}

impl File {
    /// Writes what changed in the local file since `base`; without a base, all differences from the stored file.
    /// Three rounds, side by side for all blocks, and one before them without a base. `progress` is called with each step, on the
    /// client's own thread: it must not wait for anything. With [`ControlFlow::Break`] it ends the push: data that is not read yet
    /// is not sent, and new blocks to which nothing leads are removed.
    ///
    /// # Errors
    /// [`FileError`]; then nothing was changed.
    pub async fn push(
        &self,
        path: &Path,
        base: Option<&Base>,
        options: PushOptions,
        progress: impl Fn(Progress) -> ControlFlow<()> + Send + 'static,
    ) -> Result<PushReport, FileError> {
        let local = (path.to_owned(), base.cloned());
        let pushed = self.push_telling(local, options, Box::new(progress));
        self.domain
            .operate(Operation::FilePush, self.name(), pushed)
            .await
    }

    fn push_telling(
        &self,
        (path, base): (PathBuf, Option<Base>),
        options: PushOptions,
        progress: Box<dyn Fn(Progress) -> ControlFlow<()> + Send>,
    ) -> BoxFuture<'_, Result<PushReport, FileError>> {
        let push = move |context: Context| async move {
            let chunking = options.chunking.or(base.as_ref().map(Base::chunking));
            let push = Push {
                context: &context,
                path: &path,
                chunking: chunking.unwrap_or_default(),
                needs_base: options.needs_base,
                progress: Rc::new(progress),
            };
            push.run(base.map(|base| base.chain)).await
        };
        Box::pin(async move { self.run(Operation::FilePush, push).await })
    }
}

struct Push<'a> {
    context: &'a Context,
    path: &'a Path,
    chunking: Chunking,
    needs_base: bool,
    progress: Rc<dyn Fn(Progress) -> ControlFlow<()>>,
}

impl Push<'_> {
    async fn run(&self, base: Option<Chain>) -> Result<PushReport, FileError> {
        let scan = async {
            // A push that is given up ends when it is about to send something.
            let told = |progress| {
                let _ = (self.progress)(progress);
            };
            let scanned = scan(self.path, self.chunking, &told).await?;
            span::record(scanned.bytes, scanned.chunks.len());
            Ok::<_, FileError>(scanned)
        };
        let scanned = span::watch!(span::divide(), scan)?;
        span::record(scanned.bytes, scanned.chunks.len());
        let context = self.context;
        let file = context.file();
        let is_unbased = self.needs_base && base.is_none();
        let base = match base {
            Some(base) => base,
            None => match file.walk(None).await {
                Ok(chain) => chain,
                Err(core_file::FileError::NotFound { version }) => {
                    check_no_object(context).await?;
                    Chain::absent(version)
                }
                Err(error) => return Err(explain(context, error)),
            },
        };
        let digests: Vec<_> = scanned.chunks.iter().map(|chunk| chunk.digest).collect();
        let stored = || base.digests().into_iter().flatten();
        if is_unbased && base.exists && !stored().eq(digests.iter().copied()) {
            return Err(FileError::NoBase {
                name: context.name().key().into(),
                path: self.path.into(),
            });
        }
        let updates =
            span::identify(digests.len()).in_scope(|| identify::updates(&base.digests(), &digests));
        let source = Local::new(&scanned, self);
        let what = (&scanned.chunks[..], &updates[..]);
        let source = (&source, now_ms());
        let updated = file.update(&base, what, source).await;
        let updated = updated.map_err(|error| self.not_written(error))?;
        Ok(self.pushed(&base, scanned.bytes, updated))
    }

    fn not_written(&self, error: UpdateError<FileError>) -> FileError {
        match error {
            UpdateError::Source(error) => error,
            UpdateError::Write(error) => self.context.write_error(&error).into(),
        }
    }

    fn pushed(&self, base: &Chain, bytes: u64, updated: UpdateReport<FileError>) -> PushReport {
        let success_ratio = updated.success_ratio();
        let conflict = |conflict: &update::Conflict| Conflict {
            block: super::BlockInfo::from(&conflict.block).id,
            version: conflict.block.version,
            newest: conflict.newest,
            removed: conflict.removed,
        };
        let failed = updated.failed.into_iter().next();
        let failed = failed.map(|(_, error)| match self.not_written(error) {
            FileError::Error(error) => error,
            other => Error::Invalid {
                reason: Invalid::Local {
                    reason: other.to_string(),
                },
            },
        });
        let full = |block: &&core_file::Block| block.length > 0;
        PushReport {
            created: !base.exists && updated.chain.exists,
            bytes,
            blocks: updated.chain.data().iter().filter(full).count(),
            written: updated.written,
            written_bytes: updated.written_bytes,
            conflicts: updated.conflicts.iter().map(conflict).collect(),
            success_ratio,
            failed,
            base: Base {
                chain: updated.chain,
                chunking: self.chunking,
            },
        }
    }
}

/// A local file, cut.
pub(super) struct ScannedFile {
    file: Arc<fs::File>,
    pub(super) chunks: Vec<Chunk>,
    pub(super) bytes: u64,
}

/// Cuts a local file, on a thread that may wait for the disk.
pub(super) async fn scan(
    path: &Path,
    chunking: Chunking,
    progress: &dyn Fn(Progress),
) -> Result<ScannedFile, FileError> {
    let (sender, receiver) = mpsc::channel();
    let owned = path.to_owned();
    let mut scan = spawn_blocking(move || scan_here(&owned, chunking, &sender));
    loop {
        // Awake now and then, to say how far it has come.
        let tick = tokio::time::sleep(std::time::Duration::from_millis(50));
        let ended = tokio::select! {
            ended = &mut scan => Some(ended),
            () = tick => None,
        };
        receiver.try_iter().for_each(progress);
        if let Some(ended) = ended {
            return ended.expect("reading does not panic");
        }
    }
}

fn scan_here(
    path: &Path,
    chunking: Chunking,
    progress: &mpsc::Sender<Progress>,
) -> Result<ScannedFile, FileError> {
    let file = fs::File::open(path).map_err(local("read", path))?;
    let before = file.metadata().map_err(local("read", path))?;
    if !before.is_file() {
        return Err(FileError::NotAFile { path: path.into() });
    }
    let total = before.len();
    let told = |bytes| {
        // The receiver is gone: the push was given up.
        let _ = progress.send(Progress::Scanned { bytes, total });
    };
    let chunks = chunking::scan(&file, &chunking, told).map_err(local("read", path))?;
    let after = file.metadata().map_err(local("read", path))?;
    let bytes = chunks.iter().map(|chunk| chunk.length).sum();
    let same_time = before.modified().ok() == after.modified().ok();
    if !same_time || after.len() != bytes {
        return Err(FileError::Changed { path: path.into() });
    }
    Ok(ScannedFile {
        file: Arc::new(file),
        chunks,
        bytes,
    })
}

/// The chunks of a local file, read again when they are sent.
struct Local {
    file: Arc<fs::File>,
    path: PathBuf,
    places: Vec<(u64, Chunk)>,
    progress: Rc<dyn Fn(Progress) -> ControlFlow<()>>,
    metrics: Metrics,
}

impl Local {
    fn new(scanned: &ScannedFile, push: &Push<'_>) -> Local {
        let place = |start: &mut u64, chunk: &Chunk| {
            let place = *start;
            *start += chunk.length;
            Some((place, *chunk))
        };
        Local {
            file: scanned.file.clone(),
            path: push.path.into(),
            places: scanned.chunks.iter().scan(0, place).collect(),
            progress: push.progress.clone(),
            metrics: push.context.metrics().clone(),
        }
    }

    fn go_on(&self, progress: Progress) -> Result<(), FileError> {
        match (self.progress)(progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(FileError::GivenUp),
        }
    }
}

impl Source for Local {
    type Error = FileError;

    async fn load(&self, chunk: usize) -> Result<Bytes, FileError> {
        let ((place, chunk), file) = (self.places[chunk], self.file.clone());
        let read = spawn_blocking(move || {
            let mut data = vec![0; usize::try_from(chunk.length).expect("at most 64 MiB")];
            file.read_exact_at(&mut data, place)?;
            let data = Bytes::from(data);
            let is_same = chunking::digest(std::slice::from_ref(&data)) == chunk.digest;
            Ok::<_, io::Error>(is_same.then_some(data))
        });
        let path = || self.path.clone();
        match read.await.expect("reading does not panic") {
            Ok(Some(data)) => {
                let bytes = chunk.length;
                self.go_on(Progress::Sending { bytes })?;
                self.metrics.file().written.inc_by(bytes);
                Ok(data)
            }
            Ok(None) => Err(FileError::Changed { path: path() }),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(FileError::Changed { path: path() })
            }
            Err(error) => Err(local("read", &self.path)(error)),
        }
    }

    fn before_links(&self) -> Result<(), FileError> {
        self.go_on(Progress::Linking)
    }
}
