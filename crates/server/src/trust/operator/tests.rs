use std::fs;
use std::os::unix::fs::PermissionsExt;

use areo_trust::authority::{Authority, CERTIFICATE_SECONDS, ServerKey};
use areo_trust::fuzzing::pem;

use super::*;
use crate::trust::NewTrust;

const NOW: u64 = 2_000_000_000;
const DAY: u64 = 24 * 60 * 60;
const SERVER: ServerId = ServerId(2);

/// A server with the files of an operator, whose CA the cluster trusts.
struct Case {
    folder: tempfile::TempDir,
    authority: Authority,
    trust: Trust,
}

impl Case {
    fn new() -> Case {
        let authority = Authority::create(7, NOW).unwrap();
        let new = NewTrust::create(7, NOW).unwrap();
        let mut trust = new.of(SERVER, NOW).unwrap();
        trust.roots.trust(authority.root().clone()).unwrap();
        Case {
            folder: tempfile::tempdir().unwrap(),
            authority,
            trust,
        }
    }

    fn files(&self) -> CertificateFiles {
        CertificateFiles {
            certificate: self.folder.path().join("s2.pem"),
            key: self.folder.path().join("s2.key"),
        }
    }

    fn made(&self, server: ServerId, now: u64) -> (String, String) {
        let key = ServerKey::create().unwrap();
        let certificate = self.authority.issue(server, &key.public(), now).unwrap();
        let certificate = pem("CERTIFICATE", &certificate);
        (certificate, pem("PRIVATE KEY", key.private().expose()))
    }

    fn write(&self, (certificate, key): &(String, String)) {
        let files = self.files();
        fs::write(&files.certificate, certificate).unwrap();
        fs::write(&files.key, key).unwrap();
        fs::set_permissions(&files.key, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn start(&mut self) -> Result<Follower, CertificateFileError> {
        let files = self.files();
        of_start(&files, (&mut self.trust, SERVER), &[ServerId(1)], NOW)
    }

    /// The last second of the certificate in use.
    fn until(&self) -> Option<u64> {
        let shown = self.trust.operator.as_ref();
        shown.map(|shown| shown.validity(&self.trust.roots).until_seconds)
    }
}

/// The reading of the files now, without their thread.
fn read_again(follower: &mut Follower) {
    let reading = follower.files.read();
    follower.readings = watch::channel(reading).1;
}

fn is_logged(follower: &Follower) -> Option<bool> {
    let problem = follower.problem.as_ref();
    problem.map(|problem| problem.is_logged)
}

#[test]
fn a_start_without_good_files_is_refused_with_a_sentence() {
    let mut case = Case::new();
    let good = case.made(SERVER, NOW);
    let refused = |case: &mut Case, words: &[&str], is_refusal: bool| {
        let error = case.start().err().unwrap();
        let sentence = error.to_string();
        for word in words {
            assert!(sentence.contains(word), "{word}: {sentence}");
        }
        assert_eq!(error.is_refusal(), is_refusal, "{sentence}");
    };
    refused(&mut case, &["cannot read", "s2.key"], false);
    case.write(&("no".to_owned(), good.1.clone()));
    refused(&mut case, &["s2.pem: it has no certificate"], false);
    case.write(&(good.0.clone(), "no".to_owned()));
    refused(&mut case, &["s2.key: it has no private key"], false);
    case.write(&(good.0.clone(), case.made(SERVER, NOW).1));
    refused(&mut case, &["s2.key", "not that of the certificate"], false);
    case.write(&("x".repeat(MAX_FILE_BYTES + 1), good.1.clone()));
    refused(&mut case, &["s2.pem is longer than 64 KiB"], false);
    case.write(&case.made(ServerId(3), NOW));
    refused(
        &mut case,
        &["s2.pem", "server/00000000000000000000000000000003"],
        true,
    );
    case.write(&case.made(SERVER, NOW - CERTIFICATE_SECONDS - DAY));
    refused(&mut case, &["s2.pem", "expired on"], true);

    case.write(&good);
    let mode = |mode| fs::set_permissions(case.files().key, fs::Permissions::from_mode(mode));
    let owned_by_root = fs::metadata(case.files().key).unwrap().uid() == ROOT;
    for (bits, is_good) in [
        (0o644, false),
        (0o660, false),
        (0o640, owned_by_root),
        (0o400, true),
    ] {
        mode(bits).unwrap();
        let started = case.files().read();
        assert_eq!(started.is_ok(), is_good, "{bits:o}");
        if let Err(error) = started {
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
    }
    assert!(case.start().is_ok());
    fs::remove_file(case.files().certificate).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        case.files().certificate,
        rustix::fs::Mode::RUSR,
    )
    .unwrap();
    refused(&mut case, &["s2.pem", "no regular file"], false);
}

#[test]
fn the_certificate_of_before_stays_until_another_one_is_good() {
    let mut case = Case::new();
    case.write(&case.made(SERVER, NOW));
    let mut follower = case.start().unwrap();
    let first = case.until().unwrap();
    let (next, foreign) = (case.made(SERVER, NOW - DAY), case.made(ServerId(3), NOW));
    // The certificate is changed, and its key not yet.
    fs::write(case.files().certificate, &next.0).unwrap();
    let mut look = |case: &mut Case, now| {
        read_again(&mut follower);
        let is_new = follower.look(&mut case.trust, now);
        (is_new, is_logged(&follower))
    };
    assert_eq!(look(&mut case, NOW), (false, Some(false)), "it may pass");
    assert_eq!(look(&mut case, NOW), (false, Some(true)));
    assert_eq!(look(&mut case, NOW), (false, Some(true)));
    assert_eq!(case.until(), Some(first));
    fs::write(case.files().key, &next.1).unwrap();
    assert_eq!(look(&mut case, NOW), (true, None));
    assert_eq!(case.until(), Some(first - DAY));
    assert_eq!(look(&mut case, NOW), (false, None));
    // Links that are changed, as container platforms do.
    let other = case.folder.path().join("other");
    case.write(&foreign);
    assert_eq!(look(&mut case, NOW), (false, Some(false)));
    fs::write(&other, &next.0).unwrap();
    fs::remove_file(case.files().certificate).unwrap();
    assert_eq!(look(&mut case, NOW), (false, Some(false)), "no file");
    std::os::unix::fs::symlink(&other, case.files().certificate).unwrap();
    fs::write(case.files().key, &next.1).unwrap();
    assert_eq!(look(&mut case, NOW), (false, None), "the one in use");
    assert_eq!(case.until(), Some(first - DAY));
}

#[test]
fn a_certificate_that_counts_no_longer_gives_way_to_that_of_the_cluster() {
    let mut case = Case::new();
    case.write(&case.made(SERVER, NOW));
    let mut follower = case.start().unwrap();
    assert!(!follower.is_late);
    let late = NOW + CERTIFICATE_SECONDS - DAY;
    assert!(!follower.look(&mut case.trust, late));
    assert!(follower.is_late);
    let ended = NOW + CERTIFICATE_SECONDS + DAY;
    assert!(follower.look(&mut case.trust, ended));
    assert_eq!((case.until(), is_logged(&follower)), (None, Some(true)));
    assert!(!follower.look(&mut case.trust, ended), "once");
    // A renewed one counts at once, until its CA is dropped.
    case.write(&case.made(SERVER, ended));
    read_again(&mut follower);
    assert!(follower.look(&mut case.trust, ended));
    assert!(case.until().is_some() && !follower.is_late);
    case.trust
        .roots
        .drop_root(case.authority.root().digest())
        .unwrap();
    assert!(follower.look(&mut case.trust, ended));
    assert_eq!(case.until(), None);
}

#[test]
fn a_ca_that_is_not_known_yet_is_judged_when_the_log_was_read() {
    let mut case = Case::new();
    let root = case.authority.root().clone();
    case.trust.roots.drop_root(root.digest()).unwrap();
    case.write(&case.made(SERVER, NOW));
    let mut follower = case.start().unwrap();
    assert_eq!(case.until(), None);
    let refused = follower.confirm(&case.trust.roots, NOW).unwrap_err();
    assert!(refused.is_refusal());
    assert!(refused.to_string().contains("areo ca trust"), "{refused}");
    let mut follower = case.start().unwrap();
    case.trust.roots.trust(root).unwrap();
    follower.confirm(&case.trust.roots, NOW).unwrap();
    assert!(follower.look(&mut case.trust, NOW));
    assert!(case.until().is_some());
}

/// A server that had run for hours with the certificate of the cluster's CA, because the log could not be read, was ended by files that were changed meanwhile.
#[test]
fn files_that_were_changed_after_the_start_end_no_server() {
    let mut case = Case::new();
    case.write(&case.made(SERVER, NOW));
    let trusted = case.trust.roots.clone();
    case.trust
        .roots
        .drop_root(case.authority.root().digest())
        .unwrap();
    let distrusted = case.trust.roots.clone();
    let mut follower = case.start().unwrap();
    case.write(&case.made(SERVER, NOW));
    read_again(&mut follower);
    follower.confirm(&distrusted, NOW).unwrap();
    // Nor does a CA that is dropped later, which is judged by each look.
    let mut follower = case.start().unwrap();
    follower.confirm(&trusted, NOW).unwrap();
    follower.confirm(&distrusted, NOW).unwrap();
    assert!(!follower.look(&mut case.trust, NOW));
}

/// Each look verified a chain twice, every second.
#[test]
fn a_look_in_the_same_circumstances_judges_nothing() {
    let mut case = Case::new();
    case.write(&case.made(SERVER, NOW));
    let mut follower = case.start().unwrap();
    let is_due = |follower: &Follower, case: &Case, now| follower.is_due(&case.trust.roots, now);
    assert!(is_due(&follower, &case, NOW), "none yet");
    follower.look(&mut case.trust, NOW);
    for (now, expected) in [
        (NOW, false),
        (NOW + AGAIN_SECONDS - 1, false),
        (NOW + AGAIN_SECONDS, true),
        (NOW - AGAIN_SECONDS, true),
    ] {
        assert_eq!(is_due(&follower, &case, now), expected, "{now}");
    }
    let other = Authority::create(7, NOW).unwrap();
    case.trust.roots.trust(other.root().clone()).unwrap();
    assert!(is_due(&follower, &case, NOW), "another CA");
    follower.look(&mut case.trust, NOW);
    fs::write(case.files().certificate, "no").unwrap();
    read_again(&mut follower);
    for is_logged in [false, true] {
        assert!(is_due(&follower, &case, NOW), "other files, then a line");
        follower.look(&mut case.trust, NOW);
        assert_eq!(self::is_logged(&follower), Some(is_logged));
    }
    assert!(!is_due(&follower, &case, NOW));
}

#[test]
fn a_server_that_took_the_place_of_another_starts_beside_its_certificate() {
    let mut case = Case::new();
    case.write(&case.made(ServerId(1), NOW));
    let mut follower = case.start().unwrap();
    assert_eq!((case.until(), is_logged(&follower)), (None, Some(true)));
    case.write(&case.made(SERVER, NOW));
    read_again(&mut follower);
    assert!(follower.look(&mut case.trust, NOW));
}

#[test]
fn the_files_are_read_again_until_no_server_follows_them() {
    let case = Case::new();
    case.write(&case.made(SERVER, NOW));
    let (sender, mut readings) = watch::channel(case.files().read());
    let reader = read_on(case.files(), sender).unwrap();
    let next = case.made(SERVER, NOW);
    case.write(&next);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(async {
        let has_next = |reading: &Reading| {
            let contents = reading.as_ref().unwrap();
            contents.certificate == next.0.as_bytes()
        };
        readings.wait_for(has_next).await.unwrap();
    });
    assert!(!reader.is_finished());
    drop(readings);
    reader.join().unwrap();
}
