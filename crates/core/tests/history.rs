//! The results that clients saw, checked by their tags (oracle O1: order operations by their tags).

use areo_core::tag::Tag;
use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A write of this value, unique in the history.
    Write(String),
    Delete,
    Read,
}

/// An operation with its result. Without a version the result is unknown: a write may take effect at any time.
struct Operation {
    kind: Kind,
    begin: u64,
    end: u64,
    version: Option<(Tag, Option<String>)>,
    /// It tells nothing: it found nothing to do.
    forgotten: bool,
}

#[derive(Default)]
pub struct History {
    operations: Vec<Operation>,
    clock: u64,
}

impl History {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub fn begin(&mut self, kind: Kind) -> usize {
        let begin = self.tick();
        self.operations.push(Operation {
            kind,
            begin,
            end: u64::MAX,
            version: None,
            forgotten: false,
        });
        self.operations.len() - 1
    }

    pub fn end_write(&mut self, id: usize, tag: Option<Tag>) {
        let value = match &self.operations[id].kind {
            Kind::Write(value) => Some(value.clone()),
            _ => None,
        };
        self.end_read(id, tag.map(|tag| (tag, value)));
    }

    pub fn end_read(&mut self, id: usize, version: Option<(Tag, Option<String>)>) {
        self.operations[id].end = self.tick();
        self.operations[id].version = version;
    }

    pub fn forget(&mut self, id: usize) {
        self.operations[id].forgotten = true;
    }

    /// The number of reads without a version among the last `last` operations.
    pub fn failed_reads_at_the_end(&self, last: usize) -> usize {
        let ended = self.operations.iter().rev().take(last);
        ended
            .filter(|operation| operation.version.is_none())
            .count()
    }

    /// # Errors
    /// A sentence that names the operations.
    pub fn judge(&self) -> Result<(), String> {
        let known = |operation: &&Operation| operation.version.is_some() && !operation.forgotten;
        let completed: Vec<&Operation> = self.operations.iter().filter(known).collect();
        let mut values: BTreeMap<Tag, &Option<String>> = BTreeMap::new();
        for operation in &completed {
            let (tag, value) = operation.version.as_ref().expect("it was filtered");
            self.was_put(operation, *tag, value.as_ref())?;
            let first = values.entry(*tag).or_insert(value);
            if *first != value {
                return Err(format!("{tag} stands for {first:?} and for {value:?}"));
            }
        }
        for a in &completed {
            for b in completed.iter().filter(|b| a.end < b.begin) {
                let (before, after) = (a.tag(), b.tag());
                let fits = if b.kind == Kind::Read {
                    before <= after
                } else {
                    before < after
                };
                if !fits {
                    return Err(format!("{b} begins after the end of {a}"));
                }
            }
        }
        Ok(())
    }

    /// A read returns the initial value, or one whose write began before the read ended (C2).
    fn was_put(&self, read: &Operation, tag: Tag, value: Option<&String>) -> Result<(), String> {
        let written = match value {
            None if tag.is_initial() => true,
            // A tombstone on the initial version, by a client that left a register (`[W-13 ceasing-to-be-conditional]`).
            None if tag.number == 1 => true,
            None => self
                .operations
                .iter()
                .any(|o| o.kind == Kind::Delete && o.begin < read.end),
            Some(value) => {
                let writes = |o: &Operation| o.kind == Kind::Write(value.clone());
                let writer = self
                    .operations
                    .iter()
                    .find(|o| writes(o) && o.begin < read.end);
                // Where the write knows its own tag, the read must have found the value under it.
                writer.is_some_and(|w| w.version.as_ref().is_none_or(|(own, _)| *own == tag))
            }
        };
        match written {
            true => Ok(()),
            false => Err(format!("{read} returned what nobody wrote under that tag")),
        }
    }
}

impl Operation {
    fn tag(&self) -> Tag {
        self.version
            .as_ref()
            .expect("only completed ones are asked")
            .0
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operation {
            kind, begin, end, ..
        } = self;
        match &self.version {
            Some((tag, value)) => write!(f, "[{begin}, {end}] {kind:?} = {tag} {value:?}"),
            None => write!(f, "[{begin}, {end}] {kind:?} ended in the dark"),
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operations
            .iter()
            .try_for_each(|operation| writeln!(f, "{operation}"))
    }
}
