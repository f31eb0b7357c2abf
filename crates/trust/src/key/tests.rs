use super::*;
use crate::secret::system;

fn create() -> (AccessKey, KeyRecord) {
    let grants = vec![
        "read,write:photos".parse().unwrap(),
        "status".parse().unwrap(),
    ];
    KeyRecord::create("camera", Grants::new(grants).unwrap(), &system).unwrap()
}

fn exchange(key: KeyId) -> Exchange {
    Exchange {
        cluster: 0xc1,
        server: ServerId(1),
        key,
        client_nonce: [3; NONCE_BYTES],
        holder: [5; 32],
        binding: [6; 32],
        behalf: None,
    }
}

#[test]
fn a_key_is_one_word_and_comes_back_from_it() {
    let (key, _) = create();
    let text = key.expose_text();
    assert!(
        text.starts_with("areokey1.") && text.len() == 90,
        "{}",
        text.len()
    );
    assert_eq!(AccessKey::parse(&text), Ok(key.clone()));
    let token = format!("areo1.{}", &text[9..]);
    for (wrong, sentence) in [
        (
            &token[..],
            "this is no access key: one begins with 'areokey1.'",
        ),
        (&text[..89], "the secret of this access key is damaged"),
        (&text[..20], "2 parts and not 3"),
    ] {
        let found = AccessKey::parse(wrong).unwrap_err().to_string();
        assert!(found.contains(sentence), "{found}");
    }
}

#[test]
fn both_ends_prove_themselves_and_neither_proof_serves_as_the_other() {
    let (key, record) = create();
    let exchange = exchange(key.id);
    let proof = exchange.prove(&key.secret, Prover::Client);
    let answer = record.judge(&exchange, &proof).unwrap().answer;
    assert!(exchange.is_proven(&key.secret, Prover::Server, &answer));
    assert!(!exchange.is_proven(&key.secret, Prover::Server, &proof));
    let unknown = Err(ProofError::Unknown { key: key.id });
    assert_eq!(record.judge(&exchange, &answer), unknown);
    assert_eq!(record.judge(&exchange, &proof[..31]), unknown);
    assert_eq!(record.judge(&exchange, b""), unknown);
    for bit in 0..proof.len() * 8 {
        let mut changed = proof;
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(record.judge(&exchange, &changed), unknown, "bit {bit}");
    }
}

#[test]
fn a_proof_belongs_to_one_exchange() {
    let (key, record) = create();
    let meant = exchange(key.id);
    let proof = meant.prove(&key.secret, Prover::Client);
    let others = [
        Exchange {
            cluster: 0xc2,
            ..meant
        },
        Exchange {
            server: ServerId(2),
            ..meant
        },
        Exchange {
            key: KeyId(key.id.0 ^ 1),
            ..meant
        },
        Exchange {
            client_nonce: [9; NONCE_BYTES],
            ..meant
        },
        Exchange {
            holder: [9; 32],
            ..meant
        },
        Exchange {
            binding: [9; 32],
            ..meant
        },
        Exchange {
            behalf: Some(KeyId(9)),
            ..meant
        },
    ];
    for other in others {
        assert!(record.judge(&other, &proof).is_err(), "{other:?}");
    }
    let (_, stranger) = create();
    assert!(stranger.judge(&meant, &proof).is_err());
}

/// A gateway's proof for one key serves neither for another one nor for itself, and neither end's as the other's.
#[test]
fn a_proof_on_behalf_of_a_key_is_for_that_key() {
    let (key, record) = create();
    let on = |behalf| Exchange {
        behalf,
        ..exchange(key.id)
    };
    let meant = on(Some(KeyId(9)));
    let proof = meant.prove(&key.secret, Prover::Client);
    let answer = record.judge(&meant, &proof).unwrap().answer;
    assert!(meant.is_proven(&key.secret, Prover::Server, &answer));
    assert!(!meant.is_proven(&key.secret, Prover::Server, &proof));
    for other in [on(None), on(Some(KeyId(8))), on(Some(key.id))] {
        assert!(record.judge(&other, &proof).is_err(), "{other:?}");
        assert!(!other.is_proven(&key.secret, Prover::Server, &answer));
    }
}

/// Computed by Python's `hmac` of the parts in their order, the key on whose behalf it is last.
#[test]
fn the_bytes_of_a_proof_on_behalf_of_a_key_stay() {
    let exchange = Exchange {
        behalf: Some(KeyId(9)),
        ..exchange(KeyId(7))
    };
    let proof = exchange.prove(&Secret::new(vec![8; 32]), Prover::Client);
    let expected = "c1df2e38e3d6523ad8f8f6441bb760f6295649b18a4d829f6022bca93725c9aa";
    assert_eq!(crate::hexadecimal::write(&proof), expected);
}

/// Computed by Python's `hmac` of the parts in their order, the session of TLS last.
#[test]
fn the_bytes_of_a_proof_stay() {
    let proof = exchange(KeyId(7)).prove(&Secret::new(vec![8; 32]), Prover::Client);
    let expected = "9d6afd9aee1c81d584bfccda35c5577cb4c95a0bfee5b53556894d2b2ef82af1";
    assert_eq!(crate::hexadecimal::write(&proof), expected);
}

#[test]
fn two_secrets_count_while_a_key_is_rotated_and_one_afterwards() {
    let (first, mut record) = create();
    let exchange = exchange(first.id);
    let standing = |record: &KeyRecord, key: &AccessKey| {
        let proof = exchange.prove(&key.secret, Prover::Client);
        let proven = record.judge(&exchange, &proof).ok()?;
        Some((proven.standing.secret, proven.standing.grants))
    };
    let counts = |record: &KeyRecord, key: &AccessKey| standing(record, key).is_some();
    assert_eq!(standing(&record, &first), Some((0, 0)));
    let second = record.rotate(&system).unwrap();
    assert!(counts(&record, &first) && counts(&record, &second) && record.is_rotating());
    let third = record.rotate(&system).unwrap();
    assert!(!counts(&record, &first) && counts(&record, &second) && counts(&record, &third));
    record.retire();
    assert!(!counts(&record, &second) && counts(&record, &third) && !record.is_rotating());
    record.retire();
    assert!(counts(&record, &third), "one secret stays");
    record.change_grants(Grants::default());
    assert_eq!(standing(&record, &third), Some((2, 1)));
    let least = record.least();
    assert_eq!((least.secret, least.grants), (2, 1));
}

#[test]
fn a_revoked_key_says_so_to_its_owner_alone() {
    let (key, mut record) = create();
    record.revoked_seconds = Some(5);
    let (exchange, id) = (exchange(key.id), key.id);
    let proof = exchange.prove(&key.secret, Prover::Client);
    let revoked = record.judge(&exchange, &proof);
    assert_eq!(revoked, Err(ProofError::Revoked { key: id }));
    let guessed = record.judge(&exchange, &[0; 32]);
    assert_eq!(guessed, Err(ProofError::Unknown { key: id }));
}

#[test]
fn a_record_comes_back_from_bytes_and_shows_no_secret() {
    let (key, mut record) = create();
    record.rotate(&system).unwrap();
    record.rotate(&system).unwrap();
    record.revoked_seconds = Some(7);
    let bytes = record.encode();
    assert_eq!(KeyRecord::decode(&bytes), Ok(record.clone()));
    let shown = format!("{record:?} {record} {bytes:?}");
    assert!(!shown.contains(&key.secret.expose_text()[..8]), "{shown}");
    for length in 0..60 {
        let cut = Secret::new(bytes.expose()[..length].to_vec());
        assert!(KeyRecord::decode(&cut).is_err(), "{length} bytes");
    }
    for name in ["", "two words", "a,b", &"a".repeat(64)] {
        let error = KeyRecord::create(name, Grants::default(), &system).unwrap_err();
        assert!(matches!(error, KeyError::Name { .. }), "{error}");
    }
}
