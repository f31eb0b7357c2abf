//! CPU time of one call to five echo servers on loopback, client and servers together.
//!
//! `cargo bench -p areo-net`. Five servers, each a thread with its own runtime; the client asks all five and
//! goes on at the third answer, as a majority would. Printed per fan-out call, median of five runs with minimum
//! and maximum: CPU time of the whole process, and wall time.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use areo_net::{
    Answer, Identity, Incoming, Listener, ListenerConfig, Origin, Outgoing, Peer, PeerConfig, Pool,
    Responder, Segment, Service, Sink,
};
use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

const SERVERS: usize = 5;
const QUORUM: usize = 3;
const RUNS: usize = 5;

struct Echo;

impl Service for Echo {
    fn identity(&self) -> Identity {
        Identity {
            cluster: 1,
            server: 1,
            incarnation: 1,
        }
    }

    fn on_request(&self, request: Incoming<'_>, responder: Responder) {
        // A payload is acknowledged, not sent back: a put.
        responder.reply(request.body, &[]);
    }

    fn on_note(&self, _note: Incoming<'_>, _origin: &Origin) {}

    fn on_batch_end(&self) {}
}

/// Serves payloads of one size: a get.
struct Source {
    payload: Vec<Segment>,
}

impl Service for Source {
    fn identity(&self) -> Identity {
        Echo.identity()
    }

    fn on_request(&self, request: Incoming<'_>, responder: Responder) {
        responder.reply(request.body, &self.payload);
    }

    fn on_note(&self, _note: Incoming<'_>, _origin: &Origin) {}

    fn on_batch_end(&self) {}
}

/// Counts answers; wakes its operation at the quorum.
#[derive(Default)]
struct Tally {
    answers: Cell<usize>,
    needed: Cell<usize>,
    waker: RefCell<Option<Waker>>,
}

impl Sink for Tally {
    fn on_answer(&self, _token: u64, answer: Answer<'_>) {
        assert!(matches!(answer, Answer::Reply(_)), "{answer:?}");
        self.answers.set(self.answers.get() + 1);
        if self.answers.get() == self.needed.get()
            && let Some(waker) = self.waker.borrow_mut().take()
        {
            waker.wake();
        }
    }
}

async fn fan_out(peers: &[Peer], message: &Outgoing, needed: usize) {
    let tally = Rc::new(Tally::default());
    tally.needed.set(needed);
    for (index, peer) in peers.iter().enumerate() {
        peer.call(message.clone(), tally.clone(), index as u64)
            .expect("queues hold the load of this benchmark");
    }
    std::future::poll_fn(|context| {
        if tally.answers.get() >= needed {
            return Poll::Ready(());
        }
        *tally.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    })
    .await;
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

fn serve(service: impl FnOnce() -> Rc<dyn AnyService> + Send + 'static) -> SocketAddr {
    let (tell, hear) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = runtime();
        LocalSet::new().block_on(&runtime, async move {
            let config = ListenerConfig::new(Pool::new(64 << 20));
            let address = SocketAddr::from(([127, 0, 0, 1], 0));
            let service = Rc::new(Either(service()));
            let listener = Listener::bind(address, config, service)
                .await
                .expect("loopback");
            tell.send(listener.local_addr().expect("bound"))
                .expect("the client waits");
            listener.run().await;
        });
    });
    hear.recv().expect("the server starts")
}

/// The two services behind one type.
struct Either(Rc<dyn AnyService>);
trait AnyService {
    fn request(&self, request: Incoming<'_>, responder: Responder);
}
impl<S: Service> AnyService for S {
    fn request(&self, request: Incoming<'_>, responder: Responder) {
        self.on_request(request, responder);
    }
}
impl Service for Either {
    fn identity(&self) -> Identity {
        Echo.identity()
    }
    fn on_request(&self, request: Incoming<'_>, responder: Responder) {
        self.0.request(request, responder);
    }
    fn on_note(&self, _note: Incoming<'_>, _origin: &Origin) {}
    fn on_batch_end(&self) {}
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.cast_unsigned(),
        time.tv_nsec.cast_unsigned() as u32,
    )
}

fn main() {
    let echo: Vec<_> = (0..SERVERS).map(|_| serve(|| Rc::new(Echo))).collect();
    for (in_flight, calls) in [(1, 10_000), (16, 60_000), (64, 100_000)] {
        let message = Outgoing::new(Bytes::from(vec![7; 64]), None);
        measure(
            &format!("64 B x {SERVERS}, {in_flight} in flight"),
            &echo,
            in_flight,
            calls,
            &message,
            QUORUM,
            0,
        );
    }
    for bytes in [64 << 10, 1 << 20] {
        let mut message = Outgoing::new(Bytes::from(vec![7; 64]), None);
        message.payload = vec![Segment::checksummed(Bytes::from(vec![3; bytes]))];
        measure(
            &format!("put {bytes} B to 1 server"),
            &echo[..1],
            1,
            (1 << 30) / bytes,
            &message,
            1,
            bytes,
        );

        let address = serve(move || {
            let payload = vec![Segment::checksummed(Bytes::from(vec![5; bytes]))];
            Rc::new(Source { payload })
        });
        let mut message = Outgoing::new(Bytes::from(vec![7; 64]), None);
        message.expects_bulk = true;
        measure(
            &format!("get {bytes} B from 1 server"),
            &[address],
            1,
            (1 << 30) / bytes,
            &message,
            1,
            bytes,
        );
    }
}

/// Runs `calls` fan-out calls, `in_flight` at a time, five times over, and prints what one costs.
fn measure(
    name: &str,
    servers: &[SocketAddr],
    in_flight: usize,
    calls: usize,
    message: &Outgoing,
    needed: usize,
    bytes: usize,
) {
    let runtime = runtime();
    let mut figures: Vec<_> = LocalSet::new().block_on(&runtime, async {
        let pool = Pool::new(64 << 20);
        let peer =
            |address: &SocketAddr| Peer::new(PeerConfig::new(address.to_string(), 9, pool.clone()));
        let peers: Rc<Vec<Peer>> = Rc::new(servers.iter().map(peer).collect());
        fan_out(&peers, message, peers.len()).await;
        let mut figures = Vec::new();
        for _ in 0..RUNS {
            let (cpu, wall) = (cpu_time(), Instant::now());
            let tasks: Vec<_> = (0..in_flight)
                .map(|_| {
                    let (peers, message) = (Rc::clone(&peers), message.clone());
                    tokio::task::spawn_local(async move {
                        for _ in 0..calls / in_flight {
                            fan_out(&peers, &message, needed).await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("no task panics");
            }
            let per_call_us = |time: Duration| time.as_secs_f64() * 1e6 / calls as f64;
            figures.push((
                per_call_us(cpu_time().saturating_sub(cpu)),
                per_call_us(wall.elapsed()),
            ));
        }
        figures
    });
    figures.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (cpu_us, wall_us) = figures[RUNS / 2];
    let (low, high) = (figures[0].0, figures[RUNS - 1].0);
    let per_byte = match bytes {
        0 => String::new(),
        _ => format!("  {:.3} ns/B", cpu_us * 1000.0 / bytes as f64),
    };
    println!(
        "{name:32} {cpu_us:8.2} us CPU ({low:.2} to {high:.2})  {wall_us:8.2} us wall{per_byte}"
    );
}
