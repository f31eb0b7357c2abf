use super::*;
use crate::grant::Grants;
use crate::id::{KeyId, TokenId};
use crate::key::KeyRecord;
use crate::roots::{RootDigest, RootsError};
use crate::secret::{OpenError, system};
use crate::token::JoinToken;
use areo_core::config::ServerId;

const CLUSTER: u128 = 0xc1;
const NOW: u64 = 1_800_000_000;

fn origin() -> Origin {
    Origin {
        by: Actor::Server(ServerId(3)),
        address: "192.0.2.7:4100".into(),
        now_seconds: NOW,
    }
}

fn entry(what: What, content: Content) -> Entry {
    Entry {
        origin: origin(),
        what,
        content,
    }
}

fn foundation() -> Foundation {
    Foundation::create(CLUSTER, NOW).unwrap().0
}

fn state(foundation: &Foundation) -> State {
    let founded = entry(What::Founded, Content::Founded(foundation.clone()));
    State::founded(0, founded).unwrap()
}

/// One entry of each kind.
fn entries() -> Vec<Entry> {
    let (token, record) = JoinToken::create(RootDigest([7; 32]), NOW + 60, &system).unwrap();
    let public = crate::authority::ServerKey::create().unwrap().public();
    let used = record.redeem(token.id, &token.secret, ServerId(9), &public, NOW);
    let (_, mut key) = KeyRecord::create("camera", Grants::of_administrator(), &system).unwrap();
    let made = key.clone();
    key.rotate(&system).unwrap();
    key.retire();
    key.change_grants(Grants::default());
    let own = AuthorityRecord::create(CLUSTER, NOW).unwrap();
    let operators = AuthorityRecord::of_operator(own.root().clone());
    let digest = own.root().digest();
    vec![
        entry(What::Founded, Content::Founded(foundation())),
        entry(What::RootTrusted, Content::Authority(own)),
        entry(What::RootTrusted, Content::Authority(operators)),
        entry(What::RootIssues, Content::Root(digest)),
        entry(What::RootDropped, Content::Root(digest)),
        entry(What::TokenCreated, Content::Token(record)),
        entry(What::TokenUsed, Content::Token(used.unwrap())),
        entry(What::KeyCreated, Content::Key(made)),
        entry(What::KeyRevoked, Content::Key(key)),
    ]
}

#[test]
fn each_entry_comes_back_from_bytes_and_no_cut_one_does() {
    for entry in entries() {
        let bytes = entry.encode();
        assert_eq!(Entry::decode(&bytes).as_ref(), Ok(&entry));
        for length in 0..bytes.expose().len() {
            let cut = Secret::new(bytes.expose()[..length].to_vec());
            // A field that may be missing is the last one.
            if let Ok(read) = Entry::decode(&cut) {
                assert_ne!(read, entry, "{length} bytes");
            }
        }
    }
}

#[test]
fn entries_of_other_actors_and_long_addresses_are_kept_as_far_as_they_fit() {
    for by in [
        Actor::Founder,
        Actor::Key(KeyId(7)),
        Actor::Server(ServerId(8)),
    ] {
        let mut entry = entries().remove(3);
        entry.origin.by = by;
        entry.origin.address = "ä".repeat(MAX_ADDRESS_BYTES);
        let read = Entry::decode(&entry.encode()).unwrap();
        assert_eq!(read.origin.by, by);
        assert_eq!(read.origin.address, "ä".repeat(MAX_ADDRESS_BYTES / 2));
    }
}

/// The entry of the golden file, as the first version wrote it.
fn golden() -> Entry {
    entry(What::RootIssues, Content::Root(RootDigest([7; 32])))
}

#[test]
fn a_change_of_the_first_version_stays_readable() {
    let text = include_str!("../../tests/golden/change-1.txt").trim();
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..text.len()).step_by(2).map(byte).collect();
    assert_eq!(Entry::decode(&Secret::new(bytes.clone())), Ok(golden()));
    assert_eq!(golden().encode().expose(), bytes);
}

#[test]
fn a_kind_of_a_later_version_is_refused_by_name() {
    let entry = entries().remove(3);
    let mut bytes = entry.encode().expose().to_vec();
    let what = bytes.len() - 32 - areo_core::tlv::HEAD_BYTES - 1;
    assert_eq!(bytes[what], What::RootIssues as u8);
    bytes[what] = 200;
    let number = 200;
    let later = Err(RecordError::LaterVersion { number });
    assert_eq!(Entry::decode(&Secret::new(bytes)), later);
}

#[test]
fn a_foundation_comes_back_from_bytes_and_issues() {
    let foundation = foundation();
    let bytes = foundation.encode();
    assert_eq!(Foundation::decode(&bytes).as_ref(), Ok(&foundation));
    let authority = foundation.authority.authority(CLUSTER).unwrap().unwrap();
    assert_eq!(authority.root(), foundation.authority.root());
    for length in 0..bytes.expose().len() {
        let cut = Secret::new(bytes.expose()[..length].to_vec());
        assert_ne!(Foundation::decode(&cut).as_ref(), Ok(&foundation));
    }
}

#[test]
fn an_entry_opens_at_its_place_in_its_cluster_with_its_key_alone() {
    let key = Secret::random(&system).unwrap();
    let registry = Registry::new(CLUSTER, key.clone());
    let entry = entries().remove(0);
    let purpose = registry.purpose(4);
    let sealed = secret::seal(&key, &purpose, &entry.encode(), &system).unwrap();
    assert_eq!(registry.open(4, &sealed).as_ref(), Ok(&entry));
    let others = [
        (Registry::new(CLUSTER, Secret::random(&system).unwrap()), 4),
        (Registry::new(0xc2, key.clone()), 4),
        (Registry::new(CLUSTER, key), 5),
    ];
    for (registry, generation) in others {
        let error = OpenError::Refused;
        let refused = Err(LogError::Sealed { generation, error });
        assert_eq!(registry.open(generation, &sealed), refused);
    }
}

/// It may lack that a key was revoked.
#[test]
fn callers_are_not_judged_by_a_log_that_was_read_in_part() {
    let key = Secret::random(&system).unwrap();
    let registry = Registry::new(CLUSTER, key.clone());
    let founded = entry(What::Founded, Content::Founded(foundation())).encode();
    let sealed = secret::seal(&key, &registry.purpose(0), &founded, &system).unwrap();
    registry.take(0, &sealed).unwrap();
    assert_eq!(registry.view(), None);
    assert!(registry.keep().is_none());
    let mut later = state(&foundation());
    later.generation = 9;
    registry.recall(&later.keep()).unwrap();
    assert_eq!(registry.view().unwrap().generation, 9);
    // A server that writes before it has read the log keeps what it had.
    assert_eq!(registry.keep(), Some(later.keep()));
}

#[test]
fn what_does_not_follow_changes_nothing() {
    let foundation = foundation();
    let mut state = state(&foundation);
    let digest = foundation.authority.root().digest();
    let before = state.view(CLUSTER);
    let unknown = RootDigest([1; 32]);
    let wrong = [
        (What::Founded, Content::Founded(foundation.clone())),
        (What::RootIssues, Content::Root(unknown)),
        (What::RootDropped, Content::Root(digest)),
        (What::RootTrusted, Content::Root(digest)),
    ];
    for (what, content) in wrong {
        assert!(state.apply(1, entry(what, content)).is_err(), "{what:?}");
        assert_eq!(state.view(CLUSTER), before);
    }
    let first = entry(What::RootIssues, Content::Root(digest));
    assert_eq!(State::founded(0, first).err(), Some(RecordError::Order));
}

#[test]
fn roots_and_signers_rotate_together() {
    let foundation = foundation();
    let mut state = state(&foundation);
    let old = foundation.authority.root().digest();
    let signer = |record: &AuthorityRecord| record.signer().unwrap().unwrap().public();
    let next = AuthorityRecord::create(CLUSTER, NOW).unwrap();
    let new = next.root().digest();
    let own = [signer(&foundation.authority), signer(&next)];
    let trusted = entry(What::RootTrusted, Content::Authority(next));
    state.apply(1, trusted).unwrap();
    assert_eq!(state.view(CLUSTER).verifier.signers, own);
    assert_eq!(state.signer().unwrap().public(), own[0]);
    assert!(state.signs(old) && !state.signs(new));
    let issues = entry(What::RootIssues, Content::Root(new));
    state.apply(2, issues).unwrap();
    assert_eq!(state.view(CLUSTER).verifier.signers, [own[1], own[0]]);
    assert_eq!(state.signer().unwrap().public(), own[1]);
    let dropped = entry(What::RootDropped, Content::Root(old));
    state.apply(3, dropped).unwrap();
    let view = state.view(CLUSTER);
    assert_eq!(
        (view.verifier.signers, view.roots.all().len()),
        (vec![own[1]], 1)
    );
    // Of an operator's own CA there is no signer: that of the cluster's goes on.
    let operators = AuthorityRecord::create(CLUSTER, NOW).unwrap();
    let operators = AuthorityRecord::of_operator(operators.root().clone());
    let third = operators.root().digest();
    let trusted = entry(What::RootTrusted, Content::Authority(operators));
    state.apply(4, trusted).unwrap();
    let issues = entry(What::RootIssues, Content::Root(third));
    state.apply(5, issues).unwrap();
    assert!(state.issuing().authority(CLUSTER).is_none());
    assert!(state.has_key_of(new) && !state.has_key_of(third) && !state.has_key_of(old));
    assert!(state.signs(new) && state.signer().unwrap().public() == own[1]);
}

#[test]
fn the_view_lists_what_was_revoked_and_what_has_moved_on() {
    let foundation = foundation();
    let mut state = state(&foundation);
    let admin = foundation.key.id;
    assert!(state.is_last_of_keys(admin));
    let (_, mut key) = KeyRecord::create("camera", Grants::default(), &system).unwrap();
    let made = entry(What::KeyCreated, Content::Key(key.clone()));
    state.apply(1, made).unwrap();
    assert_eq!(state.key_named("camera").map(|key| key.id), Some(key.id));
    assert!(state.is_last_of_keys(admin) && !state.is_last_of_keys(key.id));
    let first = state.view(CLUSTER);
    assert!(first.verifier.revoked.is_empty() && first.verifier.least.is_empty());
    key.rotate(&system).unwrap();
    key.retire();
    let retired = entry(What::KeyRetired, Content::Key(key.clone()));
    state.apply(2, retired).unwrap();
    let view = state.view(CLUSTER);
    assert_eq!(view.generation, 2);
    assert_eq!(view.verifier.least.get(&key.id).unwrap().secret, 1);
    key.revoked_seconds = Some(NOW);
    let revoked = entry(What::KeyRevoked, Content::Key(key.clone()));
    state.apply(3, revoked).unwrap();
    assert!(state.view(CLUSTER).verifier.revoked.contains(&key.id));
    assert!(state.key_named("camera").is_none(), "its name is free");
}

#[test]
fn each_refusal_is_one_sentence_that_says_what_to_do() {
    let (key, token) = (KeyId(1), TokenId(2));
    let digest = RootDigest([3; 32]);
    let server = ServerId(4);
    let name = "camera".to_owned();
    let sentences = [
        (LogError::NotFounded.to_string(), "--init"),
        (LogError::Full.to_string(), "no more"),
        (FoundError::Other { digest }.to_string(), "join it"),
        (IssueError::NotRead.to_string(), "try again"),
        (IssueError::OfOperator { digest }.to_string(), "by file"),
        (TrustRootError::from(RootsError::Full).to_string(), "first"),
        (
            DropRootError::Signs { digest }.to_string(),
            "areo ca rotate",
        ),
        (CreateTokenError::NoTime.to_string(), "--ttl"),
        (
            RevokeTokenError::Unknown { id: token }.to_string(),
            "token ls",
        ),
        (RedeemTokenError::Registered { server }.to_string(), "empty"),
        (
            CreateKeyError::NameTaken { name, id: key }.to_string(),
            "revoke",
        ),
        (ChangeKeyError::Unknown { id: key }.to_string(), "key ls"),
        (
            ChangeKeyError::Revoked { id: key }.to_string(),
            "key create",
        ),
        (
            ChangeKeyError::Rotating { id: key }.to_string(),
            "key retire",
        ),
        (ChangeKeyError::LastOfKeys { id: key }.to_string(), "first"),
        (IssueTicketError::NoSigner.to_string(), "areo ca rotate"),
    ];
    for (sentence, deed) in sentences {
        assert!(sentence.contains(deed), "{sentence}");
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
    }
}
