use super::*;
use crate::cluster::{Program, loopback_places};
use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use tempfile::TempDir;
use tokio::task::LocalSet;

#[test]
fn partitions_leave_a_quorum_and_majorities_do_not() {
    let mut random = Random::new(1);
    for servers in 3..10 {
        let quorum = servers / 2 + 1;
        for _ in 0..100 {
            let mut separated = |trouble| {
                let rule = link_rule(trouble, servers, 1, &mut random);
                assert_eq!((rule.callers, rule.direction), (u64::MAX, None));
                rule.servers.count_ones() as usize
            };
            let partition = separated(Trouble::Partition);
            assert!(partition >= 1 && servers - partition >= quorum);
            assert!(servers - separated(Trouble::Majority) < quorum);
        }
    }
}

/// Two servers that are this script, in a world without troubles of its own.
fn servers(script: &str) -> (TempDir, Cluster) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("areo");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let program = Program::new(move || Command::new(&program));
    let cluster = Cluster::make(&program, loopback_places(2, true), folder.path(), false);
    let mut cluster = cluster.unwrap();
    cluster.start_all().unwrap();
    (folder, cluster)
}

async fn world() -> World {
    World {
        incidents: Incidents::default(),
        history: History::new(Box::new(io::sink())),
        proxy: Proxy::start(&[]).await.unwrap(),
        servers: 2,
        until: Instant::now(),
        pause: Duration::ZERO,
        disk: None,
        namespaces: None,
        clock: None,
        admins: Vec::new(),
        keys: Rc::default(),
    }
}

fn local(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test);
}

#[test]
fn a_server_that_ends_by_itself_breaks_a_promise() {
    local(async {
        let (_folder, mut cluster) = servers("echo thread main panicked at here; exit 3");
        let world = world().await;
        while world.incidents.violations().is_empty() {
            notice_deaths(&world, &mut cluster).unwrap();
            sleep(Duration::from_millis(5)).await;
        }
        let said = &world.incidents.violations()[0];
        for words in ["ended by itself", "exit status: 3", "panicked at here"] {
            assert!(said.contains(words), "{said}");
        }
    });
}

#[test]
fn what_the_nemesis_does_to_servers_breaks_none() {
    local(async {
        let (_folder, mut cluster) = servers("exec sleep 1000");
        let world = world().await;
        assert!(cluster.kill(0).await && cluster.stop(1));
        cluster.resume(1);
        notice_deaths(&world, &mut cluster).unwrap();
        assert_eq!(world.incidents.violations(), [""; 0]);
        assert!(!cluster.kill(0).await, "it was not started again");
        // It does not obey SIGTERM as a server does.
        let ended = cluster.terminate(1, STOP).await;
        check_stopped(&world.incidents, "s2", ended);
        let said = &world.incidents.violations()[0];
        assert!(said.contains("s2 did not stop cleanly"), "{said}");
    });
}
