//! Figures of the operating system about processes, and about the machine.

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::net::SocketAddrV4;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// User and system time of another process, from `/proc`, in steps of 10 ms.
pub(crate) fn cpu_of(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .expect("the name is in brackets")
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11..13]
        .iter()
        .map(|ticks| ticks.parse::<u64>().expect("a number"))
        .sum();
    Duration::from_millis(ticks * 10)
}

/// User and system time of this process.
pub fn cpu_of_this() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).expect("it began at 0");
    Duration::new(
        seconds,
        u32::try_from(time.tv_nsec).expect("below a second"),
    )
}

/// Resident memory of a process, in bytes.
pub(crate) fn resident_of(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("it has memory");
    let kib: u64 = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    kib << 10
}

/// Bytes that went over the loopback so far, of everything on the machine, with the heads of packets.
pub(crate) fn loopback_bytes() -> u64 {
    let devices = std::fs::read_to_string("/proc/net/dev").expect("Linux has it");
    let line = devices
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("lo:"));
    let received = line.and_then(|line| line.split_whitespace().next());
    received.map_or(0, |bytes| bytes.parse().expect("a number"))
}

/// The process of this machine that listens at this address, if it may be looked at.
pub fn listener(address: SocketAddrV4) -> Option<u32> {
    let socket = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .find_map(|table| {
            let table = std::fs::read_to_string(table).ok()?;
            let mut sockets = table.lines().filter_map(|line| listens_at(line, address));
            sockets.next().map(str::to_owned)
        });
    let socket = format!("socket:[{}]", socket?);
    let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    entries(Path::new("/proc")).find_map(|entry| {
        let process: u32 = entry.file_name().to_str()?.parse().ok()?;
        let mut files = entries(&entry.path().join("fd"));
        let is_it = |to| to == Path::new(&socket);
        let has_it = files.any(|file| std::fs::read_link(file.path()).is_ok_and(is_it));
        has_it.then_some(process)
    })
}

/// The processes of this machine that run the program of this one, itself included.
pub fn alike(process: u32) -> Vec<u32> {
    let program = |process: u32| std::fs::read_link(format!("/proc/{process}/exe")).ok();
    let wanted = program(process);
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes
        .filter(|other| *other == process || wanted.is_some() && program(*other) == wanted)
        .collect()
}

/// The number of the socket, if this line of `/proc/net/tcp` or `tcp6` is of one that listens there, or everywhere.
fn listens_at(line: &str, address: SocketAddrV4) -> Option<&str> {
    const LISTENS: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (&local, &state, &socket) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    let (host, port) = local.split_once(':')?;
    // In the machine's own order of bytes, in six a mapped one at the end.
    let wanted = format!("{:08X}", u32::from_ne_bytes(address.ip().octets()));
    let is_host = host.ends_with(&wanted) || host.bytes().all(|digit| digit == b'0');
    let is_port = u16::from_str_radix(port, 16) == Ok(address.port());
    (is_host && is_port && state == LISTENS).then_some(socket)
}

/// Bytes that a folder takes on its disk.
pub fn stored_in(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => stored_in(&entry.path()),
        Ok(found) => found.blocks() * 512,
        // It is gone by now.
        Err(_) => 0,
    };
    entries.map(of).sum()
}

/// Time of day in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// The machine that was measured on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Machine {
    /// Processors, as the system counts them.
    pub processors: usize,
    /// Name of the processors.
    pub model: String,
    pub memory_bytes: u64,
    /// Version of the kernel.
    pub kernel: String,
}

impl Machine {
    /// Describes the machine that this runs on.
    pub fn this() -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split(':').nth(1));
            value.unwrap_or_default().trim().to_owned()
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let kib = memory.trim_end_matches(" kB").parse::<u64>();
        Machine {
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            model: field(&read("/proc/cpuinfo"), "model name"),
            memory_bytes: kib.unwrap_or_default() << 10,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    #[test]
    fn the_system_tells_of_this_process_and_machine() {
        let machine = Machine::this();
        assert!(machine.processors > 0 && machine.memory_bytes > 1 << 20);
        assert!(!machine.kernel.is_empty());
        assert!(resident_of(std::process::id()) > 1 << 20);
        let (before, told) = (cpu_of_this(), cpu_of(std::process::id()));
        assert!(
            told <= before + Duration::from_millis(20),
            "{told:?} {before:?}"
        );
    }

    #[test]
    fn who_listens_is_found_by_address() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let SocketAddr::V4(address) = listener.local_addr().unwrap() else {
            unreachable!("it was bound to one");
        };
        assert_eq!(super::listener(address), Some(std::process::id()));
        let nobody = SocketAddrV4::new(*address.ip(), 1);
        assert_eq!(super::listener(nobody), None);
        let here = "127.0.0.2:9042".parse().unwrap();
        let line = |local: &str, state: &str| {
            format!(
                "  1: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 0 0 77 1"
            )
        };
        for (local, state, found) in [
            ("0200007F:2352", "0A", Some("77")),
            ("0000000000000000FFFF00000200007F:2352", "0A", Some("77")),
            ("00000000:2352", "0A", Some("77")),
            // A connection, another host, another port.
            ("0200007F:2352", "01", None),
            ("0300007F:2352", "0A", None),
            ("0200007F:2353", "0A", None),
        ] {
            assert_eq!(listens_at(&line(local, state), here), found, "{local}");
        }
        assert_eq!(listens_at("  sl  local_address", here), None);
    }

    #[test]
    fn what_a_folder_takes_is_the_sum_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/b"), vec![1; 100_000]).unwrap();
        std::fs::write(folder.path().join("c"), vec![1; 50_000]).unwrap();
        let stored = stored_in(folder.path());
        assert!((150_000..250_000).contains(&stored), "{stored}");
        assert_eq!(stored_in(&folder.path().join("none")), 0);
    }
}
