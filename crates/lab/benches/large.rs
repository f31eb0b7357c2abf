//! Values in blocks, and files: how fast they come and go, beside what that consists of.
//!
//! `cargo bench -p areo-lab --bench large [-- MIB]...`, by default values of 1, 64 and 1024 MiB, durable, at [5,3] and
//! three replicas. In each of five rounds, in turn: the value is put from a local file, got into another, copied as `cp`
//! does, and as many bytes as its elements have are sent through one connection on loopback (what encoding costs beside
//! that: `cargo bench -p areo-erasure`). Then a file
//! of 64 MiB is pushed, pushed again as it is and with one byte changed, pulled, and pulled again as it is. MB are 10^6
//! bytes of value; CPU is that of the client and of all servers together.

mod common;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use areo_bench::cluster::Cluster;
use areo_bench::peers::Spread;
use areo_bench::system::cpu_of_this;
use areo_client::file::{Base, PullOptions, PushOptions};
use areo_client::{Dap, PutOptions};
use common::servers;

/// The allocator of the programs.
#[global_allocator]
static ALLOCATOR: areo_allocator::Allocator = areo_allocator::Allocator;

const ROUNDS: u8 = 5;
const MIB: usize = 1 << 20;
const FILE_MIB: usize = 64;
/// Everything is there within this, however busy the machine is.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Samples by the name of the measurement, in the order of the first round.
#[derive(Default)]
struct Figures(Vec<(&'static str, Vec<Sample>)>);

struct Sample {
    wall: Duration,
    cpu: Duration,
}

impl Figures {
    async fn take(
        &mut self,
        name: &'static str,
        cluster: &Cluster,
        work: impl Future<Output = ()>,
    ) {
        let (cpu, begun) = (cpu_of_this() + cluster.cpu(), Instant::now());
        work.await;
        let sample = Sample {
            wall: begun.elapsed(),
            cpu: (cpu_of_this() + cluster.cpu()).saturating_sub(cpu),
        };
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, samples)) => samples.push(sample),
            None => self.0.push((name, vec![sample])),
        }
    }

    fn print(&self, what: &str, bytes: usize) {
        for (name, samples) in &self.0 {
            let of = |figure: fn(&Sample) -> f64| Spread::of(samples.iter().map(figure));
            let Spread {
                median: wall,
                min,
                max,
            } = of(|sample| sample.wall.as_secs_f64() * 1e3);
            let cpu = of(|sample| sample.cpu.as_secs_f64() * 1e9).median;
            let bytes = bytes as f64;
            println!(
                "{what:16} {name:24} {wall:9.1} ms ({min:.1} to {max:.1}), {:8.1} MB/s, CPU {:7.3} ns/B",
                bytes / wall / 1e3,
                cpu / bytes,
            );
        }
    }
}

/// A local file with bytes that repeat nowhere near.
fn make(path: &Path, bytes: usize) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut file = File::create(path).expect("there is room");
    let mut piece = Vec::with_capacity(MIB);
    for _ in 0..bytes / MIB {
        piece.clear();
        while piece.len() < MIB {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            piece.extend_from_slice(&state.to_le_bytes());
        }
        file.write_all(&piece).expect("there is room");
    }
}

/// Sends so many bytes through a connection of this process with itself.
fn through_loopback(bytes: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
    let address = listener.local_addr().expect("it is bound");
    let sender = thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("it listens");
        let piece = vec![7; MIB];
        let mut left = bytes;
        while left > 0 {
            let length = left.min(piece.len());
            stream.write_all(&piece[..length]).expect("it is read");
            left -= length;
        }
    });
    let (mut stream, _) = listener.accept().expect("it connects");
    let mut piece = vec![0; MIB];
    while stream.read(&mut piece).expect("it is written") > 0 {}
    sender.join().expect("the sender does not panic");
}

async fn values(name: &str, dap: Dap, n: usize, mib: usize, folder: &Path) {
    let (cluster, domain) = servers((n, dap), false, Vec::new()).await;
    let (domain, bytes) = (domain.with_timeout(TIMEOUT), mib * MIB);
    let (source, got, copied) = (
        folder.join("source"),
        folder.join("got"),
        folder.join("copied"),
    );
    make(&source, bytes);
    let k = usize::from(dap.k());
    let mut figures = Figures::default();
    for _ in 0..ROUNDS {
        let put = async {
            let source = tokio::fs::File::open(&source).await.expect("it was made");
            let put = domain
                .put_stream("value", source, PutOptions::default())
                .await;
            put.expect("a healthy cluster");
        };
        figures.take("put", &cluster, put).await;
        let get = async {
            let got = tokio::fs::File::create(&got).await.expect("there is room");
            domain
                .get_to("value", got)
                .await
                .expect("a healthy cluster");
        };
        figures.take("get", &cluster, get).await;
        let copy = async {
            fs::copy(&source, &copied).expect("there is room");
        };
        figures.take("cp", &cluster, copy).await;
        let sent = async { through_loopback(bytes * n / k) };
        figures.take("elements over loopback", &cluster, sent).await;
    }
    assert!(fs::read(&got).expect("it was got") == fs::read(&source).expect("it was made"));
    figures.print(&format!("{name} {mib} MiB"), bytes);
}

async fn files(name: &str, dap: Dap, n: usize, folder: &Path) {
    let (cluster, domain) = servers((n, dap), false, Vec::new()).await;
    let (local, pulled) = (folder.join("local"), folder.join("pulled"));
    make(&local, FILE_MIB * MIB);
    let mut figures = Figures::default();
    for round in 0..ROUNDS {
        let file = domain.with_timeout(TIMEOUT).file(&format!("file-{round}"));
        let file = file.expect("a name");
        let push = async |base: Option<&Base>| {
            let pushed = file
                .push(&local, base, PushOptions::default(), |_| {
                    ControlFlow::Continue(())
                })
                .await;
            pushed.expect("a healthy cluster").base
        };
        let pull = async |base: Option<&Base>| {
            let pulled = file
                .pull(&pulled, base, PullOptions { force: true }, |_| {})
                .await;
            pulled.expect("a healthy cluster").base
        };
        let (mut base, mut pulled_base) = (None, None);
        figures
            .take("push", &cluster, async {
                base = Some(push(None).await);
            })
            .await;
        figures
            .take("push as it is", &cluster, async {
                base = Some(push(base.as_ref()).await);
            })
            .await;
        let middle = (FILE_MIB * MIB / 2) as u64;
        let opened = File::options()
            .write(true)
            .open(&local)
            .expect("it was made");
        opened.write_all_at(&[round], middle).expect("it is there");
        figures
            .take("push of one byte", &cluster, async {
                drop(push(base.as_ref()).await);
            })
            .await;
        figures
            .take("pull", &cluster, async {
                pulled_base = Some(pull(None).await);
            })
            .await;
        figures
            .take("pull as it is", &cluster, async {
                drop(pull(pulled_base.as_ref()).await);
            })
            .await;
    }
    assert!(fs::read(&pulled).expect("it was pulled") == fs::read(&local).expect("it was made"));
    figures.print(&format!("{name} file {FILE_MIB} MiB"), FILE_MIB * MIB);
}

fn main() {
    let arguments = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let mut sizes: Vec<usize> = arguments.map(|arg| arg.parse().expect("MiB")).collect();
    if sizes.is_empty() {
        sizes = vec![1, 64, 1024];
    }
    let folder = tempfile::tempdir().expect("there is room");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    for (name, dap, n) in [
        ("ec [5,3]", Dap::Ec { k: 3 }, 5),
        ("abd n = 3", Dap::Abd, 3),
    ] {
        for mib in &sizes {
            runtime.block_on(values(name, dap, n, *mib, folder.path()));
        }
        runtime.block_on(files(name, dap, n, folder.path()));
    }
}
