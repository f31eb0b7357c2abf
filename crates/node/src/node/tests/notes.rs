//! Notes whose receiver is not connected.

use super::*;
use areo_core::message::Gossip;

fn serving(server: u128) -> Note {
    match register(server) {
        Request::Know(record) => Note::Serving(record),
        _ => unreachable!("it registers"),
    }
}

fn gossip() -> Note {
    Note::Gossip(Gossip {
        configuration: root().id(),
        from: ServerId(1),
        objects: Vec::new().into(),
    })
}

/// Takes out what is to be sent and returns all of it, as if no server were connected.
fn try_in_vain(node: &mut Node<Records<MemoryDisk>, u32>, s: u64, notes: &[Note]) -> Vec<Note> {
    let now = Instant::default().plus(Duration::from_secs(s));
    let sends = notes.iter().map(|note| (ServerId(2), note.clone()));
    let outgoing = node.outgoing(now, sends.collect());
    let notes = outgoing.iter().map(|it| it.note.clone()).collect();
    node.keep_unsent(now, outgoing);
    notes
}

#[test]
fn a_note_to_a_server_that_is_not_connected_is_sent_again_for_ten_seconds() {
    let mut node = node_on(&MemoryDisk::new());
    let (first, second) = (serving(3), serving(4));
    let sent = try_in_vain(&mut node, 1, std::slice::from_ref(&first));
    assert_eq!(sent, std::slice::from_ref(&first));
    // The earlier note goes first: it may be about the same server.
    let sent = try_in_vain(&mut node, 5, std::slice::from_ref(&second));
    assert_eq!(sent, [first.clone(), second.clone()]);
    assert_eq!(
        try_in_vain(&mut node, 10, &[]),
        [first.clone(), second.clone()]
    );
    // A note is tried once more after its time, and not kept.
    assert_eq!(try_in_vain(&mut node, 11, &[]), [first, second.clone()]);
    assert_eq!(
        try_in_vain(&mut node, 14, &[]),
        std::slice::from_ref(&second)
    );
    assert_eq!(try_in_vain(&mut node, 15, &[]), [second]);
    assert_eq!(try_in_vain(&mut node, 15, &[]), []);
}

#[test]
fn a_note_that_was_sent_is_not_sent_again() {
    let mut node = node_on(&MemoryDisk::new());
    let notes = [2, 3].map(|to| (ServerId(to), serving(4)));
    let mut outgoing = node.outgoing(NOW, notes.into());
    outgoing.retain(|it| it.to == ServerId(3));
    node.keep_unsent(NOW, outgoing);
    let again = node.outgoing(NOW, Vec::new());
    let receivers: Vec<ServerId> = again.iter().map(|it| it.to).collect();
    assert_eq!(receivers, [ServerId(3)]);
}

#[test]
fn gossip_that_could_not_be_sent_is_dropped() {
    let mut node = node_on(&MemoryDisk::new());
    assert_eq!(try_in_vain(&mut node, 1, &[gossip()]), [gossip()]);
    assert_eq!(try_in_vain(&mut node, 1, &[]), []);
}
