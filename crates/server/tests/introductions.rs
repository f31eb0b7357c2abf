//! Servers that are not asked hear of each other.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::time::Duration;

use areo_core::config::{Members, ServerId};
use areo_core::gather;
use areo_core::message::{Request, ServerRecord};
use areo_net::Role;
use areo_net::network::Network;
use areo_server::Start;
use tokio::runtime;
use tokio::task::LocalSet;

mod support;

/// A server outside of the root domain never heard of one that joined after it.
#[test]
fn a_server_that_joins_is_known_to_those_that_joined_before() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = support::start(folder.path(), "a", support::init());
    let join = || Start::Join {
        seeds: vec![first.to_string()],
        token: None,
    };
    let (second, _) = support::start(folder.path(), "b", join());
    let (third, _) = support::start(folder.path(), "c", join());
    let (second, third) = (second.to_string(), third.to_string());
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let network = Network::new(Role::Client, 7);
    LocalSet::new().block_on(&runtime.unwrap(), async {
        let patience = Duration::from_secs(2);
        for _ in 0..3000 {
            let found = network.bootstrap(&second, None, patience).await;
            let servers = found.expect("it serves").directory.servers;
            let is_third =
                |record: &ServerRecord| (record.name.as_str(), &record.address) == ("c", &third);
            if servers.iter().any(is_third) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("b has not heard of c");
    });
}

/// A client could name a server that does not exist: the server connected there, and named it to clients.
#[test]
fn a_client_introduces_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let (listen, _) = support::start(folder.path(), "a", support::init());
    let listen = listen.to_string();
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let network = Network::new(Role::Client, 7);
    LocalSet::new().block_on(&runtime.unwrap(), async {
        let patience = Duration::from_secs(20);
        let found = network.bootstrap(&listen, None, patience).await;
        let found = found.expect("it serves");
        let there = ServerRecord::at_address(found.server, listen.clone());
        network.learn(found.cluster, [there]);
        let to: Members = [found.server].into_iter().collect();
        let invented = ServerRecord::at_address(ServerId(99), "192.0.2.1:1".to_owned());
        let env = network.env(patience);
        let replies = gather::survey(&env, &to, Request::Know(invented)).await;
        assert_eq!(replies, [None], "it was refused");
        let again = network.bootstrap(&listen, None, patience).await;
        let servers = again.expect("it serves").directory.servers;
        let ids: Vec<ServerId> = servers.iter().map(|record| record.id).collect();
        assert_eq!(ids, [found.server]);
    });
}
