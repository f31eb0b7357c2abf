//! `areo-lab probe s3`: what an endpoint of S3 promises, by trying.
//!
//! Clients send requests of S3 to all endpoints at once, case by case ([`Case`]). Each operation is noted with its begin and its end, `judge` has the history judged by
//! `areo-check`, and a violation is shown by the smallest set of operations. Nothing but requests of S3 is needed, so that any store can be probed.
//!
//! | module | is |
//! |---|---|
//! | `endpoint`, `credentials` | input |
//! | `http`, `store`, `xml` | signed requests, and what their answers mean |
//! | `run` | clients, the record of their operations, and removal |
//! | `cases` | what is asked |
//! | `operation`, `history`, `judge` | what was done, as a history, and its verdict |
//! | `report`, `page` | the verdict as text and JSON, and as a page |

mod cases;
mod credentials;
mod endpoint;
mod history;
mod http;
mod judge;
mod operation;
mod page;
mod report;
mod run;
mod store;
mod xml;

pub use cases::Case;
pub use credentials::Credentials;
pub use endpoint::Endpoint;
pub use operation::ShownOperation;
pub use page::page;
pub use report::{CaseReport, Report, StartupReport, Verdict, ViolationReport};

use ::http::Method;
use cases::away;
use operation::{Ending, Operation};
use run::Run;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::{NOT_SENT, Reply, Store, call};
use tokio::time::sleep;

/// The settings of a probe.
pub struct Options {
    /// Gateways of one store, at least one.
    pub endpoints: Vec<Endpoint>,
    /// The key that signs requests.
    pub credentials: Credentials,
    /// A bucket that exists. `None`: the run makes one of its own.
    pub bucket: Option<String>,
    /// The longest time for a request.
    pub patience: Duration,
    /// Certificates of CAs in PEM, beside `https`. `None`: those of the system.
    pub ca: Option<PathBuf>,
    /// A number that no other run on this store has.
    pub seed: u64,
    /// The settings of the cases.
    pub plan: Plan,
}

/// The settings of the cases.
pub struct Plan {
    /// Clients that write at once.
    pub writers: usize,
    /// The number of races of the writers.
    pub rounds: usize,
    /// A command of a shell that takes a minority of the servers away.
    pub minority_away: Option<String>,
    /// A command that stops enough servers that no quorum is left.
    pub quorum_away: Option<String>,
    /// A command that brings them back.
    pub back: Option<String>,
}

/// Why there is no verdict.
#[derive(Debug)]
pub enum ProbeError {
    /// Options that cannot be.
    Input(String),
    /// An endpoint does not answer.
    Unreachable(String),
    /// The endpoint refuses the credentials.
    Unauthorised(String),
    /// The named bucket does not exist.
    NoBucket(String),
    /// A case could not be drawn.
    Other(String),
}

/// A probe of a store.
pub struct Probe {
    plan: Plan,
    region: String,
    run: Arc<Run>,
    /// The operations of all cases.
    history: Mutex<Vec<Operation>>,
}

impl Probe {
    /// A probe that has not sent anything yet.
    ///
    /// # Errors
    /// [`ProbeError::Input`]: the file of CAs.
    pub fn new(options: Options) -> Result<Probe, ProbeError> {
        let Options {
            endpoints,
            credentials,
            bucket,
            patience,
            ca,
            seed,
            plan,
        } = options;
        let is_https = endpoints.iter().any(|one| one.is_https);
        let tls = is_https.then(|| http::tls(ca.as_deref()));
        let tls = tls.transpose().map_err(ProbeError::Input)?;
        let name = format!("areo-probe-{seed:x}");
        let region = credentials.region.clone();
        let is_own_bucket = bucket.is_none();
        let store = Store {
            caller: http::Caller::new(endpoints, credentials, tls, patience),
            bucket: bucket.unwrap_or_else(|| name.clone()),
        };
        Ok(Probe {
            plan,
            region,
            run: Arc::new(Run::new(store, format!("{name}/"), is_own_bucket)),
            history: Mutex::default(),
        })
    }

    /// Makes the bucket, or looks for it, at all endpoints.
    ///
    /// # Errors
    /// An endpoint does not answer, refuses the credentials, or has no such bucket.
    pub async fn begin(&self) -> Result<(), ProbeError> {
        if self.run.is_own_bucket {
            let document = match self.region.as_str() {
                "us-east-1" => String::new(),
                region => format!(
                    "<CreateBucketConfiguration><LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
                ),
            };
            let create = call(Method::PUT, "", &document);
            // An interrupted request may have made it.
            self.run.is_made.store(true, Ordering::Relaxed);
            let created = self.run.store.send(0, create, None).await;
            if created.ending != Ending::Done {
                let may_be_made = created.ending == Ending::Unknown;
                self.run.is_made.store(may_be_made, Ordering::Relaxed);
                return Err(self.refusal(0, "create the bucket", &created));
            }
        }
        for endpoint in 0..self.run.endpoints() {
            let mut attempts = 20;
            loop {
                let head = call(Method::HEAD, "", "");
                let found = self.run.store.send(endpoint, head, None).await;
                attempts -= 1;
                match found.ending {
                    Ending::Done => break,
                    // Another gateway may hear of a new bucket late.
                    Ending::ConditionFailed if self.run.is_own_bucket && attempts > 0 => {
                        sleep(Duration::from_millis(100)).await;
                    }
                    _ => return Err(self.refusal(endpoint, "find the bucket", &found)),
                }
            }
        }
        Ok(())
    }

    fn refusal(&self, endpoint: usize, what: &str, reply: &Reply) -> ProbeError {
        let at = &self.run.store.caller.endpoints[endpoint];
        let (bucket, answer) = (&self.run.store.bucket, &reply.text);
        match reply.answer.as_ref().map(|answer| answer.status) {
            None => {
                let why = answer.trim_start_matches(NOT_SENT);
                ProbeError::Unreachable(format!("{at} does not answer: {why}"))
            }
            Some(401 | 403) => ProbeError::Unauthorised(format!(
                "{at} does not let this key {what} {bucket}: {answer}"
            )),
            Some(404) => ProbeError::NoBucket(format!(
                "{at} has no bucket {bucket}: create it, or leave --bucket out"
            )),
            Some(_) => ProbeError::Other(format!("{at} does not {what} {bucket}: {answer}")),
        }
    }

    /// Draws all cases. `observe` gets the name of each case before it begins.
    ///
    /// # Errors
    /// A command of the user failed, or the store did not come back.
    pub async fn draw(&self, observe: impl Fn(Case)) -> Result<Report, ProbeError> {
        let began = Instant::now();
        let endpoints = self.run.store.caller.endpoints.iter();
        let shown: Vec<String> = endpoints.map(ToString::to_string).collect();
        let mut reports = Vec::new();
        for case in Case::ALL {
            if let Err(sentence) = case.is_possible(&self.plan) {
                reports.push(CaseReport::not_drawn(case, sentence));
                continue;
            }
            observe(case);
            let remarks = cases::draw(case, &self.run, &self.plan).await;
            let remarks = remarks.map_err(ProbeError::Other)?;
            let notes = self.run.take();
            reports.push(CaseReport::of(case, &notes, remarks, &shown));
            let mut history = self.history.lock().expect("no holder of the lock panics");
            history.extend(notes.operations);
        }
        let writers = self.plan.writers;
        let bucket = self.run.store.bucket.clone();
        Ok(Report::new(
            shown,
            bucket,
            writers,
            reports,
            began.elapsed(),
        ))
    }

    /// Brings servers back, and removes everything that the run has made. It may be called at any moment after [`draw`](Probe::draw) has ended or was dropped.
    ///
    /// # Errors
    /// A sentence: what is left.
    pub async fn remove(&self) -> Result<(), String> {
        let back = away::back(&self.run, self.plan.back.as_deref()).await;
        self.run.remove().await?;
        back
    }

    /// Writes the history of all cases as JSON lines, which `areo-lab check` judges.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_history(&self, out: &mut impl Write) -> io::Result<()> {
        let history = self.history.lock().expect("no holder of the lock panics");
        let versions = history::Versions::of(&history);
        let places: Vec<usize> = (0..history.len()).collect();
        for event in history::events(&history, &places, &versions) {
            event.write(out)?;
        }
        Ok(())
    }
}
