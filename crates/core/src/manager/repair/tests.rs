use super::*;

fn object(key: &str) -> ObjectRedundancy {
    ObjectRedundancy {
        name: Name::user(key).unwrap(),
        tag: Tag::INITIAL,
        listed: vec![MemberListing::Older],
        versions: vec![None],
        is_gone: false,
    }
}

#[test]
fn repair_has_the_time_that_is_left_and_never_none() {
    let pace = RepairPace {
        bytes_per_s: 1000,
        page: Duration::ZERO,
    };
    let pause = |busy| pace.pause(2000, busy).as_millis();
    assert_eq!([0, 50, 75].map(pause), [2000, 4000, 8000]);
    assert_eq!([90, 99, 100, 255].map(pause), [20_000; 4], "it gets on");
}

#[test]
fn an_object_is_tried_again_after_twice_the_time() {
    let (mut retries, domain) = (Retries::default(), DomainId(1));
    let [one, other] = ["a", "b"].map(object);
    let mut now = Instant::default();
    for attempt in 0..4 {
        assert!(retries.is_due(domain, &one.name, now));
        retries.failed(domain, &one, None, now);
        let wait = REPAIR_AGAIN * (1 << attempt);
        assert!(!retries.is_due(domain, &one.name, now.plus(wait / 2)));
        assert!(retries.is_due(domain, &other.name, now), "each for itself");
        now = now.plus(wait);
    }
    for _ in 0..40 {
        retries.failed(domain, &one, None, now);
    }
    assert!(retries.is_due(domain, &one.name, now.plus(REPAIR_AGAIN_MOST)));
    retries.forget(domain, &one.name);
    assert!(retries.is_due(domain, &one.name, now) && retries.failures.is_empty());
}

/// Others may complete it meanwhile.
#[test]
fn a_version_that_no_read_returned_is_not_lacked_until_it_is_due_or_another_is_listed() {
    let (mut retries, domain) = (Retries::default(), DomainId(1));
    let (old, now) = (object("a"), Instant::default());
    retries.failed(domain, &old, Some(old.tag), now);
    assert!(retries.is_unfinished(domain, &old, now));
    assert!(!retries.is_unfinished(domain, &old, now.plus(REPAIR_AGAIN)));
    let number = 1;
    let tag = Tag { number, ..old.tag };
    assert!(!retries.is_unfinished(domain, &ObjectRedundancy { tag, ..old }, now));
}
