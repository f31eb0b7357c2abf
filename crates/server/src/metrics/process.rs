//! The resources that the process uses, under the usual names of Prometheus. They are read from `/proc` when the
//! metrics are read.

use std::fs;
use std::path::{Path, PathBuf};

use areo_net::metrics::Adding;
use prometheus::{IntCounter, IntGauge};

use super::{raise, whole};

/// Gauges of this process. Where there is no `/proc` they stay 0.
pub(super) struct Process {
    cpu_seconds: IntCounter,
    resident: IntGauge,
    threads: IntGauge,
    descriptors: IntGauge,
    memory: IntGauge,
    certificate: IntGauge,
}

impl Process {
    pub(super) fn new(add: &Adding<'_>) -> Process {
        Process {
            cpu_seconds: add.counter(
                "process_cpu_seconds_total",
                "User and system time of this process.",
            ),
            resident: add.gauge(
                "process_resident_memory_bytes",
                "Memory of this process that is not on disk.",
            ),
            threads: add.gauge("process_threads", "Threads of this process."),
            descriptors: add.gauge("process_open_fds", "File descriptors of this process."),
            memory: add.gauge(
                "areo_server_memory_bytes",
                "Memory that this process may take: that of its machine, or the limit of its control group.",
            ),
            certificate: add.gauge(
                "areo_server_certificate_expiry_timestamp_seconds",
                "When the certificate that this server shows expires, in seconds since 1970; 0: it has none.",
            ),
        }
    }

    pub(super) fn look(&self, certificate: Option<u64>) {
        self.certificate.set(whole(certificate.unwrap_or(0)));
        if let Some(bytes) = allowed_memory() {
            self.memory.set(whole(bytes));
        }
        let stat = fs::read_to_string("/proc/self/stat");
        if let Some(stat) = stat.ok().as_deref().and_then(Stat::parse) {
            raise(&self.cpu_seconds, stat.cpu_seconds());
            self.resident.set(whole(stat.resident_bytes()));
            self.threads.set(whole(stat.threads));
        }
        if let Ok(descriptors) = fs::read_dir("/proc/self/fd") {
            // Less the one that counts them.
            let open = descriptors.count().saturating_sub(1);
            self.descriptors.set(whole(open as u64));
        }
    }
}

/// The memory of the machine, or the smallest limit of the control groups that the process is in, in bytes.
fn allowed_memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo");
    let machine = machine.ok().as_deref().and_then(memory_of_machine);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits =
        memory_limits(&groups).filter_map(|file| limit_in(&fs::read_to_string(file).ok()?));
    machine.into_iter().chain(limits).min()
}

/// `MemTotal` of `/proc/meminfo`, in bytes.
fn memory_of_machine(text: &str) -> Option<u64> {
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// The files with limits of the groups that `/proc/self/cgroup` names, from the innermost one outwards.
fn memory_limits(groups: &str) -> impl Iterator<Item = PathBuf> {
    let place = |line: &str| match line.splitn(3, ':').collect::<Vec<_>>()[..] {
        ["0", "", path] => Some(("/sys/fs/cgroup", path.to_owned(), "memory.max")),
        [_, "memory", path] => Some((
            "/sys/fs/cgroup/memory",
            path.to_owned(),
            "memory.limit_in_bytes",
        )),
        _ => None,
    };
    let places: Vec<_> = groups.lines().filter_map(place).collect();
    places.into_iter().flat_map(|(root, path, file)| {
        let inside = Path::new(root).join(path.trim_start_matches('/'));
        let outwards = inside.ancestors().take_while(|it| it.starts_with(root));
        outwards.map(|it| it.join(file)).collect::<Vec<_>>()
    })
}

/// A limit in such a file; `None`: there is none.
fn limit_in(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The fields of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    cpu_ticks: u64,
    threads: u64,
    resident_pages: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Stat> {
        // The name before them may have blanks and brackets of its own.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
        Some(Stat {
            cpu_ticks: number(11)? + number(12)?,
            threads: number(17)?,
            resident_pages: number(21)?,
        })
    }

    fn cpu_seconds(&self) -> u64 {
        self.cpu_ticks / rustix::param::clock_ticks_per_second()
    }

    fn resident_bytes(&self) -> u64 {
        self.resident_pages * rustix::param::page_size() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_behind_the_name() {
        let text = "42 (a) b (c) S 1 42 42 0 -1 4194304 500 0 3 0 250 130 0 0 20 0 7 0 999 123456789 321 0 0";
        let expected = Stat {
            cpu_ticks: 380,
            threads: 7,
            resident_pages: 321,
        };
        assert_eq!(Stat::parse(text), Some(expected));
        for cut in ["", "42 (a", "42 (a) S 1 2 3"] {
            assert_eq!(Stat::parse(cut), None, "{cut}");
        }
    }

    #[test]
    fn the_smallest_limit_of_a_group_counts() {
        let limits: Vec<_> = memory_limits("1:memory:/a\n0::/b/c\n7:cpu:/d\n").collect();
        let expected = [
            "memory/a/memory.limit_in_bytes",
            "memory/memory.limit_in_bytes",
            "b/c/memory.max",
            "b/memory.max",
            "memory.max",
        ];
        assert_eq!(
            limits,
            expected.map(|it| Path::new("/sys/fs/cgroup").join(it))
        );
        assert_eq!((limit_in("max\n"), limit_in("4096\n")), (None, Some(4096)));
        assert_eq!(
            memory_of_machine("MemFree: 1 kB\nMemTotal:    8 kB\n"),
            Some(8192)
        );
        assert_eq!(memory_of_machine(""), None);
    }

    #[test]
    fn this_process_has_memory_threads_and_descriptors() {
        let process = Process::new(&Adding(&prometheus::Registry::new()));
        process.look(Some(7));
        assert_eq!(process.certificate.get(), 7);
        for gauge in [
            &process.resident,
            &process.threads,
            &process.descriptors,
            &process.memory,
        ] {
            assert!(gauge.get() > 0, "{gauge:?}");
        }
    }
}
