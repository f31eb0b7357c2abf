//! The signals at which a process ends in order.

use std::fs;
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM, Ctrl-C, and SIGHUP, which says that the terminal is gone.
#[derive(Debug)]
pub struct StopSignals(Vec<Signal>);

impl StopSignals {
    /// Catches these signals, so that they end nothing by themselves. A process that was started to outlive its terminal, as
    /// by `nohup`, goes on ignoring SIGHUP.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new() -> io::Result<StopSignals> {
        let mut kinds = vec![SignalKind::terminate(), SignalKind::interrupt()];
        if !ignores(SignalKind::hangup()) {
            kinds.push(SignalKind::hangup());
        }
        let signals: io::Result<Vec<Signal>> = kinds.into_iter().map(signal).collect();
        Ok(StopSignals(signals?))
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        poll_fn(|context| {
            let came = |signal: &mut Signal| signal.poll_recv(context).is_ready();
            match self.0.iter_mut().any(came) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}

/// True if this process ignores the signal. Where the system does not say (it has no `/proc`), it does not.
fn ignores(kind: SignalKind) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored(&status, kind.as_raw_value())
}

fn ignored(status: &str, signal: i32) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_bits_of_a_mask() {
        let status = "Name:\tareo\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001004\n";
        let found: Vec<i32> = (1..=64).filter(|it| ignored(status, *it)).collect();
        assert_eq!(found, [3, 13]);
        assert!(!ignored("", 1) && !ignored("SigIgn:\tx\n", 1));
    }
}
