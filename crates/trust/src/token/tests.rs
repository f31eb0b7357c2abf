use super::*;
use crate::secret::system;

const NOW: u64 = 1_800_000_000;
const FIRST: ServerId = ServerId(1);
const SECOND: ServerId = ServerId(2);
const EXPIRY: u64 = NOW + 3600;

fn create() -> (JoinToken, TokenRecord) {
    JoinToken::create(RootDigest([0xab; 32]), EXPIRY, &system).unwrap()
}

/// The public key of a server, which differs in its last byte.
fn key(last: u8) -> PublicKey {
    let mut point = [4; 65];
    point[64] = last;
    PublicKey::new(&point).unwrap()
}

#[test]
fn a_token_is_one_word_and_comes_back_from_it() {
    let (token, _) = create();
    let text = token.expose_text();
    let digest = format!("areo1.{}.", "ab".repeat(32));
    assert!(
        text.starts_with(&digest) && text.len() == 152,
        "{}",
        text.len()
    );
    assert_eq!(JoinToken::parse(&text).as_ref(), Ok(&token));
    assert_eq!(
        JoinToken::parse(&format!(" {}\n", *text)),
        Ok(token.clone())
    );
    let secret = token.secret.expose_text();
    assert!(!format!("{token:?}").contains(&secret[..8]));
}

#[test]
fn each_way_to_be_wrong_has_its_sentence_without_the_secret() {
    let (token, _) = create();
    let text = token.expose_text();
    let secret = token.secret.expose_text();
    let upper = text.replace(&*secret, &"F".repeat(64));
    let longer = format!("{}.more", *text);
    let second = text.replacen("areo1", "areo2", 1);
    let digest = text.replacen('b', "g", 1);
    let id = text.replace(&token.id.to_string(), "12345");
    let long = "a".repeat(257);
    let cases: [(&str, &str); 10] = [
        ("", "empty"),
        (&long, "257 bytes"),
        ("hello", "begins with 'areo1.'"),
        ("areo.x", "begins with 'areo1.'"),
        (&second, "later version"),
        (&text[..60], "2 parts and not 4"),
        (&longer, "5 parts and not 4"),
        (
            &digest,
            "the digest of this join token is damaged: 64 digits",
        ),
        (&id, "the id of this join token is damaged: 16 digits"),
        (&upper, "the secret of this join token is damaged"),
    ];
    for (wrong, sentence) in cases {
        let found = JoinToken::parse(wrong).unwrap_err().to_string();
        assert!(found.contains(sentence), "{found}");
        assert!(!found.contains(&secret[..8]), "{found}");
    }
    let cut = &text[..text.len() - 1];
    let found = JoinToken::parse(cut).unwrap_err().to_string();
    assert!(
        found.starts_with("the secret of this join token"),
        "{found}"
    );
}

#[test]
fn a_token_lets_one_server_in_once_and_again_when_it_repeats() {
    let (token, record) = create();
    let redeem = |record: &TokenRecord, server, last, now| {
        record.redeem(token.id, &token.secret, server, &key(last), now)
    };
    let used = redeem(&record, FIRST, 1, NOW).unwrap();
    assert_eq!(used.used, Some(TokenUse::new(FIRST, &key(1))));
    let (id, by) = (token.id, FIRST);
    let second = Err(RedeemError::Used { id, by });
    assert_eq!(redeem(&used, SECOND, 2, NOW), second);
    assert_eq!(redeem(&used, SECOND, 1, NOW), second);
    let other_key = Err(RedeemError::OtherKey { id, by });
    assert_eq!(redeem(&used, FIRST, 2, NOW), other_key);
    let repeated = redeem(&used, FIRST, 1, NOW + 1);
    assert_eq!(repeated, Ok(used), "its answer was lost");
}

#[test]
fn a_use_is_repeated_until_ten_minutes_after_the_expiry() {
    let (token, record) = create();
    let redeem = |record: &TokenRecord, last, now| {
        record.redeem(token.id, &token.secret, FIRST, &key(last), now)
    };
    let used = redeem(&record, 1, EXPIRY - 1).unwrap();
    let end = EXPIRY + REPETITION_SECONDS;
    assert_eq!(redeem(&used, 1, end - 1), Ok(used.clone()));
    let expired = |now_seconds| {
        Err(RedeemError::Expired {
            id: token.id,
            expires_seconds: EXPIRY,
            now_seconds,
        })
    };
    assert_eq!(redeem(&used, 1, end), expired(end));
    assert!(redeem(&used, 2, EXPIRY).is_err(), "another key");
    assert_eq!(redeem(&record, 1, EXPIRY), expired(EXPIRY));
    let endless = TokenRecord {
        expires_seconds: u64::MAX,
        ..used
    };
    assert!(redeem(&endless, 1, u64::MAX - 1).is_ok());
}

#[test]
fn a_token_that_is_expired_or_not_its_own_lets_nothing_in() {
    let (token, record) = create();
    let (other, _) = create();
    let id = token.id;
    let at = |now| record.redeem(id, &token.secret, FIRST, &key(1), now);
    assert!(at(NOW + 3599).is_ok());
    let expired = at(NOW + 3600 + 180).unwrap_err().to_string();
    let both = "expired at 2027-01-15 09:00:00 UTC, 3 min ago by the clock of the server that was asked, which shows 2027-01-15 09:03:00 UTC";
    assert!(expired.contains(both), "{expired}");
    let foreign = record.redeem(id, &other.secret, FIRST, &key(1), NOW);
    assert_eq!(foreign, Err(RedeemError::Unknown { id }));
    let id = other.id;
    let foreign = record.redeem(id, &token.secret, FIRST, &key(1), NOW);
    assert_eq!(foreign, Err(RedeemError::Unknown { id }));
}

#[test]
fn a_revoked_token_lets_nothing_in_and_says_so_to_its_owner_alone() {
    let (token, record) = create();
    let used = record.redeem(token.id, &token.secret, FIRST, &key(1), NOW);
    let id = token.id;
    for record in [record, used.unwrap()] {
        let revoked = TokenRecord {
            revoked_seconds: Some(NOW),
            ..record
        };
        let shown = |secret| revoked.redeem(id, secret, FIRST, &key(1), NOW);
        assert_eq!(shown(&token.secret), Err(RedeemError::Revoked { id }));
        let guessed = Secret::random(&system).unwrap();
        assert_eq!(shown(&guessed), Err(RedeemError::Unknown { id }));
    }
}

#[test]
fn a_record_comes_back_from_bytes_and_has_no_secret() {
    let (token, record) = create();
    let used = record.redeem(token.id, &token.secret, SECOND, &key(1), NOW);
    let used = used.unwrap();
    let long = used.encode();
    let revoked = TokenRecord {
        revoked_seconds: Some(NOW),
        ..used.clone()
    };
    for record in [record.clone(), used, revoked] {
        let bytes = record.encode();
        assert_eq!(TokenRecord::decode(&bytes), Ok(record.clone()));
        let secret = token.secret.expose();
        assert!(bytes.windows(8).all(|window| window != &secret[..8]));
    }
    let unused = record.encode().len();
    let ends: Vec<usize> = (0..=long.len())
        .filter(|end| TokenRecord::decode(&long[..*end]).is_ok())
        .collect();
    assert_eq!(ends, [unused, long.len()], "a use has both its fields");
    let key_alone = [&long[..unused], &long[unused + tlv::HEAD_BYTES + 16..]].concat();
    let kind = USED_BY;
    let missing = Err(TlvError::Missing { kind });
    assert_eq!(TokenRecord::decode(&key_alone), missing);
}
