//! The operations and results of clients, as `areo-lab check` judges it: every value is another one then, and looked at byte by byte.

use areo_check::{Configuration, Event, EventKind, Kind, Version};
use areo_client::{ConfigurationInfo, Dap};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

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

/// The name of a configuration of this algorithm and these servers.
pub(crate) fn shape_name(dap: Dap, servers: &[impl AsRef<str>]) -> String {
    let servers: Vec<&str> = servers.iter().map(AsRef::as_ref).collect();
    let k = if dap.is_coded() {
        dap.k().to_string()
    } else {
        String::new()
    };
    format!("{dap}{k} {}", servers.join("+"))
}

/// The end of a reconfiguration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ChangeEnd {
    /// This configuration was decided, and the client itself has made a quorum know that it is final.
    Decided(KnownConfiguration),
    /// The change had no effect.
    Nothing,
    /// The wanted configuration may be pending; or others have finished it, and their news may not be at a quorum
    /// yet.
    Unknown,
}

/// A history on its way to a file.
#[derive(Clone)]
pub struct History(Rc<RefCell<Recorder>>);

struct Recorder {
    out: Box<dyn Write>,
    /// The first error of `out`; nothing is written after it.
    error: Option<io::Error>,
    begun: Instant,
    last_ns: u64,
    values: u64,
    clients: u64,
}

impl Recorder {
    /// Writes the event as one that happens now.
    fn emit(&mut self, event: &mut Event<'_>) {
        // One clock for all clients: they run in one thread.
        let now = u64::try_from(self.begun.elapsed().as_nanos()).expect("centuries");
        self.last_ns = now.max(self.last_ns);
        event.t = self.last_ns;
        if self.error.is_none() {
            self.error = event.write(&mut self.out).err();
        }
    }
}

impl History {
    /// A new file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path) -> io::Result<History> {
        let file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        Ok(History::new(Box::new(file)))
    }

    pub(crate) fn new(out: Box<dyn Write>) -> History {
        History(Rc::new(RefCell::new(Recorder {
            out,
            error: None,
            begun: Instant::now(),
            last_ns: 0,
            values: 0,
            clients: 0,
        })))
    }

    /// Everything is in the file now.
    ///
    /// # Errors
    /// It is not.
    pub fn finish(&self) -> io::Result<()> {
        let recorder = &mut *self.0.borrow_mut();
        match recorder.error.take() {
            Some(error) => Err(error),
            None => recorder.out.flush(),
        }
    }

    /// The diary of a new client.
    pub(crate) fn client(&self) -> Diary {
        let recorder = &mut *self.0.borrow_mut();
        recorder.clients += 1;
        Diary {
            history: self.clone(),
            client: format!("c{}", recorder.clients),
            operations: 0,
            under_way: None,
        }
    }
}

/// The record of one client, one operation after the other. One that is under way when this is dropped has ended unknown.
pub(crate) struct Diary {
    history: History,
    client: String,
    operations: u64,
    under_way: Option<Event<'static>>,
}

impl Diary {
    /// The name of the client in a history.
    pub(crate) fn client(&self) -> &str {
        &self.client
    }

    /// A number that no other value of the history has.
    pub(super) fn next_value(&self) -> u64 {
        let recorder = &mut *self.history.0.borrow_mut();
        recorder.values += 1;
        recorder.values
    }

    /// An operation begins on this key of this domain: with the value that it writes, and the version that it
    /// replaces.
    pub(super) fn begin(
        &mut self,
        kind: Kind,
        (domain, key): (&str, &str),
        value: Option<String>,
        based_on: Option<Version>,
    ) {
        assert!(
            self.under_way.is_none(),
            "a client does one thing at a time"
        );
        self.operations += 1;
        let (client, domain, key) = (self.client.clone(), domain.to_owned(), key.to_owned());
        let mut event = Event {
            value: value.map(Into::into),
            based_on,
            ..Event::new(
                0,
                client,
                self.operations,
                EventKind::Invoke,
                kind,
                domain,
                key,
            )
        };
        self.history.0.borrow_mut().emit(&mut event);
        self.under_way = Some(event);
    }

    /// It ended so, with this value and version. `knows`: the last final configuration that the client knows by now.
    pub(super) fn end(
        &mut self,
        event: EventKind,
        (value, version): (Option<String>, Option<Version>),
        knows: Option<KnownConfiguration>,
    ) {
        let Some(invoked) = self.under_way.take() else {
            return;
        };
        let sequence = knows.map(|known| {
            vec![Configuration {
                index: known.index.into(),
                configuration: known.name.into(),
                r#final: true,
            }]
        });
        self.history.0.borrow_mut().emit(&mut Event {
            event,
            value: value.map(Into::into),
            version,
            sequence,
            ..invoked
        });
    }

    /// A reconfiguration begins after this final configuration. Without a wanted one it finishes a pending one of
    /// others.
    pub(crate) fn begin_change(&mut self, domain: &str, after: u32, wanted: Option<String>) {
        let wanted = wanted.unwrap_or_else(|| "pending".to_owned());
        let after = Version::plain(after.into());
        self.begin(Kind::Reconfig, (domain, ""), Some(wanted), Some(after));
    }

    /// Records the end of a reconfiguration.
    pub(crate) fn end_change(&mut self, changed: ChangeEnd) {
        match changed {
            ChangeEnd::Decided(KnownConfiguration { index, name }) => {
                let decided = (Some(name), Some(Version::plain(index.into())));
                self.end(EventKind::Ok, decided, None);
            }
            ChangeEnd::Nothing => self.end(EventKind::Fail, (None, None), None),
            ChangeEnd::Unknown => self.end(EventKind::Unknown, (None, None), None),
        }
    }
}

impl Drop for Diary {
    fn drop(&mut self) {
        self.end(EventKind::Unknown, (None, None), None);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use areo_check::{Property, Verdict, judge};

    /// A history in memory.
    #[derive(Clone, Default)]
    pub(crate) struct Memory(Rc<RefCell<Vec<u8>>>);

    impl Memory {
        pub(crate) fn judged(&self) -> areo_check::Report {
            judge(&areo_check::History::read(&self.0.borrow()[..]).unwrap())
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

    /// The verdict of the judge on the history of two clients.
    fn verdict(property: Property, clients: impl FnOnce(&mut Diary, &mut Diary)) -> Verdict {
        let memory = Memory::default();
        let history = History::new(Box::new(memory.clone()));
        let (mut one, mut other) = (history.client(), history.client());
        clients(&mut one, &mut other);
        drop((one, other));
        history.finish().unwrap();
        memory.judged().property(property).verdict
    }

    const OBJECT: (&str, &str) = ("ec", "k0");

    fn writes(diary: &mut Diary) -> Option<String> {
        let value = Some(format!("v{}", diary.next_value()));
        diary.begin(Kind::Write, OBJECT, value.clone(), None);
        value
    }

    fn reads(diary: &mut Diary, found: Option<&str>, knows: Option<KnownConfiguration>) {
        diary.begin(Kind::Read, OBJECT, None, None);
        diary.end(EventKind::Ok, (found.map(Into::into), None), knows);
    }

    #[test]
    fn what_is_recorded_is_judged_as_it_happened() {
        // Two writes, of which the first ended unknown, and a read.
        let judged = |read: Option<&str>| {
            verdict(Property::Linearizable, |one, other| {
                assert_eq!(writes(one).unwrap(), "v1");
                one.end(EventKind::Unknown, (None, None), None);
                let value = writes(other);
                other.end(EventKind::Ok, (value, None), None);
                reads(one, read, None);
            })
        };
        assert_eq!(judged(Some("v2")), Verdict::Holds);
        assert_eq!(judged(Some("v1")), Verdict::Holds, "at any time");
        assert_eq!(judged(None), Verdict::Violated, "lost");
        assert_eq!(judged(Some("v3")), Verdict::Violated, "invented");
    }

    #[test]
    fn a_refused_write_is_not_read_and_one_that_was_dropped_may_be() {
        let judged = |ends: bool| {
            verdict(Property::Linearizable, |one, other| {
                let value = writes(one);
                if ends {
                    one.end(EventKind::Fail, (None, None), None);
                }
                reads(other, value.as_deref(), None);
            })
        };
        assert_eq!(judged(true), Verdict::Violated);
        assert_eq!(judged(false), Verdict::Holds);
    }

    #[test]
    fn what_clients_know_of_configurations_is_judged() {
        let known = |index, servers: &[&str]| KnownConfiguration {
            index,
            name: shape_name(Dap::Ec { k: 3 }, servers),
        };
        let decided = known(1, &["s1", "s2"]);
        assert_eq!(decided.name, "ec3 s1+s2");
        // A reconfiguration, and a read after it by a client that then knows `knows`.
        let judged = |knows: KnownConfiguration, decided: &KnownConfiguration| {
            verdict(Property::Configurations, |one, other| {
                one.begin_change("ec", 0, Some("abd s1+s2".into()));
                one.end_change(ChangeEnd::Decided(decided.clone()));
                reads(other, None, Some(knows));
            })
        };
        assert_eq!(judged(decided.clone(), &decided), Verdict::Holds);
        assert_eq!(judged(known(2, &["s9"]), &decided), Verdict::Holds);
        assert_eq!(judged(known(0, &["s9"]), &decided), Verdict::Violated);
        assert_eq!(judged(known(1, &["s9"]), &decided), Verdict::Violated);
        // It is not after the one that it follows.
        let early = known(0, &["s1", "s2"]);
        assert_eq!(judged(early.clone(), &early), Verdict::Violated);
    }
}
