use super::*;
use areo_core::config::{Dap, Descriptor};
use areo_core::object::DomainId;
use areo_core::tag::Tag as Version;

/// Five servers of `photos`, configuration 3, ec [5,3], with the response of each.
fn failed(responses: [Response; 5], waited_ms: u64) -> Unavailable {
    let ids = (1..).map(ServerId);
    Unavailable {
        configuration: None,
        needed: 4,
        servers: ids.zip(responses).collect(),
        waited: Duration::from_millis(waited_ms),
        handed_over: true,
        obstacle: None,
    }
}

/// The call of an operation on `photos` that failed.
fn call(operation: Operation, key: Option<&str>, failed: &Unavailable) -> Box<NoQuorum> {
    let asked = Descriptor {
        index: 3,
        ..Descriptor::new(
            DomainId(1),
            (1..=5).map(ServerId).collect(),
            Dap::Ec { k: 3 },
        )
    };
    let asked = Configuration::new(asked).unwrap();
    Box::new(NoQuorum {
        domain: Some("photos".into()),
        key: key.map(Into::into),
        ..NoQuorum::of(operation, &asked, failed, describe)
    })
}

fn describe(server: ServerId) -> (String, Option<String>) {
    (format!("s{}", server.0), Some("connection refused".into()))
}

use Response::{Answered, NotAwaited, Refused, Silent, Unreachable};
const TWO_OF_FOUR: [Response; 5] = [Answered, Answered, Unreachable, Unreachable, Silent];

#[test]
fn the_sentence_names_servers_and_counts() {
    let error = call(Operation::Put, Some("cat"), &failed(TWO_OF_FOUR, 10_004)).unknown();
    assert_eq!(
        error.to_string(),
        "no quorum for 'photos' (configuration 3, ec [5,3]): 2 of 4 needed servers answered in 10 s \
         (s1 ok, s2 ok, s3 refused, s4 refused, s5 timed out); the write may have been applied"
    );
    let Error::Unknown { call } = error else {
        panic!("a write that was sent is unknown");
    };
    assert_eq!((call.answered(), call.needed), (2, 4));
    assert_eq!(call.key.as_deref(), Some("cat"));
    assert_eq!(call.servers[4].reason, None, "it was reachable");
}

/// A server that refuses has answered, and one that could not help any more did not take too long.
#[test]
fn the_sentence_of_what_is_impossible_blames_no_server_for_time() {
    let busy = Refused(Refusal::Busy);
    let starting = Refused(Refusal::Starting);
    let responses = [busy, starting, Answered, NotAwaited, Unreachable];
    let error = call(Operation::Get, Some("cat"), &failed(responses, 12)).not_applied();
    assert_eq!(
        error.to_string(),
        format!(
            "no quorum for 'photos' (configuration 3, ec [5,3]): 1 of 4 needed servers accepted the request and 2 declined it in 12 ms \
             (s1 {}, s2 {}, s3 ok, s4 not waited for, s5 refused)",
            Refusal::Busy,
            Refusal::Starting
        )
    );
    let all = call(Operation::Put, Some("cat"), &failed([busy; 5], 3)).not_applied();
    let sentence = all.to_string();
    assert!(
        sentence.contains("0 of 4 needed servers accepted the request and 5 declined it in 3 ms"),
        "{sentence}"
    );
}

#[test]
fn the_sentence_names_the_configuration_that_was_asked() {
    let next = Descriptor {
        index: 4,
        ..Descriptor::new(DomainId(1), (1..=5).map(ServerId).collect(), Dap::Abd)
    };
    let failed = Unavailable {
        configuration: Some(Configuration::new(next).unwrap()),
        ..failed(TWO_OF_FOUR, 10_004)
    };
    let error = call(Operation::Get, Some("cat"), &failed).not_applied();
    let sentence = error.to_string();
    assert!(
        sentence.contains("(configuration 4, abd [5,1])"),
        "{sentence}"
    );
}

#[test]
fn enough_answers_without_a_version_are_not_called_too_few() {
    let all = [Answered; 5];
    let error = call(Operation::Get, Some("cat"), &failed(all, 10_000)).not_applied();
    let sentence = error.to_string();
    let expected = "5 servers answered, but no version was complete among their answers in 10 s";
    assert!(sentence.contains(expected), "{sentence}");
}

#[test]
fn a_write_that_was_not_sent_is_not_applied() {
    let error = call(Operation::Delete, Some("cat"), &failed(TWO_OF_FOUR, 1_250)).not_applied();
    assert!(matches!(error, Error::Unavailable { .. }));
    let sentence = error.to_string();
    assert!(sentence.contains("in 1.2 s"), "{sentence}");
    assert!(sentence.ends_with("; nothing was written"), "{sentence}");
    let read = call(Operation::Get, Some("cat"), &failed(TWO_OF_FOUR, 31)).not_applied();
    let sentence = read.to_string();
    assert!(sentence.contains("in 31 ms"), "{sentence}");
    assert!(sentence.ends_with("s5 timed out)"), "{sentence}");
}

#[test]
fn used_up_numbers_are_no_lack_of_a_quorum() {
    let largest = Version::LARGEST;
    let used_up = areo_core::tag::NumbersUsedUp { largest };
    let error = call(Operation::Put, Some("cat"), &used_up.into()).not_applied();
    assert!(matches!(error, Error::Obstructed { .. }));
    assert_eq!(
        error.to_string(),
        format!(
            "'cat' in 'photos': no version can come after {largest}, since numbers end at 2^62: copy the object to another key; nothing was written"
        )
    );
}

#[test]
fn a_fork_names_both_configurations() {
    let c = |dap| {
        let members = (1..=3).map(ServerId).collect();
        Configuration::new(Descriptor {
            index: 4,
            ..Descriptor::new(DomainId(1), members, dap)
        })
    };
    let both = [c(Dap::Abd).unwrap(), c(Dap::Ec { k: 1 }).unwrap()];
    let [first, second] = [both[0].id().digest, both[1].id().digest];
    let fork = areo_core::pointer::Fork {
        configurations: both,
    };
    let read = call(Operation::Get, Some("cat"), &fork.clone().into()).not_applied();
    let expected = format!(
        "'cat' in 'photos': configuration 4 was decided twice, as {first:016x} (abd [3,1] on s1, s2, s3) \
         and as {second:016x} (ec [3,1] on s1, s2, s3): see 'A domain with two successors' in docs/operations.md"
    );
    assert_eq!(read.to_string(), expected);
    assert!(matches!(read, Error::Obstructed { .. }));
    let write = call(Operation::Put, Some("cat"), &fork.into()).unknown();
    assert!(matches!(write, Error::Unknown { .. }));
    let expected = format!("{expected}; the write may have been applied");
    assert_eq!(write.to_string(), expected);
}

#[test]
fn the_root_domain_has_no_name() {
    let asked = NoQuorum {
        domain: None,
        ..*call(Operation::CreateDomain, None, &failed(TWO_OF_FOUR, 500))
    };
    let sentence = Box::new(asked).unknown().to_string();
    assert!(
        sentence.starts_with("no quorum for the root domain (configuration 3"),
        "{sentence}"
    );
    assert!(
        sentence.ends_with("; the creation may have been applied"),
        "{sentence}"
    );
}

#[test]
fn a_refused_client_is_told_so() {
    let responses = [
        Answered,
        Answered,
        Answered,
        Silent,
        Refused(Refusal::Unauthorised),
    ];
    let error = call(Operation::Get, Some("cat"), &failed(responses, 10)).not_applied();
    assert!(matches!(error, Error::Unauthorised { .. }));
    assert!(error.to_string().contains("s5 not authorised"), "{error}");
}

#[test]
fn the_missing_grant_is_the_sentence() {
    let refused = Refused(Refusal::Unauthorised);
    let all = [refused, refused, refused, NotAwaited, NotAwaited];
    let asked = |responses| NoQuorum {
        unauthorised: Some("key 00000000000000ab lacks the grant 'write:photos'".into()),
        ..*call(Operation::Put, Some("cat"), &failed(responses, 10))
    };
    let error = Box::new(asked(all)).unknown();
    assert_eq!(
        error.to_string(),
        "not authorised: key 00000000000000ab lacks the grant 'write:photos'"
    );
    assert!(matches!(error, Error::Unauthorised { .. }), "{error:?}");
    // The grants were narrowed while it wrote.
    let some = [Answered, refused, refused, NotAwaited, NotAwaited];
    let error = Box::new(asked(some)).unknown();
    assert!(matches!(error, Error::Unknown { .. }), "{error:?}");
}

#[test]
fn damage_that_costs_the_quorum_is_corruption_to_a_reader() {
    let damaged = Refused(Refusal::Damaged);
    let responses = [Answered, Answered, damaged, damaged, Silent];
    let read = call(Operation::Get, Some("cat"), &failed(responses, 10)).not_applied();
    assert!(matches!(read, Error::Corrupted { .. }));
    assert!(
        read.to_string()
            .starts_with("'cat' in 'photos' is damaged: "),
        "{read}"
    );
    let write = call(Operation::Put, Some("cat"), &failed(responses, 10)).not_applied();
    assert!(matches!(write, Error::Unavailable { .. }));
    let few = [Answered, Answered, damaged, Silent, Silent];
    let read = call(Operation::Get, Some("cat"), &failed(few, 10)).not_applied();
    assert!(
        matches!(read, Error::Unavailable { .. }),
        "without damage there were no quorum either"
    );
}

#[test]
fn what_is_too_large_is_told_what_to_do() {
    let sentence = Invalid::InMemory { bytes: 2 << 30 }.to_string();
    assert!(sentence.contains("at most 1073741824"), "{sentence}");
    assert!(sentence.ends_with("stream it"), "{sentence}");
    let sentence = Invalid::BlockBytes { bytes: 7 }.to_string();
    assert!(sentence.contains("4096 to 67108864 bytes"), "{sentence}");
}

#[test]
fn a_conflict_names_both_versions() {
    let version: Version = "5-00c0ffee00c0ffee1".parse().unwrap();
    let newest: Version = "6-00c0ffee00c0ffee2".parse().unwrap();
    let object = Object {
        version: newest,
        metadata: crate::object::Metadata::default(),
        length: 0,
        content: Vec::new(),
    };
    let sentence = |expected, latest: Option<Object>| {
        let error = Error::VersionConflict {
            domain: "photos".into(),
            key: "cat".into(),
            expected,
            latest: latest.map(Box::new),
        };
        error.to_string()
    };
    assert_eq!(
        sentence(Some(version), Some(object.clone())),
        "'cat' in 'photos' was expected at version 5-00c0ffee00c0ffee1, but it is at version \
         6-00c0ffee00c0ffee2: read it and try again"
    );
    assert!(sentence(None, Some(object)).contains("was to be made, but it is at version 6-"));
    assert!(sentence(Some(version), None).ends_with("but there is no such object"));
}

#[test]
fn what_is_removed_is_called_so_whatever_was_written() {
    let removed = Refused(Refusal::Removed);
    let failed = failed([removed, removed, removed, Answered, Silent], 10);
    let read = call(Operation::Get, Some("cat"), &failed).not_applied();
    let write = call(Operation::Put, Some("cat"), &failed).unknown();
    for error in [read, write] {
        assert_eq!(
            error.to_string(),
            "the domain 'photos' was removed, or its removal has begun and was interrupted"
        );
    }
}
