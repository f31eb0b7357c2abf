use areo_trust::authority::CERTIFICATE_SECONDS;

use super::*;

const NOW: u64 = 2_000_000_000;
const SERVER: ServerId = ServerId(2);

/// A directory in the place of the file that is written first: TRUST cannot be written, as on a full disk.
struct Obstacle(std::path::PathBuf);

impl Obstacle {
    fn new(directory: &Directory) -> Obstacle {
        let path = directory.path().join("TRUST.new");
        std::fs::create_dir(&path).unwrap();
        Obstacle(path)
    }

    fn remove(self) {
        std::fs::remove_dir(self.0).unwrap();
    }
}

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
    let (directory, mut trust) = new(folder.path());
    assert!(Trust::read(&directory, 7).unwrap().is_none());
    trust.write(&directory, None).unwrap();
    let TrustFile { trust: found, kept } = Trust::read(&directory, 7).unwrap().unwrap();
    assert_eq!(kept, None);
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
    let (directory, mut trust) = new(folder.path());
    let start = |is_expected| of_start(&directory, (7, SERVER), (is_expected, NOW));
    assert!(start(false).unwrap().is_none(), "a cluster without keys");
    assert!(matches!(start(true), Err(TrustError::Missing)));
    trust.write(&directory, None).unwrap();
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
    let (directory, mut trust) = new(folder.path());
    trust.write(&directory, None).unwrap();
    let at = |server, now| {
        let found = of_start(&directory, (7, server), (true, now));
        found.unwrap().unwrap().trust.certificate
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

/// A server that had joined and never read the log did not start in the last month of its certificate.
#[test]
fn without_a_ca_a_certificate_that_counts_no_longer_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, trust) = new(folder.path());
    let mut trust = Trust {
        authority: None,
        ..trust
    };
    trust.write(&directory, None).unwrap();
    let start = |server, now| of_start(&directory, (7, server), (true, now));
    for now in [NOW, NOW + CERTIFICATE_SECONDS] {
        let started = start(SERVER, now).unwrap().unwrap();
        assert_eq!(started.trust.certificate, trust.certificate);
    }
    for (server, now) in [
        (SERVER, NOW + 2 * CERTIFICATE_SECONDS),
        (ServerId(3), NOW + CERTIFICATE_SECONDS),
    ] {
        let refused = start(server, now);
        assert!(matches!(refused, Err(TrustError::NoCertificate)));
    }
}

/// The keys by which a server judges before it has read the log are in its file, and no one reads them there without the cluster's key.
#[test]
fn what_is_kept_for_the_next_start_is_sealed_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, mut trust) = new(folder.path());
    let kept = Secret::new(b"the secrets of all access keys".to_vec());
    trust.write(&directory, Some(&kept)).unwrap();
    let bytes = std::fs::read(directory.path().join("TRUST")).unwrap();
    let checksum = 4;
    let has_field = |bytes: &[u8]| {
        let mut fields = tlv::fields(&bytes[checksum..]);
        fields.any(|field| matches!(field, Ok((KEPT, _))))
    };
    assert!(has_field(&bytes));
    assert!(!is_contained(&bytes, kept.expose()));
    let read = || Trust::read(&directory, 7).unwrap().unwrap().kept;
    assert_eq!(read(), Some(kept));
    // A start that renews its certificate keeps it, and one that has nothing to keep leaves none.
    let late = NOW + CERTIFICATE_SECONDS;
    let started = of_start(&directory, (7, SERVER), (true, late));
    assert_ne!(
        started.unwrap().unwrap().trust.certificate,
        trust.certificate
    );
    assert!(read().is_some());
    trust.write(&directory, None).unwrap();
    assert!(read().is_none());
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

/// A server that started with a full disk did not come up, and a running one lost its certificate in the end.
#[test]
fn a_certificate_that_cannot_be_written_counts_and_is_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, mut trust) = new(folder.path());
    trust.write(&directory, None).unwrap();
    let obstacle = Obstacle::new(&directory);
    let (before, late) = (trust.certificate.clone(), NOW + 2 * CERTIFICATE_SECONDS);
    let start = || of_start(&directory, (7, SERVER), (true, late));
    for _ in 0..2 {
        let mut started = start().unwrap().unwrap().trust;
        assert_ne!(started.certificate, before);
        assert!(started.endpoint().server_config().is_ok());
        let failed = started.write_missing(&directory, || None);
        assert!(matches!(failed, Err(TrustError::Write(_))));
    }
    assert!(trust.renew(SERVER, late).unwrap());
    let renewed = trust.certificate.clone();
    for _ in 0..2 {
        let failed = trust.write_missing(&directory, || None);
        assert!(matches!(failed, Err(TrustError::Write(_))));
        assert!(!trust.renew(SERVER, late).unwrap(), "it has one");
    }
    obstacle.remove();
    trust.write_missing(&directory, || None).unwrap();
    let written = Trust::read(&directory, 7).unwrap().unwrap().trust;
    assert_eq!(written.certificate, renewed);
    // Once is enough.
    let obstacle = Obstacle::new(&directory);
    trust.write_missing(&directory, || None).unwrap();
    obstacle.remove();
}

/// The next start would not know them, and the cluster would have dropped those that it knows.
#[test]
fn no_ca_counts_before_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, mut trust) = new(folder.path());
    trust.write(&directory, None).unwrap();
    let next = AuthorityRecord::create(7, NOW).unwrap();
    let mut roots = trust.roots.clone();
    roots.trust(next.root().clone()).unwrap();
    roots.issue_from(next.root().digest()).unwrap();
    let before = (trust.roots.clone(), trust.authority.clone());
    let read = (roots.clone(), Some(next.clone()));
    let obstacle = Obstacle::new(&directory);
    let failed = trust.take_in(read.clone(), &directory, None);
    assert!(matches!(failed, Err(TrustError::Write(_))));
    assert_eq!((&trust.roots, &trust.authority), (&before.0, &before.1));
    assert!(!trust.renew(SERVER, NOW).unwrap());
    obstacle.remove();
    trust.take_in(read, &directory, None).unwrap();
    assert!(trust.renew(SERVER, NOW).unwrap(), "of the new CA");
    let written = Trust::read(&directory, 7).unwrap().unwrap().trust;
    assert_eq!((written.roots, written.authority), (roots, Some(next)));
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
