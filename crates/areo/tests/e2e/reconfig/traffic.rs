//! Clients that read and write all the time, and write down what they saw.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::wait_until;
use areo_check::{Event, EventKind, Kind};
use areo_client::blocking::wait;
use areo_client::{Client, ConnectOptions, Domain, Error, Version};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Objects that they share, so that their operations meet.
const KEYS: u64 = 3;
const WRITERS: u64 = 2;
const READERS: u64 = 2;
/// Larger than what erasure coding keeps as a copy.
const VALUE_BYTES: usize = 20_000;

/// Clients that work in the background.
pub(crate) struct Traffic {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    begun: Instant,
    stop: AtomicBool,
    completed: AtomicU64,
    history: Mutex<Vec<u8>>,
}

impl Shared {
    fn write(&self, mut event: Event<'_>) {
        let mut history = self.history.lock().unwrap();
        // Taken with the lock, so that lines are in the order of their times.
        event.t = u64::try_from(self.begun.elapsed().as_nanos()).unwrap();
        event.write(&mut *history).unwrap();
    }
}

impl Traffic {
    /// Starts clients, each with a thread, which pause for this time after each operation.
    pub(crate) fn start(options: &ConnectOptions, domain: &str, pause: Duration) -> Traffic {
        let shared = Arc::new(Shared {
            begun: Instant::now(),
            stop: AtomicBool::new(false),
            completed: AtomicU64::new(0),
            history: Mutex::default(),
        });
        let work = |number: u64| {
            let client = wait(Client::connect(options.clone())).unwrap();
            let domain = wait(client.domain(domain)).unwrap();
            let shared = shared.clone();
            thread::spawn(move || run(&shared, number, &domain, pause))
        };
        let threads = (0..WRITERS + READERS).map(work).collect();
        Traffic { shared, threads }
    }

    /// Waits until every client may have completed several operations more.
    pub(crate) fn goes_on(&self) {
        let completed = || self.shared.completed.load(Ordering::Relaxed);
        let enough = completed() + 8 * (WRITERS + READERS);
        let ended = || self.threads.iter().any(JoinHandle::is_finished);
        wait_until(|| completed() >= enough || ended());
    }

    /// Stops the clients and returns their history. Fails if an operation failed.
    pub(crate) fn stop(mut self) -> Vec<u8> {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("no operation fails");
        }
        std::mem::take(&mut self.shared.history.lock().unwrap())
    }
}

fn run(shared: &Shared, number: u64, domain: &Domain, pause: Duration) {
    let name = format!("client-{number}");
    for op in 0.. {
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let key = format!("shared-{}", (op + number) % KEYS);
        let (kind, text) = match number < WRITERS {
            true => (Kind::Write, Some(format!("{name}-{op}"))),
            false => (Kind::Read, None),
        };
        let event = |event, value: Option<String>, version: Option<Version>| Event {
            value: value.map(Into::into),
            version: version.map(|v| v.to_string().parse().expect("both write versions alike")),
            ..Event::new(0, name.clone(), op, event, kind, "files", key.clone())
        };
        shared.write(event(EventKind::Invoke, text.clone(), None));
        let ended = match &text {
            Some(text) => write(domain, &key, text),
            None => read(domain, &key),
        };
        let (value, version) =
            ended.unwrap_or_else(|error| panic!("{kind} {op} of {name}: {error}"));
        shared.write(event(EventKind::Ok, value, version));
        shared.completed.fetch_add(1, Ordering::Relaxed);
        thread::sleep(pause);
    }
}

/// The value that was read, if any, and the version that was read or written.
type SeenVersion = (Option<String>, Option<Version>);

/// Writes the text, followed by enough to make a value of it.
fn write(domain: &Domain, key: &str, text: &str) -> Result<SeenVersion, Error> {
    let value = format!("{text:_<VALUE_BYTES$}");
    let version = wait(domain.put(key, value))?;
    Ok((None, Some(version)))
}

fn read(domain: &Domain, key: &str) -> Result<SeenVersion, Error> {
    match wait(domain.get(key)) {
        Ok(object) => {
            let version = object.version;
            let value = String::from_utf8(object.into_bytes().into()).unwrap();
            assert_eq!(value.len(), VALUE_BYTES, "a value is whole");
            let text = value.trim_end_matches('_').to_owned();
            Ok((Some(text), Some(version)))
        }
        Err(Error::NotFound { .. }) => Ok((None, None)),
        Err(error) => Err(error),
    }
}
