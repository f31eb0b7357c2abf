//! One client: what it asks of each domain, and where it records what it did and saw.

use super::AnyCaller;
use super::history::{Diary, History, KnownConfiguration};
use super::plan::Store;
use super::{Look, value};
use crate::target::{CallError, Conditional, Cost};
use areo_check::{EventKind, Kind};
use areo_client::Version;
use bytes::Bytes;
use std::time::Duration;

/// The beginning of all keys.
pub(crate) const KEY_PREFIX: &str = "object-";

/// The folder of the objects of values of this size, as listings by `/` show it.
pub(crate) fn folder(size: usize) -> String {
    format!("{KEY_PREFIX}{size}")
}

/// The object of this number, of values of this size.
pub(crate) fn key(size: usize, number: u64) -> String {
    format!("{}/{number:08}", folder(size))
}

/// A client that runs one operation after the other. Stores are named by their places.
pub(crate) struct LoadClient {
    stores: Vec<Store>,
    diary: Option<Diary>,
}

impl LoadClient {
    pub(super) fn new(stores: Vec<Store>, history: Option<&History>) -> LoadClient {
        LoadClient {
            stores,
            diary: history.map(History::client),
        }
    }

    pub(super) fn stores(&self) -> &[Store] {
        &self.stores
    }

    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        for store in &mut self.stores {
            store.caller.set_timeout(timeout);
        }
    }

    /// A number for a value that no other one has, if it is recorded.
    pub(super) fn next_value(&self) -> Option<u64> {
        self.diary.as_ref().map(Diary::next_value)
    }

    fn begin(&mut self, kind: Kind, at: (usize, &str), value: Option<u64>, on: Option<Version>) {
        if let Some(diary) = &mut self.diary {
            let object = (&*self.stores[at.0].name, at.1);
            diary.begin(kind, object, value.map(value::name), on.map(recorded));
        }
    }

    /// Records the end of an operation; of one that succeeded the value that the client `saw`.
    fn end<T>(
        &mut self,
        place: usize,
        done: &Result<T, CallError>,
        saw: impl FnOnce(&T) -> (EventKind, Option<String>, Option<Version>),
    ) {
        let Some(diary) = &mut self.diary else {
            return;
        };
        let event = match done {
            Ok(done) => {
                let (event, value, version) = saw(done);
                let knows = self.stores[place].caller.configuration();
                let knows = knows.as_ref().map(KnownConfiguration::from);
                return diary.end(event, (value, version.map(recorded)), knows);
            }
            Err(CallError::NotApplied(_) | CallError::NotConditional(_)) => EventKind::Fail,
            Err(CallError::Unknown(_) | CallError::Unexpected(_)) => EventKind::Unknown,
        };
        diary.end(event, (None, None), None);
    }

    /// Puts: the value, or one of this size that was never put before if it is recorded.
    pub(super) async fn put(
        &mut self,
        at: (usize, &str),
        (size, content): (usize, &Bytes),
    ) -> Result<Cost, CallError> {
        let number = self.next_value();
        let content = number.map_or_else(|| content.clone(), |it| value::content(it, size));
        self.begin(Kind::Write, at, number, None);
        let done = self.stores[at.0].caller.put(at.1, content).await;
        self.end(at.0, &done, |cost| {
            (EventKind::Ok, number.map(value::name), cost.version)
        });
        done
    }

    pub(super) async fn get(
        &mut self,
        at: (usize, &str),
    ) -> Result<(Option<Bytes>, Cost), CallError> {
        self.begin(Kind::Read, at, None, None);
        let done = self.stores[at.0].caller.get(at.1).await;
        self.end(at.0, &done, |(found, cost)| {
            let found = found.as_deref().map(value::recognise);
            (EventKind::Ok, found, cost.version)
        });
        done
    }

    pub(super) async fn delete(&mut self, at: (usize, &str)) -> Result<Cost, CallError> {
        self.begin(Kind::Delete, at, None, None);
        let done = self.stores[at.0].caller.delete(at.1).await;
        self.end(at.0, &done, |cost| (EventKind::Ok, None, cost.version));
        done
    }

    /// Writes the value of this number and size on this version, or deletes it without a number; nothing if another one has won.
    pub(super) async fn write_on(
        &mut self,
        at: (usize, &str),
        (number, size): (Option<u64>, usize),
        on: Option<Version>,
    ) -> Result<Option<Cost>, CallError> {
        let content = number.map(|number| value::content(number, size));
        self.begin(Kind::ConditionalWrite, at, number, on);
        let done = self.stores[at.0].caller.write_on(at.1, content, on).await;
        self.end(at.0, &done, |done| match done {
            Conditional::Won(cost) => (EventKind::Ok, number.map(value::name), cost.version),
            Conditional::Lost(found) => {
                let found = found.as_ref().map(|object| {
                    let value = value::recognise(&object.clone().into_bytes());
                    (value, object.version)
                });
                let (value, version) = found.unzip();
                (EventKind::Fail, value, version)
            }
        });
        match done? {
            Conditional::Won(cost) => Ok(Some(cost)),
            Conditional::Lost(_) => Ok(None),
        }
    }

    /// The caller for the store at this place. Its calls are not recorded.
    pub(super) fn caller(&mut self, place: usize) -> &mut AnyCaller {
        &mut self.stores[place].caller
    }
}

fn recorded(version: Version) -> areo_check::Version {
    let parsed = version.to_string().parse();
    parsed.expect("versions are written in one way")
}

/// Checks the value that was got. It must exist unless it is not looked at.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(
    key: &str,
    found: Option<&Bytes>,
    (size, look): (usize, Look),
) -> Result<(), String> {
    match found {
        _ if look == Look::Not => Ok(()),
        None => Err(format!("'{key}' is not there")),
        Some(found) if found.len() != size => {
            Err(format!("'{key}' has {} bytes, not {size}", found.len()))
        }
        Some(found) => match (look == Look::Bytes).then(|| value::recognise(found)) {
            Some(read) if !read.starts_with('v') => Err(format!("'{key}' was read as {read}")),
            _ => Ok(()),
        },
    }
}

/// Gets a value that must be there, of this size, with every byte right.
pub(crate) async fn get(
    caller: &mut dyn crate::target::Caller,
    key: &str,
    size: usize,
) -> Result<Cost, String> {
    let (found, cost) = caller.get(key).await?;
    check(key, found.as_ref(), (size, Look::Bytes)).map(|()| cost)
}
