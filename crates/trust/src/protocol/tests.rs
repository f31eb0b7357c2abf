use bytes::BytesMut;

use areo_core::tlv::{self, MUST_UNDERSTAND};

use super::fields::{DAY, KEY, KIND, NAME, PUBLIC_KEY, REGION, Writer};
use super::*;
use crate::authority::{Authority, ServerKey};
use crate::host::MAX_HOSTS;
use crate::key::KeyRecord;
use crate::registry::{Actor, Origin, What};
use crate::secret::system;

const NOW: u64 = 1_800_000_000;

fn root() -> Root {
    Authority::create(7, NOW).unwrap().root().clone()
}

fn key() -> (AccessKey, KeyRecord) {
    let grants = vec!["read:logs".parse().unwrap(), "keys,join".parse().unwrap()];
    KeyRecord::create("camera", Grants::new(grants).unwrap(), &system).unwrap()
}

fn site() -> ProofSite {
    ProofSite {
        cluster: 0xc1,
        server: ServerId(1),
        binding: [6; 32],
    }
}

fn asks() -> Vec<Ask> {
    let (owned, record) = key();
    let proof = KeyProof::create(&owned, [5; 32], &site(), &system).unwrap();
    let (name, grants) = (record.name, record.grants);
    let digest = root().digest();
    let (holder, at) = ([5; 32], site());
    let on_behalf = KeyProof::on_behalf(&owned, Some(KeyId(9)), holder, (&at, &system)).unwrap();
    vec![
        Ask::Prove(proof),
        Ask::Prove(on_behalf),
        Ask::Join {
            token: TokenId(5),
            secret: owned.secret,
            server: ServerId(1 << 100),
            key: ServerKey::create().unwrap().public(),
        },
        Ask::Standing,
        Ask::CreateToken { ttl_seconds: 3600 },
        Ask::Tokens { after: None },
        Ask::Tokens {
            after: Some(TokenId(3)),
        },
        Ask::RevokeToken { token: TokenId(4) },
        Ask::CreateKey {
            name: name.clone(),
            grants: grants.clone(),
        },
        Ask::Keys { after: None },
        Ask::Keys {
            after: Some(KeyId(3)),
        },
        Ask::RotateKey { key: name.clone() },
        Ask::RetireKey { key: name.clone() },
        Ask::ChangeGrants {
            key: name.clone(),
            grants,
        },
        Ask::RevokeKey { key: name },
        Ask::Authorities,
        Ask::TrustAuthority { root: None },
        Ask::TrustAuthority { root: Some(root()) },
        Ask::IssueFrom { digest },
        Ask::DropRoot { digest },
        Ask::Audit {
            since_seconds: NOW,
            after: Some(7),
        },
        Ask::SigningKeys {
            key: KeyId(9),
            scope: scope(),
        },
        gateway_certificate(),
    ]
}

fn gateway_certificate() -> Ask {
    let hosts = ["*.gate.example", "10.0.0.1"];
    let hosts = hosts.iter().map(|it| it.parse().unwrap()).collect();
    Ask::GatewayCertificate {
        hosts: Hosts::new(hosts).unwrap(),
        key: PublicKey::new(&[4; 65]).unwrap(),
    }
}

fn scope() -> SigningScope {
    SigningScope::new(20_270_115, "eu-1").unwrap()
}

fn change(by: Actor) -> AuditRecord {
    AuditRecord {
        generation: 9,
        origin: Origin {
            by,
            address: "10.0.0.1:7400".to_owned(),
            now_seconds: NOW,
        },
        what: What::KeyRevoked,
        about: "0000000000000007 camera".to_owned(),
    }
}

fn changes() -> Vec<AuditRecord> {
    let server = Actor::Server(ServerId(1));
    [Actor::Founder, Actor::Key(KeyId(7)), server]
        .map(change)
        .to_vec()
}

fn secret_answers() -> Vec<TrustAnswer> {
    let (owned, _) = key();
    let (token, _) = JoinToken::create(root().digest(), NOW, &system).unwrap();
    vec![
        TrustAnswer::Joined(JoinAnswer {
            cluster_key: Secret::random(&system).unwrap(),
            certificate: root().certificate().clone(),
            roots: Roots::new(root()),
        }),
        TrustAnswer::Token(token),
        TrustAnswer::SigningKeys(vec![scope().derive(&owned.secret)]),
        TrustAnswer::SigningKeys(vec![owned.secret.clone(), scope().derive(&owned.secret)]),
        TrustAnswer::Key(owned),
    ]
}

fn answers() -> Vec<TrustAnswer> {
    let (_, mut record) = key();
    record.rotate(&system).unwrap();
    let revoked = KeyRow {
        revoked_seconds: Some(NOW),
        ..KeyRow::from(&record)
    };
    let token = TokenRow {
        id: TokenId(4),
        expires_seconds: NOW,
        used_by: Some(ServerId(3)),
        revoked_seconds: None,
    };
    let authority = AuthorityRow {
        digest: root().digest(),
        since_seconds: NOW,
        is_issuing: true,
        is_own: false,
    };
    let plain = vec![
        TrustAnswer::Ticket(TicketAnswer {
            ticket: Bytes::from_static(b"ticket"),
            answer: [8; PROOF_BYTES],
            roots: Roots::new(root()),
            other_certificates: vec![root().certificate().clone(), root().certificate().clone()],
        }),
        TrustAnswer::Standing {
            issuer: Some(root().digest()),
            trusted: vec![root().digest(), root().digest()],
            generation: 4,
        },
        TrustAnswer::Tokens(Page {
            rows: vec![
                token,
                TokenRow {
                    used_by: None,
                    revoked_seconds: Some(NOW),
                    ..token
                },
            ],
            has_more: true,
        }),
        TrustAnswer::Keys(Page {
            rows: vec![KeyRow::from(&record), revoked],
            has_more: false,
        }),
        TrustAnswer::Authorities(vec![
            authority,
            AuthorityRow {
                is_issuing: false,
                is_own: true,
                ..authority
            },
        ]),
        TrustAnswer::Authority {
            digest: root().digest(),
        },
        TrustAnswer::Audit {
            rows: changes(),
            next: Some(9),
        },
        TrustAnswer::Done,
        TrustAnswer::Refused(TrustRefusal {
            kind: RefusalKind::Unauthorised,
            sentence: "no".to_owned(),
        }),
    ];
    [plain, secret_answers()].concat()
}

#[test]
fn requests_and_answers_come_back_and_none_is_read_from_a_part() {
    for ask in asks() {
        let bytes = ask.encode();
        assert_eq!(Ask::decode(&bytes).as_ref(), Ok(&ask));
        for length in 0..bytes.len() {
            assert_ne!(Ask::decode(&bytes[..length]).as_ref(), Ok(&ask));
        }
        assert!(crate::fuzzing::trust_message(&bytes));
    }
    for answer in answers() {
        let bytes = answer.encode();
        assert_eq!(TrustAnswer::decode(&bytes).as_ref(), Ok(&answer));
        for length in 0..bytes.len() {
            assert_ne!(TrustAnswer::decode(&bytes[..length]).as_ref(), Ok(&answer));
        }
        assert!(crate::fuzzing::trust_message(&bytes));
    }
}

#[test]
fn fields_that_are_unknown_or_of_another_request_are_refused() {
    let with = |ask: &Ask, kind: u16| {
        let mut bytes = BytesMut::from(&ask.encode()[..]);
        tlv::put_field(&mut bytes, kind, b"x");
        Ask::decode(&bytes)
    };
    let refused = |kind| Err(ProtocolError::Fields(TlvError::Unknown { kind }));
    assert_eq!(with(&Ask::Standing, NAME), refused(NAME));
    let later = MUST_UNDERSTAND | 99;
    assert_eq!(with(&Ask::Standing, later), refused(later));
    assert_eq!(
        with(&Ask::Standing, 99),
        Ok(Ask::Standing),
        "may be skipped"
    );
    let revoke = Ask::RevokeKey {
        key: "camera".to_owned(),
    };
    let twice = Err(ProtocolError::Fields(TlvError::Invalid { kind: NAME }));
    assert_eq!(with(&revoke, NAME), twice);
    let mut other = BytesMut::new();
    tlv::put_field(&mut other, KIND, &[99]);
    assert_eq!(Ask::decode(&other), Err(ProtocolError::Kind { kind: 99 }));
    assert_eq!(
        TrustAnswer::decode(&other),
        Err(ProtocolError::Kind { kind: 99 })
    );
}

#[test]
fn no_secret_is_in_debug_output() {
    let (owned, _) = key();
    let join = Ask::Join {
        token: TokenId(5),
        secret: owned.secret.clone(),
        server: ServerId(1),
        key: ServerKey::create().unwrap().public(),
    };
    let hexadecimal = owned.secret.expose_text();
    let decimal = format!("{:?}", owned.secret.expose());
    let shown = format!("{join:?} {:?}", TrustAnswer::Key(owned));
    assert!(!shown.contains(&*hexadecimal) && !shown.contains(decimal.trim_matches(['[', ']'])));
    for answer in secret_answers() {
        assert!(
            format!("{answer:?}").contains("Secret of 32 bytes"),
            "{answer:?}"
        );
    }
}

#[test]
fn signing_keys_are_one_or_two_for_a_day_and_a_region() {
    let keys = |count| TrustAnswer::SigningKeys(vec![Secret::new(vec![8; 32]); count]).encode();
    for count in [0, 3] {
        let refused = TrustAnswer::decode(&keys(count));
        assert!(refused.is_err(), "{count}: {refused:?}");
    }
    let ask = |day: u32, region: &str| {
        let out = Writer::new(18).u64(KEY, 9).u32(DAY, day);
        Ask::decode(&out.put(REGION, region.as_bytes()).bytes())
    };
    let (key, scope) = (KeyId(9), scope());
    assert_eq!(ask(20_270_115, "eu-1"), Ok(Ask::SigningKeys { key, scope }));
    for (day, region) in [(20_271_301, "eu-1"), (20_270_115, "eu/1"), (20_270_115, "")] {
        let refused = ask(day, region);
        assert!(
            matches!(refused, Err(ProtocolError::Scope(_))),
            "{refused:?}"
        );
    }
}

#[test]
fn a_proof_counts_on_its_own_connection_alone() {
    let (owned, record) = key();
    let proof = KeyProof::create(&owned, [5; 32], &site(), &system).unwrap();
    let judge = |site: &ProofSite| record.judge(&proof.exchange(site), &proof.proof);
    let proven = judge(&site()).unwrap();
    let exchange = proof.exchange(&site());
    assert!(exchange.is_proven(&owned.secret, Prover::Server, &proven.answer));
    let elsewhere = [
        ProofSite {
            binding: [7; 32],
            ..site()
        },
        ProofSite {
            server: ServerId(2),
            ..site()
        },
        ProofSite {
            cluster: 2,
            ..site()
        },
    ];
    for other in elsewhere {
        assert!(judge(&other).is_err(), "{other:?}");
    }
    let another = KeyProof {
        behalf: Some(KeyId(9)),
        ..proof
    };
    assert!(
        record
            .judge(&another.exchange(&site()), &proof.proof)
            .is_err()
    );
    let again = KeyProof::create(&owned, [5; 32], &site(), &system).unwrap();
    assert_ne!(again.client_nonce, proof.client_nonce);
}

#[test]
fn kinds_of_refusals_are_exit_codes_and_later_ones_are_none_of_them() {
    for number in 0..=u8::MAX {
        let kind = RefusalKind::of(number);
        let is_known = [2, 3, 4, 5, 6, 8].contains(&number);
        assert_eq!(kind as u8, if is_known { number } else { 1 });
    }
}

/// Answers without random content.
fn pinned_answers() -> Vec<TrustAnswer> {
    let digest = RootDigest([7; 32]);
    let secret = Secret::new(vec![8; 32]);
    vec![
        TrustAnswer::Standing {
            issuer: Some(digest),
            trusted: vec![digest],
            generation: 4,
        },
        TrustAnswer::Token(JoinToken {
            root: digest,
            id: TokenId(4),
            secret: secret.clone(),
        }),
        TrustAnswer::Tokens(Page {
            rows: vec![TokenRow {
                id: TokenId(4),
                expires_seconds: NOW,
                used_by: Some(ServerId(3)),
                revoked_seconds: Some(NOW),
            }],
            has_more: true,
        }),
        TrustAnswer::Key(AccessKey {
            id: KeyId(7),
            secret: secret.clone(),
        }),
        TrustAnswer::Authority { digest },
        TrustAnswer::Audit {
            rows: vec![change(Actor::Key(KeyId(7)))],
            next: Some(7),
        },
        TrustAnswer::Done,
        TrustAnswer::Refused(TrustRefusal {
            kind: RefusalKind::Unauthorised,
            sentence: "no".to_owned(),
        }),
        TrustAnswer::SigningKeys(vec![secret; 2]),
    ]
}

/// Messages without random content, as hexadecimal digits: one line each.
fn pinned() -> String {
    let grants = Grants::new(vec!["read:logs".parse().unwrap()]).unwrap();
    let (name, digest) = ("camera".to_owned(), RootDigest([7; 32]));
    let key = name.clone();
    let after = Some(7);
    let asks = [
        Ask::Prove(KeyProof {
            key: KeyId(7),
            client_nonce: [3; NONCE_BYTES],
            holder: [5; 32],
            behalf: None,
            proof: [6; PROOF_BYTES],
        }),
        Ask::Standing,
        Ask::CreateToken { ttl_seconds: 3600 },
        Ask::Tokens {
            after: Some(TokenId(3)),
        },
        Ask::RevokeToken { token: TokenId(4) },
        Ask::CreateKey { name, grants },
        Ask::Keys { after: None },
        Ask::RotateKey { key: key.clone() },
        Ask::RetireKey { key: key.clone() },
        Ask::RevokeKey { key },
        Ask::Authorities,
        Ask::TrustAuthority { root: None },
        Ask::IssueFrom { digest },
        Ask::DropRoot { digest },
        Ask::Audit {
            since_seconds: NOW,
            after,
        },
        Ask::Prove(KeyProof {
            key: KeyId(7),
            client_nonce: [3; NONCE_BYTES],
            holder: [5; 32],
            behalf: Some(KeyId(9)),
            proof: [6; PROOF_BYTES],
        }),
        Ask::SigningKeys {
            key: KeyId(9),
            scope: scope(),
        },
        gateway_certificate(),
    ];
    let answers = pinned_answers();
    let bytes = asks.iter().map(Ask::encode);
    let bytes = bytes.chain(answers.iter().map(TrustAnswer::encode));
    bytes
        .map(|bytes| crate::hexadecimal::write(&bytes) + "\n")
        .collect()
}

#[test]
fn the_bytes_of_messages_stay() {
    let golden = include_str!("../../tests/golden/messages-1.txt");
    let found = pinned();
    for (found, pinned) in found.lines().zip(golden.lines()) {
        assert_eq!(found, pinned);
    }
    assert_eq!(found.lines().count(), golden.lines().count(), "{found}");
}

#[test]
fn more_names_than_a_certificate_has_are_refused_and_texts_that_are_none() {
    let ask = |names: &[&str]| {
        let out = Writer::new(19).put(PUBLIC_KEY, &[4; 65]);
        let put = |out: Writer, name: &&str| out.put(NAME, name.as_bytes());
        Ask::decode(&names.iter().fold(out, put).bytes())
    };
    assert!(ask(&["gate.example"; MAX_HOSTS]).is_ok());
    for wrong in [&["a"; MAX_HOSTS + 1][..], &[], &["areo://00/server/00"]] {
        let refused = ask(wrong);
        assert!(matches!(refused, Err(ProtocolError::Host(_))), "{wrong:?}");
    }
}
