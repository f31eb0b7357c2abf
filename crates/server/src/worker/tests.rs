use super::*;
use crate::identity::root_configuration;
use areo_core::config::ServerId;
use areo_core::element::Form;
use areo_core::limits;
use areo_core::object::Name;
use areo_core::server::Identity;
use areo_core::server::record::{Header, Key};
use areo_core::tag::{Tag, Writer};
use areo_store::records::MemoryRecords;
use bytes::Bytes;

/// Two versions of an object: the older one was let go, and its record came back.
fn versions(key: Key, object: usize) -> [Header; 2] {
    let name = format!("{object:->width$}", width = limits::KEY_BYTES);
    let name = Name::user(&name).expect("a key");
    [1, 2].map(|number| {
        let writer = Writer::default();
        Header::Element(ElementHeader {
            key,
            name: name.clone(),
            tag: Tag { number, writer },
            floor: Tag::INITIAL,
            form: Form::Copy,
            deleted: false,
            length: 0,
            bytes: 0,
            metadata: Bytes::new(),
        })
    })
}

/// A server that has to remember more after its start than a batch usually takes went on for ever with turns that took
/// nothing.
#[test]
fn every_turn_takes_something_however_much_is_owed() {
    let server = ServerId(1);
    let root = root_configuration(&[server]);
    let mut shard = Shard::new(Identity {
        id: server,
        incarnation: 1,
        root: root.clone(),
        durable: true,
        max_value_bytes: 1 << 20,
        max_unconfirmed: limits::UNCONFIRMED_ELEMENTS,
    });
    shard.recover(Header::Configuration(root.clone()), false);
    let objects = BATCH_BYTES as usize / limits::KEY_BYTES;
    for header in (0..objects).flat_map(|object| versions(Key::of(&root.id()), object)) {
        shard.recover(header, false);
    }
    shard.recovered(false);
    let keep = Keep::Memory(MemoryRecords::default());
    let worker = Worker::new(shard, keep, Arc::new(Metrics::new()));
    assert!(worker.owed_bytes() > BATCH_BYTES);
    let (caller, mut answer) = Caller::admin();
    worker.request(Request::Status, caller, None);
    let batch = worker.receive().expect("memory does not fail");
    assert!(worker.inbox.borrow().is_empty(), "it was taken");
    assert!(worker.commit(batch));
    assert!(matches!(answer.try_recv(), Ok(Reply::Status(_))));
}
