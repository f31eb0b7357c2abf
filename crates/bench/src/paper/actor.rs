//! Readers and writers of one object or file, and what each operation costs.

use super::variant::Algorithm;
use crate::random::Random;
use crate::run::{RunError, failed, system};
use crate::workload::value;
use areo_client::file::{Base, Chunking, File, Method, PullOptions, PushOptions};
use areo_client::{Client, ConnectOptions, Counts, Domain, Error, PutOptions, Statistics, Version};
use std::fs;
use std::future::Future;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The object, and the file.
const NAME: &str = "subject";
/// What a writer changes of a file, in bytes.
const EDIT: usize = 1 << 10;
/// Objects of every size are one value, so that the object is atomic, as published.
const BLOCK_BYTES: u32 = areo_client::limits::MAX_BLOCK_BYTES;

/// Bytes of blocks of files: at least, about, at most.
pub(super) type Blocks = (usize, usize, usize);

/// What one operation cost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Cost {
    /// Milliseconds.
    pub ms: f64,
    /// Quorum calls.
    pub rounds: u64,
    /// Different configurations that were asked something.
    pub configurations: u64,
    /// Bytes.
    pub sent: u64,
    /// Bytes.
    pub received: u64,
    /// Blocks of the file, the genesis block among them; 0 of an object.
    pub blocks: u64,
    /// Of what was to be written, how much prevailed: 1 of a read.
    pub success: f64,
}

/// A client of its own.
pub(super) struct Actor {
    holding: ActorState,
    cost: Arc<Statistics>,
    size: usize,
    random: Random,
    /// Its local files; removed with it.
    _client: Client,
}

enum ActorState {
    Object {
        domain: Domain,
        covering: bool,
        known: Option<Version>,
    },
    File {
        file: File,
        path: PathBuf,
        chunking: Chunking,
        base: Option<Base>,
        /// The version of another writer has to be pulled before the next edit.
        behind: bool,
        _folder: tempfile::TempDir,
    },
}

/// What actors have in common.
pub(super) struct Subject<'a> {
    pub(super) connect: &'a ConnectOptions,
    pub(super) domain: &'a str,
    pub(super) algorithm: Algorithm,
    pub(super) size: usize,
    pub(super) blocks: Blocks,
    /// Where local files are kept.
    pub(super) data: &'a Path,
}

impl Subject<'_> {
    /// Connects, and finds the domain as it is now.
    pub(super) async fn actor(&self, random: Random) -> Result<Actor, RunError> {
        let client = Client::connect(self.connect.clone()).await;
        let client = client.map_err(failed("connect a client"))?;
        let domain = client.domain(self.domain).await;
        let (domain, cost) = domain.map_err(failed("find the domain"))?.measured();
        let holding = match self.algorithm {
            Algorithm::Ares | Algorithm::CoAres => ActorState::Object {
                domain,
                covering: self.algorithm == Algorithm::CoAres,
                known: None,
            },
            Algorithm::CoAresF => {
                let folder = tempfile::tempdir_in(self.data);
                let folder = folder.map_err(system("make a folder for local files"))?;
                let (min, avg, max) = self.blocks;
                let chunking = Chunking::new(Method::Rabin, min, avg, max);
                ActorState::File {
                    file: domain.file(NAME).map_err(failed("name the file"))?,
                    path: folder.path().join("local"),
                    chunking: chunking.map_err(failed("cut files"))?,
                    base: None,
                    behind: false,
                    _folder: folder,
                }
            }
        };
        Ok(Actor {
            holding,
            cost,
            size: self.size,
            random,
            _client: client,
        })
    }
}

/// Does it, and says what it cost.
async fn measured<T>(cost: &Statistics, work: impl Future<Output = T>) -> (T, Cost) {
    let (before, begun) = (cost.counts(), Instant::now());
    let done = work.await;
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    let counted = |of: fn(&Counts) -> u64| of(&cost.counts()) - of(&before);
    let cost = Cost {
        ms,
        rounds: counted(|of| of.rounds),
        configurations: counted(|of| of.configurations),
        sent: counted(|of| of.sent_bytes),
        received: counted(|of| of.received_bytes),
        blocks: 0,
        success: 1.0,
    };
    (done, cost)
}

impl Actor {
    /// Connects to the servers, without learning anything of the object: one that does not exist is asked for.
    ///
    /// # Errors
    /// What went wrong, as a sentence.
    pub(super) async fn warm_up(&self) -> Result<(), String> {
        let domain = match &self.holding {
            ActorState::Object { domain, .. } => domain,
            ActorState::File { file, .. } => file.domain(),
        };
        match domain.get("nothing").await {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Writes the object as it is at the beginning.
    ///
    /// # Errors
    /// What went wrong, as a sentence.
    pub(super) async fn create(&mut self) -> Result<Cost, String> {
        if let ActorState::File { path, .. } = &self.holding {
            let content = value::content(self.random.next(), self.size);
            fs::write(path, content).map_err(|error| error.to_string())?;
        }
        self.write().await
    }

    /// Writes: the whole object, or what the writer has changed of its file.
    ///
    /// # Errors
    /// What went wrong, as a sentence.
    pub(super) async fn write(&mut self) -> Result<Cost, String> {
        let content = value::content(self.random.next(), self.size);
        let options = PutOptions {
            block_bytes: BLOCK_BYTES,
            ..PutOptions::default()
        };
        match &mut self.holding {
            ActorState::Object {
                domain,
                covering: false,
                ..
            } => {
                let put = domain.put(NAME, content, options);
                let (done, cost) = measured(&self.cost, put).await;
                done.map_err(|error| error.to_string())?;
                Ok(cost)
            }
            ActorState::Object { domain, known, .. } => {
                let put = domain.write_if(NAME, content, *known, options);
                let (done, mut cost) = measured(&self.cost, put).await;
                match done {
                    Ok(version) => *known = Some(version),
                    Err(Error::VersionConflict { latest, .. }) => {
                        *known = latest.map(|object| object.version);
                        cost.success = 0.0;
                    }
                    Err(error) => return Err(error.to_string()),
                }
                Ok(cost)
            }
            ActorState::File { .. } => self.push().await,
        }
    }

    /// Edits the local file and pushes it; the edit is not measured.
    async fn push(&mut self) -> Result<Cost, String> {
        let ActorState::File {
            file,
            path,
            chunking,
            base,
            behind,
            _folder: _,
        } = &mut self.holding
        else {
            unreachable!("only files are pushed")
        };
        if *behind {
            let force = PullOptions { force: true };
            let pulled = file.pull(path, base.as_ref(), force, |_| {}).await;
            *base = Some(pulled.map_err(|error| error.to_string())?.base);
        }
        if base.is_some() {
            let edited = edit(path, &mut self.random);
            edited.map_err(|error| error.to_string())?;
        }
        let options = PushOptions {
            chunking: Some(*chunking),
        };
        let push = file.push(path, base.as_ref(), options, |_| {});
        let (pushed, mut cost) = measured(&self.cost, push).await;
        let pushed = pushed.map_err(|error| error.to_string())?;
        if let Some(error) = pushed.failed {
            return Err(error.to_string());
        }
        *behind = !pushed.conflicts.is_empty();
        *base = Some(pushed.base);
        cost.success = pushed.success_ratio;
        Ok(cost)
    }

    /// Reads all of it. Of a file, only what the reader has not got.
    ///
    /// # Errors
    /// What went wrong, as a sentence.
    pub(super) async fn read(&mut self) -> Result<Cost, String> {
        match &mut self.holding {
            ActorState::Object { domain, known, .. } => {
                let (read, cost) = measured(&self.cost, domain.get(NAME)).await;
                let object = read.map_err(|error| error.to_string())?;
                *known = Some(object.version);
                let read = value::recognise(&object.into_bytes());
                match read.starts_with('v') {
                    true => Ok(cost),
                    false => Err(format!("the object was read as {read}")),
                }
            }
            ActorState::File {
                file, path, base, ..
            } => {
                let force = PullOptions { force: true };
                let pull = file.pull(path, base.as_ref(), force, |_| {});
                let (pulled, mut cost) = measured(&self.cost, pull).await;
                // Each block is atomic, and the file is not: of what many edit at once, neither content nor length is known.
                let pulled = pulled.map_err(|error| error.to_string())?;
                cost.blocks = 1 + pulled.blocks as u64;
                *base = Some(pulled.base);
                Ok(cost)
            }
        }
    }
}

/// Writes over some bytes of a file.
fn edit(path: &Path, random: &mut Random) -> io::Result<()> {
    let local = fs::OpenOptions::new().write(true).open(path)?;
    let length = local.metadata()?.len() as usize;
    let edit = value::content(random.next(), EDIT);
    let at = random.index(length.saturating_sub(EDIT) + 1);
    local.write_all_at(&edit, at as u64)
}
