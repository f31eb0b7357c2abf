//! Copies blocks to a local file.

use super::base::Base;
use super::chunking;
use super::error::{FileError, damaged, explain, local};
use super::{File, Progress, walk};
use crate::metrics::Metrics;
use crate::operation::Operation;
use crate::place::{self, Place};
use crate::session::Context;
use crate::span;
use areo_core::fragment::Digest;
use areo_core::fragment::block;
use areo_core::fragment::content::Sink;
use areo_core::fragment::file::{self as core_file, Block, Chain};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tokio::task::spawn_blocking;

/// Options of a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PullOptions {
    /// Replace the local file even if it has changes of its own.
    pub force: bool,
}

/// The result of a pull; serialised without `base`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PullReport {
    /// The base of the local file from now on.
    #[serde(skip)]
    pub base: Base,
    /// Bytes of the file.
    pub bytes: u64,
    /// Blocks of the file with data.
    pub blocks: usize,
    /// Blocks whose data was fetched.
    pub fetched: usize,
    /// Bytes of the fetched data.
    pub fetched_bytes: u64,
    /// The local file was as the file is, and was left alone.
    pub unchanged: bool,
}

/// The caller's function that takes the content, piece by piece.
type BoxedSink = Box<dyn FnMut(&Bytes) -> io::Result<()> + Send>;

impl File {
    /// Makes the local file equal to the file, as a [`Place`] does: it appears complete or not at all, and keeps its
    /// mode, its owner, its other names and its mounts. A pipe, a device or a descriptor gets the whole content.
    /// `base`: the version that the local file is based on; blocks that have not changed since are taken from it.
    ///
    /// # Errors
    /// [`FileError`]; then the local file is as it was.
    pub async fn pull(
        &self,
        path: &Path,
        base: Option<&Base>,
        options: PullOptions,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<PullReport, FileError> {
        let local = (path.to_owned(), base.cloned());
        let pulled = self.pull_telling(local, options, Box::new(progress));
        self.domain
            .operate(Operation::FilePull, self.name(), pulled)
            .await
    }

    fn pull_telling(
        &self,
        (path, base): (PathBuf, Option<Base>),
        options: PullOptions,
        progress: Box<dyn Fn(Progress) + Send>,
    ) -> BoxFuture<'_, Result<PullReport, FileError>> {
        let pull = move |context: Context| async move {
            pull(&context, &path, base, options, &progress).await
        };
        Box::pin(async move { self.run(Operation::FilePull, pull).await })
    }

    /// Hands the content to `sink`, in order, in pieces, on the client's own thread. Each block is read atomically, the file
    /// as a whole is not. Returns how many bytes there were.
    ///
    /// # Errors
    /// [`FileError`]. What was handed on is right.
    pub async fn read(
        &self,
        sink: impl FnMut(&Bytes) -> io::Result<()> + Send + 'static,
    ) -> Result<u64, FileError> {
        let read = self.read_into(Box::new(sink));
        self.domain
            .operate(Operation::FileRead, self.name(), read)
            .await
    }

    fn read_into(&self, sink: BoxedSink) -> BoxFuture<'_, Result<u64, FileError>> {
        let read = move |context: Context| async move {
            let chain = walk(&context, None).await?;
            span::record(chain.length(), chain.data().len());
            let mut output = Output {
                write: sink,
                bytes: 0,
                metrics: context.metrics(),
            };
            deliver(&context, chain, &mut output).await?;
            Ok(output.bytes)
        };
        Box::pin(async move { self.run(Operation::FileRead, read).await })
    }
}

/// Fetches the blocks that the sink has not, and gives it all of them in order.
async fn deliver(
    context: &Context,
    chain: Chain,
    sink: &mut impl Sink<Error = Stop>,
) -> Result<Chain, FileError> {
    let delivered = context.file().deliver(chain, sink).await;
    delivered.map_err(|stop| stop.explain(context))
}

async fn pull(
    context: &Context,
    path: &Path,
    base: Option<Base>,
    options: PullOptions,
    progress: &dyn Fn(Progress),
) -> Result<PullReport, FileError> {
    let chunking = base.as_ref().map(Base::chunking).unwrap_or_default();
    let chain = walk(context, base.as_ref().map(|base| &base.chain)).await?;
    span::record(chain.length(), chain.data().len());
    let digests = chain.digests();
    let expected = base.map_or_else(|| chain.clone(), |base| base.chain);
    let (here, total) = (path.to_owned(), chain.length());
    let is_same = expected.digests() == digests;
    let present = spawn_blocking(move || match place::is_stream(&here) {
        Ok(true) => Ok(None),
        Ok(false) => LocalCopy::of(&here, &expected),
        Err(error) => Err(local("write", &here)(error)),
    })
    .await;
    let present = present.expect("reading does not panic")?;
    if present
        .as_ref()
        .is_some_and(|present| !present.is_as_expected)
        && !options.force
    {
        return Err(FileError::Modified { path: path.into() });
    }
    let pulled = |chain: Chain, fetched: (usize, u64), unchanged| PullReport {
        bytes: chain.length(),
        blocks: chain.data().iter().filter(|block| block.length > 0).count(),
        fetched: fetched.0,
        fetched_bytes: fetched.1,
        unchanged,
        base: Base { chain, chunking },
    };
    if is_same
        && present
            .as_ref()
            .is_some_and(|present| present.is_as_expected)
    {
        return Ok(pulled(chain, (0, 0), true));
    }
    let told = (progress, context.metrics());
    let named = path.to_owned();
    // A pipe is opened when its reader comes.
    let place = spawn_blocking(move || Place::open(&named)).await;
    let place = place.expect("opening does not panic");
    let place = place.map_err(local("write", path))?;
    let mut beside = Beside::new((path, place), present, total, told);
    let chain = deliver(context, chain, &mut beside).await?;
    let (fetched, place) = ((beside.fetched, beside.fetched_bytes), beside.place);
    place.keep().await.map_err(local("write", path))?;
    Ok(pulled(chain, fetched, false))
}

/// Why the content was taken no further.
enum Stop {
    Core(core_file::FileError),
    Here(FileError),
    /// The data of a block is not what its writer wrote.
    Damaged(String),
}

impl From<core_file::FileError> for Stop {
    fn from(error: core_file::FileError) -> Stop {
        Stop::Core(error)
    }
}

impl Stop {
    fn explain(self, context: &Context) -> FileError {
        match self {
            Stop::Core(error) => explain(context, error),
            Stop::Here(error) => error,
            Stop::Damaged(block) => {
                let reason = "its data has not the hash that its writer computed";
                damaged(context, block, reason.into())
            }
        }
    }
}

fn verified(block: &Block, data: Vec<Bytes>) -> Result<Vec<Bytes>, Stop> {
    let is_sound = match block.metadata.digest {
        Some(digest) => chunking::digest(&data) == digest,
        None => data.iter().all(Bytes::is_empty),
    };
    match (is_sound, block.id) {
        (false, Some(id)) => Err(Stop::Damaged(block::name(id).key().into())),
        _ => Ok(data),
    }
}

struct Output<'a, F> {
    write: F,
    bytes: u64,
    metrics: &'a Metrics,
}

impl<F: FnMut(&Bytes) -> io::Result<()>> Sink for Output<'_, F> {
    type Error = Stop;

    fn has(&self, _block: &Block) -> bool {
        false
    }

    fn take(&mut self, block: &Block, data: Option<Vec<Bytes>>) -> Result<(), Stop> {
        let data = verified(block, data.expect("it has none itself"))?;
        self.metrics.file().read.inc_by(block.length);
        for piece in &data {
            let written = (self.write)(piece);
            written.map_err(|source| Stop::Here(FileError::Output { source }))?;
            self.bytes += piece.len() as u64;
        }
        Ok(())
    }
}

/// A local file that is there already.
struct LocalCopy {
    file: fs::File,
    /// The place in it of the data with this digest.
    places: HashMap<Digest, (u64, u64)>,
    /// The file equals the base, to the last byte.
    is_as_expected: bool,
}

impl LocalCopy {
    /// Looks which blocks are in the file, in their places. `None`: there is no file.
    fn of(path: &Path, expected: &Chain) -> Result<Option<LocalCopy>, FileError> {
        let file = match fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(local("read", path)(error)),
        };
        let metadata = file.metadata().map_err(local("read", path))?;
        if !metadata.is_file() {
            return Err(FileError::NotAFile { path: path.into() });
        }
        let mut present = LocalCopy {
            file,
            places: HashMap::new(),
            is_as_expected: metadata.len() == expected.length(),
        };
        let mut place = 0;
        for block in expected.data() {
            let Some(digest) = block.metadata.digest else {
                continue;
            };
            match present.read(place, block.length, digest) {
                Some(_) => drop(present.places.insert(digest, (place, block.length))),
                None => present.is_as_expected = false,
            }
            place += block.length;
        }
        Ok(Some(present))
    }

    /// Data that has this digest; `None`: it has another one.
    fn read(&self, place: u64, length: u64, digest: Digest) -> Option<Bytes> {
        let mut data = vec![0; usize::try_from(length).ok()?];
        self.file.read_exact_at(&mut data, place).ok()?;
        let data = Bytes::from(data);
        (chunking::digest(std::slice::from_ref(&data)) == digest).then_some(data)
    }
}

/// The file to be, beside the local one. Goes away unless it is complete.
struct Beside<'a> {
    path: &'a Path,
    place: Place,
    present: Option<LocalCopy>,
    total: u64,
    fetched: usize,
    fetched_bytes: u64,
    progress: &'a dyn Fn(Progress),
    metrics: &'a Metrics,
}

impl<'a> Beside<'a> {
    fn new(
        (path, place): (&'a Path, Place),
        present: Option<LocalCopy>,
        total: u64,
        (progress, metrics): (&'a dyn Fn(Progress), &'a Metrics),
    ) -> Beside<'a> {
        Beside {
            path,
            place,
            present,
            total,
            fetched: 0,
            fetched_bytes: 0,
            progress,
            metrics,
        }
    }
}

impl Beside<'_> {
    /// The data of a block that the local file has.
    fn here(&self, block: &Block) -> Result<Bytes, Stop> {
        let present = self.present.as_ref().expect("it has the data");
        let digest = block.metadata.digest.expect("it has a digest");
        let (place, length) = present.places[&digest];
        let changed = || FileError::Changed {
            path: self.path.into(),
        };
        let data = present.read(place, length, digest);
        data.ok_or_else(|| Stop::Here(changed()))
    }
}

impl Sink for Beside<'_> {
    type Error = Stop;

    fn has(&self, block: &Block) -> bool {
        let places = self.present.as_ref().map(|present| &present.places);
        let digest = block.metadata.digest;
        digest.is_some_and(|digest| places.is_some_and(|places| places.contains_key(&digest)))
    }

    fn take(&mut self, block: &Block, data: Option<Vec<Bytes>>) -> Result<(), Stop> {
        let data = match data {
            Some(data) => verified(block, data)?,
            None => vec![self.here(block)?],
        };
        if !self.has(block) {
            self.fetched += usize::from(block.length > 0);
            self.fetched_bytes += block.length;
            self.metrics.file().read.inc_by(block.length);
        }
        for piece in &data {
            let written = self.place.write_here(piece);
            written.map_err(|error| Stop::Here(local("write", self.path)(error)))?;
        }
        (self.progress)(Progress::Received {
            bytes: block.length,
            total: self.total,
        });
        Ok(())
    }
}
