//! The fuzz targets on a stable toolchain: every entry point of `areo_trust::fuzzing` on mutations of known good inputs.

use std::sync::OnceLock;

use areo_core::config::ServerId;
use areo_fuzzing::Driver;
use areo_trust::authority::{Authority, ServerKey};
use areo_trust::fuzzing::{self, CLUSTER, NOW_SECONDS, PURPOSE, sealing_key};
use areo_trust::grant::Grants;
use areo_trust::id::KeyId;
use areo_trust::key::KeyRecord;
use areo_trust::protocol::{Ask, KeyProof, ProofSite, RefusalKind, TrustAnswer, TrustRefusal};
use areo_trust::registry::Foundation;
use areo_trust::roots::{RootDigest, Roots};
use areo_trust::secret::{Secret, seal, system};
use areo_trust::signing::SigningScope;
use areo_trust::token::JoinToken;

fn drive(target: fn(&[u8]) -> bool, corpus: &[Vec<u8>], words: &[&str], seed: u64, cost: u32) {
    Driver {
        target,
        corpus,
        words,
        seed,
        cost,
    }
    .run();
}

fn golden(text: &str) -> Vec<u8> {
    let text = text.trim();
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("digits");
    (0..text.len()).step_by(2).map(byte).collect()
}

#[test]
fn credentials_of_any_bytes() {
    let (token, _) = JoinToken::create(RootDigest([7; 32]), NOW_SECONDS, &system).unwrap();
    let (key, _) = KeyRecord::create("k", Grants::default(), &system).unwrap();
    let corpus = [
        token.expose_text().as_bytes().to_vec(),
        key.expose_text().as_bytes().to_vec(),
        b"read,write:photos/2024/".to_vec(),
        b"status,trace".to_vec(),
    ];
    let words = [
        "areo1", "areokey1", ".", ":", "/", ",", "*", "read", "keys", "gateway",
    ];
    drive(fuzzing::credential, &corpus, &words, 1, 1);
}

#[test]
fn tickets_of_any_bytes() {
    let ticket = golden(include_str!("golden/ticket-1.txt"));
    let rotated = golden(include_str!("golden/ticket-2.txt"));
    let of_gateway = golden(include_str!("golden/ticket-3.txt"));
    // Without its grants, which are its last fields.
    let shorter = ticket[..ticket.len() - 35].to_vec();
    let corpus = [ticket, rotated, of_gateway, shorter];
    drive(fuzzing::ticket, &corpus, &[], 2, 10);
}

#[test]
fn records_of_any_bytes() {
    let (token, record) = JoinToken::create(RootDigest([7; 32]), NOW_SECONDS + 1, &system).unwrap();
    let public = ServerKey::create().unwrap().public();
    let used = record.redeem(token.id, &token.secret, ServerId(3), &public, NOW_SECONDS);
    let (_, mut key) = KeyRecord::create("camera", Grants::of_administrator(), &system).unwrap();
    key.rotate(&system).unwrap();
    let root = Authority::create(CLUSTER, NOW_SECONDS).unwrap();
    let content = Secret::new(b"content".to_vec());
    let (foundation, _) = Foundation::create(CLUSTER, NOW_SECONDS).unwrap();
    let corpus = [
        foundation.encode().expose().to_vec(),
        golden(include_str!("golden/change-1.txt")),
        record.encode().to_vec(),
        used.unwrap().encode().to_vec(),
        key.encode().expose().to_vec(),
        Roots::new(root.root().clone()).encode().to_vec(),
        seal(&sealing_key(), PURPOSE, &content, &system).unwrap(),
    ];
    drive(fuzzing::trust_record, &corpus, &[], 3, 2);
}

#[test]
fn messages_about_trust_of_any_bytes() {
    let grants = Grants::of_administrator();
    let (key, _) = KeyRecord::create("camera", grants.clone(), &system).unwrap();
    let name = "camera".to_owned();
    let refusal = TrustRefusal {
        kind: RefusalKind::Usage,
        sentence: "no".to_owned(),
    };
    let site = ProofSite {
        cluster: CLUSTER,
        server: ServerId(1),
        binding: [6; 32],
    };
    let behalf = Some(KeyId(9));
    let proof = KeyProof::on_behalf(&key, behalf, [5; 32], (&site, &system)).unwrap();
    let scope = SigningScope::new(20_270_115, "eu-1").unwrap();
    let signing = vec![scope.derive(&key.secret); 2];
    let corpus = [
        Ask::Prove(proof).encode().to_vec(),
        Ask::SigningKeys { key: key.id, scope }.encode().to_vec(),
        TrustAnswer::SigningKeys(signing).encode().to_vec(),
        Ask::CreateKey { name, grants }.encode().to_vec(),
        Ask::Audit {
            since_seconds: NOW_SECONDS,
            after: Some(7),
        }
        .encode()
        .to_vec(),
        TrustAnswer::Key(key).encode().to_vec(),
        TrustAnswer::Refused(refusal).encode().to_vec(),
    ];
    drive(fuzzing::trust_message, &corpus, &[], 5, 1);
}

/// A CA, a certificate that it issued, and another one.
fn issued() -> &'static (Authority, [Vec<u8>; 2]) {
    static ISSUED: OnceLock<(Authority, [Vec<u8>; 2])> = OnceLock::new();
    ISSUED.get_or_init(|| {
        let authority = Authority::create(CLUSTER, NOW_SECONDS).expect("a CA");
        let key = ServerKey::create().expect("a key").public();
        let issue = |server| authority.issue(ServerId(server), &key, NOW_SECONDS);
        let certificates = [1, 2].map(|server| issue(server).expect("a certificate").to_vec());
        (authority, certificates)
    })
}

fn certificate(input: &[u8]) -> bool {
    let (authority, certificates) = issued();
    let issued = certificates.iter().find(|issued| *issued == input);
    let issued = issued.unwrap_or(&certificates[0]);
    fuzzing::certificate(authority.root(), issued, input)
}

/// Files of an operator.
struct Files {
    authority: Authority,
    /// The certificate of server 1.
    issued: Vec<u8>,
    /// Certificate, key and root as one file, of servers 1 and 2.
    whole: [Vec<u8>; 2],
}

fn files() -> &'static Files {
    static MADE: OnceLock<Files> = OnceLock::new();
    MADE.get_or_init(|| {
        let authority = Authority::create(CLUSTER, NOW_SECONDS).expect("a CA");
        let made = [1, 2].map(|server| {
            let key = ServerKey::create().expect("a key");
            let issued = authority.issue(ServerId(server), &key.public(), NOW_SECONDS);
            let issued = issued.expect("a certificate").to_vec();
            let whole = [
                // Between the parts may be text, and most changes of it are good ones.
                "subject=CN = s1\n".repeat(100),
                fuzzing::pem("CERTIFICATE", &issued),
                fuzzing::pem("PRIVATE KEY", key.private().expose()),
                fuzzing::pem("CERTIFICATE", authority.root().certificate()),
            ];
            (issued, whole.concat().into_bytes())
        });
        Files {
            authority,
            issued: made[0].0.clone(),
            whole: made.map(|(_, whole)| whole),
        }
    })
}

fn operator_file(input: &[u8]) -> bool {
    let files = files();
    fuzzing::operator_file(files.authority.root(), &files.issued, input)
}

#[test]
fn files_of_operators_of_any_bytes() {
    let words = [
        "-----BEGIN ",
        "-----END ",
        "CERTIFICATE",
        "PRIVATE KEY-----\n",
        "=",
    ];
    drive(operator_file, &files().whole, &words, 5, 10);
}

#[test]
fn certificates_of_any_bytes() {
    drive(certificate, &issued().1, &[], 4, 5);
}
