//! The driver, with a tally that does what it is told.

use super::*;
use crate::config::testing::replicated;
use crate::gather::STALLS;
use crate::message::{Refusal, Reply, Want};
use crate::object::Name;
use crate::pointer::Successors;
use crate::tag::Tag;

const PATIENCE: Duration = Duration::from_millis(15);
const TIMEOUT: Duration = Duration::from_secs(1);

/// Wants answers of all three members. At the end of its patience it asks the first one again; it is impossible once the
/// last one refuses.
struct Told {
    heard: Vec<(usize, Event)>,
    patience: Option<Duration>,
    fetches: bool,
}

impl Tally for Told {
    type Output = Vec<(usize, Event)>;

    fn needed(&self) -> usize {
        3
    }

    fn ask(&mut self, _position: usize) -> Option<Request> {
        let access = match self.fetches {
            true => Access::Fetch {
                tag: Tag::INITIAL,
                payload: true,
            },
            false => Access::query(Want::Element, Tag::INITIAL),
        };
        let c = replicated(3);
        Some(Request::Configured {
            configuration: c.id(),
            descriptor: None,
            successors: Successors::default(),
            body: Body::Access(vec![(Name::user("k").expect("a key"), access)]),
        })
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Self::Output> {
        let is_final = event == Event::Refused(Refusal::Full);
        self.heard.push((from, event));
        match self.heard.len() {
            _ if is_final => Decision::Impossible,
            3 => Decision::Done(std::mem::take(&mut self.heard)),
            _ => Decision::Pending,
        }
    }

    fn tick(&mut self) -> Decision<Self::Output> {
        Decision::Ask(vec![0])
    }

    fn patience(&self) -> Option<Duration> {
        self.patience
    }
}

fn at(ms: u64) -> Instant {
    Instant::default().plus(Duration::from_millis(ms))
}

fn call(
    patience: Option<Duration>,
    fetches: bool,
    deadline: &Deadline,
    now: Instant,
) -> Call<Told> {
    let members: Members = (1..=3).map(ServerId).collect();
    let told = Told {
        heard: Vec::new(),
        patience,
        fetches,
    };
    Call::new(&members, told, deadline, now)
}

/// Sends the pending requests; returns the positions.
fn send(call: &mut Call<Told>) -> Vec<usize> {
    send_after(call, 0)
}

/// [`send`] over connections that have brought this count of bytes before.
fn send_after(call: &mut Call<Told>, received_bytes: u64) -> Vec<usize> {
    let mut asked = Vec::new();
    while let Some(next) = call.next_request() {
        assert_eq!(next.server, ServerId(next.position as u128 + 1));
        call.sent(&next, received_bytes);
        asked.push(next.position);
    }
    asked
}

fn patient() -> Deadline {
    Deadline::after(at(0), TIMEOUT)
}

#[test]
fn everybody_is_asked_once_and_the_last_reply_decides() {
    let mut call = call(None, false, &patient(), at(0));
    assert_eq!(send(&mut call), [0, 1, 2]);
    assert!(send(&mut call).is_empty() && call.take().is_none());
    assert!(
        !call.hear(2, Event::Reply(Reply::Config), at(1)),
        "nothing to do"
    );
    assert!(!call.hear(0, Event::Unreachable, at(2)));
    assert!(call.hear(1, Event::Refused(Refusal::Busy), at(3)));
    let heard = call.take().expect("it is decided").expect("it went well");
    assert_eq!(
        heard.iter().map(|(from, _)| *from).collect::<Vec<_>>(),
        [2, 0, 1]
    );
    assert!(
        !call.hear(0, Event::Reply(Reply::Config), at(4)),
        "too late"
    );
    assert!(call.next_request().is_none());
}

#[test]
fn what_is_impossible_says_what_each_server_did() {
    let mut call = call(None, false, &patient(), at(0));
    send(&mut call);
    call.hear(0, Event::Reply(Reply::Config), at(1));
    call.hear(2, Event::Refused(Refusal::Full), at(5));
    let failed = call.take().expect("it has ended").unwrap_err();
    let said: Vec<Response> = failed.servers.iter().map(|(_, said)| *said).collect();
    let full = Response::Refused(Refusal::Full);
    assert_eq!(said, [Response::Answered, Response::NotAwaited, full]);
    assert_eq!(failed.waited, Duration::from_millis(5));
    assert!(failed.handed_over && failed.needed == 3);
}

/// A call that ends at once blames no server for its silence; a call that ends at its deadline does.
#[test]
fn only_a_server_that_had_time_is_silent() {
    let end = |until_ms: u64| {
        let mut call = call(None, false, &patient(), at(0));
        send(&mut call);
        call.pass(at(until_ms), |_| 0);
        if call.is_open() {
            call.hear(2, Event::Refused(Refusal::Full), at(until_ms));
        }
        let failed = call.take().expect("it has ended").unwrap_err();
        let responses = failed.servers.iter().map(|it| it.1);
        (responses.collect::<Vec<_>>(), failed.to_string())
    };
    let full = Response::Refused(Refusal::Full);
    for until_ms in [0, 1, 600, 999] {
        let (responses, sentence) = end(until_ms);
        let unheard = Response::NotAwaited;
        assert_eq!(responses, [unheard, unheard, full], "after {until_ms} ms");
        let found = "0 of 3 needed servers accepted the request and 1 declined it in ";
        assert!(sentence.starts_with(found), "{sentence}");
    }
    let (responses, sentence) = end(1000);
    assert_eq!(responses, [Response::Silent; 3]);
    assert_eq!(sentence, "0 of 3 needed servers answered in 1.0 s");
}

/// A call that is impossible at once reports the servers that the call before it could not reach. A server that
/// answered the call before has neither answered this one nor kept it waiting: otherwise a write that every server
/// refuses would look half done.
#[test]
fn a_call_that_is_impossible_at_once_counts_no_earlier_answers() {
    let deadline = patient();
    let mut first = call(None, false, &deadline, at(0));
    send(&mut first);
    first.hear(0, Event::Reply(Reply::Config), at(1));
    first.hear(1, Event::Unreachable, at(1));
    first.hear(2, Event::Reply(Reply::Config), at(1));
    let mut second = call(None, false, &deadline, at(2));
    send(&mut second);
    second.hear(2, Event::Refused(Refusal::Full), at(3));
    let failed = second.take().expect("it has ended").unwrap_err();
    let said: Vec<Response> = failed.servers.iter().map(|(_, said)| *said).collect();
    let full = Response::Refused(Refusal::Full);
    let not_awaited = Response::NotAwaited;
    assert_eq!(said, [not_awaited, Response::Unreachable, full]);
}

#[test]
fn a_request_that_was_not_sent_had_no_effect() {
    let mut call = call(None, false, &patient(), at(0));
    while let Some(next) = call.next_request() {
        // The tally hears of a full queue as of a refusal.
        let event = match next.position {
            2 => Event::Refused(Refusal::Full),
            _ => Event::Unreachable,
        };
        call.held_back(&next, event, at(0));
    }
    let failed = call.take().expect("it has ended").unwrap_err();
    assert!(!failed.handed_over);
    let said: Vec<Response> = failed.servers.iter().map(|(_, said)| *said).collect();
    let full = Response::Refused(Refusal::Full);
    assert_eq!(said, [Response::Unreachable, Response::Unreachable, full]);
}

#[test]
fn time_runs_out_at_the_deadline_of_the_operation_not_of_the_call() {
    let mut call = call(None, false, &patient(), at(900));
    send(&mut call);
    assert_eq!(call.next_time(), at(1000));
    call.pass(at(999), |_| 0);
    assert!(call.is_open());
    call.pass(at(1000), |_| 0);
    let failed = call.take().expect("its time is over").unwrap_err();
    assert!(failed.handed_over, "it was sent, and may have its effect");
    assert_eq!(failed.waited, TIMEOUT);
}

#[test]
fn an_operation_that_gets_on_may_take_any_time() {
    let deadline = Deadline::idle(at(0), TIMEOUT);
    assert_eq!(deadline.at(), None);
    let mut first = call(None, false, &deadline, at(0));
    let mut second = call(None, false, &deadline, at(0));
    send(&mut first);
    send(&mut second);
    for from in 0..3 {
        first.hear(from, Event::Reply(Reply::Config), at(800));
    }
    assert_eq!(second.next_time(), at(1800), "another call was decided");
    second.pass(at(1799), |_| 0);
    assert!(second.is_open());
    second.pass(at(1800), |_| 0);
    let failed = second.take().expect("its time is over").unwrap_err();
    assert_eq!(failed.waited, TIMEOUT);
}

/// Makes calls that are answered at once, one each 100 ms, from a time on; returns when one of them failed, and how.
fn ask_again_and_again(deadline: &Deadline, from_ms: u64) -> (u64, Unavailable) {
    let mut ms = from_ms;
    loop {
        let mut call = call(None, false, deadline, at(ms));
        send(&mut call);
        if call.next_time() <= at(ms + 50) {
            let end = call.next_time();
            call.pass(end, |_| 0);
            let failed = call.take().expect("its time is over").unwrap_err();
            return (ms, failed);
        }
        for from in 0..3 {
            call.hear(from, Event::Reply(Reply::Config), at(ms));
        }
        assert!(call.take().expect("all have answered").is_ok());
        ms += 100;
        assert!(ms < from_ms + 60_000, "it never ends");
    }
}

#[test]
fn an_operation_of_which_nothing_comes_ends_although_servers_answer() {
    let deadline = Deadline::idle(at(0), TIMEOUT);
    let (ended, failed) = ask_again_and_again(&deadline, 0);
    assert_eq!(at(ended), at(0).plus(TIMEOUT * STALLS));
    assert_eq!(failed.waited, TIMEOUT * STALLS);
    let answered = failed.servers.iter().map(|it| it.1);
    assert!(
        answered.eq([Response::Answered; 3]),
        "the last call has only begun: {failed:?}"
    );
}

#[test]
fn bytes_that_come_are_progress_and_so_is_what_the_operation_says() {
    for receives in [true, false] {
        let deadline = Deadline::idle(at(0), TIMEOUT);
        if receives {
            let mut call = call(Some(PATIENCE), true, &deadline, at(500));
            send(&mut call);
            call.pass(at(900), one_more(1000));
        } else {
            deadline.progressed();
        }
        // Time without a call is not the operation's own.
        let (ended, _) = ask_again_and_again(&deadline, 9000);
        assert_eq!(at(ended), at(9000).plus(TIMEOUT * STALLS), "{receives}");
    }
}

#[test]
fn at_the_end_of_its_patience_the_tally_asks_again_and_is_patient_again() {
    let mut call = call(Some(PATIENCE), false, &patient(), at(0));
    send(&mut call);
    for round in 1..=3 {
        assert_eq!(call.next_time(), at(15 * round));
        call.pass(at(15 * round - 1), |_| 0);
        assert!(send(&mut call).is_empty(), "it is not over yet");
        call.pass(at(15 * round), |_| 0);
        assert_eq!(send(&mut call), [0]);
    }
}

/// Bytes received from each server, and one more from the second server.
fn one_more(bytes: u64) -> impl Fn(ServerId) -> u64 {
    move |server| bytes + u64::from(server == ServerId(2))
}

/// Regression: the bytes that a connection had carried before the request were taken for progress, so that each first
/// hedge came after twice its time.
#[test]
fn only_what_comes_after_the_request_puts_patience_off() {
    let mut call = call(Some(PATIENCE), true, &patient(), at(0));
    send_after(&mut call, 1000);
    call.pass(at(15), |_| 1000);
    assert_eq!(send_after(&mut call, 1000), [0], "nothing has come");
    call.pass(at(30), one_more(1000));
    assert!(send(&mut call).is_empty(), "the second one is sending");
    // A server that has answered owes nothing: what comes from there is for other calls.
    call.hear(1, Event::Reply(Reply::Config), at(31));
    call.pass(at(45), one_more(2000));
    assert!(send(&mut call).is_empty(), "the third one is sending");
    call.pass(at(60), |server| 2000 + 5 * u64::from(server == ServerId(2)));
    assert_eq!(send(&mut call), [0]);
}

/// A server that was not asked sends nothing for this call: its bytes belong to other calls.
#[test]
fn a_request_that_was_held_back_puts_no_patience_off() {
    for event in [Event::Refused(Refusal::Busy), Event::Unreachable] {
        let mut call = call(Some(PATIENCE), true, &patient(), at(0));
        while let Some(next) = call.next_request() {
            match next.position {
                1 => call.held_back(&next, event.clone(), at(0)),
                _ => call.sent(&next, 1000),
            }
        }
        call.pass(at(15), one_more(1000));
        assert_eq!(send(&mut call), [0], "{event:?}");
    }
}

/// A tally whose call nothing but time decides.
struct Silent;

impl Tally for Silent {
    type Output = ();

    fn needed(&self) -> usize {
        1
    }

    fn ask(&mut self, _position: usize) -> Option<Request> {
        None
    }

    fn add(&mut self, _from: usize, _event: Event) -> Decision<()> {
        Decision::Pending
    }

    fn tick(&mut self) -> Decision<()> {
        Decision::Done(())
    }

    fn patience(&self) -> Option<Duration> {
        Some(PATIENCE)
    }
}

#[test]
#[should_panic(expected = "no quorum call without a request")]
fn a_call_asks_a_member() {
    let members: Members = (1..=3).map(ServerId).collect();
    let mut call = Call::new(&members, Silent, &patient(), at(0));
    drop(call.next_request());
}
