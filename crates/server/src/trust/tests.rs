use areo_trust::authority::CERTIFICATE_SECONDS;

use super::*;

const NOW: u64 = 2_000_000_000;
const SERVER: ServerId = ServerId(2);

fn new(folder: &Path) -> (Directory, Trust) {
    let directory = Directory::open(folder.join("s1")).unwrap();
    let new = NewTrust::create(7, NOW).unwrap();
    (directory, new.of(SERVER, NOW).unwrap())
}

fn is_contained(bytes: &[u8], secret: &[u8]) -> bool {
    bytes.windows(secret.len()).any(|window| window == secret)
}

#[test]
fn a_file_of_trust_survives_and_is_its_users_alone() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let (directory, trust) = new(folder.path());
    assert!(Trust::read(&directory, 7).unwrap().is_none());
    trust.write(&directory).unwrap();
    let found = Trust::read(&directory, 7).unwrap().unwrap();
    assert_eq!(found.cluster_key, trust.cluster_key);
    assert_eq!(found.key.private(), trust.key.private());
    assert_eq!(found.certificate, trust.certificate);
    assert_eq!(found.roots, trust.roots);
    assert_eq!(found.authority, trust.authority);
    assert_eq!(found.foundation, trust.foundation);
    let path = directory.path().join("TRUST");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // All but the cluster's key is sealed.
    let bytes = std::fs::read(&path).unwrap();
    let foundation = trust.foundation.as_ref().unwrap();
    let (server_key, authority) = (trust.key.private(), foundation.authority.encode());
    let administrator = foundation.key.encode();
    // The ends of a private key and of a record of a CA are public.
    let secrets = [
        &server_key.expose()[36..52],
        &authority.expose()[authority.expose().len() - 16..],
        &administrator.expose()[40..56],
    ];
    for secret in secrets {
        assert!(!is_contained(&bytes, secret));
    }
    assert!(
        is_contained(&bytes, trust.cluster_key.expose()),
        "of this file"
    );
    assert!(matches!(
        Trust::read(&directory, 8),
        Err(TrustError::Sealed(_))
    ));
}

#[test]
fn a_damaged_or_missing_file_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, trust) = new(folder.path());
    let start = |is_expected| of_start(&directory, (7, SERVER), (is_expected, NOW));
    assert!(start(false).unwrap().is_none(), "a cluster without keys");
    assert!(matches!(start(true), Err(TrustError::Missing)));
    trust.write(&directory).unwrap();
    let path = directory.path().join("TRUST");
    let bytes = std::fs::read(&path).unwrap();
    for at in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        assert!(matches!(start(true), Err(TrustError::Directory(_))), "{at}");
    }
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        assert!(start(true).is_err(), "{length}");
    }
    std::fs::write(&path, bytes).unwrap();
    assert!(start(true).unwrap().is_some());
}

#[test]
fn a_server_that_was_off_for_long_issues_its_certificate_again() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, trust) = new(folder.path());
    trust.write(&directory).unwrap();
    let at = |server, now| {
        let found = of_start(&directory, (7, server), (true, now));
        found.unwrap().unwrap().certificate
    };
    assert_eq!(at(SERVER, NOW), trust.certificate);
    let renewed = at(SERVER, NOW + 2 * CERTIFICATE_SECONDS);
    assert_ne!(renewed, trust.certificate);
    assert_eq!(at(SERVER, NOW + 2 * CERTIFICATE_SECONDS), renewed, "kept");
    // Another server took its place in the directory.
    let other = at(ServerId(3), NOW + 2 * CERTIFICATE_SECONDS);
    let named = certificate::identity(&other).unwrap();
    assert_eq!(named.server, ServerId(3));
}

#[test]
fn without_a_ca_a_certificate_that_is_due_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, trust) = new(folder.path());
    let trust = Trust {
        authority: None,
        ..trust
    };
    trust.write(&directory).unwrap();
    let start = |now| of_start(&directory, (7, SERVER), (true, now));
    assert!(start(NOW).unwrap().is_some());
    let late = start(NOW + 2 * CERTIFICATE_SECONDS);
    assert!(matches!(late, Err(TrustError::NoCertificate)));
}

#[test]
fn an_answer_for_another_server_or_another_key_lets_no_server_in() {
    let new = NewTrust::create(7, NOW).unwrap();
    let answer = |server, key: &ServerKey| {
        let authority = &new.foundation.authority;
        JoinAnswer {
            cluster_key: new.cluster_key.clone(),
            certificate: issue(authority, 7, server, (key, NOW)).unwrap(),
            roots: Roots::new(authority.root().clone()),
        }
    };
    let joined = |cluster, certified: ServerId, is_own: bool| {
        let key = ServerKey::create().unwrap();
        let other = ServerKey::create().unwrap();
        let answer = answer(certified, if is_own { &key } else { &other });
        Trust::joined((cluster, SERVER), key, answer).is_some()
    };
    assert!(joined(7, SERVER, true));
    assert!(!joined(7, SERVER, false), "another key");
    assert!(!joined(7, ServerId(3), true), "another server");
    assert!(!joined(8, SERVER, true), "another cluster");
}

#[test]
fn a_certificate_that_cannot_be_written_is_not_shown_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, mut trust) = new(folder.path());
    trust.write(&directory).unwrap();
    // A directory in the place of the file that is written first.
    let obstacle = directory.path().join("TRUST.new");
    std::fs::create_dir(&obstacle).unwrap();
    let (before, late) = (trust.certificate.clone(), NOW + CERTIFICATE_SECONDS);
    for _ in 0..2 {
        let failed = trust.renew(&directory, SERVER, late);
        assert!(matches!(failed, Err(TrustError::Write(_))));
        assert_eq!(trust.certificate, before);
    }
    std::fs::remove_dir(&obstacle).unwrap();
    assert!(trust.renew(&directory, SERVER, late).unwrap());
    let written = Trust::read(&directory, 7).unwrap().unwrap();
    assert_eq!(written.certificate, trust.certificate);
    assert_ne!(written.certificate, before);
}

/// The next attempt had another id and another key, which a used token lets in no more.
#[test]
fn a_directory_asks_to_be_one_server_until_it_is() {
    use joining::Attempt;

    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| Directory::open(folder.path().join(name)).unwrap();
    let of = |directory: &Directory| Attempt::of(directory).unwrap().encode();
    let (one, other) = (open("s1"), open("s2"));
    let first = of(&one);
    drop(one);
    let one = open("s1");
    assert_eq!(of(&one), first);
    assert_ne!(of(&other), first);
    // What cannot be read is begun anew.
    one.write_join(b"x").unwrap();
    assert_ne!(of(&one), first);
    one.write_identity(b"s1").unwrap();
    assert!(one.read_join().unwrap().is_none());
}
