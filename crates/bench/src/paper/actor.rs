//! Readers and writers of one object or file, as callers of the load generator.

use super::variant::Algorithm;
use crate::error::{RunError, failed, system};
use crate::load::{Look, Plan, value};
use crate::random::Random;
use crate::target::connected;
use crate::target::{Answer, CallError, Caller, Cost};
use areo_client::file::{Base, Chunking, File, Method, PullOptions, PushOptions};
use areo_client::{Client, ConnectOptions, Domain, Error, PutOptions, Statistics, Version};
use bytes::Bytes;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The object, and the file.
const NAME: &str = "subject";
/// The length of the part of a file that a writer changes, in bytes.
const EDIT: usize = 1 << 10;
/// Objects of every size are one value, so that the object is atomic, as published.
const BLOCK_BYTES: u32 = areo_client::limits::MAX_BLOCK_BYTES;

/// Bytes of blocks of files: at least, about, at most.
pub(super) type Blocks = (usize, usize, usize);

/// A client of its own, which reads and writes the object or the file of its experiment under any key.
pub(super) struct Actor {
    state: ActorState,
    statistics: Arc<Statistics>,
    _client: Client,
}

enum ActorState {
    Object(ObjectActor),
    File(Box<FileActor>),
}

struct ObjectActor {
    domain: Domain,
    /// It writes on the version that it knows.
    covering: bool,
    known: Option<Version>,
}

struct FileActor {
    file: File,
    path: PathBuf,
    chunking: Chunking,
    base: Option<Base>,
    /// The version of another writer has to be pulled before the next edit.
    behind: bool,
    /// The source of the places of edits.
    random: Random,
    /// The folder of the file, removed with the actor.
    _folder: tempfile::TempDir,
}

/// The state that actors have in common.
pub(super) struct Subject<'a> {
    pub(super) connect: &'a ConnectOptions,
    pub(super) domain: &'a str,
    pub(super) algorithm: Algorithm,
    pub(super) size: usize,
    pub(super) blocks: Blocks,
    /// The folder of local files.
    pub(super) data: &'a Path,
}

impl Subject<'_> {
    /// Connects, and finds the domain as it is now.
    pub(super) async fn actor(&self, random: Random) -> Result<Actor, RunError> {
        let (client, domain) = connected(self.connect, self.domain).await?;
        let (domain, statistics) = domain.measured();
        let state = match self.algorithm {
            Algorithm::Ares | Algorithm::CoAres => ActorState::Object(ObjectActor {
                domain,
                covering: self.algorithm == Algorithm::CoAres,
                known: None,
            }),
            Algorithm::CoAresF => {
                let folder = tempfile::tempdir_in(self.data);
                let folder = folder.map_err(system("make a folder for local files"))?;
                let (min, avg, max) = self.blocks;
                let chunking = Chunking::new(Method::Rabin, min, avg, max);
                ActorState::File(Box::new(FileActor {
                    file: domain.file(NAME).map_err(failed("name the file"))?,
                    path: folder.path().join("local"),
                    chunking: chunking.map_err(failed("cut files"))?,
                    base: None,
                    behind: false,
                    random,
                    _folder: folder,
                }))
            }
        };
        Ok(Actor {
            state,
            statistics,
            _client: client,
        })
    }

    /// Connects, and writes the object as it is at the beginning.
    pub(super) async fn create(&self, mut random: Random) -> Result<Actor, RunError> {
        let content = value::content(random.next(), self.size);
        let mut actor = self.actor(random).await?;
        let written = actor.write(content).await;
        written.map_err(failed("write the object"))?;
        Ok(actor)
    }

    /// The load of actors without their number: they put the whole object, or an edit of the file.
    pub(super) fn plan(&self) -> Plan {
        // Each block of a file is atomic, and the file is not: of what many edit at once, neither content nor length is known.
        let (size, look) = match self.algorithm {
            Algorithm::Ares | Algorithm::CoAres => (self.size, Look::Bytes),
            Algorithm::CoAresF => (EDIT, Look::Not),
        };
        Plan {
            objects: 1,
            size,
            look,
            keeps_samples: true,
            ..Plan::default()
        }
    }
}

impl Actor {
    /// Connects to the servers, without learning anything of the object: one that does not exist is asked for.
    ///
    /// # Errors
    /// [`CallError`].
    pub(super) async fn warm_up(&self) -> Result<(), CallError> {
        let domain = match &self.state {
            ActorState::Object(object) => &object.domain,
            ActorState::File(of) => of.file.domain(),
        };
        match domain.get("nothing").await {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes.
    ///
    /// # Errors
    /// [`CallError`].
    pub(super) async fn write(&mut self, value: Bytes) -> Result<Cost, CallError> {
        match &mut self.state {
            ActorState::Object(object) => object.write(value, &self.statistics).await,
            ActorState::File(file) => file.push(&value, &self.statistics).await,
        }
    }

    /// Reads the whole value. Of a file it reads only the blocks that the reader does not have, into the local file.
    ///
    /// # Errors
    /// [`CallError`].
    pub(super) async fn read(&mut self) -> Result<(Option<Bytes>, Cost), CallError> {
        match &mut self.state {
            ActorState::Object(object) => object.read(&self.statistics).await,
            ActorState::File(file) => file.pull(&self.statistics).await,
        }
    }
}

impl Caller for Actor {
    fn put<'a>(&'a mut self, _key: &'a str, value: Bytes) -> Answer<'a, Cost, CallError> {
        Box::pin(self.write(value))
    }

    fn get<'a>(&'a mut self, _key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), CallError> {
        Box::pin(self.read())
    }
}

impl ObjectActor {
    async fn write(&mut self, value: Bytes, statistics: &Statistics) -> Result<Cost, CallError> {
        let (before, mut lost) = (statistics.counts(), 0.0);
        let options = PutOptions {
            block_bytes: BLOCK_BYTES,
            ..PutOptions::default()
        };
        if self.covering {
            match self.domain.write_if(NAME, value, self.known, options).await {
                Ok(version) => self.known = Some(version),
                Err(Error::VersionConflict { latest, .. }) => {
                    self.known = latest.map(|object| object.version);
                    lost = 1.0;
                }
                Err(error) => return Err(error.into()),
            }
        } else {
            self.domain.put_with(NAME, value, options).await?;
        }
        Ok(Cost {
            counts: statistics.since(before),
            lost,
            ..Cost::default()
        })
    }

    async fn read(&mut self, statistics: &Statistics) -> Result<(Option<Bytes>, Cost), CallError> {
        let before = statistics.counts();
        let object = self.domain.get(NAME).await?;
        self.known = Some(object.version);
        let cost = Cost {
            counts: statistics.since(before),
            ..Cost::default()
        };
        Ok((Some(object.into_bytes()), cost))
    }
}

impl FileActor {
    /// Pushes the local file with this edit; without a local file, the edit is the whole of it.
    async fn push(&mut self, edit: &Bytes, statistics: &Statistics) -> Result<Cost, CallError> {
        let begun = Instant::now();
        if self.behind {
            self.pull(statistics).await?;
        }
        let edited = self.edit(edit);
        edited.map_err(|error| error.to_string())?;
        let (before, aside) = (statistics.counts(), begun.elapsed());
        let options = PushOptions {
            chunking: Some(self.chunking),
            ..PushOptions::default()
        };
        let base = self.base.as_ref();
        let pushed = self
            .file
            .push(&self.path, base, options, |_| ControlFlow::Continue(()))
            .await;
        let pushed = pushed.map_err(|error| error.to_string())?;
        if let Some(error) = pushed.failed {
            return Err(error.to_string().into());
        }
        self.behind = !pushed.conflicts.is_empty();
        self.base = Some(pushed.base);
        Ok(Cost {
            counts: statistics.since(before),
            lost: 1.0 - pushed.success_ratio,
            aside,
            ..Cost::default()
        })
    }

    /// Writes over some bytes of the local file.
    fn edit(&mut self, edit: &Bytes) -> io::Result<()> {
        if self.base.is_none() {
            return fs::write(&self.path, edit);
        }
        let local = fs::OpenOptions::new().write(true).open(&self.path)?;
        let length = local.metadata()?.len() as usize;
        let at = self.random.index(length.saturating_sub(edit.len()) + 1);
        local.write_all_at(edit, at as u64)
    }

    async fn pull(&mut self, statistics: &Statistics) -> Result<(Option<Bytes>, Cost), CallError> {
        let before = statistics.counts();
        let (base, force) = (self.base.as_ref(), PullOptions { force: true });
        let pulled = self.file.pull(&self.path, base, force, |_| {}).await;
        let pulled = pulled.map_err(|error| error.to_string())?;
        let cost = Cost {
            counts: statistics.since(before),
            blocks: 1 + pulled.blocks as u64,
            ..Cost::default()
        };
        self.base = Some(pulled.base);
        Ok((None, cost))
    }
}
