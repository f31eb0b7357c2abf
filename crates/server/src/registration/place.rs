//! The place of a server in its cluster, which one process has: a start looks whether another one has it, and the process that
//! serves has it confirmed again and again (decision records 0053 and 0054).

use std::rc::Rc;
use std::time::{Duration, Instant};

use areo_core::manager::{Registration, StartOutcome};
use areo_core::message::{Enrolment, Labels, Levels, Program, ServerRecord};
use areo_core::starts::StartPhase;
use areo_core::timing::{ADDRESS_PATIENCE, RENEWAL};
use areo_net::Listener;
use areo_net::presence::{Presence, presence};
use areo_node::may_be_replaced;
use areo_store::Directory;
use tokio::time::timeout;

use super::{ATTEMPT, PAUSE, Registrar};
use crate::address;
use crate::admin::Health;
use crate::error::ServeError;
use crate::identity::Identity;
use crate::run::Options;
use crate::service::NodeService;
use crate::worker::Worker;

/// The wait before an address that gave no answer is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(300);
/// The wait before an address at which the server answered is asked once more: a process that has just begun to stop says so
/// by then.
const CERTAINTY: Duration = Duration::from_secs(1);
/// The longest time for which a stopping server tries to register the position of its log.
const LAST_WORD: Duration = Duration::from_millis(500);
/// The longest time for which a stopping server answers requests that it has received.
const DRAIN: Duration = Duration::from_secs(5);

/// Why a start is not confirmed, if it is not.
pub(crate) fn check(
    started: StartOutcome,
    directory: &Directory,
    incarnation: u64,
) -> Result<(), ServeError> {
    let path = directory.path().into();
    Err(match started {
        StartOutcome::Confirmed(_) => return Ok(()),
        StartOutcome::Outdated { registered } => ServeError::Outdated {
            path,
            incarnation,
            registered,
        },
        StartOutcome::Occupied { address } => ServeError::Occupied { path, address },
        StartOutcome::Behind {
            position,
            registered,
        } => ServeError::Behind {
            path,
            position,
            registered,
        },
    })
}

/// Refuses a program below the level that the records of the directory require (`[X-46 cluster-level]`). Where all servers are started with such a
/// program, most of them end before the last one finds a quorum that refuses its start.
pub(crate) fn check_program(known: &[ServerRecord], program: &Program) -> Result<(), ServeError> {
    if program.level < Levels::of(known).required {
        let program = program.clone();
        return Err(ServeError::OldProgram { program });
    }
    Ok(())
}

/// Answers the requests that came before the stop, and registers the position of the log.
pub(crate) async fn finish(
    worker: &Rc<Worker>,
    listener: &Listener<NodeService>,
    registrar: Option<&Registrar>,
) {
    // Others that stop, too, still answer; and what is written until all is answered is registered if they do then.
    if let Some(registrar) = registrar {
        registrar.say_last(worker).await;
    }
    worker.drain();
    listener.drain(DRAIN).await;
    if let Some(registrar) = registrar {
        registrar.say_last(worker).await;
    }
}

/// The record of this process for the others; it may have drawn its id itself.
pub(crate) fn record_of(identity: &Identity, is_drawn: bool, options: &Options) -> ServerRecord {
    let address = address::advertised(options);
    ServerRecord {
        id: identity.server,
        incarnation: StartPhase::new(identity.starts).incarnation(),
        start: 0,
        resumed: false,
        name: identity.name.clone(),
        address: address.to_owned(),
        admin: address::advertised_admin(address, &options.admin),
        generation: may_be_replaced(identity.memory, is_drawn).then_some(0),
        leaving: 0,
        position: None,
        program: options.program.clone(),
        levels: Levels::default(),
        labels: Labels::default(),
    }
}

impl Registrar {
    /// True if another process answers as this server at the address of this record (`[X-33 registered-address]`). A process that is
    /// stopping is waited for.
    pub(super) async fn is_occupied(&self, identity: &Identity, known: &ServerRecord) -> bool {
        let who = (identity.cluster, identity.server.0);
        let address = &known.address;
        let mut until = Instant::now() + ADDRESS_PATIENCE;
        let mut has_answered = false;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match presence(address, who, self.network().tls(), left).await {
                Presence::Absent => return false,
                Presence::Answers { process, .. } if process == Some(self.process) => return false,
                Presence::Answers {
                    is_stopping: true, ..
                } => {
                    tracing::info!(%address, "waiting for the process that stops there");
                    until = Instant::now() + ADDRESS_PATIENCE;
                    has_answered = false;
                    tokio::time::sleep(ASK_AGAIN).await;
                }
                Presence::Answers { .. } if has_answered => return true,
                Presence::Answers { .. } => {
                    has_answered = true;
                    until = until.max(Instant::now() + ADDRESS_PATIENCE);
                    tokio::time::sleep(CERTAINTY).await;
                }
                Presence::Silent if Instant::now() >= until => {
                    tracing::warn!(
                        %address,
                        "no answer where this server was registered: its last process counts as dead"
                    );
                    return false;
                }
                Presence::Silent => tokio::time::sleep(ASK_AGAIN).await,
            }
        }
    }

    /// Has the start of the process that serves confirmed again every few seconds, with how far its log has come, and at once when
    /// it has stood still (`[X-32 stood-still]`). Returns when a later start is registered: which.
    pub(crate) async fn hold(&self, worker: &Rc<Worker>, health: &Health) -> u64 {
        loop {
            // Either way it is confirmed once more.
            let _ = timeout(RENEWAL, worker.suspended()).await;
            loop {
                let (standstills, is_suspended) = (worker.standstills(), !worker.is_serving());
                if is_suspended {
                    health.set_ready(false);
                    tracing::warn!(
                        "answering for no object until this start is confirmed again: this process stood still, or another start was \
                         heard of"
                    );
                }
                match self.renew(worker, ATTEMPT).await {
                    Some(Registration::Outdated { registered }) => return registered,
                    Some(Registration::Registered) if is_suspended => worker.serve(standstills),
                    Some(Registration::Registered) => {}
                    None => tokio::time::sleep(PAUSE).await,
                }
                if worker.is_serving() {
                    if is_suspended {
                        health.set_ready(worker.is_ready());
                        tracing::info!("serving again");
                    }
                    break;
                }
            }
        }
    }

    /// Tells the root domain how far the log of a server that stops has come, if there is something to tell and a quorum answers soon.
    pub(crate) async fn say_last(&self, worker: &Rc<Worker>) {
        if worker.is_serving() && worker.position() > self.told.get() {
            // Without a quorum others do not learn it: decision record 0054.
            let _ = timeout(LAST_WORD, self.renew(worker, LAST_WORD)).await;
        }
    }

    /// `None`: no quorum answered in time.
    async fn renew(&self, worker: &Rc<Worker>, attempt: Duration) -> Option<Registration> {
        let confirmed = self.confirmed.get()?;
        let record = ServerRecord {
            position: worker.position().max(self.told.get()),
            ..confirmed.clone()
        };
        let root = self.access.within(attempt);
        let registered = root.register(Enrolment::Register, &record).await;
        match registered {
            Ok(Registration::Registered) => self.told.set(record.position),
            Ok(Registration::Outdated { .. }) => {}
            Err(ref unavailable) => {
                tracing::debug!(%unavailable, "the start is not confirmed again");
            }
        }
        registered.ok()
    }
}
