//! Clients that read, write and delete a few objects, and record what they did and saw.

mod counters;
pub(crate) mod record;
pub(crate) mod value;

pub(crate) use counters::Increments;
pub(crate) use record::Recorder;

use crate::random::Random;
use crate::trouble::Trouble;
use areo_check::Kind;
use areo_client::{Client, ConnectOptions, Domain, Error, PutOptions, Version};
use record::{Ending, Invocation, KnownConfiguration};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// The domains: replicated, erasure-coded, conditional, and conditional at first; at first all on all servers.
pub(crate) const DOMAINS: [&str; 4] = ["abd", "ec", CONDITIONAL, CHANGING];
/// Stays conditional.
pub(crate) const CONDITIONAL: &str = "conditional";
/// Changes between `conditional`, `abd` and `ec`. A client makes conditional writes there while the domain is conditional, as far as
/// the client knows.
pub(crate) const CHANGING: &str = "changing";
/// Few objects, so that clients meet.
const KEYS: u64 = 4;
/// A client lives for about so many operations.
const LIFE: u64 = 1_500;
/// How long an operation may take after everything was mended.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Sentences that are kept; the first tell most.
const SENTENCES_MAX: usize = 20;

/// What clients and troubles share.
pub(crate) struct Shared {
    pub(crate) recorder: RefCell<Recorder>,
    /// How often each trouble happened.
    fired: RefCell<BTreeMap<Trouble, u64>>,
    violations: RefCell<Vec<String>>,
    /// By domain and counter.
    pub(crate) increments: RefCell<BTreeMap<(usize, String), Increments>>,
    kills: Cell<u64>,
    /// Everything works again: operations must succeed now.
    pub(crate) mended: Cell<bool>,
}

impl Shared {
    pub(crate) fn new(recorder: Recorder) -> Shared {
        Shared {
            recorder: RefCell::new(recorder),
            fired: RefCell::default(),
            violations: RefCell::default(),
            increments: RefCell::default(),
            kills: Cell::new(0),
            mended: Cell::new(false),
        }
    }

    pub(crate) fn fired(&self, trouble: Trouble) {
        *self.fired.borrow_mut().entry(trouble).or_default() += 1;
    }

    /// So many servers were ended by kill -9.
    pub(crate) fn killed(&self, servers: u64) {
        self.kills.set(self.kills.get() + servers);
    }

    pub(crate) fn kills(&self) -> u64 {
        self.kills.get()
    }

    /// How often a trouble happened.
    pub(crate) fn count(&self, trouble: Trouble) -> u64 {
        self.fired.borrow().get(&trouble).copied().unwrap_or(0)
    }

    /// A promise was broken.
    pub(crate) fn violation(&self, sentence: String) {
        let mut violations = self.violations.borrow_mut();
        if violations.len() < SENTENCES_MAX {
            violations.push(sentence);
        }
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.violations.borrow().clone()
    }
}

/// How clients work.
#[derive(Clone)]
pub(crate) struct Habits {
    /// The timeout is that of each operation, while there is trouble.
    pub(crate) connect: ConnectOptions,
    pub(crate) seed: Random,
    /// Whether clients end in the middle of operations.
    pub(crate) deaths: bool,
}

/// One place in the workload: a client, and those that follow it. Returns when everything is mended and every kind of
/// operation on every object has succeeded once more.
pub(crate) async fn work(shared: Rc<Shared>, habits: Habits, place: u64) {
    let mut random = habits.seed.derive(1_000 + place);
    for life in 1.. {
        let name = format!("c{place}.{life}");
        let Some(mut worker) = Worker::connect(&shared, &habits, name).await else {
            shared.violation(format!(
                "client {place} found no cluster within {} s after everything was mended",
                PATIENCE.as_secs()
            ));
            return;
        };
        // The very first does not live long, so that a short run has such an end, too.
        let long = if (place, life) == (0, 1) { 20 } else { LIFE };
        if worker
            .live(&mut random, habits.deaths.then_some(long))
            .await
        {
            return worker.finish(&mut random).await;
        }
        shared.fired(Trouble::Client);
    }
}

/// What is to be done.
struct Deed {
    /// By its place in [`DOMAINS`].
    domain: usize,
    kind: Kind,
    key: String,
    /// Of a value that it writes.
    length: usize,
}

fn key(number: u64) -> String {
    format!("k{number}")
}

struct Worker {
    shared: Rc<Shared>,
    name: String,
    domains: Vec<Domain>,
    operations: u64,
}

impl Worker {
    /// Tries until it is connected; `None`: not even long after everything was mended.
    async fn connect(shared: &Rc<Shared>, habits: &Habits, name: String) -> Option<Worker> {
        let mut mended_since: Option<Instant> = None;
        loop {
            if let Ok(domains) = find_domains(habits).await {
                return Some(Worker {
                    shared: shared.clone(),
                    name,
                    domains,
                    operations: 0,
                });
            }
            if shared.mended.get()
                && mended_since.get_or_insert_with(Instant::now).elapsed() > PATIENCE
            {
                return None;
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Works until everything is mended (`true`), or it ends in the middle of an operation. `life`: after about so many.
    async fn live(&mut self, random: &mut Random, life: Option<u64>) -> bool {
        let mut dying = false;
        while !self.shared.mended.get() {
            dying |= life.is_some_and(|life| random.below(life) == 0);
            let death = dying.then(|| Duration::from_micros(random.below(3_000)));
            let domain = random.index(DOMAINS.len());
            let length = value::length(random);
            let ended = if self.has_counters(domain) && random.below(4) > 0 {
                self.change(counters::drawn(domain, random), length, death)
                    .await
                    .map(drop)
            } else {
                let kind = match random.below(20) {
                    0..9 => Kind::Read,
                    9..18 => Kind::Write,
                    _ => Kind::Delete,
                };
                let deed = Deed {
                    domain,
                    kind,
                    key: key(random.below(KEYS)),
                    length,
                };
                self.operation(deed, death).await.map(drop)
            };
            if ended.is_none() {
                return false;
            }
        }
        true
    }

    /// Everything must succeed now.
    async fn finish(&mut self, random: &mut Random) {
        for domain in &mut self.domains {
            *domain = domain.with_timeout(PATIENCE);
        }
        for domain in 0..DOMAINS.len() {
            for key in 0..KEYS {
                for kind in [Kind::Write, Kind::Read] {
                    let deed = Deed {
                        domain,
                        kind,
                        key: self::key(key),
                        length: value::length(random),
                    };
                    if let Some(Err(error)) = self.operation(deed, None).await {
                        self.shared.violation(format!(
                            "a {kind} did not succeed although everything was mended: {error}"
                        ));
                    }
                }
            }
        }
        self.finish_counters(random).await;
    }

    /// One operation, recorded, and how it ended; `None`: it was given up in its middle.
    async fn operation(
        &mut self,
        deed: Deed,
        death: Option<Duration>,
    ) -> Option<Result<Ending, Error>> {
        self.recorded(deed, (None, None), death).await
    }

    /// The same of a write of the value of this number, on this version.
    async fn recorded(
        &mut self,
        deed: Deed,
        (value, based_on): (Option<u64>, Option<Version>),
        death: Option<Duration>,
    ) -> Option<Result<Ending, Error>> {
        self.operations += 1;
        let Deed {
            domain,
            kind,
            key,
            length,
        } = deed;
        let invoked = self.shared.recorder.borrow_mut().invoke(Invocation {
            client: self.name.clone(),
            op: self.operations,
            kind,
            domain,
            key,
            value,
            based_on,
        });
        let act = act(&self.domains[domain], &invoked, length);
        let ended = match death {
            None => Some(act.await),
            Some(death) => timeout(death, act).await.ok(),
        };
        let Some(ended) = ended else {
            let mut recorder = self.shared.recorder.borrow_mut();
            recorder.end(&invoked, &Ending::Unknown, None);
            return None;
        };
        let (ending, result) = match ended {
            Ok(ending) => (ending.clone(), Ok(ending)),
            Err(error) => (self.ending(&error), Err(error)),
        };
        let knows = KnownConfiguration::from(&self.domains[domain].configuration());
        let mut recorder = self.shared.recorder.borrow_mut();
        recorder.end(&invoked, &ending, Some(&knows));
        Some(result)
    }

    /// How a history tells of an error.
    fn ending(&self, error: &Error) -> Ending {
        match error {
            Error::Unknown { .. } => Ending::Unknown,
            Error::Unavailable { .. } => Ending::Fail { found: None },
            // Nothing here damages what is stored, or asks for what cannot be.
            other => {
                let name = &self.name;
                self.shared.violation(format!(
                    "client {name} got an error that nothing explains: {other}"
                ));
                Ending::Fail { found: None }
            }
        }
    }
}

async fn find_domains(habits: &Habits) -> Result<Vec<Domain>, String> {
    let client = Client::connect(habits.connect.clone()).await;
    let client = client.map_err(|error| error.to_string())?;
    let mut domains = Vec::new();
    for name in DOMAINS {
        let domain = client.domain(name).await;
        domains.push(domain.map_err(|error| error.to_string())?);
    }
    Ok(domains)
}

/// Does what was recorded as invoked.
async fn act(domain: &Domain, invoked: &Invocation, length: usize) -> Result<Ending, Error> {
    let key = &invoked.key;
    let ended = match (invoked.kind, invoked.value) {
        (Kind::Write, Some(number)) => {
            let content = value::content(number, length);
            let version = domain.put(key, content, PutOptions::default()).await;
            version.map(|version| Ending::Ok {
                value: Some(value::name(number)),
                version: Some(version),
            })
        }
        (Kind::ConditionalWrite, number) => {
            return counters::decide(domain, key, (number, length), invoked.based_on).await;
        }
        (Kind::Delete, _) => domain.delete(key).await.map(|version| Ending::Ok {
            value: None,
            version: Some(version),
        }),
        _ => domain.get(key).await.map(|object| Ending::Ok {
            version: Some(object.version),
            value: Some(value::recognise(&object.into_bytes())),
        }),
    };
    match ended {
        Err(Error::NotFound { key: Some(_), .. }) => Ok(Ending::Ok {
            value: None,
            version: None,
        }),
        ended => ended,
    }
}
