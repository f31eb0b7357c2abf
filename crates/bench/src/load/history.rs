//! What clients did and saw, as `areo-lab check` judges it: every value is another one then, and looked at byte by byte.

use crate::target::TargetName;
use crate::workload::record::{Ending, Invocation, KnownConfiguration};
use crate::workload::{Recorder, value};
use areo_check::Kind;
use areo_client::{ConfigurationInfo, Version};
use bytes::Bytes;
use std::cell::{Cell, RefCell, RefMut};
use std::io;
use std::path::Path;
use std::rc::Rc;

/// Each store is a domain of the history.
const DOMAINS: [&str; TargetName::ALL.len()] = {
    let mut words = [""; TargetName::ALL.len()];
    let mut place = 0;
    while place < words.len() {
        words[place] = TargetName::ALL[place].word();
        place += 1;
    }
    words
};

/// A history on its way to a file.
#[derive(Clone)]
pub struct History {
    recorder: Rc<RefCell<Recorder>>,
    domains: &'static [&'static str],
    clients: Rc<Cell<u64>>,
}

impl History {
    /// A new file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path) -> io::Result<History> {
        History::of(path, &DOMAINS)
    }

    /// The same of these domains.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn of(path: &Path, domains: &'static [&'static str]) -> io::Result<History> {
        Ok(History::new(Recorder::create(path, domains)?, domains))
    }

    pub(super) fn new(recorder: Recorder, domains: &'static [&'static str]) -> History {
        History {
            recorder: Rc::new(RefCell::new(recorder)),
            domains,
            clients: Rc::default(),
        }
    }

    /// Everything is in the file now.
    ///
    /// # Errors
    /// It is not.
    pub fn finish(&self) -> io::Result<()> {
        self.recorder.borrow_mut().finish()
    }

    /// Where reconfigurations are recorded.
    pub(crate) fn recorder(&self) -> RefMut<'_, Recorder> {
        self.recorder.borrow_mut()
    }

    /// A new client of this domain.
    pub(super) fn client(&self, domain: &str) -> Diary {
        let number = self.clients.get() + 1;
        self.clients.set(number);
        let domain = self.domains.iter().position(|name| *name == domain);
        Diary {
            recorder: self.recorder.clone(),
            client: format!("c{number}"),
            domain: domain.expect("all of them are there"),
            operations: 0,
            under_way: None,
        }
    }
}

/// What one client did and saw, one operation after the other. One that is under way when this is dropped has ended unknown.
pub(crate) struct Diary {
    recorder: Rc<RefCell<Recorder>>,
    client: String,
    domain: usize,
    operations: u64,
    under_way: Option<Invocation>,
}

impl Diary {
    /// A put begins: its value.
    pub(super) fn puts(&mut self, key: &str, size: usize) -> Bytes {
        let number = self.begin(Kind::Write, key);
        value::content(number.expect("the recorder gives it one"), size)
    }

    /// A get begins.
    pub(super) fn gets(&mut self, key: &str) {
        self.begin(Kind::Read, key);
    }

    fn begin(&mut self, kind: Kind, key: &str) -> Option<u64> {
        self.operations += 1;
        let invoked = self.recorder.borrow_mut().invoke(Invocation {
            client: self.client.clone(),
            op: self.operations,
            kind,
            domain: self.domain,
            key: key.into(),
            value: None,
            based_on: None,
        });
        let number = invoked.value;
        self.under_way = Some(invoked);
        number
    }

    /// The put succeeded, with this version, and the client knows this configuration by now, if the store has such.
    pub(super) fn has_put(&mut self, version: Option<Version>, knows: Option<&ConfigurationInfo>) {
        let invoked = self.under_way.as_ref();
        let value = invoked.and_then(|invoked| invoked.value).map(value::name);
        self.end(&Ending::Ok { value, version }, knows);
    }

    /// The get succeeded.
    pub(super) fn has_got(
        &mut self,
        found: Option<&Bytes>,
        version: Option<Version>,
        knows: Option<&ConfigurationInfo>,
    ) {
        let value = found.map(|bytes| value::recognise(bytes));
        self.end(&Ending::Ok { value, version }, knows);
    }

    /// It failed. A put may have had its effect, or have it later.
    pub(super) fn has_failed(&mut self) {
        match self.under_way.as_ref().map(|invoked| invoked.kind) {
            Some(Kind::Write) => self.end(&Ending::Unknown, None),
            _ => self.end(&Ending::Fail { found: None }, None),
        }
    }

    fn end(&mut self, ending: &Ending, knows: Option<&ConfigurationInfo>) {
        if let Some(invoked) = self.under_way.take() {
            let knows = knows.map(KnownConfiguration::from);
            let mut recorder = self.recorder.borrow_mut();
            recorder.end(&invoked, ending, knows.as_ref());
        }
    }
}

impl Drop for Diary {
    fn drop(&mut self) {
        self.end(&Ending::Unknown, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::record::tests::Memory;
    use areo_check::{Property, Verdict, judge};

    /// The verdict of the judge on the history of these clients.
    fn verdict(clients: impl FnOnce(&mut Diary, &mut Diary)) -> Verdict {
        let memory = Memory::default();
        let history = History::new(Recorder::new(Box::new(memory.clone()), &DOMAINS), &DOMAINS);
        let mut one = history.client("etcd");
        let mut other = history.client("etcd");
        clients(&mut one, &mut other);
        drop((one, other));
        history.finish().unwrap();
        let read = areo_check::History::read(&memory.bytes()[..]).unwrap();
        judge(&read).property(Property::Linearizable).verdict
    }

    fn puts(diary: &mut Diary) -> Bytes {
        let value = diary.puts("k", 20);
        diary.has_put(None, None);
        value
    }

    #[test]
    fn what_was_put_is_what_is_got() {
        let right = verdict(|one, other| {
            let (old, new) = (puts(one), puts(one));
            assert_ne!(old, new, "every value is another one");
            other.gets("k");
            other.has_got(Some(&new), None, None);
        });
        assert_eq!(right, Verdict::Holds);
        let stale = verdict(|one, other| {
            let old = puts(one);
            puts(one);
            other.gets("k");
            other.has_got(Some(&old), None, None);
        });
        assert_eq!(stale, Verdict::Violated);
        let damaged = verdict(|one, other| {
            let value = puts(one);
            other.gets("k");
            other.has_got(Some(&value.slice(1..)), None, None);
        });
        assert_eq!(damaged, Verdict::Violated);
        let lost = verdict(|one, other| {
            puts(one);
            other.gets("k");
            other.has_got(None, None, None);
        });
        assert_eq!(lost, Verdict::Violated);
    }

    #[test]
    fn what_failed_or_was_given_up_may_have_happened() {
        for gives_up in [false, true] {
            for happened in [false, true] {
                let judged = verdict(|one, other| {
                    let old = puts(one);
                    let new = one.puts("k", 20);
                    if !gives_up {
                        one.has_failed();
                    }
                    other.gets("k");
                    other.has_got(Some(if happened { &new } else { &old }), None, None);
                    other.gets("k");
                    other.has_failed();
                });
                assert_eq!(judged, Verdict::Holds, "{gives_up} {happened}");
            }
        }
    }
}
