//! Tests the question whether a process answers as a server at an address (`[X-33 registered-address]`).

use std::time::Duration;

use crate::common::*;
use areo_net::presence::{Presence, presence};
use tokio::net::TcpListener;

const WHO: (u128, u128) = (IDENTITY.cluster, IDENTITY.server);
const SHORT: Duration = Duration::from_millis(100);

#[test]
fn a_process_is_told_from_another_server_from_silence_and_from_nothing() {
    local(async {
        let (server, peer, record) = serving(Manner::Hold).await;
        peer.call(message(b"held"), record, 1).unwrap();
        until("it arrived", || server.service.requests.get() == 1).await;
        let address = server.address.to_string();
        let process = Some(server.listener.process());
        let answers = |is_stopping| Presence::Answers {
            process,
            is_stopping,
        };
        assert_eq!(
            presence(&address, WHO, None, PATIENCE).await,
            answers(false)
        );
        let another = (IDENTITY.cluster, IDENTITY.server + 1);
        assert_eq!(
            presence(&address, another, None, PATIENCE).await,
            Presence::Absent
        );
        let elsewhere = (IDENTITY.cluster + 1, IDENTITY.server);
        assert_eq!(
            presence(&address, elsewhere, None, PATIENCE).await,
            Presence::Absent
        );
        let listener = server.listener.clone();
        // It answers hellos until it owes nothing.
        let draining = tokio::task::spawn_local(async move { listener.drain(PATIENCE).await });
        tokio::task::yield_now().await;
        assert_eq!(presence(&address, WHO, None, PATIENCE).await, answers(true));
        draining.abort();

        // As of a process that is stopped: the system takes the connection, and nothing answers.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = silent.local_addr().unwrap().to_string();
        assert_eq!(presence(&address, WHO, None, SHORT).await, Presence::Silent);
        drop(silent);
        assert_eq!(
            presence(&address, WHO, None, PATIENCE).await,
            Presence::Absent
        );
    });
}
