//! Histories: events joined to operations, objects found, names made small.

use crate::event::{Event, EventKind, Kind, Text};
use crate::{HistoryError, Problem, Version};
use std::collections::HashMap;
use std::io::BufRead;

/// A text of the history, as a number. Equal names are equal texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(u32);

/// The time of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Place in the one order of all events: by time, then by line. No two events share it.
    pub rank: u32,
    /// The time, in nanoseconds.
    pub t_ns: u64,
}

/// The outcome of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// It did not take effect.
    Fail,
    /// Not known, or the history ends before it did.
    Unknown,
}

/// One entry of a client's configuration sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownConfiguration {
    /// Its place in the sequence.
    pub index: u64,
    /// The name of the configuration.
    pub configuration: Name,
    /// True if it was known as final.
    pub r#final: bool,
}

/// One operation: its invocation and its end.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The client that called it.
    pub client: Name,
    /// Its number, unique per client.
    pub op: u64,
    /// The kind of the operation.
    pub kind: Kind,
    /// Its object, an index of [`History::objects`].
    pub object: u32,
    /// The time of the call.
    pub invoked: Moment,
    /// The time of its end; nothing if it ended unknown or not at all.
    pub ended: Option<Moment>,
    pub outcome: Outcome,
    /// The value to be written; nothing for reads and deletes.
    pub input: Option<Name>,
    /// The value that came back; nothing for absent.
    pub output: Option<Name>,
    /// The version written or returned.
    pub version: Option<Version>,
    /// The version that a coverable or conditional write is for.
    pub based_on: Option<Version>,
    /// The file that the block belongs to.
    pub file: Option<Name>,
    /// The next block in the value written, or else returned.
    pub next: Option<Name>,
    /// The configurations that the client knew at the end, ascending by index.
    pub sequence: Option<Box<[KnownConfiguration]>>,
}

/// The effect of an operation on its object, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It returned this value; nothing is absent.
    Reads(Option<Name>),
    /// It returned a version without its value.
    Sees,
    /// It wrote this value, nothing being absent, or may have when the outcome is unknown.
    Writes(Option<Name>),
    /// It neither wrote nor saw anything.
    Nothing,
}

impl Operation {
    pub(crate) fn effect(&self) -> Effect {
        let refused = matches!(self.kind, Kind::CvrWrite | Kind::ConditionalWrite);
        match (self.kind, self.outcome) {
            (Kind::Read, Outcome::Ok) => Effect::Reads(self.output),
            // A regular read binds no other operation: it is judged apart.
            (Kind::Reconfig | Kind::Read | Kind::RegularRead, _) => Effect::Nothing,
            (_, Outcome::Ok | Outcome::Unknown) => Effect::Writes(self.input),
            (_, Outcome::Fail) if refused && self.output.is_some() => Effect::Reads(self.output),
            (_, Outcome::Fail) if refused && self.version.is_some() => Effect::Sees,
            (_, Outcome::Fail) => Effect::Nothing,
        }
    }

    pub(crate) fn writes(&self) -> bool {
        matches!(self.effect(), Effect::Writes(_))
    }

    /// The rank of the end; never for an operation of unknown outcome.
    pub(crate) fn end(&self) -> u32 {
        self.ended.map_or(u32::MAX, |moment| moment.rank)
    }
}

/// An object: its domain and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Object {
    pub domain: Name,
    /// The key; empty for the reconfigurations of the domain.
    pub key: Name,
}

/// Everything that clients did and saw.
#[derive(Debug, Clone, Default)]
pub struct History {
    names: Names,
    objects: Vec<Object>,
    operations: Vec<Operation>,
    events: usize,
}

impl History {
    /// Reads JSON lines, one [`Event`] each, to the end. Empty lines are skipped. Lines need not be in the order of
    /// time (several recordings can be joined), but the end of an operation comes after its invocation.
    ///
    /// # Errors
    /// The first line that cannot be understood or contradicts an earlier one.
    pub fn read(mut input: impl BufRead) -> Result<History, HistoryError> {
        let mut builder = Builder::default();
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let at = |problem| HistoryError {
                line: number,
                problem,
            };
            let length = input
                .read_until(b'\n', &mut line)
                .map_err(|e| at(e.into()))?;
            if length == 0 {
                break;
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            let event: Event<'_> = serde_json::from_slice(&line).map_err(|e| at(e.into()))?;
            builder.add(&event).map_err(at)?;
        }
        Ok(builder.finish())
    }

    /// Joins events that are in memory already; the same rules as [`History::read`], the line being the place from 1.
    ///
    /// # Errors
    /// The first event that contradicts an earlier one.
    pub fn from_events<'a>(
        events: impl IntoIterator<Item = Event<'a>>,
    ) -> Result<History, HistoryError> {
        let mut builder = Builder::default();
        for (place, event) in events.into_iter().enumerate() {
            builder.add(&event).map_err(|problem| HistoryError {
                line: place as u64 + 1,
                problem,
            })?;
        }
        Ok(builder.finish())
    }

    /// The text of a name.
    ///
    /// # Panics
    /// If the name is of another history.
    pub fn text(&self, name: Name) -> &str {
        &self.names.texts[name.0 as usize]
    }

    /// All operations, in the order of the lines of their invocations.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// All objects, in the order in which they first occur.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// The number of events that were read.
    pub fn events(&self) -> usize {
        self.events
    }
}

#[derive(Debug, Clone, Default)]
struct Names {
    texts: Vec<Box<str>>,
    by_text: HashMap<Box<str>, Name>,
}

impl Names {
    fn intern(&mut self, text: &Text<'_>) -> Name {
        if let Some(&name) = self.by_text.get(text.0.as_ref()) {
            return name;
        }
        let name =
            Name(u32::try_from(self.texts.len()).expect("a history has fewer than 2^32 names"));
        self.texts.push(text.0.as_ref().into());
        self.by_text.insert(text.0.as_ref().into(), name);
        name
    }
}

#[derive(Default)]
struct Builder {
    history: History,
    objects: HashMap<Object, u32>,
    operations: HashMap<(Name, u64), u32>,
    /// Time and operation of every event, in the order of lines; the flag says whether it is the end.
    moments: Vec<(u64, u32, bool)>,
    closed: Vec<bool>,
}

impl Builder {
    fn add(&mut self, event: &Event<'_>) -> Result<(), Problem> {
        let client = self.history.names.intern(&event.client);
        let known = self.operations.get(&(client, event.op)).copied();
        let index = match (event.event, known) {
            (EventKind::Invoke, Some(_)) => return Err(Problem::InvokedTwice),
            (EventKind::Invoke, None) => self.invoke(client, event)?,
            (_, None) => return Err(Problem::NeverInvoked),
            (_, Some(index)) => {
                self.end(index, event)?;
                index
            }
        };
        self.moments
            .push((event.t, index, event.event != EventKind::Invoke));
        Ok(())
    }

    fn invoke(&mut self, client: Name, event: &Event<'_>) -> Result<u32, Problem> {
        let names = &mut self.history.names;
        let writes_value = match event.kind {
            Kind::Read | Kind::RegularRead | Kind::Delete => false,
            // Without one it deletes the version that it is for.
            Kind::ConditionalWrite => event.value.is_some() || event.based_on.is_none(),
            Kind::Write | Kind::CvrWrite | Kind::Reconfig => true,
        };
        if writes_value != event.value.is_some() {
            return Err(Problem::ValueOfInvocation { kind: event.kind });
        }
        let object = Object {
            domain: names.intern(&event.domain),
            key: names.intern(&event.key),
        };
        let objects = &mut self.history.objects;
        let object = *self.objects.entry(object).or_insert_with(|| {
            objects.push(object);
            objects.len() as u32 - 1
        });
        let index = u32::try_from(self.history.operations.len())
            .expect("a history has fewer than 2^31 operations");
        let moment = Moment {
            rank: 0,
            t_ns: event.t,
        };
        self.history.operations.push(Operation {
            client,
            op: event.op,
            kind: event.kind,
            object,
            invoked: moment,
            ended: None,
            outcome: Outcome::Unknown,
            input: event.value.as_ref().map(|value| names.intern(value)),
            output: None,
            version: event.version,
            based_on: event.based_on,
            file: event.file.as_ref().map(|file| names.intern(file)),
            next: event.next.as_ref().map(|next| names.intern(next)),
            sequence: None,
        });
        self.operations.insert((client, event.op), index);
        self.closed.push(false);
        Ok(index)
    }

    fn end(&mut self, index: u32, event: &Event<'_>) -> Result<(), Problem> {
        let operation = &mut self.history.operations[index as usize];
        let object = self.history.objects[operation.object as usize];
        let names = &mut self.history.names;
        let same_object =
            names.intern(&event.domain) == object.domain && names.intern(&event.key) == object.key;
        if std::mem::replace(&mut self.closed[index as usize], true) {
            return Err(Problem::EndedTwice);
        }
        if operation.kind != event.kind || !same_object {
            return Err(Problem::OtherOperation);
        }
        if event.t < operation.invoked.t_ns {
            return Err(Problem::EndsBeforeInvoked);
        }
        let value = event.value.as_ref().map(|value| names.intern(value));
        let version = event.version.or(operation.version);
        operation.outcome = match event.event {
            EventKind::Ok => Outcome::Ok,
            EventKind::Fail => Outcome::Fail,
            EventKind::Unknown | EventKind::Invoke => Outcome::Unknown,
        };
        let succeeded = operation.outcome == Outcome::Ok;
        let needs_version = matches!(
            operation.kind,
            Kind::CvrWrite | Kind::ConditionalWrite | Kind::Reconfig
        );
        if succeeded && needs_version && version.is_none() {
            return Err(Problem::NoVersion { kind: event.kind });
        }
        // A reconfiguration may report that another proposal was installed.
        let keeps_value = !matches!(
            operation.kind,
            Kind::Read | Kind::RegularRead | Kind::Reconfig
        );
        if succeeded && keeps_value && value.is_some() && value != operation.input {
            return Err(Problem::OtherValue);
        }
        operation.output = value;
        operation.version = version;
        operation.based_on = event.based_on.or(operation.based_on);
        if operation.kind == Kind::Read {
            operation.next = event.next.as_ref().map(|next| names.intern(next));
        }
        operation.file = operation
            .file
            .or(event.file.as_ref().map(|file| names.intern(file)));
        operation.sequence = event.sequence.as_ref().map(|sequence| {
            let known = sequence.iter().map(|known| KnownConfiguration {
                index: known.index,
                configuration: names.intern(&known.configuration),
                r#final: known.r#final,
            });
            known.collect()
        });
        Ok(())
    }

    fn finish(mut self) -> History {
        // Stable: events of one instant keep the order of their lines.
        self.moments.sort_by_key(|&(t, _, _)| t);
        assert!(u32::try_from(self.moments.len()).is_ok_and(|len| len < u32::MAX));
        for (rank, &(t_ns, index, is_end)) in (0_u32..).zip(&self.moments) {
            let operation = &mut self.history.operations[index as usize];
            let moment = Moment { rank, t_ns };
            match is_end {
                false => operation.invoked = moment,
                true if operation.outcome != Outcome::Unknown => operation.ended = Some(moment),
                true => {}
            }
        }
        self.history.events = self.moments.len();
        self.history
    }
}
