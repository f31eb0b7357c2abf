//! The subscriber: it handles spans, and passes events on.
//!
//! What a span costs is what is done here, and an operation has twenty of them. So there is one subscriber for them and no
//! registry with layers: spans that have not ended lie in slots that are used again with the room they have, a thread knows
//! which of them it is in, and a span that ends is copied into the ring.

use super::{Context, KEY, REMOTE_SPAN, REMOTE_TRACE, Shared};
use crate::record::{SpanId, SpanRecord, TraceId};
use crate::ring::EndedSpan;
use crate::span_attributes::SpanAttributes;
use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Metadata, Subscriber};
use tracing_core::span::Current;

/// Spans of ours come from crates whose names begin so.
const OURS: &str = "areo";

/// Hands spans to a recorder, and events to another subscriber.
pub(super) struct Watcher {
    shared: Arc<Shared>,
    events: Box<dyn Subscriber + Send + Sync>,
}

/// A span that has not ended.
struct Open {
    metadata: &'static Metadata<'static>,
    context: Context,
    parent: Option<SpanId>,
    local_root: bool,
    started: Instant,
    /// Number of handles to the span.
    handles: usize,
    said: SpanAttributes,
}

/// A span's id: its place in the slots, and whether it is watched. An unwatched operation has a span all the same, so
/// that its parts are not taken for operations of their own.
#[derive(Clone, Copy)]
struct Name {
    place: usize,
    watched: bool,
}

impl Name {
    /// Ids are never 0.
    fn id(self) -> Id {
        Id::from_u64((self.place as u64 + 1) << 1 | u64::from(self.watched))
    }

    fn of(id: &Id) -> Name {
        let number = id.into_u64();
        Name {
            place: (number >> 1) as usize - 1,
            watched: number & 1 == 1,
        }
    }
}

/// Spans that have not ended, by place.
#[derive(Default)]
pub(super) struct Slots {
    places: Vec<Open>,
    free: Vec<usize>,
    /// Room for what spans say.
    spare: Vec<SpanAttributes>,
}

impl Slots {
    fn of(&mut self, id: &Id) -> &mut Open {
        &mut self.places[Name::of(id).place]
    }

    /// Number of open spans.
    pub(super) fn open(&self) -> usize {
        self.places.len() - self.free.len()
    }

    fn insert(&mut self, open: Open, watched: bool) -> Id {
        let place = self.free.pop().unwrap_or(self.places.len());
        match self.places.get_mut(place) {
            Some(at) => *at = open,
            None => self.places.push(open),
        }
        Name { place, watched }.id()
    }

    fn remove(&mut self, id: &Id) {
        let mut said = std::mem::take(&mut self.of(id).said);
        said.clear();
        self.spare.push(said);
        self.free.push(Name::of(id).place);
    }
}

thread_local! {
    /// Spans that this thread is in, with their recorders, the innermost last.
    static ENTERED: RefCell<Vec<(usize, Id)>> = const { RefCell::new(Vec::new()) };
}

impl Watcher {
    pub(super) fn new(shared: Arc<Shared>, events: Box<dyn Subscriber + Send + Sync>) -> Watcher {
        Watcher { shared, events }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.shared
            .slots
            .lock()
            .expect("no holder of the lock panics")
    }

    /// The identity of this recorder.
    fn own(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    /// The span of this recorder that the thread is in.
    fn entered(&self) -> Option<Id> {
        ENTERED.with_borrow(|entered| {
            let (recorder, id) = entered.last()?;
            (*recorder == self.own()).then(|| id.clone())
        })
    }

    /// The context that tells others of a span; nothing of one that is not watched.
    pub(super) fn context(&self, id: &Id) -> Option<Context> {
        Name::of(id).watched.then(|| self.slots().of(id).context)
    }

    fn is_ours(metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with(OURS)
    }

    /// True for spans that are made only if a request came from a watched operation, and for their parts.
    fn is_served(metadata: &Metadata<'_>) -> bool {
        metadata.name().starts_with("server.") || metadata.name().starts_with("store.")
    }

    /// Remembers it. What is returned is to be exported, when no lock is held.
    fn close(&self, slots: &mut Slots, id: &Id) -> Option<SpanRecord> {
        let open = slots.of(id);
        let ended = EndedSpan {
            trace: open.context.trace,
            span: open.context.span,
            parent: open.parent,
            local_root: open.local_root,
            name: open.metadata.name(),
            start_ns: self.shared.at(open.started),
            duration_ns: open.started.elapsed().as_nanos() as u64,
        };
        let record = self.shared.remember(ended, &open.said);
        slots.remove(id);
        record
    }
}

impl Subscriber for Watcher {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if !metadata.is_span() {
            return self.events.register_callsite(metadata);
        }
        let possible = self.shared.samples() || Watcher::is_served(metadata);
        match Watcher::is_ours(metadata) && possible {
            true => Interest::sometimes(),
            false => Interest::never(),
        }
    }

    /// True if there is to be a span: it is a part of one that is watched, a server was asked by one that is, or an operation begins here. All others
    /// cost a look at their names.
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        if !metadata.is_span() {
            return self.events.enabled(metadata);
        }
        if let Some(id) = self.entered() {
            return Name::of(&id).watched;
        }
        let name = metadata.name();
        name.starts_with("server.") || name.starts_with("areo.")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let parent = match attributes.is_contextual() {
            true => self.entered(),
            false => attributes.parent().cloned(),
        };
        // A part is watched with the whole, what is done for others if they are; an operation of this process if it is taken.
        let watched = match &parent {
            Some(parent) => Name::of(parent).watched,
            None => Watcher::is_served(attributes.metadata()) || self.shared.takes(),
        };
        let mut slots = self.slots();
        let here = parent.map(|parent| slots.of(&parent).context);
        let mut said = slots.spare.pop().unwrap_or_default();
        // What is formatted here is ours, and traces nothing while the lock is held.
        let mut fields = Fields::new(&mut said, self.shared.keys);
        if watched {
            attributes.record(&mut fields);
        }
        let asked = here.or(fields.remote());
        let ids = &self.shared.ids;
        let open = Open {
            metadata: attributes.metadata(),
            context: Context {
                trace: asked.map_or_else(|| TraceId(ids.trace()), |asked| asked.trace),
                span: SpanId(ids.span()),
            },
            parent: asked.map(|asked| asked.span),
            local_root: here.is_none(),
            started: Instant::now(),
            handles: 1,
            said,
        };
        slots.insert(open, watched)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        if !Name::of(id).watched {
            return;
        }
        let mut slots = self.slots();
        values.record(&mut Fields::new(&mut slots.of(id).said, self.shared.keys));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn on_register_dispatch(&self, own: &Dispatch) {
        self.events.on_register_dispatch(own);
    }

    fn event_enabled(&self, event: &Event<'_>) -> bool {
        self.events.event_enabled(event)
    }

    fn event(&self, event: &Event<'_>) {
        self.events.event(event);
    }

    fn enter(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push((self.own(), id.clone())));
    }

    fn exit(&self, id: &Id) {
        let own = self.own();
        ENTERED.with_borrow_mut(|entered| {
            let is_it = |(recorder, entered): &(usize, Id)| *recorder == own && entered == id;
            if entered.last().is_some_and(is_it) {
                entered.pop();
            } else if let Some(at) = entered.iter().rposition(is_it) {
                entered.remove(at);
            }
        });
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.slots().of(id).handles += 1;
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut slots = self.slots();
        let open = slots.of(&id);
        open.handles -= 1;
        if open.handles > 0 {
            return false;
        }
        if !Name::of(&id).watched {
            slots.remove(&id);
            return true;
        }
        let record = self.close(&mut slots, &id);
        drop(slots);
        if let Some(record) = record {
            self.shared.export(&record);
        }
        true
    }

    fn current_span(&self) -> Current {
        match self.entered() {
            Some(id) => {
                let metadata = self.slots().of(&id).metadata;
                Current::new(id, metadata)
            }
            None => Current::none(),
        }
    }
}

/// Collects the attributes of a span.
struct Fields<'a> {
    keys: bool,
    trace: Option<u128>,
    span: Option<u64>,
    said: &'a mut SpanAttributes,
}

impl Fields<'_> {
    fn new(said: &mut SpanAttributes, keys: bool) -> Fields<'_> {
        Fields {
            keys,
            trace: None,
            span: None,
            said,
        }
    }

    fn remote(&self) -> Option<Context> {
        Some(Context {
            trace: TraceId(self.trace?),
            span: SpanId(self.span?),
        })
    }

    fn may_say(&self, field: &Field) -> bool {
        field.name() != KEY || self.keys
    }
}

impl Visit for Fields<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            REMOTE_SPAN => self.span = Some(value),
            name => self.said.number(name, value),
        }
    }

    /// Numbers as wide as this are identities.
    fn record_u128(&mut self, field: &Field, value: u128) {
        match field.name() {
            REMOTE_TRACE => self.trace = Some(value),
            name => self.said.identity(name, value),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.said.number(field.name(), value),
            Err(_) => self.said.debug(field.name(), &value),
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.said.bool(field.name(), value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if self.may_say(field) {
            self.said.text(field.name(), value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if self.may_say(field) {
            self.said.debug(field.name(), value);
        }
    }
}
