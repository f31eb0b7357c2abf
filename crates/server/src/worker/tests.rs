use super::*;
use crate::identity::root_configuration;
use areo_core::config::{Configuration, ServerId};
use areo_core::limits;
use areo_core::message::{Labels, Levels, Program, ServerRecord};
use areo_core::server::Identity;
use areo_store::records::{MemoryRecords, Records};
use areo_store::{CommitError, Directory, LogOptions};
use std::time::Duration;
use tokio::runtime;
use tokio::task::LocalSet;
use tokio::time::timeout;

/// The worker of a server in memory.
pub(crate) fn in_memory(server: ServerId, root: &Arc<Configuration>) -> Rc<Worker> {
    let keep = Durable::Memory(MemoryRecords::default());
    let shard = shard((server, root), false);
    Worker::new(shard, keep, Arc::new(Metrics::new()), (0, None))
}

fn shard((server, root): (ServerId, &Arc<Configuration>), durable: bool) -> Shard<Caller> {
    Shard::new(Identity {
        id: server,
        incarnation: 1,
        root: Arc::clone(root),
        durable,
        max_value_bytes: 1 << 20,
        max_unconfirmed: limits::UNCONFIRMED_ELEMENTS,
        max_ranked: limits::RANKED_VERSIONS,
    })
}

/// A server whose commit had failed waited for ever for its end, once the failure had been reported.
#[test]
fn a_worker_whose_commit_failed_can_be_closed() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = Directory::open(directory.path()).expect("it is new");
    let disk = directory.disk("log").expect("it can be made");
    let server = ServerId(1);
    let root = root_configuration(&[server], false);
    let mut shard = shard((server, &root), true);
    let recover = |header, damaged| shard.recover(header, damaged);
    let (records, _) = Records::open(disk, LogOptions::new(1), recover).expect("it is new");
    shard.recovered(false);
    let keep = Durable::Disk(Box::new(records));
    let worker = Worker::new(shard, keep, Arc::new(Metrics::new()), (1 << 20, None));
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let (caller, answer) = Caller::admin();
        let other = ServerRecord {
            id: ServerId(2),
            incarnation: 1,
            start: 1,
            resumed: false,
            name: "s2".into(),
            address: "host:1".into(),
            admin: String::new(),
            generation: None,
            leaving: 0,
            position: None,
            program: Program::default(),
            levels: Levels::default(),
            labels: Labels::default(),
        };
        worker.request(Request::Know(other), caller, None);
        drop(answer);
        let turn = worker.act(|node, looking| node.turn(CoreInstant::default(), looking));
        let commit = turn.and_then(|turn| turn.commit);
        drop(commit.expect("the record is to be written"));
        let failed = worker.act(|node, _| node.committed(Err(CommitError::Poisoned)));
        assert!(failed.is_none(), "it was not written");
        let error = worker.failed().await;
        assert!(matches!(error, NodeError::Broken { .. }), "{error}");
        let closed = timeout(Duration::from_secs(10), worker.close()).await;
        assert!(closed.is_ok(), "nothing is waited for");
    });
}
