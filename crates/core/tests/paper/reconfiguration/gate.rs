//! A reconfigurer that comes as far as its k-th quorum call, and no further until the test releases it, or dies there.

use crate::world::{WorldEnv, like_the_inner_world};
use areo_core::config::Members;
use areo_core::env::Env;
use areo_core::error::Unavailable;
use areo_core::tally::Tally;
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

/// The world of a client whose quorum calls are counted and can be stopped.
#[derive(Clone)]
pub struct GatedEnv {
    env: WorldEnv,
    gate: Rc<Gate>,
}

/// Counts quorum calls, and holds back those beyond its limit.
pub struct Gate {
    begun: Cell<usize>,
    limit: Cell<usize>,
    stopped: Cell<bool>,
}

impl Gate {
    /// Lets `limit` quorum calls pass.
    pub fn after(limit: usize) -> Rc<Gate> {
        Rc::new(Gate {
            begun: Cell::new(0),
            limit: Cell::new(limit),
            stopped: Cell::new(false),
        })
    }

    /// True if a call is held back.
    pub fn is_reached(&self) -> bool {
        self.stopped.get()
    }

    /// Lets `more` further calls pass.
    pub fn go_on(&self, more: usize) {
        self.limit.set(self.limit.get() + more);
        self.stopped.set(false);
    }

    /// Everything passes from now on.
    pub fn open(&self) {
        self.limit.set(usize::MAX);
    }
}

impl GatedEnv {
    pub fn new(env: WorldEnv, gate: &Rc<Gate>) -> GatedEnv {
        let gate = gate.clone();
        GatedEnv { env, gate }
    }
}

impl Env for GatedEnv {
    fn gather<T: Tally + 'static>(
        &self,
        to: &Members,
        tally: T,
    ) -> impl Future<Output = Result<T::Output, Unavailable>> {
        let (gate, call) = (self.gate.clone(), self.env.gather(to, tally));
        async move {
            let place = gate.begun.get();
            gate.begun.set(place + 1);
            poll_fn(|_| {
                if place < gate.limit.get() {
                    return Poll::Ready(());
                }
                gate.stopped.set(true);
                Poll::Pending
            })
            .await;
            call.await
        }
    }

    like_the_inner_world!();
}

/// Runs a future until it has begun its last call that passes: its requests are sent, and it never hears an answer. `None`:
/// it died. A limit of 0 is a reconfigurer that does nothing.
pub async fn until_death<F: Future>(gate: Rc<Gate>, future: F) -> Option<F::Output> {
    let mut future: Option<Pin<Box<F>>> = Some(Box::pin(future));
    poll_fn(move |context| {
        if gate.begun.get() >= gate.limit.get() {
            future = None;
        }
        match &mut future {
            Some(future) => future.as_mut().poll(context).map(Some),
            None => Poll::Ready(None),
        }
    })
    .await
}
