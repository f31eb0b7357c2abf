//! Asking the next configuration before the last answer of this one is in.
//!
//! While a domain is being reconfigured every operation asks its last final configuration and the pending one behind it.
//! Which one comes behind is known from the operation before; so both are asked at once. Nothing rests on the guess: what
//! was asked ahead counts only if this configuration's servers say that it comes next. Neither does the order of the two
//! answers matter: a version that completed before the operation began is in one of the two configurations by then. One
//! that is transferred meanwhile is still in the first; or it is withheld there with a final pointer, and then the second
//! one may have been asked before it had it, and is asked again.

use crate::config::Configuration;
use crate::error::Failed;
use crate::gather::Visit;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

/// A call that is under way at a configuration that the operation has not come to yet.
pub(super) struct Ahead<'a, T> {
    at: Visit,
    state: State<'a, T>,
}

enum State<'a, T> {
    Asked(Pin<Box<dyn Future<Output = Result<T, Failed>> + 'a>>),
    Answered(Result<T, Failed>),
}

impl<'a, T> Ahead<'a, T> {
    /// Asks, as soon as somebody waits.
    pub(super) fn ask<F: Future<Output = Result<T, Failed>> + 'a>(
        c: &Arc<Configuration>,
        call: impl FnOnce(Visit) -> F,
    ) -> Ahead<'a, T> {
        let at = Visit::new(c);
        Ahead {
            state: State::Asked(Box::pin(call(at.clone()))),
            at,
        }
    }

    /// The call, if it is one of this configuration.
    pub(super) fn at(self, c: &Arc<Configuration>) -> Option<Ahead<'a, T>> {
        (self.at.c() == c).then_some(self)
    }

    fn poll(&mut self, context: &mut Context<'_>) {
        if let State::Asked(call) = &mut self.state
            && let Poll::Ready(answer) = call.as_mut().poll(context)
        {
            self.state = State::Answered(answer);
        }
    }

    /// Its answer, and the visit that heard it.
    pub(super) async fn answer(self) -> (Visit, Result<T, Failed>) {
        let answer = match self.state {
            State::Asked(call) => call.await,
            State::Answered(answer) => answer,
        };
        (self.at, answer)
    }
}

/// Waits for the call; what is asked ahead gets on meanwhile.
pub(super) async fn beside<O, T>(
    call: impl Future<Output = O>,
    ahead: &mut Option<Ahead<'_, T>>,
) -> O {
    let mut call = pin!(call);
    poll_fn(|context| {
        // First what the operation is waiting for: its requests leave first.
        let answer = call.as_mut().poll(context);
        if answer.is_pending()
            && let Some(ahead) = ahead
        {
            ahead.poll(context);
        }
        answer
    })
    .await
}
