//! The limits of the machine, which bound every store.

use crate::spread::Spread;
use crate::system::{self, Machine};
use areo_erasure::Code;
use serde::Serialize;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// A buffer that no cache holds.
const LARGE: usize = 64 << 20;
/// Bytes of one read or write of a socket.
const PIECE: usize = 1 << 20;
/// Bytes that are made durable at once.
const BLOCK: usize = 4 << 10;
/// Values that are coded: they stay in a cache.
const VALUE: usize = 1 << 20;

/// One thing that the machine can do.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Limit {
    /// The measured action, for example "sync".
    pub name: String,
    /// The unit of the figures.
    pub unit: String,
    /// The time that it takes.
    pub takes: Spread,
    /// CPU time that it takes, of both ends where there are two; without that of the disk.
    pub cpu: Spread,
}

/// Limits of the machine. The names of the fields are those of `--json`, and stay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// `limits`: which report this is.
    pub report: String,
    /// The command line of the measurement.
    pub command: String,
    pub machine: Machine,
    /// The number of times that each was measured.
    pub runs: u32,
    pub limits: Vec<Limit>,
}

/// Measures each of them `runs` times, for `time` each, in turn. Files are made in `data`, and removed.
///
/// # Errors
/// What the system refused.
pub fn run(
    (data, command): (&Path, &str),
    (runs, time): (u32, Duration),
    observe: impl Fn(&str),
) -> io::Result<Report> {
    let measurements: [(&str, &str, Measure<'_>); 6] = [
        ("copy 64 MiB in memory", "ns per byte", Box::new(copy)),
        (
            "copy through a socket on loopback",
            "ns per byte",
            Box::new(loopback_copy),
        ),
        (
            "there and back through a socket on loopback",
            "µs",
            Box::new(loopback_round),
        ),
        (
            "append 4 KiB and make it durable (fdatasync)",
            "µs",
            Box::new(|time| sync(time, data)),
        ),
        ("encode 1 MiB as [5,3]", "ns per byte", Box::new(encode)),
        (
            "compute 2 lost fragments of [5,3]",
            "ns per byte",
            Box::new(reconstruct),
        ),
    ];
    let mut taken: Vec<Vec<UnitCost>> = measurements.iter().map(|_| Vec::new()).collect();
    for _ in 0..runs {
        for ((name, _, measure), taken) in measurements.iter().zip(&mut taken) {
            observe(name);
            taken.push(measure(time)?);
        }
    }
    let limit = |((name, unit, _), taken): (&(&str, &str, Measure<'_>), &Vec<UnitCost>)| Limit {
        name: (*name).to_owned(),
        unit: (*unit).to_owned(),
        takes: Spread::of(taken.iter().map(|taken| taken.elapsed)),
        cpu: Spread::of(taken.iter().map(|taken| taken.cpu)),
    };
    Ok(Report {
        report: "limits".into(),
        command: command.into(),
        machine: Machine::this(),
        runs,
        limits: measurements.iter().zip(&taken).map(limit).collect(),
    })
}

type Measure<'a> = Box<dyn Fn(Duration) -> io::Result<UnitCost> + 'a>;

/// The cost of one unit, on average.
#[derive(Clone, Copy)]
struct UnitCost {
    elapsed: f64,
    cpu: f64,
}

/// Does it for so long: nanoseconds of each of the units that `step` says it did.
fn repeat(time: Duration, mut step: impl FnMut() -> io::Result<usize>) -> io::Result<UnitCost> {
    let (begun, cpu) = (Instant::now(), system::cpu_of_this());
    let mut done = 0;
    loop {
        done += step()?;
        if begun.elapsed() >= time {
            break;
        }
    }
    let each = |time: Duration| time.as_nanos() as f64 / done as f64;
    Ok(UnitCost {
        elapsed: each(begun.elapsed()),
        cpu: each(system::cpu_of_this().saturating_sub(cpu)),
    })
}

/// A cost in microseconds.
fn in_microseconds(taken: UnitCost) -> UnitCost {
    UnitCost {
        elapsed: taken.elapsed / 1e3,
        cpu: taken.cpu / 1e3,
    }
}

fn copy(time: Duration) -> io::Result<UnitCost> {
    let (from, mut to) = (vec![1_u8; LARGE], vec![0_u8; LARGE]);
    repeat(time, || {
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
        Ok(LARGE)
    })
}

/// A socket whose other end is served by a thread, until it is closed.
fn loopback(
    serve: impl FnOnce(TcpStream) -> io::Result<()> + Send + 'static,
) -> io::Result<(TcpStream, thread::JoinHandle<io::Result<()>>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let stream = TcpStream::connect(listener.local_addr()?)?;
    stream.set_nodelay(true)?;
    let (other, _) = listener.accept()?;
    other.set_nodelay(true)?;
    Ok((stream, thread::spawn(move || serve(other))))
}

fn ended(served: thread::JoinHandle<io::Result<()>>) -> io::Result<()> {
    served.join().expect("it does not panic")
}

fn loopback_copy(time: Duration) -> io::Result<UnitCost> {
    let (mut stream, served) = loopback(|mut other| {
        let mut piece = vec![0; PIECE];
        while other.read(&mut piece)? > 0 {}
        Ok(())
    })?;
    let piece = vec![1; PIECE];
    let taken = repeat(time, || stream.write_all(&piece).map(|()| PIECE));
    drop(stream);
    ended(served)?;
    taken
}

fn loopback_round(time: Duration) -> io::Result<UnitCost> {
    let (mut stream, served) = loopback(|mut other| {
        let mut byte = [0];
        while other.read(&mut byte)? > 0 {
            other.write_all(&byte)?;
        }
        Ok(())
    })?;
    let taken = repeat(time, || {
        stream.write_all(&[1])?;
        stream.read_exact(&mut [0])?;
        Ok(1)
    });
    drop(stream);
    ended(served)?;
    taken.map(in_microseconds)
}

fn sync(time: Duration, data: &Path) -> io::Result<UnitCost> {
    let file: File = tempfile::tempfile_in(data)?;
    let block = vec![1; BLOCK];
    let mut at = 0;
    let taken = repeat(time, || {
        file.write_all_at(&block, at)?;
        at += BLOCK as u64;
        file.sync_data()?;
        Ok(1)
    });
    taken.map(in_microseconds)
}

/// A code, the fragments of a value's data, and room for its parity.
fn fragments() -> (Code, Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let code = Code::new(5, 3).expect("it is a code");
    let length = code.fragment_length(VALUE);
    let data = (0..3).map(|fragment| vec![fragment + 1; length]).collect();
    (code, data, vec![vec![0; length]; 2])
}

fn encode(time: Duration) -> io::Result<UnitCost> {
    let (code, data, mut parity) = fragments();
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    repeat(time, || {
        let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        code.encode(black_box(&data), &mut parity);
        Ok(VALUE)
    })
}

fn reconstruct(time: Duration) -> io::Result<UnitCost> {
    let (code, data, mut parity) = fragments();
    {
        let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        code.encode(&data, &mut parity);
    }
    let have: Vec<(u8, &[u8])> = vec![(2, &data[2]), (3, &parity[0]), (4, &parity[1])];
    let (mut first, mut second) = (vec![0; data[0].len()], vec![0; data[0].len()]);
    let taken = repeat(time, || {
        let mut lost: [(u8, &mut [u8]); 2] = [(0, &mut first), (1, &mut second)];
        let done = code.reconstruct(black_box(&have), &mut lost);
        done.expect("three of five are enough");
        Ok(VALUE)
    })?;
    assert!(first == data[0] && second == data[1], "it is what was lost");
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_measured_as_often_as_asked() {
        let folder = tempfile::tempdir().unwrap();
        let measure = |name: &str| assert!(!name.is_empty());
        let each = Duration::from_millis(1);
        let report = run((folder.path(), "areo-lab bench limits"), (2, each), measure).unwrap();
        assert_eq!((report.limits.len(), report.runs), (6, 2));
        for limit in &report.limits {
            let takes = limit.takes;
            assert!(0.0 < takes.min && takes.min <= takes.max, "{limit:?}");
        }
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
        let nowhere = run((Path::new("/nowhere/at/all"), ""), (1, each), measure);
        assert!(nowhere.is_err());
    }
}
