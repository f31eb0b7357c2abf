//! What the process takes of its machine, in the names that programs everywhere have for it. Read from `/proc` when somebody
//! looks.

use std::fs;

use areo_net::metrics::Adding;
use prometheus::{IntCounter, IntGauge};

use super::{raise, whole};

/// Gauges of this process. Where there is no `/proc` they stay 0.
pub(super) struct Process {
    cpu_seconds: IntCounter,
    resident: IntGauge,
    threads: IntGauge,
    descriptors: IntGauge,
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
        }
    }

    pub(super) fn look(&self) {
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

/// What `/proc/PID/stat` says.
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
    fn this_process_has_memory_threads_and_descriptors() {
        let process = Process::new(&Adding(&prometheus::Registry::new()));
        process.look();
        for gauge in [&process.resident, &process.threads, &process.descriptors] {
            assert!(gauge.get() > 0, "{gauge:?}");
        }
    }
}
