//! Answers find their calls, and a batch ends when all of them have.

use super::*;
use crate::config::testing::replicated;
use crate::gather::{Fold, Quorum};
use crate::message::{Answer, Want};
use crate::tag::Tag;

type Call = Quorum<Vec<usize>, fn(&mut Vec<usize>, usize, Reply) -> Fold>;

/// A quorum call that counts the members which store the object.
fn call(key: &str) -> Call {
    let c = replicated(3);
    let query = Access::query(Want::Tags, Tag::INITIAL);
    let body = Body::Access(vec![(Name::user(key).unwrap(), query)]);
    let fold: fn(&mut Vec<usize>, usize, Reply) -> Fold = |from, member, reply| match reply {
        Reply::Access(answers) if answers == [Answer::Stored] => {
            from.push(member);
            Fold::Count
        }
        _ => Fold::Ignore,
    };
    Quorum::of(&c, body, Vec::new(), fold)
}

fn reply(answers: &[Answer]) -> Event {
    Event::Reply(Reply::Access(answers.to_vec()))
}

#[test]
fn each_call_takes_its_own_answer() {
    use Answer::{Evicted, Stored};
    let mut batch = Batch::new(3, ["a", "b"].map(call));
    let Some(Body::Access(accesses)) = batch.ask(1) else {
        panic!("both ask every member")
    };
    let keys: Vec<&str> = accesses.iter().map(|(name, _)| name.key()).collect();
    assert_eq!(keys, ["a", "b"]);
    assert_eq!(batch.add(0, reply(&[Stored, Evicted])), Decision::Pending);
    assert_eq!(batch.add(1, reply(&[Stored, Stored])), Decision::Pending);
    let decided = batch.add(2, reply(&[Stored, Stored]));
    assert_eq!(
        decided,
        Decision::Done(vec![Some(vec![0, 1]), Some(vec![1, 2])])
    );
}

#[test]
fn a_reply_that_does_not_fit_is_none_and_a_call_that_cannot_be_decided_is_left_alone() {
    use Answer::{Evicted, Stored};
    let mut batch = Batch::new(3, ["a", "b"].map(call));
    assert_eq!(batch.add(0, reply(&[Stored])), Decision::Pending);
    assert_eq!(batch.add(1, reply(&[Stored, Evicted])), Decision::Pending);
    let decided = batch.add(2, reply(&[Stored, Stored]));
    assert_eq!(decided, Decision::Done(vec![Some(vec![1, 2]), None]));
}

#[test]
fn what_nobody_is_asked_needs_no_answer() {
    let mut asked = call("a");
    asked.add(0, reply(&[Answer::Stored]));
    let mut batch = Batch::new(3, [asked, call("b")]);
    let Some(Body::Access(accesses)) = batch.ask(0) else {
        panic!("one asks it")
    };
    assert_eq!(accesses.len(), 1);
    // The answer is the second call's, though it is the first of the reply.
    assert_eq!(batch.add(0, reply(&[Answer::Stored])), Decision::Pending);
    assert_eq!(
        batch.add(1, reply(&[Answer::Stored, Answer::Stored])),
        Decision::Done(vec![Some(vec![0, 1]), Some(vec![0, 1])])
    );
}
