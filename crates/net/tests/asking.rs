//! One request on a connection of its own: what its caller learns of the server, and whether it was sent.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::common::*;
use areo_core::config::ServerId;
use areo_core::message::ServerRecord;
use areo_net::network::{AskError, BootstrapError, Network};
use areo_net::{Role, Tls};
use areo_trust::authority::{Authority, ServerKey};
use areo_trust::protocol::{Ask, TrustAnswer};
use areo_trust::roots::Roots;
use areo_trust::tls::{Credentials, DefaultTimeProvider, Endpoint};
use areo_wire::codec::trust;
use areo_wire::frame::Refusal;
use bytes::Bytes;

const CALLER: u128 = 9;
const SHORT: Duration = Duration::from_millis(300);

fn authority() -> Authority {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
    Authority::create(IDENTITY.cluster, since.expect("after 1970").as_secs()).expect("a CA")
}

fn server_tls(authority: &Authority) -> Tls {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
    let now = since.expect("after 1970").as_secs();
    let key = ServerKey::create().expect("a key");
    let certificate = authority.issue(ServerId(IDENTITY.server), &key.public(), now);
    let credentials = Credentials::new(certificate.expect("issued"), authority.root(), &key);
    Tls::new(Endpoint {
        cluster: IDENTITY.cluster,
        roots: Roots::new(authority.root().clone()),
        credentials: Some(credentials),
        clock: Arc::new(DefaultTimeProvider),
    })
}

async fn serve(manner: Manner, tls: Option<Tls>) -> TestServer {
    let service = TestService::new(manner);
    TestServer::start_at(loopback(0), service, |config| config.tls = tls).await
}

fn digest_alone(authority: &Authority) -> Tls {
    Tls::of_digest(authority.root().digest(), Arc::new(DefaultTimeProvider))
}

#[test]
fn a_caller_with_a_digest_learns_the_ca_and_the_session_before_it_asks() {
    local(async {
        let authority = authority();
        let called = serve(Manner::Echo, Some(server_tls(&authority))).await;
        let address = called.address.to_string();
        let tls = digest_alone(&authority);
        let network = Network::with_tls(Role::Client, CALLER, Some(tls.clone()));
        let mut bindings = Vec::new();
        for _ in 0..2 {
            let digest = authority.root().digest();
            let body = |binding: &[u8]| Bytes::copy_from_slice(binding);
            let asked = network.ask(&*address, PATIENCE, |contact| {
                assert_eq!(contact.cluster, IDENTITY.cluster);
                assert_eq!(contact.server, ServerId(IDENTITY.server));
                let shown = contact.shown_root(digest);
                assert_eq!(shown.as_ref(), Some(authority.root()));
                body(&contact.binding.expect("it is encrypted"))
            });
            let response = asked.await.expect("an answer");
            let binding = response.contact.binding.unwrap();
            assert_eq!(response.body[..], binding, "the server echoes");
            bindings.push(binding);
        }
        assert_ne!(bindings[0], bindings[1]);

        // With the roots and the id of the cluster it calls no server of another one.
        let roots = Roots::new(authority.root().clone());
        tls.trust(IDENTITY.cluster, &roots).unwrap();
        let asked = network.ask(&*address, PATIENCE, |_| Bytes::from_static(b"x"));
        assert_eq!(asked.await.expect("an answer").body[..], *b"x");
        tls.trust(IDENTITY.cluster + 1, &roots).unwrap();
        let refused = network.ask(&*address, PATIENCE, |_| unreachable!("it is refused"));
        let error = refused.await.unwrap_err();
        assert!(
            !error.is_sent && error.to_string().contains("cluster"),
            "{error}"
        );
    });
}

#[test]
fn a_request_about_trust_is_one_and_its_answer_is_read() {
    local(async {
        let called = serve(Manner::Hold, None).await;
        let address = called.address.to_string();
        let network = Network::new(Role::Client, CALLER);
        for (reply, is_right) in [
            (trust::encode_reply(&TrustAnswer::Done.encode()), true),
            (trust::encode_reply(b"x"), false),
            (Bytes::from_static(b"\x08\x00"), false),
        ] {
            let answering = async {
                until("it arrived", || !called.service.held.borrow().is_empty()).await;
                let (body, responder) = called.service.held.borrow_mut().remove(0);
                let fields = trust::decode_request(&body).expect("a request about trust");
                assert_eq!(Ask::decode(fields), Ok(Ask::Authorities));
                responder.reply(&reply, &[]);
            };
            let asking = network.ask_trust(&*address, PATIENCE, |_| Ask::Authorities);
            let (answer, ()) = tokio::join!(asking, answering);
            match answer {
                Ok(response) => assert!(is_right && response.answer == TrustAnswer::Done),
                Err(error) => {
                    let cause = BootstrapError::Malformed;
                    let expected = AskError {
                        cause,
                        is_sent: true,
                    };
                    assert!(!is_right && error == expected, "{error:?}");
                }
            }
        }
    });
}

#[test]
fn a_caller_that_proves_a_key_reaches_a_server_of_any_ca() {
    local(async {
        let called = serve(Manner::Echo, Some(server_tls(&authority()))).await;
        let address = called.address.to_string();
        let tls = Tls::of_prover(Arc::new(DefaultTimeProvider));
        let network = Network::with_tls(Role::Client, CALLER, Some(tls));
        let asked = network.ask(&*address, PATIENCE, |contact| {
            assert_eq!(contact.server, ServerId(IDENTITY.server));
            Bytes::copy_from_slice(&contact.binding.expect("it is encrypted"))
        });
        let response = asked.await.expect("an answer");
        assert_eq!(
            Some(&response.body[..]),
            response.contact.binding.as_ref().map(|b| &b[..])
        );
    });
}

#[test]
fn a_caller_with_another_digest_sends_nothing() {
    local(async {
        let (ours, foreign) = (authority(), authority());
        let called = serve(Manner::Echo, Some(server_tls(&ours))).await;
        let tls = digest_alone(&foreign);
        let network = Network::with_tls(Role::Client, CALLER, Some(tls.clone()));
        let address = called.address.to_string();
        let asked = network.ask(&*address, PATIENCE, |_| unreachable!("not this server"));
        let error = asked.await.unwrap_err();
        let sentence = error.to_string();
        assert!(
            !error.is_sent && sentence.contains("is not the one of the token"),
            "{sentence}"
        );
        assert_eq!(called.service.requests.get(), 0);
        let refused = tls.update(Endpoint::clone);
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("nothing is known of the CAs")
        );
    });
}

#[test]
fn a_known_server_is_asked_at_its_address_and_must_be_that_one() {
    local(async {
        let called = serve(Manner::Echo, None).await;
        let network = Network::new(Role::Client, CALLER);
        let id = ServerId(IDENTITY.server);
        let echo = |contact: &areo_net::network::Contact| {
            assert!(contact.binding.is_none(), "it is plain");
            Bytes::from_static(b"x")
        };
        let error = network.ask(id, PATIENCE, echo).await.unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), error.is_sent),
            ("its address is not known", false)
        );
        let at = |id, address| ServerRecord::at_address(id, address);
        let address = called.address.to_string();
        let other = ServerId(IDENTITY.server + 1);
        network.learn(
            IDENTITY.cluster,
            [at(id, address.clone()), at(other, address)],
        );
        assert_eq!(
            network
                .ask(id, PATIENCE, echo)
                .await
                .expect("an answer")
                .body[..],
            *b"x"
        );
        let error = network.ask(other, PATIENCE, echo).await.unwrap_err();
        let refusal = Refusal::WrongServer;
        let cause = BootstrapError::Refused { refusal };
        assert_eq!(
            error,
            AskError {
                cause,
                is_sent: false
            }
        );
    });
}

#[test]
fn a_request_without_an_answer_says_whether_it_was_sent_and_is_sent_once() {
    local(async {
        let network = Network::new(Role::Client, CALLER);
        let nobody = vacant().await.to_string();
        let error = network.ask(&*nobody, PATIENCE, |_| unreachable!("no server"));
        assert!(!error.await.unwrap_err().is_sent);

        let called = serve(Manner::Hold, None).await;
        let address = called.address.to_string();
        let made = Rc::new(Cell::new(0));
        let ask = |patience| {
            let made = Rc::clone(&made);
            network.ask(&*address, patience, move |_| {
                made.set(made.get() + 1);
                Bytes::from_static(b"x")
            })
        };
        let cause = BootstrapError::TimedOut;
        let is_sent = true;
        assert_eq!(ask(SHORT).await.unwrap_err(), AskError { cause, is_sent });
        // The server drops the request without an answer: it refuses as busy.
        let dropped = async {
            until("it arrived", || called.service.requests.get() == 2).await;
            called.service.held.borrow_mut().clear();
        };
        let (error, ()) = tokio::join!(ask(PATIENCE), dropped);
        let refusal = Refusal::Busy;
        let cause = BootstrapError::Refused { refusal };
        assert_eq!(error.unwrap_err(), AskError { cause, is_sent });
        // The server goes while it has the request.
        let (error, _) = tokio::join!(ask(PATIENCE), async {
            until("it arrived", || called.service.requests.get() == 3).await;
            called.kill().await
        });
        let error = error.unwrap_err();
        assert!(
            error.is_sent && matches!(error.cause, BootstrapError::Unreachable { .. }),
            "{error:?}"
        );
        assert_eq!(made.get(), 3, "once for each call");
    });
}
