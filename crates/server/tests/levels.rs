//! Servers of several versions in one cluster (`[X-46 cluster-level]`).

#![allow(clippy::unwrap_used, reason = "a test")]

use std::net::SocketAddr;
use std::path::Path;

use areo_client::blocking::wait;
use areo_client::{Client, FinalizeError, LevelChange};
use areo_server::{Options, Program, ServeError, Start};

mod support;

/// A server of the cluster at this address, or the first one, of a program that knows this level.
fn server(folder: &Path, name: &str, at: Option<SocketAddr>, level: u32) -> Options {
    let join = |address: SocketAddr| Start::Join {
        seeds: vec![address.to_string()],
        token: None,
    };
    Options {
        program: Program {
            version: format!("0.{level}.0"),
            level,
        },
        ..support::options(folder, name, at.map_or_else(support::init, join))
    }
}

fn connect(to: SocketAddr) -> Client {
    wait(Client::connect(to.to_string().as_str())).unwrap()
}

#[test]
fn a_program_below_the_level_of_the_cluster_is_refused_and_a_later_one_starts_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (first, _) = support::serve(server(folder, "a", None, 1));
    let client = connect(first);
    assert_eq!(wait(client.level()), 0);
    let finalized = wait(client.finalize());
    let expected = LevelChange {
        level: 1,
        before: 0,
    };
    assert_eq!(finalized, Ok(expected));
    assert_eq!(wait(client.level()), 1);

    for _ in 0..2 {
        let refused = areo_server::run(&server(folder, "b", Some(first), 0)).unwrap_err();
        assert!(
            matches!(refused, ServeError::OldProgram { .. }),
            "{refused}"
        );
        assert_eq!(refused.exit_code(), 1);
        let sentence = refused.to_string();
        for words in ["this program is areo 0.0.0", "`areo status --json`"] {
            assert!(sentence.contains(words), "{sentence}");
        }
    }
    support::serve(server(folder, "b", Some(first), 1));
    let servers = wait(client.servers()).unwrap();
    let shown = servers.iter().map(|it| (&*it.name, &*it.version, it.level));
    let shown: Vec<_> = shown.collect();
    assert_eq!(shown, [("a", "0.1.0", 1), ("b", "0.1.0", 1)]);
    // A client that connects hears of it from the server that it asks first.
    assert_eq!(wait(connect(first).level()), 1);
    support::serve(server(folder, "c", Some(first), 2));
    let behind = wait(client.finalize()).unwrap_err();
    let FinalizeError::Behind {
        level: 2,
        is_required: false,
        servers,
    } = behind
    else {
        panic!("{behind}");
    };
    assert_eq!(servers.len(), 2);
}

#[test]
fn a_cluster_whose_servers_know_no_level_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = support::start(folder.path(), "a", support::init());
    let finalized = wait(connect(first).finalize());
    let expected = LevelChange {
        level: 0,
        before: 0,
    };
    assert_eq!(finalized, Ok(expected));
}
