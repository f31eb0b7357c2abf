//! The directory in the root domain: which servers there are, and where domains are by now.
//!
//! Both are joins at the servers, not objects: of a server the record of its latest start (`[X-21 directory-join]`), of a
//! domain the highest configuration known to be final. The latter is a hint (3.6): an old one costs hops, nothing else, and
//! it never names a configuration that is not final.

use super::Root;
use crate::config::{Configuration, ServerId};
use crate::dap::registered;
use crate::dsm::Domain;
use crate::env::Env;
use crate::error::{CallError, Unavailable};
use crate::gather::{Fold, Servers, Visit};
use crate::limits;
use crate::message::{Enrolment, Labels, Levels, Reply, Request, ServerRecord};
use crate::starts::{AgreedStep, StartPhase, Starts};
use std::collections::BTreeMap;
use std::sync::Arc;

use registered::Admitted;
pub use registered::{Registration, merge as merge_record};

/// A start that did not come to its end.
#[derive(Debug)]
pub enum StartError<W> {
    /// No quorum of the root domain in time. It goes on where it was when it is tried again.
    Unavailable(Unavailable),
    /// The directory could not be written.
    Write(W),
}

/// The result of a start's registration and confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartOutcome {
    /// The start is confirmed, and this is its record.
    Confirmed(Box<ServerRecord>),
    /// A later start is registered, see [`Registration::Outdated`].
    Outdated {
        /// The incarnation that is registered, or the generation.
        registered: u64,
    },
    /// Another process answers as this server at its registered address (`[X-33 registered-address]`).
    Occupied { address: String },
    /// The log had come further than that of this directory (`[X-31 log-position]`).
    Behind {
        /// The position of the directory's log.
        position: u64,
        /// The position that is registered.
        registered: u64,
    },
}

impl<E: Env> Domain<E> {
    /// The latest configuration of the domain that a quorum of the root domain knows to be final; that of the handle if it is
    /// later.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn latest(&self, root: &Configuration) -> Result<Arc<Configuration>, Unavailable> {
        let heard = self.ask_latest(root, None).await?;
        self.client.sequences().learn(&heard);
        Ok(self.start())
    }

    /// Makes the configuration of the handle, which is final, known to a quorum of the members of `to`: the root domain's, so
    /// that a client that looks the domain up starts there; or its own, so that they answer for older ones.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn announce(&self, to: &Configuration) -> Result<(), Unavailable> {
        let told = self.ask_latest(to, Some(self.known.clone())).await?;
        self.client.sequences().learn(&told);
        Ok(())
    }

    /// True if a configuration in use names the server: the last final one, or one that is pending. While one does, the server is not forgotten
    /// (`[X-27 forgotten-server]`).
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time: it may be named.
    pub async fn names(&self, server: ServerId) -> Result<bool, Unavailable> {
        let path = self.path().await?;
        Ok(path.iter().any(|c| c.position(server).is_some()))
    }

    async fn ask_latest(
        &self,
        of: &Configuration,
        known: Option<Arc<Configuration>>,
    ) -> Result<Arc<Configuration>, Unavailable> {
        let id = self.known.id();
        let request = Request::Latest {
            domain: id.domain,
            partition: id.partition,
            known,
        };
        let fold = move |latest: &mut Arc<Configuration>, _from: usize, reply: Reply| match reply {
            Reply::Latest(known) => {
                let later = known.filter(|c| latest.precedes(c));
                *latest = later.unwrap_or_else(|| latest.clone());
                Fold::Count
            }
            _ => Fold::Ignore,
        };
        let (n, quorum) = (of.n(), of.quorums().quorum());
        let tally = Servers::new(n, quorum, request, self.known.clone(), fold);
        let latest = self.client.env.gather(of.members(), tally).await?;
        assert!(
            latest.is_at_least(&self.known),
            "what others know of a domain is not believed below what is known"
        );
        Ok(latest)
    }
}

impl<E: Env> Root<E> {
    /// The servers of the cluster as a quorum of the root domain knows them, by id; of each the latest record.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn servers(&self) -> Result<BTreeMap<ServerId, ServerRecord>, Unavailable> {
        self.servers_requiring(0).await
    }

    /// The servers of the cluster, as [`Root::servers`] lists them, by members of the root domain alone that require this level.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum of such members in time.
    pub(super) async fn servers_requiring(
        &self,
        required: u32,
    ) -> Result<BTreeMap<ServerId, ServerRecord>, Unavailable> {
        let mut known = BTreeMap::new();
        let list = async |at: &Visit| {
            let records = registered::list(&self.domain.client.env, at, required)
                .await?
                .into_values();
            records.for_each(|record| registered::merge(&mut known, record));
            Ok(())
        };
        self.domain.walk().to_the_end(list).await?;
        let is_own = |(id, record): (&ServerId, &ServerRecord)| *id == record.id;
        assert!(known.iter().all(is_own), "each has the record of its own");
        Ok(known)
    }

    /// Registers a start of a server with a quorum of the root domain, or asks whether that would be possible. Like a put it goes
    /// along the sequence: a registration that completed is transferred, or was repeated in the next configuration. A pending
    /// pointer is spread by registering once more, with it: that is all that servers answer whose own start is not confirmed.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn register(
        &self,
        step: Enrolment,
        record: &ServerRecord,
    ) -> Result<Registration, Unavailable> {
        Ok(self.enrol(step, record).await?.registration)
    }

    async fn enrol(&self, step: Enrolment, record: &ServerRecord) -> Result<Admitted, Unavailable> {
        let client = &self.domain.client;
        let mut at = Visit::new(&self.domain.start());
        let mut heard: BTreeMap<ServerId, ServerRecord> = BTreeMap::new();
        loop {
            match registered::register(&client.env, &at, step, record.clone()).await {
                Err(CallError::Moved) => {}
                Ok(admitted) if admitted.registration == Registration::Registered => {
                    let known = admitted.known.into_iter();
                    known.for_each(|known| registered::merge(&mut heard, *known));
                }
                Ok(outdated) => return Ok(outdated),
                Err(CallError::Unavailable(unavailable)) => return Err(unavailable),
            }
            at = match at.next() {
                None => {
                    return Ok(Admitted {
                        registration: Registration::Registered,
                        known: heard.remove(&record.id).map(Box::new),
                    });
                }
                Some(pointer) if pointer.is_final() => {
                    client.sequences().learn(&pointer.configuration);
                    Visit::new(&pointer.configuration)
                }
                Some(pointer) if at.has_closed(&pointer) => Visit::new(&pointer.configuration),
                Some(pointer) => Visit::closing(at.c(), &pointer),
            };
        }
    }

    /// Forgets a server, which no configuration names any more: a quorum of the root domain registers the last record of it, so
    /// that no later start of it is registered (`[X-27 forgotten-server]`). Its name stays taken. To be called again if it fails.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn forget(&self, server: &ServerRecord) -> Result<(), Unavailable> {
        let last = server.forgotten();
        assert!(last.is_forgotten() && last.id == server.id, "it is its own");
        // No start is later than the last one: where another record was registered, it is that of another forgetting, or that of
        // a later server in memory at the address, which has replaced this one (`[X-28 memory-replaced]`).
        self.register(Enrolment::Register, &last).await.map(drop)
    }

    /// Marks a server as one that is to go, or that is to stay: a quorum of the root domain remembers it, also when a later start of the
    /// server is registered (`[X-36 leaving-server]`). To be called again if it fails.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn mark_leaving(
        &self,
        server: &ServerRecord,
        is_leaving: bool,
    ) -> Result<(), Unavailable> {
        // A quorum keeps the levels and labels that it has.
        let marked = ServerRecord {
            levels: Levels::default(),
            labels: Labels::default(),
            ..server.with_leaving(is_leaving)
        };
        assert_eq!(
            marked.is_leaving(),
            is_leaving,
            "one more says the opposite"
        );
        self.make_known(&marked).await
    }

    /// Changes labels of a server: a quorum of the root domain remembers them, also when a later start of the server is registered
    /// (`[X-47 server-labels]`). An empty text removes a label. To be called again if it fails. Another operator may have changed one of them meanwhile:
    /// [`Root::servers`] says which change of it stayed.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn label(
        &self,
        server: &ServerRecord,
        changes: &[(&str, &str)],
    ) -> Result<(), Unavailable> {
        let labelled = ServerRecord {
            levels: Levels::default(),
            labels: server.labels.changed(changes.iter().copied()),
            ..server.clone()
        };
        self.make_known(&labelled).await
    }

    /// Makes the record known to a quorum of each configuration of the root domain on the way.
    async fn make_known(&self, record: &ServerRecord) -> Result<(), Unavailable> {
        let env = &self.domain.client.env;
        let tell = async |at: &Visit| registered::hand_on(env, at, record.clone()).await;
        self.domain.walk().to_the_end(tell).await.map(drop)
    }

    /// Takes a process from its directory to a confirmed start (decision record 0017). `record` says where the server is, and how
    /// far its log is (`[X-31 log-position]`); `write` makes durable what the directory is to say of its starts. Before anything is
    /// registered, `answers` says whether another process answers as this server at the address of a record
    /// (`[X-33 registered-address]`). A generation is raised above that of any other server at the address, which has ended
    /// (`[X-28 memory-replaced]`).
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start<W>(
        &self,
        starting: &mut StartPhase,
        record: &ServerRecord,
        mut write: impl FnMut(Starts) -> Result<(), W>,
        mut answers: impl AsyncFnMut(&ServerRecord) -> bool,
    ) -> Result<StartOutcome, StartError<W>> {
        let mut generation = record.generation;
        loop {
            let next = starting.next();
            let record = ServerRecord {
                generation,
                incarnation: next.incarnation,
                start: next.start,
                resumed: next.resumed,
                ..record.clone()
            };
            let admitted = self.enrol(next.step, &record).await;
            let admitted = admitted.map_err(StartError::Unavailable)?;
            match admitted.registration {
                Registration::Registered => {}
                Registration::Outdated { registered }
                    if generation.is_some_and(|own| own <= registered)
                        && registered + 1 < limits::NUMBER =>
                {
                    generation = Some(registered + 1);
                    continue;
                }
                Registration::Outdated { registered } => {
                    return Ok(StartOutcome::Outdated { registered });
                }
            }
            if let Some(known) = admitted.known {
                if let Some(behind) = behind(starting, &record, &known) {
                    return Ok(behind);
                }
                if answers(&known).await {
                    let address = known.address;
                    return Ok(StartOutcome::Occupied { address });
                }
            }
            match starting.agreed(self.domain.client.env.random()) {
                AgreedStep::GoOn(starts) => write(starts).map_err(StartError::Write)?,
                AgreedStep::Serve(starts) => {
                    assert_eq!(
                        (starts.incarnation, starts.unconfirmed),
                        (next.incarnation, None),
                        "a process serves under the start that it registered"
                    );
                    write(starts).map_err(StartError::Write)?;
                    return Ok(StartOutcome::Confirmed(Box::new(record)));
                }
            }
        }
    }
}

/// The log of the directory has not come as far as the last start that the directory knows of has registered: it is a copy of an
/// older state, from the same start (`[X-31 log-position]`).
fn behind(starting: &StartPhase, own: &ServerRecord, known: &ServerRecord) -> Option<StartOutcome> {
    assert_eq!(own.id, known.id, "it is the record of this server");
    let is_behind = known.incarnation == starting.last() && own.position < known.position;
    let counts = is_behind && starting.must_not_be_behind();
    let position = own.position.filter(|_| counts)?;
    Some(StartOutcome::Behind {
        position,
        registered: known.position?,
    })
}
