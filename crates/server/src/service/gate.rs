//! Lets a message of a caller through, refuses it, or has it wait until the server knows enough to judge it.

use std::cell::{Cell, Ref};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use areo_core::config::Configuration;
use areo_core::dsm::Client;
use areo_core::dsm::completion::Completed;
use areo_core::manager::Root;
use areo_core::message::{Note, Refusal, Reply, Request};
use areo_core::object::DomainId;
use areo_net::env::NetEnv;
use areo_net::{Origin, Responder};
use areo_wire::codec;
use areo_wire::frame::TraceContext;
use tokio::sync::Semaphore;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, timeout};

use super::judge::{Judge, Knowledge, Lacking, Standing, Verdict};
use super::names::{NamedDomain, Names, Registered};
use super::need::{Hearsay, Table, hearsay};
use super::others::Inquiry;
use crate::caller::Caller;
use crate::worker::Worker;

/// The longest wait of a request for the facts that it is judged by.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest wait until a version is complete.
const COMPLETION: Duration = Duration::from_secs(5);
/// The pause before other servers are asked again.
const PAUSE: Duration = Duration::from_millis(50);
/// Requests that may wait at once; others are refused as busy.
const WAITING: usize = 256;
/// Requests for which other servers are asked at once.
const INQUIRIES: usize = 8;

/// A request with everything that is needed to answer it.
pub(crate) struct Asked {
    pub(crate) request: Request,
    pub(crate) responder: Responder,
    pub(crate) remaining: Option<Duration>,
    pub(crate) trace: Option<TraceContext>,
}

/// The end of a request's wait.
enum Ending {
    /// The worker gets it.
    Pass,
    /// The worker gets this in its place.
    Replace(Request),
    /// The message is answered with this.
    Answer(Reply),
    /// Its caller lacks something.
    Refuse(Lacking),
    /// The client goes on with others, and asks again.
    Later,
}

/// The place between the connections and the worker, where callers are judged.
pub(crate) struct Gate {
    worker: Rc<Worker>,
    table: Table,
    names: Names,
    registered: Registered,
    /// A look for a server whose note was dropped is under way.
    is_looking: Cell<bool>,
    waiting: Cell<usize>,
    asking: Semaphore,
}

impl Gate {
    pub(crate) fn new(worker: &Rc<Worker>, root: DomainId) -> Rc<Gate> {
        Rc::new(Gate {
            worker: Rc::clone(worker),
            table: Table { root },
            names: Names::default(),
            registered: Registered::default(),
            is_looking: Cell::new(false),
            waiting: Cell::new(0),
            asking: Semaphore::new(INQUIRIES),
        })
    }

    /// Passes a request on, refuses it, or lets it wait until the caller's rights are known.
    pub(crate) fn request(self: &Rc<Gate>, asked: Asked) {
        match self.judge(&asked.request, asked.responder.origin()) {
            Verdict::Allowed => self.pass(asked),
            Verdict::Lacking(lacking) => self.refuse_for(asked.responder, lacking),
            _ if self.waiting.get() == WAITING => self.refuse(asked.responder, Refusal::Busy),
            Verdict::Unnamed | Verdict::Unregistered | Verdict::Unheard | Verdict::Completed => {
                self.waiting.set(self.waiting.get() + 1);
                spawn_local(Rc::clone(self).wait(asked));
            }
        }
    }

    /// Takes a note. One that its sender may not send is dropped.
    pub(crate) fn note(self: &Rc<Self>, note: Note, origin: &Origin) {
        let verdict = self.judging().note(&note, self.standing(origin));
        match verdict {
            Verdict::Allowed => self.worker.note(note),
            Verdict::Unregistered => self.look_beside(),
            Verdict::Lacking(Lacking::Certificate) => {
                tracing::warn!(?origin, "a note that is a server's, from another caller");
            }
            _ => {
                tracing::debug!(?origin, "a note of a caller that may not send it");
            }
        }
    }

    fn pass(&self, asked: Asked) {
        if asked.request == Request::View {
            let view = Reply::View(Box::new(self.worker.view()));
            return answer(asked.responder, &view);
        }
        let Asked {
            request,
            responder,
            remaining,
            trace,
        } = asked;
        let caller = Caller::connection(responder, &request, self.worker.arrival(), trace);
        self.worker.request(request, caller, remaining);
    }

    /// Passes a request on that has waited.
    fn pass_late(&self, asked: Asked) {
        self.pass(asked);
        self.worker.turn();
    }

    fn refuse(&self, responder: Responder, refusal: Refusal) {
        self.worker.count_refused(refusal);
        responder.refuse(refusal, &[][..]);
    }

    /// Refuses a request with a sentence that says what its caller lacks.
    fn refuse_for(&self, responder: Responder, lacking: Lacking) {
        let ticket = match responder.origin() {
            Origin::Key(ticket) => Some(ticket),
            Origin::Plain | Origin::Anonymous | Origin::Server(_) => None,
        };
        let sentence = lacking.sentence(ticket.map(|ticket| ticket.key));
        let gateway = ticket.and_then(|ticket| ticket.gateway);
        let gateway = gateway.map(|gateway| tracing::field::display(gateway.key));
        let remote = responder.connection().remote();
        tracing::debug!(%remote, gateway, %sentence, "a request of a caller that may not send it");
        self.worker.count_refused(Refusal::Unauthorised);
        responder.refuse(Refusal::Unauthorised, sentence.as_bytes());
    }

    async fn wait(self: Rc<Gate>, asked: Asked) {
        let begun = Instant::now();
        let ending = self.ending(&asked.request, asked.responder.origin()).await;
        self.waiting.set(self.waiting.get() - 1);
        let waited = begun.elapsed();
        let remaining = asked.remaining.map(|time| time.saturating_sub(waited));
        match ending {
            Ending::Pass => self.pass_late(Asked { remaining, ..asked }),
            Ending::Replace(request) => self.pass_late(Asked {
                request,
                remaining,
                ..asked
            }),
            Ending::Answer(reply) => answer(asked.responder, &reply),
            Ending::Refuse(lacking) => self.refuse_for(asked.responder, lacking),
            Ending::Later => self.refuse(asked.responder, Refusal::Starting),
        }
    }

    async fn ending(&self, request: &Request, origin: &Origin) -> Ending {
        match timeout(PATIENCE, self.settle(request, origin)).await {
            Ok(Verdict::Allowed) => Ending::Pass,
            Ok(Verdict::Lacking(lacking)) => Ending::Refuse(lacking),
            Ok(Verdict::Completed) => match timeout(COMPLETION, self.complete(request)).await {
                Ok(Some(Completed::PassedOn)) => Ending::Pass,
                Ok(Some(Completed::Replaced(request))) => Ending::Replace(request),
                Ok(Some(Completed::Answered(reply))) => Ending::Answer(reply),
                Ok(Some(Completed::Unfounded)) => {
                    let lacking = self.judging().lacking(request, self.standing(origin));
                    lacking.map_or(Ending::Later, Ending::Refuse)
                }
                Ok(None) | Err(_) => Ending::Later,
            },
            Ok(Verdict::Unnamed | Verdict::Unregistered | Verdict::Unheard) | Err(_) => {
                Ending::Later
            }
        }
    }

    /// Completes the versions of the request, or decides its cell, under this server's own certificate. `None`: not yet.
    async fn complete(&self, request: &Request) -> Option<Completed> {
        let completing = self.asking.acquire().await;
        let _place = completing.expect("the semaphore is never closed");
        let Request::Configured { configuration, .. } = request else {
            return None;
        };
        let known = match self.worker.latest(configuration) {
            Some(latest) => latest,
            None if configuration.domain == self.table.root => self.worker.root()?,
            // This one may be pending, and have nothing yet.
            None => self.first_of(configuration.domain).await?,
        };
        self.client()?.complete_for(&known, request).await
    }

    /// Finds the facts that the request is judged by.
    async fn settle(&self, request: &Request, origin: &Origin) -> Verdict {
        let mut has_looked = false;
        loop {
            match self.judge(request, origin) {
                Verdict::Unnamed if has_looked => return Verdict::Lacking(Lacking::Domain),
                Verdict::Unnamed => has_looked = self.look().await,
                Verdict::Unregistered if has_looked => {
                    return Verdict::Lacking(Lacking::Registration);
                }
                Verdict::Unregistered => has_looked = self.look_for_servers().await,
                Verdict::Unheard => self.inquire(request, origin).await,
                verdict => return verdict,
            }
            sleep(PAUSE).await;
        }
    }

    /// Asks other servers for the configurations that the request passes on, a few requests at a time.
    async fn inquire(&self, request: &Request, origin: &Origin) {
        let asking = self.asking.acquire().await;
        let _place = asking.expect("the semaphore is never closed");
        if self.judge(request, origin) != Verdict::Unheard {
            return;
        }
        let passed_on = hearsay(request).expect("it passes something on that was not heard");
        let first = self.first_of(passed_on.configuration.domain).await;
        if let Some(client) = self.client() {
            let inquiry = Inquiry {
                client: &client,
                worker: &self.worker,
            };
            inquiry.ask(&passed_on, first.as_ref()).await;
        }
    }

    fn client(&self) -> Option<Client<NetEnv>> {
        let network = self.worker.network()?;
        Some(Client::new(network.env(COMPLETION)))
    }

    /// The root domain, where this server knows it to be.
    fn root(&self) -> Option<Root<NetEnv>> {
        Some(self.client()?.root(&self.worker.root()?))
    }

    /// Reads the names of all domains. False: that was not possible.
    async fn look(&self) -> bool {
        let Some(root) = self.root() else {
            return false;
        };
        self.names.look(&root).await.is_ok()
    }

    /// Reads which servers are registered. False: that was not possible.
    async fn look_for_servers(&self) -> bool {
        let Some(root) = self.root() else {
            return false;
        };
        let Ok(found) = self.registered.look(&root).await else {
            return false;
        };
        for record in found {
            self.worker
                .request(Request::Know(record), Caller::nobody(), None);
        }
        self.worker.turn();
        true
    }

    /// Reads which servers are registered, for the notes that come later.
    fn look_beside(self: &Rc<Self>) {
        if !self.is_looking.replace(true) {
            let gate = Rc::clone(self);
            spawn_local(async move {
                gate.look_for_servers().await;
                gate.is_looking.set(false);
            });
        }
    }
}

/// Answers with a reply without elements.
fn answer(responder: Responder, reply: &Reply) {
    responder.reply(&codec::encode_reply(reply).body, &[]);
}

/// This server's knowledge, for judging.
struct Known<'a> {
    names: Ref<'a, HashMap<DomainId, NamedDomain>>,
    worker: &'a Worker,
}

impl Knowledge for Known<'_> {
    fn name_of(&self, domain: DomainId) -> Option<&str> {
        self.names.get(&domain).map(|named| &*named.name)
    }

    fn has_heard(&self, passed_on: &Hearsay<'_>) -> bool {
        self.worker.has_heard(passed_on)
    }
}

impl Gate {
    fn judge(&self, request: &Request, origin: &Origin) -> Verdict {
        self.judging().request(request, self.standing(origin))
    }

    fn judging(&self) -> Judge<Known<'_>> {
        Judge {
            table: self.table,
            knowledge: Known {
                names: self.names.known.borrow(),
                worker: &self.worker,
            },
        }
    }

    fn standing<'a>(&self, origin: &'a Origin) -> Standing<'a> {
        match origin {
            Origin::Plain => Standing::Plain,
            Origin::Anonymous => Standing::Stranger,
            Origin::Server(server) => {
                let known = [
                    self.worker.has_forgotten(*server),
                    self.registered.has_forgotten(*server),
                ];
                // What is forgotten stays so: of two answers that one is the later.
                match known.into_iter().flatten().max() {
                    Some(true) => Standing::Forgotten(*server),
                    Some(false) => Standing::Server(*server),
                    None => Standing::Unregistered(*server),
                }
            }
            Origin::Key(ticket) => Standing::Key(&ticket.grants),
        }
    }

    /// The configuration with which the domain began, by the directory. `None` of the root domain.
    async fn first_of(&self, domain: DomainId) -> Option<Arc<Configuration>> {
        let known = || Some(self.names.known.borrow().get(&domain)?.first.clone());
        if domain != self.table.root && known().is_none() {
            self.look().await;
        }
        known()
    }
}
