use super::*;
use crate::certificate::{CertificateError, verify};

const CLUSTER: u128 = 0xc1;
const SERVER: ServerId = ServerId(0x51);
const NOW: u64 = 1_800_000_000;
const DAY: u64 = 24 * 60 * 60;
const HOUR: u64 = 60 * 60;

fn issued() -> (Authority, CertificateDer<'static>) {
    let authority = Authority::create(CLUSTER, NOW).unwrap();
    let key = ServerKey::create().unwrap().public();
    let certificate = authority.issue(SERVER, &key, NOW).unwrap();
    (authority, certificate)
}

fn check(
    authority: &Authority,
    certificate: &CertificateDer<'_>,
    now_seconds: u64,
) -> Result<ServerIdentity, CertificateError> {
    let roots = [authority.root().clone()];
    verify(&roots, certificate, &[], Usage::Server, now_seconds)
}

#[test]
fn a_certificate_names_its_cluster_and_server_and_serves_both_ends() {
    let (authority, certificate) = issued();
    let roots = [authority.root().clone()];
    for usage in [Usage::Server, Usage::Client] {
        let identity = verify(&roots, &certificate, &[], usage, NOW).unwrap();
        assert_eq!(identity.cluster, CLUSTER);
        assert_eq!(identity.server, SERVER);
    }
}

#[test]
fn a_ca_that_is_taken_back_issues_for_the_root_that_is_trusted() {
    let (authority, _) = issued();
    let again = Authority::load(CLUSTER, &authority.private(), authority.root().clone()).unwrap();
    let key = ServerKey::create().unwrap();
    let certificate = again.issue(SERVER, &key.public(), NOW).unwrap();
    assert!(check(&authority, &certificate, NOW).is_ok());
    let key_again = ServerKey::load(&key.private()).unwrap();
    assert_eq!(key_again.public(), key.public());

    let other = Authority::create(CLUSTER, NOW).unwrap();
    let mixed = Authority::load(CLUSTER, &authority.private(), other.root().clone());
    assert_eq!(mixed.err(), Some(AuthorityError::OtherRoot));
    let rubbish = Authority::load(CLUSTER, &Secret::new(vec![1; 64]), other.root().clone());
    assert_eq!(rubbish.err(), Some(AuthorityError::PrivateKey));
}

#[test]
fn private_keys_are_in_no_debug_output() {
    let (authority, _) = issued();
    let key = ServerKey::create().unwrap();
    let shown = format!("{authority:?} {key:?} {:?}", key.private());
    assert!(!shown.contains("Pair") && shown.len() < 200, "{shown}");
}

#[test]
fn another_ca_is_refused_even_under_the_name_of_the_trusted_one() {
    let (authority, _) = issued();
    let (_, foreign) = issued();
    let refused = check(&authority, &foreign, NOW);
    assert_eq!(refused, Err(CertificateError::OtherAuthority));
    // A CA that has the name of the trusted one, and not its key.
    let pair = Pair::create().unwrap();
    let mut params = root_params(CLUSTER, &authority.pair);
    params.not_before = not_before(NOW).unwrap();
    let forged = Authority {
        cluster: CLUSTER,
        root: Root::from_der(params.self_signed(&*pair.0).unwrap().der()).unwrap(),
        pair,
    };
    let mut leaf = CertificateParams::default();
    leaf.distinguished_name = common_name("forged");
    let issuer = Issuer::new(root_params(CLUSTER, &authority.pair), &*forged.pair.0);
    let key = ServerKey::create().unwrap().public();
    let leaf: CertificateDer<'_> = leaf.signed_by(&key, &issuer).unwrap().into();
    let refused = check(&authority, &leaf, NOW);
    assert_eq!(refused, Err(CertificateError::OtherAuthority));
}

#[test]
fn every_changed_bit_of_a_certificate_is_refused() {
    let (authority, certificate) = issued();
    for bit in 0..certificate.len() * 8 {
        let mut changed = certificate.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        let changed = CertificateDer::from(changed);
        assert!(check(&authority, &changed, NOW).is_err(), "bit {bit}");
    }
}

#[test]
fn a_clock_that_is_an_hour_wrong_locks_nothing_out() {
    let (authority, certificate) = issued();
    // Issued by a clock an hour ahead, judged by one an hour behind, and the other way round at the end of its life.
    let first = NOW - 2 * HOUR;
    let last = NOW + CERTIFICATE_SECONDS;
    for now in [first, NOW, last, last + SKEW_SECONDS] {
        assert!(check(&authority, &certificate, now).is_ok(), "{now}");
    }
    let early = check(&authority, &certificate, first - SKEW_SECONDS - 60).unwrap_err();
    assert_eq!(
        early,
        CertificateError::NotYet {
            seconds: SKEW_SECONDS + 60
        }
    );
    let late = check(&authority, &certificate, last + SKEW_SECONDS + 60).unwrap_err();
    assert_eq!(
        late,
        CertificateError::Expired {
            seconds: SKEW_SECONDS + 60
        }
    );
    assert!(late.to_string().contains("clock"), "{late}");
    for clock in [u64::MAX, 300_000_000_000] {
        let refused = Authority::create(CLUSTER, clock).unwrap_err();
        assert_eq!(refused, AuthorityError::Clock { now_seconds: clock });
    }
}

#[test]
fn a_certificate_is_due_at_two_thirds_of_its_life_or_when_another_root_issues() {
    let (authority, certificate) = issued();
    let chain = [certificate.clone()];
    let mut roots = Roots::new(authority.root().clone());
    assert!(!is_due(&chain, &roots, NOW));
    assert!(!is_due(&chain, &roots, NOW + 60 * DAY - 1));
    assert!(is_due(&chain, &roots, NOW + 60 * DAY + 1));
    assert!(
        is_due(&chain, &roots, NOW - DAY),
        "a clock was ahead when it was issued"
    );

    let next = Authority::create(CLUSTER, NOW).unwrap();
    roots.trust(next.root().clone()).unwrap();
    assert!(!is_due(&chain, &roots, NOW));
    roots.issue_from(next.root().digest()).unwrap();
    assert!(is_due(&chain, &roots, NOW));
    let still = verify(roots.all(), &certificate, &[], Usage::Server, NOW);
    assert!(still.is_ok(), "both roots are trusted: {still:?}");

    let key = ServerKey::create().unwrap().public();
    let renewed = next.issue(SERVER, &key, NOW).unwrap();
    assert!(!is_due(std::slice::from_ref(&renewed), &roots, NOW));
    roots.drop_root(authority.root().digest()).unwrap();
    assert!(verify(roots.all(), &renewed, &[], Usage::Server, NOW).is_ok());
    let dropped = verify(roots.all(), &certificate, &[], Usage::Server, NOW);
    assert_eq!(dropped, Err(CertificateError::OtherAuthority));
}

#[test]
fn a_chain_with_a_ca_below_the_root_is_due_at_its_time() {
    let pair = Pair::create().unwrap();
    let mut params = root_params(CLUSTER, &pair);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = Root::from_der(params.self_signed(&*pair.0).unwrap().der()).unwrap();
    let issuer = Issuer::new(params, &*pair.0);
    let pair = Pair::create().unwrap();
    let params = root_params(CLUSTER, &pair);
    let public = PublicKey::new(pair.0.der_bytes()).unwrap();
    let certificate = params.signed_by(&public, &issuer).unwrap();
    let below = Authority {
        cluster: CLUSTER,
        root: Root::from_der(certificate.der()).unwrap(),
        pair,
    };
    let key = ServerKey::create().unwrap().public();
    let leaf = below.issue(SERVER, &key, NOW).unwrap();
    let chain = [leaf, below.root().certificate().clone()];
    let mut roots = Roots::new(root);
    let taken = verify(roots.all(), &chain[0], &chain[1..], Usage::Server, NOW);
    assert!(taken.is_ok(), "{taken:?}");
    assert!(!is_due(&chain, &roots, NOW + 60 * DAY - 1));
    assert!(is_due(&chain, &roots, NOW + 60 * DAY + 1));
    assert!(is_due(&chain[..1], &roots, NOW), "the CA below is missing");
    assert!(is_due(&[], &roots, NOW));
    let long = [&chain[..], &vec![chain[1].clone(); 3]].concat();
    assert!(is_due(&long, &roots, NOW), "no server takes it");

    let next = Authority::create(CLUSTER, NOW).unwrap();
    roots.trust(next.root().clone()).unwrap();
    roots.issue_from(next.root().digest()).unwrap();
    assert!(is_due(&chain, &roots, NOW));
}

#[test]
fn public_keys_of_another_form_are_refused() {
    let key = ServerKey::create().unwrap().public();
    assert_eq!(PublicKey::new(key.as_bytes()), Ok(key));
    let mut compressed = *key.as_bytes();
    compressed[0] = 2;
    for bytes in [&compressed[..], &key.as_bytes()[..64], b""] {
        assert_eq!(PublicKey::new(bytes), Err(AuthorityError::PublicKey));
    }
}

#[test]
fn the_certificate_of_a_gateway_has_its_names_for_a_week_and_is_no_servers() {
    let (authority, _) = issued();
    let hosts = ["gate.example", "*.gate.example", "10.0.0.1"];
    let hosts = hosts.iter().map(|it| it.parse().unwrap()).collect();
    let hosts = Hosts::new(hosts).unwrap();
    let key = ServerKey::create().unwrap().public();
    let certificate = authority.issue_to_gateway(&hosts, &key, NOW).unwrap();
    for usage in [Usage::Server, Usage::Client] {
        let roots = [authority.root().clone()];
        let judged = verify(&roots, &certificate, &[], usage, NOW);
        let expected = match usage {
            Usage::Server => CertificateError::NoIdentity,
            Usage::Client => CertificateError::Usage,
        };
        assert_eq!(judged, Err(expected));
    }
    let anchors = [authority.root().anchor()];
    let leaf = webpki::EndEntityCert::try_from(&certificate).unwrap();
    for (name, is_its) in [
        ("gate.example", true),
        ("photos.gate.example", true),
        ("10.0.0.1", true),
        ("example", false),
        ("10.0.0.2", false),
    ] {
        let name = rustls::pki_types::ServerName::try_from(name).unwrap();
        let found = leaf.verify_is_valid_for_subject_name(&name).is_ok();
        assert_eq!(found, is_its, "{name:?}");
    }
    let at = |seconds| {
        let usage = Usage::Server;
        crate::certificate::chain_at(&anchors, &certificate, &[], usage, seconds).is_ok()
    };
    let end = NOW + 7 * DAY;
    assert!(at(NOW - HOUR) && at(end - 1) && !at(end + 1) && !at(NOW - 3 * HOUR));
}
