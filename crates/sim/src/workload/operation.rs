//! One operation of one task: what is asked of the system, and what the history is told of it.

use super::large::hash;
use super::{End, TASKS, Workload, lattice};
use crate::fault::Fault;
use crate::history::{History, Kind, Object, Operation, OperationEnd};
use crate::truth::domain_of;
use crate::world::call::SimEnv;
use areo_core::config::Configuration;
use areo_core::dap::{FoundVersion, Scope};
use areo_core::dsm::coverable::CoverableOutcome;
use areo_core::dsm::{self, Client};
use areo_core::element::Value;
use areo_core::env::Env;
use areo_core::error::WriteError;
use areo_core::hash::stable_hash;
use areo_core::manager::{DeleteError, Deletion};
use areo_core::message::ListRequest;
use areo_core::object::Name;
use areo_core::tag::Tag;
use bytes::Bytes;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// One operation of one task.
pub(super) struct One<'a> {
    pub(super) work: &'a Workload,
    pub(super) client: Client<SimEnv>,
    pub(super) c: Arc<Configuration>,
    pub(super) object: Object,
    pub(super) process: usize,
    /// Name in the history of this life of the process: a restarted process does not know what the earlier life knew.
    pub(super) who: usize,
    pub(super) task: usize,
}

impl One<'_> {
    /// A handle on the domain.
    pub(super) fn domain(&self) -> dsm::Domain<SimEnv> {
        self.client.domain(&self.c)
    }

    /// A handle for a read. In some seeds tasks read with a key that may do nothing else.
    fn reading(&self) -> dsm::Domain<SimEnv> {
        if self.task % TASKS < TASKS - self.work.shape.readers {
            return self.domain();
        }
        let env = self.client.env.only_reading();
        self.client.with(env).domain(&self.c)
    }

    pub(super) fn name(&self) -> Name {
        Name::user(&self.object.1).expect("keys are short")
    }

    pub(super) fn begin(&self, kind: Kind, value: Option<u64>) -> Operation {
        let work = self.work;
        let now = work.world.now();
        let what = (self.who, kind);
        let mut history = work.history.borrow_mut();
        let (operation, writes) = history.begin(now, what, &self.object, value);
        if writes > usize::from(self.c.descriptor().delta) + 1 {
            work.world.plan().note(Fault::ManyWriters);
        }
        work.running.borrow_mut()[self.task] = Some(operation.clone());
        operation
    }

    /// It ends now, with this much known.
    pub(super) fn ended(&self) -> OperationEnd {
        OperationEnd {
            at: self.work.world.now(),
            knows: Some(self.client.sequences().start(&self.c)),
        }
    }

    /// The operation ended: `write` says how, to the history. A version that is now complete is shown to the invariants.
    pub(super) fn end(&self, version: Option<Tag>, write: impl FnOnce(&mut History)) {
        let work = self.work;
        work.running.borrow_mut()[self.task] = None;
        write(&mut work.history.borrow_mut());
        if let Some(tag) = version {
            let domain = domain_of(&self.c.id());
            work.world.completed(domain, self.name().as_bytes(), tag);
        }
        let violation = work.history.borrow().violation().map(str::to_owned);
        if let Some(violation) = violation {
            work.world.violate(violation);
        }
    }

    pub(super) async fn get(&self) -> End {
        let is_regular = self.work.shape.regular && self.task.is_multiple_of(2);
        if is_regular && lattice::keeps_whole(&self.c) {
            return self.get_regularly().await;
        }
        let operation = self.begin(Kind::Read, None);
        let found = self.reading().read_large(&self.name()).await;
        let (now, ended) = (self.work.world.now(), self.ended());
        let Ok(found) = found else {
            self.end(None, |history| history.end_failed(now, &operation));
            return End::TimedOut;
        };
        let hash = hash(&found);
        self.end(Some(found.tag), |history| {
            history.end_read(&ended, &operation, self.shown(found.tag), hash);
        });
        End::Done
    }

    async fn get_regularly(&self) -> End {
        let operation = self.begin(Kind::RegularRead, None);
        let (domain, name) = (self.domain(), self.name());
        let found = domain.read_regular(&name, Scope::Whole).await;
        let (now, ended) = (self.work.world.now(), self.ended());
        let Ok(found) = found else {
            self.end(None, |history| history.end_failed(now, &operation));
            return End::TimedOut;
        };
        let hash = hash(&found);
        self.end(None, |history| {
            history.end_read(&ended, &operation, self.shown(found.tag), hash);
        });
        End::Done
    }

    pub(super) async fn stat(&self) -> End {
        let operation = self.begin(Kind::Read, None);
        let found = self.reading().stat(&self.name()).await;
        let (now, ended) = (self.work.world.now(), self.ended());
        let Ok(found) = found else {
            self.end(None, |history| history.end_failed(now, &operation));
            return End::TimedOut;
        };
        let live = found.value.is_some_and(|value| !value.deleted);
        self.end(Some(found.tag), |history| {
            history.end_stat(&ended, &operation, self.shown(found.tag), live);
        });
        End::Done
    }

    pub(super) async fn put(&self) -> End {
        self.put_value(self.any_value()).await
    }

    /// `value`: with its hash.
    pub(super) async fn put_value(&self, (value, hash): (Value, u64)) -> End {
        let operation = self.begin(Kind::Write, Some(hash));
        let written = self.domain().put(&self.name(), &value).await;
        self.end_write(&operation, &written)
    }

    /// A write on the newest version that was shown to any client, or on one of those before it: with one winner, or coverable.
    pub(super) async fn cover(&self) -> End {
        let random = self.work.world.random();
        let choice = match random.chance(250) {
            true => random.index(4),
            false => 0,
        };
        let base = self.work.history.borrow().version(&self.object, choice);
        // Weak unless the client knows before that it is not.
        if self
            .client
            .sequences()
            .start(&self.c)
            .dap()
            .is_conditional()
        {
            return self.decide_on(base).await;
        }
        let (value, hashed) = self.any_value();
        let operation = self.begin(Kind::CvrWrite(base), Some(hashed));
        let written = self.domain().put_if(&self.name(), &value, Some(base)).await;
        let (ended, plan) = (self.ended(), self.work.world.plan());
        match written {
            Ok(CoverableOutcome::Changed(tag)) => {
                let domain = domain_of(&self.c.id());
                let name = self.name();
                let fences = self.work.world.fences(domain, name.as_bytes());
                // On its way it may have become a proposal, whose number is only larger.
                let fences = (self.work.shape.becoming_per_mille == 0).then_some(&fences);
                self.end(Some(tag), |history| {
                    if history.end_covered(&ended, &operation, tag, fences) {
                        plan.note(Fault::TwoWinners);
                    }
                });
                End::Done
            }
            Ok(CoverableOutcome::Unchanged(found)) => self.end_uncovered(&operation, &found),
            Err(error) => self.end_write(&operation, &Err(error)),
        }
    }

    /// The operation did not happen on its condition, and read this.
    pub(super) fn end_uncovered(&self, operation: &Operation, found: &FoundVersion) -> End {
        let (ended, now) = (self.ended(), self.work.world.now());
        self.work.world.plan().note(Fault::NotCovered);
        let shown = self.shown(found.tag);
        self.end(Some(found.tag), |history| match shown == found.tag {
            true => history.end_uncovered(&ended, operation, shown, hash(found)),
            // It lost against the tombstone of a sweep.
            false => history.end_failed(now, operation),
        });
        End::Done
    }

    /// A value that nobody else writes, and its hash.
    pub(super) fn any_value(&self) -> (Value, u64) {
        let random = self.work.world.random();
        let length = match random.chance(self.work.shape.large_per_mille) {
            true => 100 + random.index(3000),
            false => 24 + random.index(40),
        };
        let text = format!(
            "{:->length$}",
            format!("{}:{:016x}", self.task, random.draw())
        );
        let hash = stable_hash(text.as_bytes());
        (Value::new(Bytes::new(), text.into()), hash)
    }

    pub(super) async fn delete(&self) -> End {
        let operation = self.begin(Kind::Delete, None);
        let deleted = self.domain().delete(&self.name(), Bytes::new()).await;
        let (now, ended) = (self.work.world.now(), self.ended());
        match deleted {
            Ok(Deletion::Deleted(tag)) => self.end_write(&operation, &Ok(tag)),
            Ok(Deletion::NotFound) => {
                self.end(None, |history| history.end_nothing(&ended, &operation));
                End::Done
            }
            Err(DeleteError::Write(error)) => self.end_write(&operation, &Err(error)),
            Err(DeleteError::Read(failed)) => {
                if failed.is_not_conditional() {
                    self.work.world.plan().note(Fault::NotConditional);
                }
                self.end(None, |history| history.end_failed(now, &operation));
                End::TimedOut
            }
        }
    }

    pub(super) fn end_write(
        &self,
        operation: &Operation,
        written: &Result<Tag, WriteError>,
    ) -> End {
        let (now, ended) = (self.work.world.now(), self.ended());
        match written {
            Ok(tag) => {
                self.end(Some(*tag), |history| {
                    history.end_write(&ended, operation, *tag);
                });
                return End::Done;
            }
            Err(WriteError::Unknown(_)) => {
                self.end(None, |history| history.end_unknown(now, operation));
            }
            Err(WriteError::NotApplied(failed)) => {
                if failed.is_not_conditional() {
                    self.work.world.plan().note(Fault::NotConditional);
                }
                self.end(None, |history| history.end_failed(now, operation));
            }
        }
        End::TimedOut
    }

    pub(super) async fn list(&self) -> End {
        let domain = self.object.0;
        let listing = self.work.history.borrow().begin_listing(domain);
        let request = ListRequest::new(areo_core::object::Kind::User, "key-");
        let page = self.domain().list_objects(&request).await;
        let Ok(page) = page else {
            return End::TimedOut;
        };
        self.end(None, |history| history.end_listing(&listing, &page.entries));
        End::Done
    }

    /// A new domain, whose name others may want at the same time.
    pub(super) async fn create(&self) -> End {
        let name = format!("race-{}", self.work.started() / 50);
        match self.work.create(&self.client, &name).await {
            Some(_) => End::Done,
            None => End::TimedOut,
        }
    }
}

impl Workload {
    /// The operation, which its client may give up in the middle: then what became of it cannot be known.
    pub(super) async fn unless_cancelled(
        &self,
        env: &SimEnv,
        task: usize,
        mut operation: Pin<Box<impl Future<Output = End>>>,
    ) -> End {
        if !self.world.plan().draws(Fault::Cancelled) {
            return operation.await;
        }
        let most = self.shape.timeout.as_micros() as u64;
        // Most operations are short.
        let time = self
            .world
            .random()
            .between(1, most >> self.world.random().below(10));
        let mut given_up = pin!(env.sleep(Duration::from_micros(time)));
        let ended = poll_fn(|context| {
            if let Poll::Ready(end) = operation.as_mut().poll(context) {
                return Poll::Ready(Some(end));
            }
            given_up.as_mut().poll(context).map(|()| None)
        });
        if let Some(end) = ended.await {
            return end;
        }
        self.world.plan().note(Fault::Cancelled);
        self.world
            .remark(&format!("task {task} gives its operation up"));
        drop(operation);
        if let Some(operation) = self.running.borrow_mut()[task].take() {
            let now = self.world.now();
            self.history.borrow_mut().end_unknown(now, &operation);
        }
        End::TimedOut
    }
}
