use super::*;

const ASKED: u64 = 0;

/// The next request of a process with this directory, as (step, incarnation, start, resumed).
fn next(starting: &StartPhase) -> (Enrolment, u64, u64, bool) {
    let next = starting.next();
    (next.step, next.incarnation, next.start, next.resumed)
}

#[test]
fn a_start_is_asked_about_begun_and_confirmed() {
    let mut starting = StartPhase::new(Starts::NONE);
    assert_eq!(next(&starting), (Enrolment::Ask, 1, ASKED, false));
    let begun = Starts {
        incarnation: 1,
        unconfirmed: Some(7),
    };
    assert_eq!(starting.agreed(7), AgreedStep::GoOn(begun));
    assert_eq!(next(&starting), (Enrolment::Register, 1, 7, false));
    let confirmed = Starts {
        incarnation: 1,
        unconfirmed: None,
    };
    assert_eq!(starting.agreed(8), AgreedStep::Serve(confirmed));
}

/// A process that finds a start in its directory ends it and begins its own: it may be a copy.
#[test]
fn what_an_earlier_process_left_is_resumed_and_not_served_under() {
    let mut starting = StartPhase::new(Starts {
        incarnation: 4,
        unconfirmed: Some(7),
    });
    let will_serve_as = starting.incarnation();
    // Nothing is registered before the root domain has said what it knows of the server.
    assert_eq!(next(&starting), (Enrolment::Ask, 5, ASKED, false));
    assert!(matches!(starting.agreed(6), AgreedStep::GoOn(_)));
    assert_eq!(next(&starting), (Enrolment::Register, 4, 7, true));
    assert!(matches!(starting.agreed(8), AgreedStep::GoOn(_)));
    assert_eq!(next(&starting), (Enrolment::Ask, 5, ASKED, false));
    assert!(matches!(starting.agreed(9), AgreedStep::GoOn(_)));
    assert_eq!(next(&starting), (Enrolment::Register, 5, 9, false));
    assert_eq!(starting.incarnation(), will_serve_as);
    assert!(matches!(starting.agreed(10), AgreedStep::Serve(_)));
}

/// A refused start leaves the directory unchanged, however often the server is started.
#[test]
fn starts_that_were_refused_do_not_count() {
    let copy = Starts {
        incarnation: 2,
        unconfirmed: None,
    };
    for _ in 0..20 {
        let starting = StartPhase::new(copy);
        assert_eq!(next(&starting), (Enrolment::Ask, 3, ASKED, false));
    }
}
