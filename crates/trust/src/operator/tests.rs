use areo_core::config::ServerId;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType,
};
use time::OffsetDateTime;

use super::*;
use crate::authority::{Authority, CERTIFICATE_SECONDS, ServerKey};
use crate::fuzzing::pem;
use crate::roots::Root;

const NOW: u64 = 1_800_000_000;
const DAY: u64 = 24 * 60 * 60;
const CERTIFICATE: &str = "CERTIFICATE";
const PRIVATE_KEY: &str = "PRIVATE KEY";
const NEEDED: ServerIdentity = ServerIdentity {
    cluster: 0xc1,
    server: ServerId(2),
};

/// An operator's CA, which happens to be made as a cluster's is.
fn authority() -> Authority {
    Authority::create(0xc1, NOW).unwrap()
}

fn files(authority: &Authority, server: ServerId, now: u64) -> (String, Secret) {
    let key = ServerKey::create().unwrap();
    let certificate = authority.issue(server, &key.public(), now).unwrap();
    let private = pem(PRIVATE_KEY, key.private().expose());
    (
        pem(CERTIFICATE, &certificate),
        Secret::new(private.into_bytes()),
    )
}

fn read(certificate: &str, key: &Secret) -> Result<OperatorCertificate, OperatorError> {
    OperatorCertificate::read(certificate.as_bytes(), key)
}

fn refusal(certificate: &str, key: &str) -> OperatorError {
    read(certificate, &Secret::new(key.as_bytes().to_vec())).unwrap_err()
}

#[test]
fn a_certificate_with_its_key_is_read_and_counts() {
    let authority = authority();
    let roots = Roots::new(authority.root().clone());
    let (certificate, key) = files(&authority, NEEDED.server, NOW);
    let found = read(&certificate, &key).unwrap();
    found.judge(NEEDED, &roots, NOW).unwrap();
    assert_eq!(found.identity(), Some(NEEDED));
    // Both in one file, the root behind it, and text between.
    let key_text = std::str::from_utf8(key.expose()).unwrap();
    let root = pem(CERTIFICATE, authority.root().certificate());
    let whole = format!("# of s2\n{key_text}{certificate}issuer:\n{root}");
    let found = read(&whole, &Secret::new(whole.clone().into_bytes())).unwrap();
    found.judge(NEEDED, &roots, NOW).unwrap();
    let end = NOW + CERTIFICATE_SECONDS;
    assert_eq!(found.validity(&roots).until_seconds, end);
    // Of 90 days a sixth is more than two weeks.
    for (days, is_late) in [(15, false), (13, true)] {
        assert_eq!(found.is_late(&roots, end - days * DAY), is_late, "{days}");
    }
}

#[test]
fn each_wrong_file_has_its_sentence() {
    let authority = authority();
    let (certificate, key) = files(&authority, NEEDED.server, NOW);
    let (_, other) = files(&authority, NEEDED.server, NOW);
    let text = |key: &Secret| String::from_utf8(key.expose().to_vec()).unwrap();
    let key = text(&key);
    let cut = &certificate[..certificate.len() / 2];
    let damaged = certificate.replacen('M', "!", 1);
    let encrypted = key.replace(PRIVATE_KEY, "ENCRYPTED PRIVATE KEY");
    let no_certificate = pem(CERTIFICATE, b"rubbish");
    let long = pem(CERTIFICATE, &vec![0x30; MAX_CERTIFICATE_BYTES + 1]);
    let many = certificate.repeat(5);
    for (certificate, key, words) in [
        ("", &key, "no certificate: PEM is needed"),
        (&key, &key, "no certificate: PEM is needed"),
        (cut, &key, "cut short"),
        (&damaged, &key, "damaged"),
        (&no_certificate, &key, "its certificate cannot be read"),
        (&long, &key, "at most 4096"),
        (&many, &key, "at most 3 are read"),
        (&certificate, &certificate, "no private key: PEM"),
        (&certificate, &encrypted, "openssl pkey"),
        (
            &certificate,
            &pem(PRIVATE_KEY, b"rubbish"),
            "cannot be used",
        ),
        (&certificate, &text(&other), "not that of the certificate"),
    ] {
        let refused = refusal(certificate, key);
        let sentence = refused.to_string();
        assert!(sentence.contains(words), "{sentence}");
        let has_key = words.contains("key") || words.contains("used") || words.contains("that of");
        assert_eq!(refused.is_of_key(), has_key, "{sentence}");
    }
}

#[test]
fn each_certificate_that_does_not_count_has_its_sentence() {
    let (ours, foreign) = (authority(), authority());
    let roots = Roots::new(ours.root().clone());
    let elsewhere = Authority::create(0xc2, NOW).unwrap();
    let mut both = roots.clone();
    both.trust(elsewhere.root().clone()).unwrap();
    let judged = |authority: &Authority, server, roots: &Roots, now| {
        let (certificate, key) = files(authority, ServerId(server), now);
        let found = read(&certificate, &key).unwrap();
        found.judge(NEEDED, roots, NOW)
    };
    let sentence = |judged: Result<(), OperatorError>| judged.unwrap_err().to_string();
    let wrong_server = sentence(judged(&ours, 3, &roots, NOW));
    let needed = format!("URI:{NEEDED}");
    let found = wrong_server.contains("server/00000000000000000000000000000003");
    assert!(found && wrong_server.contains(&needed), "{wrong_server}");
    let other_cluster = sentence(judged(&elsewhere, 2, &both, NOW));
    assert!(other_cluster.contains("areo://000000000000000000000000000000c2"));
    let distrusted = judged(&foreign, 2, &roots, NOW).unwrap_err();
    assert_eq!(distrusted, OperatorError::OtherAuthority);
    assert!(distrusted.to_string().contains("areo ca trust"));
    // Beyond the skew of clocks, in words that stay as they are.
    let age = CERTIFICATE_SECONDS + 3 * 60 * 60;
    let expired = sentence(judged(&ours, 2, &roots, NOW - age));
    assert!(
        expired.contains("expired on 2027-01-15 05:00:00"),
        "{expired}"
    );
    let early = sentence(judged(&ours, 2, &roots, NOW + 5 * 60 * 60));
    assert!(early.contains("from 2027-01-15 11:00:00"), "{early}");
    assert_eq!(judged(&ours, 2, &roots, NOW), Ok(()));
}

/// A certificate of a CA between, and its issuer.
struct Between {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

fn instant(seconds: u64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(seconds.try_into().unwrap()).unwrap()
}

fn root_and_between(until: u64) -> (Root, Between) {
    let ca = |until| {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = instant(NOW - DAY);
        params.not_after = instant(until);
        params
    };
    let mut root_params = ca(NOW + 3650 * DAY);
    let name = rcgen::DnType::CommonName;
    root_params
        .distinguished_name
        .push(name.clone(), "our root");
    let root_key = KeyPair::generate().unwrap();
    let root = root_params.self_signed(&root_key).unwrap();
    let root_issuer = Issuer::new(root_params, root_key);
    let mut params = ca(until);
    params.distinguished_name.push(name, "our issuer");
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &root_issuer).unwrap();
    let between = Between {
        certificate: pem(CERTIFICATE, certificate.der()),
        issuer: Issuer::new(params, key),
    };
    (Root::from_der(root.der()).unwrap(), between)
}

fn leaf(issuer: &Issuer<'_, KeyPair>, usages: &[ExtendedKeyUsagePurpose]) -> (String, Secret) {
    let uri = NEEDED.to_string();
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![
        SanType::URI(uri.as_str().try_into().unwrap()),
        SanType::DnsName("s2.example.com".try_into().unwrap()),
    ];
    params.extended_key_usages = usages.to_vec();
    params.not_before = instant(NOW - DAY);
    params.not_after = instant(NOW + 365 * DAY);
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    let key = pem(PRIVATE_KEY, &key.serialize_der());
    (
        pem(CERTIFICATE, certificate.der()),
        Secret::new(key.into_bytes()),
    )
}

#[test]
fn a_chain_counts_as_long_as_each_of_its_certificates() {
    use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};

    let end = NOW + 30 * DAY;
    let (root, between) = root_and_between(end);
    let mut roots = Roots::new(authority().root().clone());
    roots.trust(root).unwrap();
    let (certificate, key) = leaf(&between.issuer, &[ServerAuth, ClientAuth]);
    let alone = read(&certificate, &key).unwrap();
    let refused = alone.judge(NEEDED, &roots, NOW).unwrap_err();
    assert_eq!(refused, OperatorError::OtherAuthority);
    assert!(refused.to_string().contains("each CA between"), "{refused}");
    let whole = format!("{certificate}{}", between.certificate);
    let found = read(&whole, &key).unwrap();
    found.judge(NEEDED, &roots, NOW).unwrap();
    assert_eq!(found.validity(&roots).until_seconds, end);
    let late = found.judge(NEEDED, &roots, end + DAY).unwrap_err();
    let expired = OperatorError::Expired { since_seconds: end };
    assert_eq!(late, expired);

    for usage in [ServerAuth, ClientAuth] {
        let (certificate, key) = leaf(&between.issuer, &[usage]);
        let one = read(&format!("{certificate}{}", between.certificate), &key).unwrap();
        let refused = one.judge(NEEDED, &roots, NOW).unwrap_err();
        assert!(refused.to_string().contains("serverAuth and clientAuth"));
    }
}
