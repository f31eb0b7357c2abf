//! Connections to the admin port: bounded, each with a time for the head of a request, and the oldest idle one goes for a new one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::guard::{Ends, Guard, NotShown, Visit};

/// The longest time for the head of a request, and for the wait for the next request of a connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest time for which the other side may acknowledge nothing.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause when the operating system has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The connections to the admin port.
pub(crate) struct Door {
    places: usize,
    /// Judges callers; `None`: the cluster has no keys.
    guard: Option<Rc<Guard>>,
    next_id: Cell<u64>,
    /// Open connections by their number, so the oldest one first.
    visitors: RefCell<BTreeMap<u64, Rc<Visitor>>>,
    displaced: Cell<u64>,
}

/// The state of one connection to the admin port.
#[derive(Default)]
struct Visitor {
    /// Requests that are being answered.
    at_work: Cell<usize>,
    leave: Notify,
    is_leaving: Cell<bool>,
}

impl Door {
    /// A door for this number of simultaneous connections.
    pub(crate) fn new(places: usize, guard: Option<Guard>) -> Rc<Door> {
        Rc::new(Door {
            places,
            guard: guard.map(Rc::new),
            next_id: Cell::new(0),
            visitors: RefCell::default(),
            displaced: Cell::new(0),
        })
    }

    /// Connections that are open.
    pub(crate) fn open(&self) -> usize {
        let visitors = self.visitors.borrow();
        let staying = visitors
            .values()
            .filter(|visitor| !visitor.is_leaving.get());
        staying.count()
    }

    /// Idle connections that were closed for others.
    pub(crate) fn displaced(&self) -> u64 {
        self.displaced.get()
    }

    /// Accepts and answers for ever.
    pub(crate) async fn serve(self: Rc<Self>, listener: TcpListener, router: Router) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // One that waits to be served counts already.
                    if self.open() < self.places || self.send_one_away() {
                        let (id, visitor) = self.enter();
                        let serving = answer(stream, visitor, self.guard.clone(), router.clone());
                        let door = Rc::clone(&self);
                        spawn_local(async move {
                            serving.await;
                            door.visitors.borrow_mut().remove(&id);
                        });
                    }
                }
                // The caller was faster.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept on the admin port");
                    self.send_one_away();
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Closes the oldest connection that has no request under way. False: there is none.
    fn send_one_away(&self) -> bool {
        let visitors = self.visitors.borrow();
        let is_idle =
            |visitor: &&Rc<Visitor>| visitor.at_work.get() == 0 && !visitor.is_leaving.get();
        let Some(oldest) = visitors.values().find(is_idle) else {
            return false;
        };
        oldest.is_leaving.set(true);
        oldest.leave.notify_one();
        self.displaced.set(self.displaced.get() + 1);
        true
    }

    fn enter(&self) -> (u64, Rc<Visitor>) {
        let (id, visitor) = (self.next_id.get(), Rc::<Visitor>::default());
        self.next_id.set(id + 1);
        self.visitors.borrow_mut().insert(id, Rc::clone(&visitor));
        (id, visitor)
    }
}

async fn judge(
    guard: Option<&Guard>,
    request: &Request<Incoming>,
    visit: &Visit,
) -> Result<(), NotShown> {
    let Some(guard) = guard else {
        return Ok(());
    };
    let shown = request.headers().get(header::AUTHORIZATION);
    let shown = shown.and_then(|shown| shown.to_str().ok());
    guard.judge(request.uri().path(), shown, visit).await
}

fn refusal(refused: &NotShown) -> Response<Body> {
    let (code, challenge) = match refused {
        NotShown::NoKey { .. } | NotShown::Unreadable { .. } => {
            (StatusCode::UNAUTHORIZED, Some("Bearer"))
        }
        NotShown::Elsewhere | NotShown::Key(_) => (StatusCode::FORBIDDEN, None),
    };
    let mut response = Response::new(Body::from(format!("{refused}\n")));
    *response.status_mut() = code;
    if let Some(challenge) = challenge {
        let challenge = header::HeaderValue::from_static(challenge);
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Answers the requests of one connection until it ends, or is to leave.
async fn answer(stream: TcpStream, visitor: Rc<Visitor>, guard: Option<Rc<Guard>>, router: Router) {
    if let Err(error) = areo_net::prepare_accepted(&stream, SILENCE_TIMEOUT) {
        tracing::debug!(%error, "options of a socket not set");
    }
    let ends = match (stream.local_addr(), stream.peer_addr()) {
        (Ok(own), Ok(caller)) => Ends { own, caller },
        // It is gone.
        _ => return,
    };
    let visit = Rc::new(Visit::new(ends));
    let router = TowerToHyperService::new(router);
    let worker = Rc::clone(&visitor);
    let service = service_fn(move |request: Request<Incoming>| {
        let (visitor, visit) = (Rc::clone(&worker), Rc::clone(&visit));
        let (guard, router) = (guard.clone(), router.clone());
        visitor.at_work.set(visitor.at_work.get() + 1);
        async move {
            let judged = judge(guard.as_deref(), &request, &visit).await;
            let answer: Result<Response<Body>, Infallible> = match judged {
                Ok(()) => router.call(request).await,
                Err(refused) => Ok(refusal(&refused)),
            };
            visitor.at_work.set(visitor.at_work.get() - 1);
            answer
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    let served = http.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        served = served => {
            if let Err(error) = served {
                tracing::debug!(%error, "a connection to the admin port ended");
            }
        }
        () = visitor.leave.notified() => {}
    }
}
