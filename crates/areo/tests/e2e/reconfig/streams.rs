//! Values in blocks, and files, are written and read while their domain moves.

use super::{reconfig, shape};
use crate::cluster::{Cluster, wait_until};
use crate::values::bytes;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const LENGTH: usize = 1 << 20;

/// A value that shows which one it is wherever it is looked at.
fn numbered(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(LENGTH / 8)
}

/// Fails unless all of it, from a multiple of 8 bytes on, is of one value.
fn assert_one(part: &[u8], length: usize) {
    assert_eq!(part.len(), length, "a value is whole");
    let mut numbers = part.chunks_exact(8);
    let first = numbers.next().unwrap();
    assert!(
        numbers.all(|number| number == first),
        "a mixture of two values"
    );
}

fn put(cluster: &Cluster, number: u64) {
    let put = ["put", "large", "-", "--block-size", "64KiB"];
    cluster.run_with(&put, &numbered(number)).done();
}

/// Reads. A writer removes what it replaces, so that a read which has handed out a part of it ends with 4
/// (`[X-23 replaced-blocks]`): once more, then, until one is faster than the writer.
fn get(cluster: &Cluster, more: &[&str]) -> Vec<u8> {
    let get = [&["get", "large"], more].concat();
    loop {
        let ended = cluster.run(&get);
        if ended.code != 4 {
            return ended.done().stdout;
        }
    }
}

/// State that the clients share.
struct Work<'a> {
    cluster: &'a Cluster,
    stopped: AtomicBool,
    /// Passes of each client.
    passes: [AtomicU64; 4],
}

impl Work<'_> {
    /// One client: passes until the flag to stop is set.
    fn go_on(&self, client: usize, mut pass: impl FnMut(u64)) {
        for number in 1.. {
            if self.stopped.load(Ordering::Relaxed) {
                return;
            }
            pass(number);
            self.passes[client].store(number, Ordering::Relaxed);
        }
    }

    /// Tells the clients to stop when it is dropped, also if the test fails: they are waited for.
    fn stop_at_the_end(&self) -> impl Drop {
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        Stop(&self.stopped)
    }

    /// Waits until every client is through two passes more: at least one of them began meanwhile.
    fn passes(&self) {
        for passes in &self.passes {
            let enough = passes.load(Ordering::Relaxed) + 2;
            wait_until(|| passes.load(Ordering::Relaxed) >= enough);
        }
    }

    /// Pushes another content again and again, and pulls it: no other client changes it.
    fn push_and_pull(&self) {
        let path = |name: &str| {
            self.cluster
                .folder()
                .join(name)
                .to_str()
                .unwrap()
                .to_owned()
        };
        let (here, there) = (path("here"), path("there"));
        let mut content = bytes(200_000, 1);
        self.go_on(3, |number| {
            let place = (number * 7919) as usize % content.len();
            content[place] ^= 1;
            fs::write(&here, &content).unwrap();
            let cut = ["--min", "4KiB", "--avg", "8KiB", "--max", "16KiB"];
            let push = [&["file", "push", "notes", &here], &cut[..]].concat();
            self.cluster.run(&push).done();
            self.cluster.run(&["file", "pull", "notes", &there]).done();
            assert!(fs::read(&there).unwrap() == content);
        });
    }
}

#[test]
fn values_in_blocks_and_files_are_written_and_read_meanwhile() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    put(&cluster, 0);
    let work = Work {
        cluster: &cluster,
        stopped: AtomicBool::new(false),
        passes: Default::default(),
    };
    thread::scope(|scope| {
        let _stop = work.stop_at_the_end();
        scope.spawn(|| work.go_on(0, |number| put(&cluster, number)));
        scope.spawn(|| {
            work.go_on(1, |_| {
                assert_one(&get(&cluster, &[]), LENGTH);
            });
        });
        scope.spawn(|| {
            work.go_on(2, |number| {
                let first = number * 104_729 % (LENGTH as u64 / 2) / 8 * 8;
                let range = format!("{first}-{}", first + 199_999);
                assert_one(&get(&cluster, &["--range", &range]), 200_000);
            });
        });
        scope.spawn(|| work.push_and_pull());
        let change = |change: &str| {
            let change: Vec<&str> = change.split(' ').collect();
            reconfig(&cluster, "start", "default", &change).done();
            work.passes();
        };
        work.passes();
        change("--dap abd --servers s1,s2,s3");
        change("--dap ec --servers s1,s2,s3,s4,s5");
        change("--remove s1 --k 2");
        change("--dap abd --servers s3,s4,s5");
    });
    assert_eq!(shape(&cluster, "default").0, 4);
    assert_one(&cluster.run(&["get", "large"]).done().stdout, LENGTH);
}
