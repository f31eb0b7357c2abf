//! The results that clients saw: written down as JSON lines, one event each, and judged as it is written by the order of tags
//! (oracle O1 of `docs/spec` section 8). A version's tag places its operation; that order must respect real time and
//! every read must return the value that was written under its tag.

use areo_core::config::Configuration;
use areo_core::instant::Instant;
use areo_core::message::ListEntry;
use areo_core::tag::Tag;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};
use std::sync::Arc;

mod changes;

pub(crate) use changes::Change;

mod blocks;

pub(crate) use blocks::BlockVersion;

mod kind;

pub(crate) use kind::Kind;

/// The end of an operation that saw something.
#[derive(Clone)]
pub(crate) struct OperationEnd {
    pub(crate) at: Instant,
    /// The last final configuration of its domain that its client knows by now.
    pub(crate) knows: Option<Arc<Configuration>>,
}

impl From<Instant> for OperationEnd {
    /// Nothing is said about configurations.
    fn from(at: Instant) -> OperationEnd {
        OperationEnd { at, knows: None }
    }
}

/// An object: the domain's number and the key.
pub(crate) type Object = (usize, String);

/// An operation under way.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    id: u64,
    client: usize,
    pub(crate) kind: Kind,
    object: Object,
    /// Hash of the value of a write.
    value: Option<u64>,
    /// The largest tag of all operations that had ended when it began.
    floor: Tag,
}

/// A listing under way: the floors of the objects of its domain when it began.
pub(crate) struct Listing {
    domain: usize,
    floors: BTreeMap<String, Tag>,
}

#[derive(Default)]
struct Register {
    /// The largest tag of any operation that has ended.
    completed: Tag,
    /// The value of each tag that somebody reported; `None`: a tombstone.
    versions: BTreeMap<Tag, Option<u64>>,
    /// Values whose writes have begun.
    begun: BTreeSet<u64>,
    writes_open: usize,
    /// Deletions that have begun and of which no version is known.
    deletes_open: usize,
    /// The largest tag of a deletion that ended.
    deleted: Tag,
    /// Versions that coverable writes have replaced.
    covered: BTreeSet<Tag>,
}

/// Everything that clients saw.
#[derive(Default)]
pub(crate) struct History {
    lines: String,
    operations: u64,
    registers: BTreeMap<Object, Register>,
    violation: Option<String>,
}

impl History {
    pub(crate) fn lines(&self) -> &str {
        &self.lines
    }

    /// The first rule that was broken.
    pub(crate) fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    /// The operation begins. `value`: the hash of the written value, unique per write. Returns how many writes of the
    /// object are now under way, too.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        (client, kind): (usize, Kind),
        object: &Object,
        value: Option<u64>,
    ) -> (Operation, usize) {
        self.operations += 1;
        let register = self.registers.entry(object.clone()).or_default();
        register.begun.extend(value);
        register.writes_open += usize::from(!kind.is_read());
        let operation = Operation {
            id: self.operations,
            client,
            kind,
            object: object.clone(),
            value,
            floor: register.completed,
        };
        register.deletes_open += usize::from(operation.kind.deletes());
        let writes_open = register.writes_open;
        self.write(&now.into(), &operation, "invoke", value, None);
        (operation, writes_open)
    }

    /// A read found this version, with this value.
    pub(crate) fn end_read(
        &mut self,
        ended: &OperationEnd,
        operation: &Operation,
        tag: Tag,
        value: Option<u64>,
    ) {
        self.write(ended, operation, "ok", value, Some(tag));
        self.judge_read(operation, tag, value);
    }

    fn judge_read(&mut self, operation: &Operation, tag: Tag, value: Option<u64>) {
        let register = self.register(operation);
        let begun = value.is_none_or(|value| register.begun.contains(&value));
        let known = *register.versions.entry(tag).or_insert(value);
        if operation.kind != Kind::RegularRead {
            register.completed = tag.max(register.completed);
        }
        if tag < operation.floor {
            let floor = operation.floor;
            self.violate(
                operation,
                &format!("read {tag}, older than {floor}, which had ended"),
            );
        } else if !begun {
            self.violate(
                operation,
                &format!("read {tag} with a value that nobody wrote"),
            );
        } else if known != value {
            self.violate(
                operation,
                &format!("read another value of {tag} than others"),
            );
        } else if tag.is_initial() && value.is_some() {
            self.violate(operation, "found a value in the initial version");
        }
    }

    /// A version was found without its content.
    pub(crate) fn end_stat(
        &mut self,
        ended: &OperationEnd,
        operation: &Operation,
        tag: Tag,
        live: bool,
    ) {
        let known = self.register(operation).versions.get(&tag).copied();
        if let Some(known) = known
            && known.is_some() != live
        {
            self.violate(operation, &format!("saw {tag} as live: {live}"));
        }
        // Its value is not known, so that no other judge can use it.
        self.write(ended, operation, "unknown", None, None);
        let register = self.register(operation);
        register.completed = tag.max(register.completed);
        if tag < operation.floor {
            let floor = operation.floor;
            self.violate(
                operation,
                &format!("saw {tag}, older than {floor}, which had ended"),
            );
        }
    }

    /// A version that an operation has shown, `choice` of them from the newest on; the initial one if there are not as
    /// many.
    pub(crate) fn version(&self, object: &Object, choice: usize) -> Tag {
        let shown = self.registers.get(object);
        let version = shown.and_then(|register| register.versions.keys().nth_back(choice));
        version.copied().unwrap_or_default()
    }

    /// A coverable write found another version than the one that it was to replace: it is a read of that.
    pub(crate) fn end_uncovered(
        &mut self,
        ended: &OperationEnd,
        operation: &Operation,
        tag: Tag,
        value: Option<u64>,
    ) {
        self.write(ended, operation, "fail", value, Some(tag));
        let register = self.register(operation);
        register.writes_open -= 1;
        register.deletes_open -= usize::from(operation.kind.deletes());
        if operation.kind.base() == Some(tag) {
            self.violate(operation, &format!("lost, although {tag} is the newest"));
        } else if operation.kind == Kind::Creation && value.is_none() {
            self.violate(operation, &format!("lost, although {tag} is absent"));
        }
        self.judge_read(operation, tag, value);
    }

    /// A coverable write ended with this version. Returns whether another one has replaced the same version
    /// (`[V-1 weak-coverability]`). `fences`: the numbers of all fences of the object that servers have shown; `None`: the domain may
    /// have become conditional.
    pub(crate) fn end_covered(
        &mut self,
        ended: &OperationEnd,
        operation: &Operation,
        tag: Tag,
        fences: Option<&BTreeSet<u64>>,
    ) -> bool {
        let base = operation.kind.base().expect("it is coverable");
        self.end_write(ended, operation, tag);
        self.judge_base(operation, base);
        // The next number, or the next above a fence that holds the next ones back (`[X-3 unconfirmed-cap]`).
        let is_next = |fences: &BTreeSet<u64>| {
            let mut before = fences.range(base.number..).chain([&base.number]);
            before.any(|before| before + 1 == tag.number)
        };
        if tag <= base || !fences.is_none_or(is_next) {
            self.violate(operation, &format!("made {tag} of {base}"));
        }
        !self.register(operation).covered.insert(base)
    }

    /// A write or a deletion with one winner ended with this version (`[W-7 one-winner]`).
    pub(crate) fn end_decided(&mut self, ended: &OperationEnd, operation: &Operation, tag: Tag) {
        self.end_write(ended, operation, tag);
        let Some(base) = operation.kind.base() else {
            // A deletion of which no version is known may have come before it.
            let register = self.register(operation);
            let before = register.versions.range(..tag).next_back();
            let before = before.map(|(before, value)| (*before, value.is_some()));
            if let (Some((before, true)), 0) = (before, register.deletes_open) {
                self.violate(
                    operation,
                    &format!("made {tag}, although {before} was there"),
                );
            }
            return;
        };
        self.judge_base(operation, base);
        if tag <= base {
            self.violate(operation, &format!("made {tag} of {base}"));
        } else if !self.register(operation).covered.insert(base) {
            self.violate(
                operation,
                &format!("a second winner: {base} was replaced before"),
            );
        }
    }

    fn judge_base(&mut self, operation: &Operation, base: Tag) {
        let floor = operation.floor;
        if base < floor {
            self.violate(
                operation,
                &format!("replaced {base}, older than {floor}, which had ended"),
            );
        }
    }

    /// A write or a deletion ended with this version.
    pub(crate) fn end_write(&mut self, ended: &OperationEnd, operation: &Operation, tag: Tag) {
        self.write(ended, operation, "ok", operation.value, Some(tag));
        let value = operation.value;
        let register = self.register(operation);
        let known = *register.versions.entry(tag).or_insert(value);
        register.completed = tag.max(register.completed);
        register.writes_open -= 1;
        if operation.kind.deletes() {
            register.deletes_open -= 1;
            register.deleted = tag.max(register.deleted);
        }
        if tag <= operation.floor {
            let floor = operation.floor;
            self.violate(
                operation,
                &format!("wrote {tag}, not above {floor}, which had ended"),
            );
        } else if known != value {
            self.violate(operation, &format!("wrote {tag}, which has another value"));
        }
    }

    /// A deletion found nothing to delete.
    pub(crate) fn end_nothing(&mut self, ended: &OperationEnd, operation: &Operation) {
        self.write(ended, operation, "ok", None, None);
        let register = self.register(operation);
        register.writes_open -= 1;
        register.deletes_open -= 1;
        let (others, deleted) = (register.deletes_open, register.deleted);
        if others == 0 && operation.floor > deleted {
            let floor = operation.floor;
            self.violate(
                operation,
                &format!("found nothing, and nobody deleted {floor}"),
            );
        }
    }

    /// It certainly had no effect.
    pub(crate) fn end_failed(&mut self, now: Instant, operation: &Operation) {
        self.write(&now.into(), operation, "fail", None, None);
        let register = self.register(operation);
        register.writes_open -= usize::from(!operation.kind.is_read());
        register.deletes_open -= usize::from(operation.kind.deletes());
    }

    /// It may have had its effect, or may still have it.
    pub(crate) fn end_unknown(&mut self, now: Instant, operation: &Operation) {
        if matches!(operation.kind, Kind::Reconfig(_)) {
            return self.end_change(&now.into(), operation, &Change::Unknown);
        }
        self.write(&now.into(), operation, "unknown", operation.value, None);
        let register = self.register(operation);
        register.writes_open -= usize::from(!operation.kind.is_read());
        // A deletion stays open for ever: its tombstone may appear at any time.
    }

    pub(crate) fn begin_listing(&self, domain: usize) -> Listing {
        let of_domain = self.registers.iter().filter(|((d, _), _)| *d == domain);
        Listing {
            domain,
            floors: of_domain
                .map(|((_, key), register)| (key.clone(), register.completed))
                .collect(),
        }
    }

    /// Judges a regular listing (`[X-19 regular-listing]`): every version that was complete before it began is in it,
    /// or a newer one, unless a tombstone may be newer.
    pub(crate) fn end_listing(&mut self, listing: &Listing, entries: &[ListEntry]) {
        let shown: BTreeMap<&str, &ListEntry> = entries
            .iter()
            .map(|entry| (entry.key.as_str(), entry))
            .collect();
        for (key, floor) in &listing.floors {
            let register = &self.registers[&(listing.domain, key.clone())];
            let wrong = match shown.get(key.as_str()) {
                Some(entry) if entry.tag < *floor => {
                    format!("shows {}, older than {floor}", entry.tag)
                }
                // A damaged object may be a newer one than its tombstone: too few sound members say.
                Some(entry)
                    if !entry.damaged && register.versions.get(&entry.tag) == Some(&None) =>
                {
                    format!("shows the tombstone {}", entry.tag)
                }
                None if *floor > register.deleted && register.deletes_open == 0 => {
                    format!("leaves out {floor}")
                }
                _ => continue,
            };
            let domain = listing.domain;
            let sentence = format!("listing: of {key} in domain {domain} it {wrong}");
            self.violation.get_or_insert(sentence);
        }
    }

    fn register(&mut self, operation: &Operation) -> &mut Register {
        let register = self.registers.get_mut(&operation.object);
        register.expect("operations that began have a register")
    }

    fn violate(&mut self, operation: &Operation, what: &str) {
        let Operation {
            id,
            client,
            kind,
            object: (domain, key),
            ..
        } = operation;
        let kind = kind.name();
        let sentence = format!(
            "linearizable: {kind} {id} of client {client}, {key} in domain {domain}, {what}"
        );
        self.violation.get_or_insert(sentence);
    }

    fn write(
        &mut self,
        when: &OperationEnd,
        operation: &Operation,
        event: &str,
        value: Option<u64>,
        version: Option<Tag>,
    ) {
        self.write_line(when, operation, event, (value, version), "");
    }

    /// `more`: further fields of the line.
    fn write_line(
        &mut self,
        when: &OperationEnd,
        operation: &Operation,
        event: &str,
        (value, version): (Option<u64>, Option<Tag>),
        more: &str,
    ) {
        let tag = |tag: Option<Tag>| quoted(tag.filter(|tag| !tag.is_initial()));
        let fields = [
            quoted(value.map(|value| format!("{value:016x}"))),
            tag(version),
            tag(operation.kind.base()),
        ];
        self.line(when, operation, event, &fields, more);
    }

    /// One event. `fields`: value, version, and the version that it is based on, as JSON.
    fn line(
        &mut self,
        when: &OperationEnd,
        operation: &Operation,
        event: &str,
        fields: &[String; 3],
        more: &str,
    ) {
        let Operation {
            id, client, object, ..
        } = operation;
        let (t, kind, (domain, key)) = (when.at.0, operation.kind.name(), object);
        let [value, version, based_on] = fields;
        let line = write!(
            self.lines,
            "{{\"t\":{t},\"client\":\"c{client}\",\"op\":{id},\"event\":\"{event}\",\"kind\":\"{kind}\",\
             \"domain\":\"d{domain}\",\"key\":\"{key}\",\"value\":{value},\"version\":{version},\"based_on\":{based_on}{more}"
        );
        line.expect("writing into memory does not fail");
        if let Some(c) = &when.knows {
            changes::write_sequence(&mut self.lines, c);
        }
        self.lines.push_str("}\n");
    }
}

/// A JSON string, or `null`.
fn quoted(text: Option<impl Display>) -> String {
    text.map_or("null".to_owned(), |text| format!("\"{text}\""))
}

#[cfg(test)]
mod tests;
