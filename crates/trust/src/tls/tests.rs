use super::*;
use crate::authority::Authority;
use crate::fuzzing::pem;
use crate::secret::Secret;
use rustls::{ClientConnection, ServerConnection};
use std::time::Duration;

const NOW: u64 = 1_800_000_000;
const HERE: ServerId = ServerId(1);
const THERE: ServerId = ServerId(2);
const CLUSTER: u128 = 0xc1;

/// A clock that stands still.
#[derive(Debug)]
struct Stopped(u64);

impl TimeProvider for Stopped {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0)))
    }
}

fn authority() -> Authority {
    Authority::create(CLUSTER, NOW).unwrap()
}

fn server(authority: &Authority, id: ServerId) -> Endpoint {
    let key = ServerKey::create().unwrap();
    let certificate = authority.issue(id, &key.public(), NOW).unwrap();
    Endpoint {
        credentials: Some(Credentials::new(certificate, authority.root(), &key)),
        ..client(authority)
    }
}

fn client(authority: &Authority) -> Endpoint {
    Endpoint {
        cluster: CLUSTER,
        roots: Roots::new(authority.root().clone()),
        credentials: None,
        clock: Arc::new(Stopped(NOW)),
    }
}

/// Both ends of a connection after the handshake, or the first error with the end that found it.
fn handshake(
    caller: Arc<ClientConfig>,
    called: Arc<ServerConfig>,
) -> Result<(ClientConnection, ServerConnection), (&'static str, Error)> {
    let mut caller = ClientConnection::new(caller, server_name()).unwrap();
    let mut called = ServerConnection::new(called).unwrap();
    for _ in 0..4 {
        carry(&mut caller, &mut called).map_err(|error| ("called", error))?;
        carry(&mut called, &mut caller).map_err(|error| ("caller", error))?;
    }
    assert!(!caller.is_handshaking() && !called.is_handshaking());
    Ok((caller, called))
}

fn carry<A, B>(
    from: &mut rustls::ConnectionCommon<A>,
    to: &mut rustls::ConnectionCommon<B>,
) -> Result<(), Error>
where
    A: rustls::SideData,
    B: rustls::SideData,
{
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        to.read_tls(&mut rest).unwrap();
        to.process_new_packets()?;
    }
    Ok(())
}

fn between(caller: &Endpoint, expected: Option<ServerId>, called: &Endpoint) -> String {
    let (caller, called) = (
        caller.client_config(expected).unwrap(),
        called.server_config().unwrap(),
    );
    match handshake(caller, called) {
        Ok(_) => "agreed".to_owned(),
        Err((end, error)) => format!("{end}: {}", explain(&error)),
    }
}

#[test]
fn servers_know_each_other_and_clients_stay_anonymous() {
    let authority = authority();
    let (here, there) = (server(&authority, HERE), server(&authority, THERE));
    let config = here.client_config(Some(THERE)).unwrap();
    let (caller, called) = handshake(config, there.server_config().unwrap()).unwrap();
    let identity = |server| {
        Peer::Server(ServerIdentity {
            cluster: CLUSTER,
            server,
        })
    };
    assert_eq!(peer(&caller), Ok(identity(THERE)));
    assert_eq!(peer(&called), Ok(identity(HERE)));
    assert_eq!(
        called.protocol_version(),
        Some(rustls::ProtocolVersion::TLSv1_3)
    );

    let config = client(&authority).client_config(None).unwrap();
    let (caller, called) = handshake(config, there.server_config().unwrap()).unwrap();
    assert_eq!(peer(&caller), Ok(identity(THERE)));
    assert_eq!(peer(&called), Ok(Peer::Anonymous));
    assert!(client(&authority).server_config().is_err());
}

#[test]
fn each_wrong_certificate_has_its_sentence_at_the_end_that_sees_it() {
    let (ours, foreign) = (authority(), authority());
    let (here, there) = (server(&ours, HERE), server(&ours, THERE));
    let refusals = [
        (
            between(&client(&ours), None, &server(&foreign, THERE)),
            "caller: the certificate was issued by a CA that this cluster does not trust",
        ),
        (
            between(&client(&ours), Some(HERE), &there),
            "caller: the certificate is for server 00000000000000000000000000000002, and server 00000000000000000000000000000001 was called",
        ),
        (
            between(&server(&foreign, HERE), None, &there),
            "caller: the certificate was issued by a CA",
        ),
    ];
    for (found, expected) in refusals {
        assert!(found.starts_with(expected), "{found}");
    }
    // A caller whose certificate is of another CA, and which trusts the server all the same.
    let mut stranger = server(&foreign, HERE);
    stranger.roots = Roots::new(ours.root().clone());
    let found = between(&stranger, None, &there);
    assert!(
        found.starts_with("called: the certificate was issued by a CA"),
        "{found}"
    );
    // A CA that another cluster shares does not make its servers ours.
    let elsewhere = Endpoint {
        cluster: 0xc2,
        ..client(&ours)
    };
    let found = between(&elsewhere, None, &there);
    assert!(
        found.starts_with("caller: the certificate is for a server of cluster"),
        "{found}"
    );
    assert_eq!(between(&here, Some(THERE), &there), "agreed");
}

#[test]
fn an_expired_certificate_is_refused_by_either_end_beyond_the_skew() {
    let authority = authority();
    let end = NOW + crate::authority::CERTIFICATE_SECONDS + crate::SKEW_SECONDS;
    for (seconds, is_taken) in [(end, true), (end + 60, false)] {
        let clock: Arc<dyn TimeProvider> = Arc::new(Stopped(seconds));
        let mut late = client(&authority);
        late.clock = Arc::clone(&clock);
        let found = between(&late, None, &server(&authority, THERE));
        let expected = "caller: the certificate expired 2 h ago";
        assert_eq!(found == "agreed", is_taken, "{found}");
        assert!(is_taken || found.starts_with(expected), "{found}");
        let mut late = server(&authority, THERE);
        late.clock = clock;
        let found = between(&server(&authority, HERE), None, &late);
        let expected = "called: the certificate expired 2 h ago";
        assert_eq!(found == "agreed", is_taken, "{found}");
        assert!(is_taken || found.starts_with(expected), "{found}");
    }
}

#[test]
fn a_rotation_of_the_ca_breaks_no_connection_between_neighbouring_steps() {
    let (old, new) = (authority(), authority());
    let mut roots = Roots::new(old.root().clone());
    let mut steps = vec![(roots.clone(), &old)];
    roots.trust(new.root().clone()).unwrap();
    steps.push((roots.clone(), &old));
    roots.issue_from(new.root().digest()).unwrap();
    steps.push((roots.clone(), &new));
    roots.drop_root(old.root().digest()).unwrap();
    steps.push((roots, &new));
    let at = |step: usize, id| Endpoint {
        roots: steps[step].0.clone(),
        ..server(steps[step].1, id)
    };
    for (before, after) in [(0, 1), (1, 2), (2, 3)] {
        for (caller, called) in [(before, after), (after, before), (after, after)] {
            let found = between(&at(caller, HERE), Some(THERE), &at(called, THERE));
            assert_eq!(found, "agreed", "from step {caller} to step {called}");
        }
    }
    assert_ne!(between(&at(0, HERE), None, &at(3, THERE)), "agreed");
}

#[test]
fn a_server_that_joins_takes_the_ca_of_its_token_and_no_other() {
    let (ours, foreign) = (authority(), authority());
    let called = server(&ours, THERE);
    let join = |digest| joining_config(digest, Arc::new(Stopped(NOW))).unwrap();
    let digest = ours.root().digest();
    let (caller, _) = handshake(join(digest), called.server_config().unwrap()).unwrap();
    let shown = caller.peer_certificates().unwrap();
    assert_eq!(shown_root(shown, digest).as_ref(), Some(ours.root()));
    let other = foreign.root().digest();
    assert_eq!(shown_root(shown, other), None);
    let refused = handshake(join(other), called.server_config().unwrap());
    let (end, error) = refused.err().unwrap();
    assert_eq!(end, "caller");
    assert!(explain(&error).starts_with("the server's CA is not the one of the token"));

    // A server that shows the right root beside a certificate which that root did not issue.
    let key = ServerKey::create().unwrap();
    let leaf = foreign.issue(THERE, &key.public(), NOW).unwrap();
    let pretender = Endpoint {
        credentials: Some(Credentials::new(leaf, ours.root(), &key)),
        ..client(&ours)
    };
    let refused = handshake(join(digest), pretender.server_config().unwrap());
    let (_, error) = refused.err().unwrap();
    assert!(
        explain(&error).starts_with("the certificate was issued by a CA"),
        "{error}"
    );
}

/// A server of the cluster with a certificate of an operator's CA, which both ends trust.
fn with_operator(ours: &Authority, operator: &Authority, id: ServerId) -> Endpoint {
    let key = ServerKey::create().unwrap();
    let certificate = operator.issue(id, &key.public(), NOW).unwrap();
    let private = pem("PRIVATE KEY", key.private().expose());
    let private = Secret::new(private.into_bytes());
    let file = pem("CERTIFICATE", &certificate);
    let operators = OperatorCertificate::read(file.as_bytes(), &private).unwrap();
    let mut server = server(ours, id);
    server.roots.trust(operator.root().clone()).unwrap();
    let own = server.credentials.unwrap();
    server.credentials = Some(own.with_operator(&operators));
    server
}

#[test]
fn a_certificate_of_an_operator_is_for_all_but_servers_that_join() {
    let (ours, operator) = (authority(), authority());
    let [here, there] = [HERE, THERE].map(|id| with_operator(&ours, &operator, id));
    assert_eq!(between(&here, Some(THERE), &there), "agreed");
    let clocks = [NOW, 0, NOW + 10 * crate::authority::CERTIFICATE_SECONDS];
    for clock in clocks.map(Stopped).map(Arc::new) {
        let there = Endpoint {
            clock,
            ..there.clone()
        };
        assert_eq!(there.issuer(), Some(operator.root().digest()));
    }
    let mut plain = server(&ours, HERE);
    let refused = between(&plain, None, &there);
    assert!(refused.starts_with("caller: the certificate was issued by a CA"));
    plain.roots = here.roots.clone();
    assert_eq!(between(&plain, Some(THERE), &there), "agreed");
    assert_eq!(between(&there, Some(HERE), &plain), "agreed");

    let join = |digest| joining_config(digest, Arc::new(Stopped(NOW))).unwrap();
    let digest = ours.root().digest();
    let (caller, _) = handshake(join(digest), there.server_config().unwrap()).unwrap();
    let shown = caller.peer_certificates().unwrap();
    assert_eq!(shown_root(shown, digest).as_ref(), Some(ours.root()));
}

#[test]
fn a_certificate_is_worth_nothing_without_its_key() {
    let authority = authority();
    let (key, other) = (ServerKey::create().unwrap(), ServerKey::create().unwrap());
    let certificate = authority.issue(THERE, &key.public(), NOW).unwrap();
    let thief = Endpoint {
        credentials: Some(Credentials::new(certificate, authority.root(), &other)),
        ..client(&authority)
    };
    assert!(thief.server_config().is_err());
}

#[test]
fn a_peer_without_our_protocol_is_refused() {
    let authority = authority();
    let config = client(&authority).client_config(None).unwrap();
    for (protocols, sentence) in [(vec![b"h2".to_vec()], true), (Vec::new(), false)] {
        let mut config = ClientConfig::clone(&config);
        config.alpn_protocols = protocols;
        let called = server(&authority, THERE).server_config().unwrap();
        let error = match handshake(Arc::new(config), called) {
            Ok((_, called)) => peer(&called).unwrap_err(),
            Err((end, error)) => {
                assert!(sentence && end == "called", "{end}: {error}");
                error
            }
        };
        assert!(
            explain(&error).contains("not the protocol of areo"),
            "{error}"
        );
    }
}

#[test]
fn plain_bytes_and_an_older_tls_have_their_sentences() {
    let authority = authority();
    let config = server(&authority, THERE).server_config().unwrap();
    // The first bytes of a hello without TLS; a hello of TLS 1.2, which offers one suite and one way to sign.
    let mut tls12 = vec![22, 3, 1, 0, 55, 1, 0, 0, 51, 3, 3];
    tls12.extend_from_slice(&[7; 32]);
    tls12.extend_from_slice(&[0, 0, 2, 0xc0, 0x2b, 1, 0]);
    tls12.extend_from_slice(&[0, 8, 0, 13, 0, 4, 0, 2, 4, 3]);
    for (bytes, sentence) in [
        (&b"AREO\x5c\0\x02\x02"[..], "does not speak TLS:"),
        (&tls12[..], "does not speak TLS 1.3"),
    ] {
        let mut called = ServerConnection::new(Arc::clone(&config)).unwrap();
        called.read_tls(&mut &bytes[..]).unwrap();
        let error = called.process_new_packets().unwrap_err();
        let found = explain(&error);
        assert!(found.contains(sentence), "{found} ({error})");
    }
    let mut caller = ClientConnection::new(
        client(&authority).client_config(None).unwrap(),
        server_name(),
    )
    .unwrap();
    caller.read_tls(&mut &b"AREO\x5c\0\x02\x02"[..]).unwrap();
    let found = explain(&caller.process_new_packets().unwrap_err());
    assert!(found.contains("does not speak TLS:"), "{found}");
}

/// A holder of the same access key could have a client take any CA.
#[test]
fn a_server_of_a_new_ca_is_known_by_a_certificate_of_the_old_one_for_its_key() {
    let (old, new) = (authority(), authority());
    let (key, other) = (ServerKey::create().unwrap(), ServerKey::create().unwrap());
    let issue = |by: &Authority, id, key: &ServerKey| by.issue(id, &key.public(), NOW).unwrap();
    let shown = [issue(&new, THERE, &key), new.root().certificate().clone()];
    let mut end = client(&old);
    let refused = end.judge_either(&shown, &[]);
    assert_eq!(refused, Err(CertificateError::OtherAuthority));
    for (by, id, key) in [
        (&new, THERE, &key),
        (&old, THERE, &other),
        (&old, HERE, &key),
    ] {
        assert_eq!(end.judge_either(&shown, &[issue(by, id, key)]), refused);
    }
    let also = [issue(&new, THERE, &key), issue(&old, THERE, &key)];
    let server = ServerId(2);
    let found = end.judge_either(&shown, &also);
    assert_eq!(found.map(|found| found.server), Ok(server));
    end.cluster += 1;
    assert!(end.judge_either(&shown, &also).is_err(), "another cluster");

    let credentials = Credentials::new(shown[0].clone(), new.root(), &key);
    let known = Endpoint {
        credentials: Some(credentials),
        ..client(&new)
    };
    assert_eq!(known.public_key(), Some(key.public()));
    assert_eq!(end.public_key(), None);
}
