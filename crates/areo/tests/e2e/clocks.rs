//! Machines with wrong clocks, of which `docs/security.md` says up to where they count.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{CommandOutput, wait_until};
use crate::command::ended;
use crate::keyed::{KeyedCluster, key_in};
use crate::wall_clock::{HOUR, MINUTE, WallClock, YEAR};

/// A cluster of three servers, each with its clock.
struct Machines {
    cluster: KeyedCluster,
    clocks: [WallClock; 3],
}

const NAMES: [&str; 4] = ["s1", "s2", "s3", "s4"];

impl Machines {
    /// Servers whose clocks are wrong by these seconds at the start; `None` where clocks cannot be moved.
    fn start(seconds: [i64; 3]) -> Option<Machines> {
        let right = WallClock::right;
        let clocks = [right()?, right()?, right()?];
        for (clock, seconds) in clocks.iter().zip(seconds) {
            clock.moved_by(seconds);
        }
        let cluster = KeyedCluster::start_by(clocks[0].command());
        let mut machines = Machines { cluster, clocks };
        for server in [1, 2] {
            let token = machines.run(0, &[0], &["token", "create"], b"").done();
            machines.join(server, token.text());
        }
        wait_until(|| machines.serving() == 3);
        let create = ["domain", "create", "logs", "--servers", "s1,s2,s3"];
        machines.run(0, &[0], &create, b"").done();
        Some(machines)
    }

    fn moved_by(&self, seconds: i64) {
        for clock in &self.clocks {
            clock.moved_by(seconds);
        }
    }

    fn serve(&mut self, server: usize, flags: &[&str], token: Option<&str>) {
        let above = u16::try_from(server).unwrap();
        let clock = &self.clocks[server % self.clocks.len()];
        let place = (NAMES[server], above);
        self.cluster.serve_by(clock.command(), place, flags, token);
    }

    fn join(&mut self, server: usize, token: &str) {
        let flags = ["--join", &self.cluster.address(0), "--name", NAMES[server]];
        self.serve(server, &flags, Some(token));
    }

    /// Stops the server that was started first of those that run.
    fn stop_one(&mut self) {
        drop(self.cluster.servers.remove(0));
    }

    /// Runs a command by one of the clocks, which knows these servers in this order.
    fn run(&self, clock: usize, servers: &[u16], words: &[&str], input: &[u8]) -> CommandOutput {
        let addresses = servers.iter().map(|server| self.cluster.address(*server));
        let addresses = addresses.collect::<Vec<String>>().join(",");
        let mut command = self.clocks[clock].command();
        command
            .args(["--cluster", &addresses, "--timeout", "5s"])
            .args(words)
            .env("AREO_KEY", key_in(&self.cluster.file()));
        ended(&mut command, input)
    }

    fn serving_by(&self, clock: usize, servers: &[u16]) -> u64 {
        let status = self.run(clock, servers, &["status", "--json"], b"");
        match status.code {
            0 => status.objects()[0]["serving"].as_u64().unwrap(),
            _ => 0,
        }
    }

    fn serving(&self) -> u64 {
        self.serving_by(0, &[0])
    }

    /// Checks that a write and a read succeed.
    fn works(&self, clock: usize, servers: &[u16]) {
        let value = format!("{clock} {servers:?}");
        let run = |words: &[&str], input: &[u8]| {
            let words = [&["--domain", "logs"], words].concat();
            self.run(clock, servers, &words, input).done()
        };
        run(&["put", "k", "-"], value.as_bytes());
        assert_eq!(run(&["get", "k"], b"").text(), value);
    }
}

#[test]
fn clocks_that_differ_by_almost_two_hours_lock_nothing_out() {
    let Some(mut machines) = Machines::start([0, 55 * MINUTE, -55 * MINUTE]) else {
        return;
    };
    for clock in 0..3 {
        for issuer in 0..3 {
            machines.works(clock, &[issuer]);
            assert_eq!(machines.serving_by(clock, &[issuer]), 3);
        }
    }
    for server in 0..3 {
        machines.stop_one();
        machines.serve(server, &[], None);
        wait_until(|| machines.serving() == 3);
    }
}

/// Its tickets are signed at a wrong time, and those of others are out of date there.
#[test]
fn a_machine_that_is_three_hours_wrong_is_refused_and_the_others_go_on() {
    let Some(machines) = Machines::start([0; 3]) else {
        return;
    };
    for seconds in [3 * HOUR, -3 * HOUR, YEAR] {
        machines.clocks[2].moved_by(seconds);
        for servers in [&[0][..], &[1], &[2, 0, 1]] {
            machines.works(0, servers);
        }
        // A year ahead the server soon has a certificate that begins then, and by itself it leads nowhere.
        if seconds != YEAR {
            machines.works(0, &[2]);
        }
        let status = machines.run(0, &[0], &["status"], b"").done();
        let mut rows = status.text().lines();
        let row = rows.rfind(|row| row.starts_with("s3\t")).unwrap();
        assert!(row.contains("compare the clocks"), "{row}");
        machines.clocks[2].moved_by(0);
        wait_until(|| machines.serving() == 3);
    }
    // A client whose clock is hours wrong is let in by a ticket, which has the time of servers; of certificates it judges itself.
    machines.clocks[2].moved_by(-5 * HOUR);
    let refused = machines.run(2, &[0], &["ls"], b"");
    refused.refused(5, &["compare the clocks"]);
}

#[test]
fn a_cluster_works_a_year_later() {
    let Some(mut machines) = Machines::start([0; 3]) else {
        return;
    };
    let token = machines.run(0, &[0], &["token", "create"], b"").done();
    // Certificates end while the servers run, as on machines that were suspended.
    machines.moved_by(YEAR);
    wait_until(|| machines.serving() == 3);
    machines.works(0, &[2, 1, 0]);
    let mut late = machines.clocks[0].command();
    late.args(["server", "--join", &machines.cluster.address(0), "--data"])
        .arg(machines.cluster.data("late"))
        .args(["--listen", &machines.cluster.address(5)])
        .env("AREO_TOKEN", token.text());
    let late = ended(&mut late, b"");
    assert_eq!(late.code, 6, "{}", late.stderr);
    assert!(late.stderr.contains("expired"), "{}", late.stderr);
    // And while all of them are off.
    for _ in 0..3 {
        machines.stop_one();
    }
    machines.moved_by(2 * YEAR);
    for server in 0..3 {
        machines.serve(server, &[], None);
    }
    wait_until(|| machines.serving() == 3);
    let token = machines.run(0, &[0], &["token", "create"], b"").done();
    machines.join(3, token.text());
    wait_until(|| machines.serving() == 4);
    machines.works(0, &[3]);
}
