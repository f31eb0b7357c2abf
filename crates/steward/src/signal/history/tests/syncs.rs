//! Windows in which a server's own syncs are slow.

use super::*;

/// A sample of a server that has synced so often, at this many seconds each.
fn synced(name: &str, count: u64, each: f64) -> ServerSample {
    ServerSample {
        syncs: Some(Syncs {
            count,
            seconds: each * count as f64,
        }),
        ..server(name)
    }
}

/// The slow windows of each server after this look.
fn look(history: &mut History, servers: Vec<ServerSample>, now_ms: u64) -> Vec<u32> {
    let sample = Sample {
        servers,
        ..Sample::default()
    };
    let records = history.add(sample, &Rules::built_in(), now_ms);
    let windows = records.servers.iter().map(|it| it.slow_sync_windows);
    windows.collect()
}

/// Looks at three servers that sync five times a second, of which s1 takes ten times as long.
fn look_at_three(history: &mut History, second: u64) -> Vec<u32> {
    let sample = |name, each| synced(name, 5 * second, each);
    let servers = vec![sample("s1", 0.1), sample("s2", 0.01), sample("s3", 0.01)];
    look(history, servers, second * 1000)
}

#[test]
fn a_disk_is_slow_where_its_syncs_stand_out_and_it_still_syncs() {
    let mut history = History::default();
    let seen: Vec<_> = (0..80)
        .map(|second| look_at_three(&mut history, second))
        .collect();
    assert_eq!(seen[79], [7, 0, 0]);
    // The disk that was slow has nothing to sync: nothing is known of it.
    let idle = (80..120).map(|second| {
        let servers = ["s1", "s2", "s3"].map(|name| synced(name, 5 * 79, 0.1));
        look(&mut history, servers.to_vec(), second * 1000)
    });
    let idle: Vec<_> = idle.collect();
    assert_eq!(idle[39], [0, 0, 0], "no window was judged");
}

#[test]
fn two_milliseconds_are_not_slow() {
    let mut history = History::default();
    for second in 0..80 {
        let servers = vec![synced("s1", second, 0.002), synced("s2", second, 0.0001)];
        assert_eq!(look(&mut history, servers, second * 1000), [0, 0]);
    }
}

/// The slow one of two servers is no median: it would be four times its own time.
#[test]
fn one_of_two_disks_may_be_slow() {
    let mut history = History::default();
    let mut seen = Vec::new();
    for second in 0..80 {
        let servers = vec![synced("s1", second, 0.1), synced("s2", second, 0.001)];
        seen = look(&mut history, servers, second * 1000);
    }
    assert_eq!(seen, [7, 0]);
}

#[test]
fn looks_that_are_rare_or_fail_do_not_change_the_count() {
    for every in [1, 5, 20, 30] {
        let mut history = History::default();
        let looks = (0..=120).filter(|second| second % every == 0);
        let seen = looks.map(|second| look_at_three(&mut history, second));
        let seen: Vec<_> = seen.collect();
        // The window of the first look that can be judged begins the row.
        let expected = 12 - u32::try_from(every / 10).unwrap();
        assert_eq!(seen.last().unwrap(), &[expected, 0, 0], "every {every} s");
    }
}

/// It counts in no number of syncs, for it has not ended.
#[test]
fn a_sync_that_runs_is_slow() {
    let mut history = History::default();
    let mut seen = Vec::new();
    for second in 0..80 {
        let stopped = ServerSample {
            sync_running_ms: second * 1000,
            ..synced("s1", 7, 0.001)
        };
        let servers = vec![stopped, synced("s2", second, 0.001)];
        seen = look(&mut history, servers, second * 1000);
    }
    assert_eq!(seen, [7, 0]);
}

#[test]
fn counters_of_another_start_begin_anew() {
    let (before, later) = (
        Syncs {
            count: 1000,
            seconds: 900.0,
        },
        Syncs {
            count: 10,
            seconds: 0.05,
        },
    );
    assert_eq!(later.mean_ms_since(before), Some(5.0));
    // It has synced more often than before, in less time.
    let more = Syncs {
        count: 2000,
        seconds: 10.0,
    };
    assert_eq!(more.mean_ms_since(before), Some(5.0));
    assert_eq!(more.mean_ms_since(more), None);
}
