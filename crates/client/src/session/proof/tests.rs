use super::*;
use areo_core::config::ServerId;
use areo_net::listener::{Identity, Service};
use areo_net::{Incoming, Listener, ListenerConfig, Origin, Pool, Responder};
use areo_trust::authority::{Authority, ServerKey};
use areo_trust::certificate::CertificateDer;
use areo_trust::id::KeyId;
use areo_trust::roots::{Root, Roots};
use areo_trust::secret::{SECRET_BYTES, Secret};
use areo_trust::tls::{Credentials, Endpoint};
use bytes::Bytes;
use tokio::task::LocalSet;

const CLUSTER: u128 = 0xc1;
const SERVER: ServerId = ServerId(1);

/// Bytes before a request about trust, and the first of them before a reply (`docs/wire.md`).
const PREFIX: usize = 2;
const REPLY: u8 = 18;

fn now() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()
}

fn key() -> AccessKey {
    AccessKey {
        id: KeyId(7),
        secret: Secret::new(vec![5; SECRET_BYTES]),
    }
}

/// An end that answers as a server and knows the key: a server, or another holder of the key.
struct Answering {
    roots: Roots,
    other_certificates: Vec<CertificateDer<'static>>,
}

impl Service for Answering {
    fn identity(&self) -> Identity {
        Identity {
            cluster: CLUSTER,
            server: SERVER.0,
            incarnation: 1,
        }
    }

    fn on_request(&self, request: Incoming<'_>, responder: Responder) {
        let Ok(Ask::Prove(proof)) = Ask::decode(&request.body[PREFIX..]) else {
            panic!("a proof")
        };
        let exchange = proof.exchange(&ProofSite {
            cluster: CLUSTER,
            server: SERVER,
            binding: responder.connection().binding().unwrap(),
        });
        let answer = TrustAnswer::Ticket(TicketAnswer {
            ticket: Bytes::from_static(b"x"),
            answer: exchange.prove(&key().secret, Prover::Server),
            roots: self.roots.clone(),
            other_certificates: self.other_certificates.clone(),
        });
        let reply = [&[REPLY, 0][..], &answer.encode()].concat();
        responder.reply(&reply[..], &[]);
    }

    fn on_note(&self, _note: Incoming<'_>, _origin: &Origin) {}

    fn on_batch_end(&self) {}
}

/// Serves with a certificate of this CA for this key, and answers with these roots: the address.
async fn serve(
    authority: &Authority,
    own: &ServerKey,
    (roots, also): (&[&Authority], Vec<CertificateDer<'static>>),
) -> String {
    let certificate = authority.issue(SERVER, &own.public(), now()).unwrap();
    let credentials = Credentials::new(certificate, authority.root(), own);
    let tls = Tls::new(Endpoint {
        cluster: CLUSTER,
        roots: Roots::new(authority.root().clone()),
        credentials: Some(credentials),
        clock: Arc::new(DefaultTimeProvider),
    });
    let mut trusted = Roots::new(authority.root().clone());
    for other in roots {
        trusted.trust(other.root().clone()).unwrap();
    }
    let config = ListenerConfig {
        tls: Some(tls),
        ..ListenerConfig::new(Pool::new(0))
    };
    let answering = Rc::new(Answering {
        roots: trusted,
        other_certificates: also,
    });
    let address = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(address, config, answering).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    spawn_local(async move { listener.run().await });
    address
}

/// Another holder of the key answered as a server, with a CA of its own, and the client took it for the cluster's.
#[tokio::test]
async fn a_client_that_knows_a_ca_takes_others_from_servers_that_it_can_place_alone() {
    let proving = async {
        let [first, next, foreign] = [(); 3].map(|()| Authority::create(CLUSTER, now()).unwrap());
        let own = ServerKey::create().unwrap();
        let tls = Tls::of_prover(Arc::new(DefaultTimeProvider));
        let holder = Rc::new(KeyHolder::new(key(), None, tls.clone()).unwrap());
        let prove = async |at: String| holder.begin(&[at], Duration::from_secs(5)).await;
        let digests =
            |of: &[&Authority]| -> Vec<_> { of.iter().map(|it| Root::digest(it.root())).collect() };
        // At first contact the key is all that there is.
        prove(serve(&first, &own, (&[], Vec::new())).await)
            .await
            .unwrap();
        assert_eq!(tls.trusted(), digests(&[&first]));

        let certified = |key: &ServerKey| first.issue(SERVER, &key.public(), now()).unwrap();
        let other = ServerKey::create().unwrap();
        for also in [Vec::new(), vec![certified(&own)]] {
            let posing = serve(&foreign, &other, (&[&first], also)).await;
            let refused = holder.begin(&[posing], Duration::from_millis(300)).await;
            assert!(matches!(refused, Err(ConnectError::NoServer { .. })));
            assert_eq!(tls.trusted(), digests(&[&first]));
        }
        // The CA is rotated: a server has a certificate of the new one, and proves that the old one knows its key.
        let also = vec![certified(&own)];
        prove(serve(&next, &own, (&[&first], also)).await)
            .await
            .unwrap();
        assert_eq!(tls.trusted(), digests(&[&next, &first]));
        prove(serve(&next, &own, (&[], Vec::new())).await)
            .await
            .unwrap();
        assert_eq!(tls.trusted(), digests(&[&next]));
    };
    LocalSet::new().run_until(proving).await;
}
