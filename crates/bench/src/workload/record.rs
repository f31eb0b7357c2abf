//! Writing a history down.

use super::{DOMAINS, value};
use areo_check::{Event, EventKind, Kind};
use areo_client::Version;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// An operation under way.
#[derive(Clone, Debug)]
pub(crate) struct Invoked {
    pub(crate) client: String,
    /// Unique per client.
    pub(crate) op: u64,
    pub(crate) kind: Kind,
    /// An index of [`DOMAINS`].
    pub(crate) domain: usize,
    pub(crate) key: String,
    /// Of a write: the number of its value, which the recorder gives.
    pub(crate) value: Option<u64>,
}

/// How an operation ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    Ok {
        /// What was written or read; `None`: absent.
        value: Option<String>,
        version: Option<Version>,
    },
    Fail,
    Unknown,
}

/// The history, on its way to a file.
pub(crate) struct Recorder {
    out: Box<dyn Write>,
    /// The first error of `out`; nothing is written after it.
    error: Option<io::Error>,
    begun: Instant,
    last_ns: u64,
    values: u64,
    operations: u64,
    windows: [Window; DOMAINS.len()],
}

/// Time without a success.
#[derive(Clone, Copy)]
struct Window {
    since: Instant,
    longest: Duration,
}

impl Recorder {
    pub(crate) fn create(path: &Path) -> io::Result<Recorder> {
        let file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        Ok(Recorder::new(Box::new(file)))
    }

    pub(crate) fn new(out: Box<dyn Write>) -> Recorder {
        let begun = Instant::now();
        let window = Window {
            since: begun,
            longest: Duration::ZERO,
        };
        Recorder {
            out,
            error: None,
            begun,
            last_ns: 0,
            values: 0,
            operations: 0,
            windows: [window; DOMAINS.len()],
        }
    }

    /// Operations that have ended.
    pub(crate) fn operations(&self) -> u64 {
        self.operations
    }

    /// The longest time without a success in each domain.
    pub(crate) fn longest_windows(&self) -> Vec<Duration> {
        self.windows.iter().map(|window| window.longest).collect()
    }

    pub(crate) fn invoke(&mut self, mut invoked: Invoked) -> Invoked {
        if invoked.kind == Kind::Write {
            self.values += 1;
            invoked.value = Some(self.values);
        }
        let value = invoked.value.map(value::name);
        self.write(&invoked, EventKind::Invoke, value, None);
        invoked
    }

    pub(crate) fn end(&mut self, invoked: &Invoked, ending: &Ending) {
        self.operations += 1;
        match ending {
            Ending::Fail => self.write(invoked, EventKind::Fail, None, None),
            Ending::Unknown => self.write(invoked, EventKind::Unknown, None, None),
            Ending::Ok { value, version } => {
                self.write(invoked, EventKind::Ok, value.clone(), *version);
                let window = &mut self.windows[invoked.domain];
                let now = Instant::now();
                window.longest = window.longest.max(now - window.since);
                window.since = now;
            }
        }
    }

    fn write(
        &mut self,
        invoked: &Invoked,
        kind: EventKind,
        value: Option<String>,
        version: Option<Version>,
    ) {
        // One clock for all clients: they run in one thread.
        let now = u64::try_from(self.begun.elapsed().as_nanos()).expect("centuries");
        self.last_ns = now.max(self.last_ns);
        let version = version.map(|version| version.to_string().parse());
        let Invoked {
            client, op, key, ..
        } = invoked;
        let domain = DOMAINS[invoked.domain];
        let event = Event {
            value: value.map(Into::into),
            version: version.map(|parsed| parsed.expect("versions are written in one way")),
            ..Event::new(
                self.last_ns,
                client.as_str(),
                *op,
                kind,
                invoked.kind,
                domain,
                key.as_str(),
            )
        };
        if self.error.is_none() {
            self.error = event.write(&mut self.out).err();
        }
    }

    /// Everything is in the file now.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_check::{History, Property, Verdict, judge};
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Memory(Rc<RefCell<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn operation(client: &str, op: u64, kind: Kind) -> Invoked {
        Invoked {
            client: client.into(),
            op,
            kind,
            domain: 1,
            key: "k0".into(),
            value: None,
        }
    }

    fn ok(value: Option<u64>) -> Ending {
        let value = value.map(value::name);
        let version = None;
        Ending::Ok { value, version }
    }

    /// Two writes, of which the first ended unknown, and a read of `read`; judged.
    fn verdict_of_a_read_of(read: Option<u64>) -> Verdict {
        let memory = Memory::default();
        let mut recorder = Recorder::new(Box::new(memory.clone()));
        let first = recorder.invoke(operation("a", 1, Kind::Write));
        recorder.end(&first, &Ending::Unknown);
        let second = recorder.invoke(operation("b", 1, Kind::Write));
        recorder.end(&second, &ok(second.value));
        let third = recorder.invoke(operation("a", 2, Kind::Read));
        recorder.end(&third, &ok(read));
        recorder.finish().unwrap();
        assert_eq!(recorder.operations(), 3);
        let history = History::read(&memory.0.borrow()[..]).unwrap();
        judge(&history).property(Property::Linearizable).verdict
    }

    #[test]
    fn what_is_recorded_is_judged_as_it_happened() {
        assert_eq!(verdict_of_a_read_of(Some(2)), Verdict::Holds);
        assert_eq!(verdict_of_a_read_of(Some(1)), Verdict::Holds, "at any time");
        assert_eq!(verdict_of_a_read_of(None), Verdict::Violated, "lost");
        assert_eq!(verdict_of_a_read_of(Some(3)), Verdict::Violated, "invented");
    }
}
