//! Writing a history down.

use super::value;
use crate::completions::Window;
use areo_check::{Configuration, Event, EventKind, Kind};
use areo_client::{ConfigurationInfo, Dap, Version};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// An operation under way.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    pub(crate) client: String,
    /// Unique per client.
    pub(crate) op: u64,
    pub(crate) kind: Kind,
    /// By its place in the recorder's list.
    pub(crate) domain: usize,
    pub(crate) key: String,
    /// Of a write: the number of its value. The recorder gives one to a plain write; a conditional write without deletes.
    pub(crate) value: Option<u64>,
    /// Of a conditional write: the version that it is for; `None`: that the object is absent.
    pub(crate) based_on: Option<Version>,
}

/// How an operation ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    Ok {
        /// What was written or read; `None`: absent.
        value: Option<String>,
        version: Option<Version>,
    },
    /// It did nothing; a conditional write may have found this in place of its version.
    Fail {
        found: Option<(String, Version)>,
    },
    Unknown,
}

/// A configuration, as histories tell of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KnownConfiguration {
    index: u32,
    name: String,
}

impl From<&ConfigurationInfo> for KnownConfiguration {
    fn from(c: &ConfigurationInfo) -> KnownConfiguration {
        let members: Vec<&str> = c.members.iter().map(|member| &*member.name).collect();
        KnownConfiguration {
            index: c.index,
            name: shape_name(c.shape.dap(), &members),
        }
    }
}

/// What a configuration of this algorithm and these servers is called.
pub(crate) fn shape_name(dap: Dap, servers: &[impl AsRef<str>]) -> String {
    let servers: Vec<&str> = servers.iter().map(AsRef::as_ref).collect();
    let k = if dap.is_coded() {
        dap.k().to_string()
    } else {
        String::new()
    };
    format!("{dap}{k} {}", servers.join("+"))
}

/// A reconfiguration under way.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) client: String,
    /// Unique per client.
    pub(crate) op: u64,
    /// By its place in the recorder's list.
    pub(crate) domain: usize,
    /// Index of the last final configuration that the client knew when it began.
    pub(crate) after: u32,
    /// What is wanted; nothing if it finishes what others left.
    pub(crate) wanted: Option<String>,
}

/// How a reconfiguration ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ChangeEnd {
    /// This configuration was decided, and the client itself has made a quorum know that it is final.
    Decided(KnownConfiguration),
    /// Nothing was done.
    Nothing,
    /// What was wanted may be pending; or others have finished it, and what was heard of that may not be at a quorum yet.
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
    domains: &'static [&'static str],
    windows: Vec<Window>,
}

impl Recorder {
    pub(crate) fn create(path: &Path, domains: &'static [&'static str]) -> io::Result<Recorder> {
        let file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        Ok(Recorder::new(Box::new(file), domains))
    }

    pub(crate) fn new(out: Box<dyn Write>, domains: &'static [&'static str]) -> Recorder {
        let begun = Instant::now();
        let window = Window::new(begun);
        Recorder {
            out,
            error: None,
            begun,
            last_ns: 0,
            values: 0,
            operations: 0,
            domains,
            windows: vec![window; domains.len()],
        }
    }

    /// Operations that have ended.
    pub(crate) fn operations(&self) -> u64 {
        self.operations
    }

    /// The longest time without a success in each domain.
    pub(crate) fn longest_windows(&self) -> Vec<Duration> {
        self.windows.iter().map(Window::longest).collect()
    }

    /// A number that no other value of the run has.
    pub(crate) fn next_value(&mut self) -> u64 {
        self.values += 1;
        self.values
    }

    pub(crate) fn invoke(&mut self, mut invoked: Invocation) -> Invocation {
        if invoked.kind == Kind::Write && invoked.value.is_none() {
            invoked.value = Some(self.next_value());
        }
        let value = invoked.value.map(value::name);
        self.write(&invoked, EventKind::Invoke, value, None, None);
        invoked
    }

    /// It ended. `knows`: of one that succeeded, the last final configuration that its client knows by now.
    pub(crate) fn end(
        &mut self,
        invoked: &Invocation,
        ending: &Ending,
        knows: Option<&KnownConfiguration>,
    ) {
        self.operations += 1;
        match ending {
            Ending::Fail { found } => {
                let (value, version) = found.clone().unzip();
                self.write(invoked, EventKind::Fail, value, version, None);
            }
            Ending::Unknown => self.write(invoked, EventKind::Unknown, None, None, None),
            Ending::Ok { value, version } => {
                self.write(invoked, EventKind::Ok, value.clone(), *version, knows);
                self.windows[invoked.domain].ends(Instant::now());
            }
        }
    }

    fn write(
        &mut self,
        invoked: &Invocation,
        kind: EventKind,
        value: Option<String>,
        version: Option<Version>,
        knows: Option<&KnownConfiguration>,
    ) {
        let parsed = |version: Version| {
            let parsed = version.to_string().parse();
            parsed.expect("versions are written in one way")
        };
        let sequence = knows.map(|known| {
            vec![Configuration {
                index: known.index.into(),
                configuration: known.name.as_str().into(),
                r#final: true,
            }]
        });
        let (client, op, key) = (&*invoked.client, invoked.op, &*invoked.key);
        let domain = self.domains[invoked.domain];
        self.emit(Event {
            value: value.map(Into::into),
            version: version.map(parsed),
            based_on: invoked.based_on.map(parsed),
            sequence,
            ..Event::new(0, client, op, kind, invoked.kind, domain, key)
        });
    }

    pub(crate) fn begin_change(&mut self, change: &Change) {
        let wanted = change.wanted.as_deref().unwrap_or("pending");
        let wanted = Some(wanted.to_owned());
        self.write_change(change, EventKind::Invoke, (wanted, None));
    }

    pub(crate) fn end_change(&mut self, change: &Change, changed: &ChangeEnd) {
        self.operations += 1;
        match changed {
            ChangeEnd::Decided(KnownConfiguration { index, name }) => {
                let decided = (Some(name.clone()), Some(*index));
                self.write_change(change, EventKind::Ok, decided);
            }
            ChangeEnd::Nothing => self.write_change(change, EventKind::Fail, (None, None)),
            ChangeEnd::Unknown => self.write_change(change, EventKind::Unknown, (None, None)),
        }
    }

    fn write_change(
        &mut self,
        change: &Change,
        kind: EventKind,
        (configuration, index): (Option<String>, Option<u32>),
    ) {
        let plain = |index: u32| areo_check::Version::plain(index.into());
        let (client, op) = (&*change.client, change.op);
        let domain = self.domains[change.domain];
        self.emit(Event {
            value: configuration.map(Into::into),
            version: index.map(plain),
            based_on: Some(plain(change.after)),
            ..Event::new(0, client, op, kind, Kind::Reconfig, domain, "")
        });
    }

    /// Writes the event as one that happens now.
    fn emit(&mut self, event: Event<'_>) {
        // One clock for all clients: they run in one thread.
        let now = u64::try_from(self.begun.elapsed().as_nanos()).expect("centuries");
        self.last_ns = now.max(self.last_ns);
        let event = Event {
            t: self.last_ns,
            ..event
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
pub(crate) mod tests {
    use super::*;
    use areo_check::{History, Property, Verdict, judge};
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    pub(crate) struct Memory(Rc<RefCell<Vec<u8>>>);

    impl Memory {
        pub(crate) fn bytes(&self) -> Vec<u8> {
            self.0.borrow().clone()
        }
    }

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn operation(client: &str, op: u64, kind: Kind) -> Invocation {
        Invocation {
            client: client.into(),
            op,
            kind,
            domain: 1,
            key: "k0".into(),
            value: None,
            based_on: None,
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
        let mut recorder = Recorder::new(Box::new(memory.clone()), &["abd", "ec"]);
        let first = recorder.invoke(operation("a", 1, Kind::Write));
        recorder.end(&first, &Ending::Unknown, None);
        let second = recorder.invoke(operation("b", 1, Kind::Write));
        recorder.end(&second, &ok(second.value), None);
        let third = recorder.invoke(operation("a", 2, Kind::Read));
        recorder.end(&third, &ok(read), None);
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

    /// A reconfiguration, and a read after it by a client that then knows `knows`; judged.
    fn verdict_of_a_read_that_knows(
        knows: &KnownConfiguration,
        decided: &KnownConfiguration,
    ) -> Verdict {
        let memory = Memory::default();
        let mut recorder = Recorder::new(Box::new(memory.clone()), &["abd", "ec"]);
        let change = Change {
            client: "r".into(),
            op: 1,
            domain: 1,
            after: 0,
            wanted: Some("abd s1+s2".into()),
        };
        recorder.begin_change(&change);
        recorder.end_change(&change, &ChangeEnd::Decided(decided.clone()));
        let read = recorder.invoke(operation("a", 1, Kind::Read));
        recorder.end(&read, &ok(None), Some(knows));
        recorder.finish().unwrap();
        let history = History::read(&memory.0.borrow()[..]).unwrap();
        judge(&history).property(Property::Configurations).verdict
    }

    #[test]
    fn what_clients_know_of_configurations_is_judged() {
        let known = |index, servers: &[&str]| KnownConfiguration {
            index,
            name: shape_name(Dap::Ec { k: 3 }, servers),
        };
        let decided = known(1, &["s1", "s2"]);
        assert_eq!(decided.name, "ec3 s1+s2");
        let verdict =
            |knows: KnownConfiguration, decided| verdict_of_a_read_that_knows(&knows, decided);
        assert_eq!(verdict(decided.clone(), &decided), Verdict::Holds);
        assert_eq!(verdict(known(2, &["s9"]), &decided), Verdict::Holds);
        assert_eq!(verdict(known(0, &["s9"]), &decided), Verdict::Violated);
        assert_eq!(verdict(known(1, &["s9"]), &decided), Verdict::Violated);
        // It is not after the one that it follows.
        let early = known(0, &["s1", "s2"]);
        assert_eq!(verdict(early.clone(), &early), Verdict::Violated);
    }
}
