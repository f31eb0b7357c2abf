use super::*;
use std::fmt::Debug;
use std::future::{pending, ready};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The first text that a span records once it is open.
#[derive(Clone, Default)]
struct SpanText(Arc<OnceLock<String>>);

impl Visit for SpanText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.get_or_init(|| format!("{field} = {value:?}"));
    }
}

impl Subscriber for SpanText {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The text that a span records of work that begins and is dropped if it does not end at once.
fn said_of(work: impl Future<Output = Result<(), CallError>>) -> Option<String> {
    let said = SpanText::default();
    tracing::subscriber::with_default(said.clone(), || {
        let work = async { watch!(of_phase!(PHASE1), work) };
        let mut context = Context::from_waker(Waker::noop());
        let _ended_or_not = pin!(work).poll(&mut context);
    });
    said.0.get().cloned()
}

#[test]
fn a_span_says_how_its_work_ended() {
    assert_eq!(said_of(ready(Ok(()))), None);
    let moved = said_of(ready(Err(CallError::Moved)));
    assert_eq!(moved.as_deref(), Some("error.type = \"moved\""));
}

#[test]
fn work_that_nobody_waits_for_any_more_was_cancelled() {
    let given_up = said_of(pending());
    assert_eq!(given_up.as_deref(), Some("error.type = \"cancelled\""));
}
