//! The user of a connection over loopback, as the system has it in its table of connections.
//!
//! The table has all connections of the machine, and reading it takes longer the more there are. A stranger on the machine may ask at any rate: so it is read on
//! another thread, at most ten times a second, and once for all that asked before.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

use super::guard::Ends;

/// The least time from one reading of the table to the next.
const PAUSE: Duration = Duration::from_millis(100);
/// The state of an open connection in the table.
const ESTABLISHED: &str = "01";

/// The users of connections.
pub(super) struct Users {
    /// Reads the system's table of connections.
    read: fn() -> String,
    last: Mutex<Option<Reading>>,
}

/// The table as it was read at some time.
struct Reading {
    begun: Instant,
    users: HashMap<Ends, u32>,
}

impl Users {
    pub(super) fn new() -> Users {
        Users::read_by(read)
    }

    pub(super) fn read_by(read: fn() -> String) -> Users {
        let last = Mutex::default();
        Users { read, last }
    }

    /// The user of the caller's end of a connection; `None`: the system does not say.
    pub(super) async fn user_of(&self, ends: Ends) -> Option<u32> {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        let before = last.as_ref().map(|reading| reading.begun);
        if before.is_none_or(|begun| begun <= asked) {
            if let Some(begun) = before {
                sleep_until(begun + PAUSE).await;
            }
            let (begun, read) = (Instant::now(), self.read);
            // One at a time, so that a thread is left for what has to be durable.
            let users = spawn_blocking(move || users_at(&read(), ends.own.port())).await;
            let users = users.unwrap_or_default();
            *last = Some(Reading { begun, users });
        }
        let users = last.as_ref().map(|reading| &reading.users);
        users?.get(&canonical(ends)).copied()
    }
}

/// The tables for both kinds of addresses.
fn read() -> String {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    tables.map(read).concat()
}

/// The users of the callers of this port.
fn users_at(table: &str, port: u16) -> HashMap<Ends, u32> {
    let lines = table.lines().filter_map(user_in);
    lines.filter(|(ends, _)| ends.own.port() == port).collect()
}

fn canonical(ends: Ends) -> Ends {
    let canonical = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
    Ends {
        own: canonical(ends.own),
        caller: canonical(ends.caller),
    }
}

/// The caller's end of a connection in a line of the table, with its user.
fn user_in(line: &str) -> Option<(Ends, u32)> {
    let mut fields = line.split_whitespace();
    let (caller, own) = (fields.nth(1)?, fields.next()?);
    let (state, user) = (fields.next()?, fields.nth(3)?);
    // An end that is closed already has no user, and is shown as one of root.
    if state != ESTABLISHED || fields.nth(1)? == "0" {
        return None;
    }
    let ends = Ends {
        own: address(own)?,
        caller: address(caller)?,
    };
    Some((ends, user.parse().ok()?))
}

/// An address as the system writes it: hexadecimal, in words of 32 bits in the order of this machine.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words = ip.as_bytes().chunks(8).map(|word| {
        let word = std::str::from_utf8(word).ok()?;
        Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
    });
    let bytes: Vec<u8> = words.collect::<Option<Vec<_>>>()?.concat();
    let ip = match <[u8; 4]>::try_from(&bytes[..]) {
        Ok(bytes) => IpAddr::V4(Ipv4Addr::from(bytes)),
        Err(_) => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[..]).ok()?)),
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const LINE: &str = "   1: 0100007F:A1B2 0100007F:1D42 01 00000000:00000000 00:00000000 00000000  1000        0 123 1 0 20 4 30 10 -1";

    fn ends() -> Ends {
        Ends {
            own: "127.0.0.1:7490".parse().unwrap(),
            caller: "127.0.0.1:41394".parse().unwrap(),
        }
    }

    #[test]
    fn the_table_of_the_system_is_read_as_it_is_written() {
        if cfg!(target_endian = "little") {
            assert_eq!(user_in(LINE), Some((ends(), 1000)));
        }
        for (open, closed) in [(" 01 ", " 06 "), (" 123 ", " 0 ")] {
            assert_eq!(user_in(&LINE.replacen(open, closed, 1)), None);
        }
        for line in ["", "x", "1: 0100007F:A1B2", "1: g:1 0:1 1 1 1 1 1 1 1 1"] {
            assert_eq!(user_in(line), None, "{line}");
        }
    }

    static READINGS: AtomicUsize = AtomicUsize::new(0);

    fn counted() -> String {
        READINGS.fetch_add(1, Ordering::Relaxed);
        LINE.to_owned()
    }

    /// The table was read for each request, on the thread that serves.
    #[tokio::test]
    async fn callers_that_ask_meanwhile_have_the_table_read_once_for_all() {
        let users = Users::read_by(counted);
        let asked = (0..100).map(|_| users.user_of(ends()));
        for user in areo_core::gather::join(100, asked).await {
            assert_eq!(user, Some(1000).filter(|_| cfg!(target_endian = "little")));
        }
        let readings = READINGS.load(Ordering::Relaxed);
        assert_eq!(
            readings, 2,
            "for the first, and for all that came meanwhile"
        );
    }
}
