//! Keys that may only read, in each kind: a read may have to complete a version, which such a key may not do itself.

use areo_core::config::{Dap, Descriptor};

use super::*;

/// The kinds that clusters use, and those that they change into, each with places for three members of which one may be down.
const KINDS: [Dap; 6] = [
    Dap::Abd,
    Dap::Ec { k: 1 },
    Dap::Cas { k: 1 },
    Dap::CasGc { k: 1 },
    Dap::CasSs { k: 1 },
    Dap::Conditional { k: 1 },
];

fn of_kind(dap: Dap, index: u32) -> Arc<Configuration> {
    let members = (1..=3).map(ServerId).collect();
    let descriptor = Descriptor {
        index,
        ..Descriptor::new(PHOTOS, members, dap)
    };
    Configuration::new(descriptor).expect("it tolerates a crash")
}

/// The successor of the first configuration that changes the domain into this kind.
fn change(c: &Arc<Configuration>, to: Dap) -> Arc<Configuration> {
    let descriptor = Descriptor {
        index: 1,
        dap: to,
        ..c.descriptor().clone()
    };
    let era = u32::from(c.dap().is_conditional() != to.is_conditional() && !to.is_conditional());
    Configuration::new(Descriptor { era, ..descriptor }).expect("it tolerates a crash")
}

/// The members of a configuration hear that this one comes next.
async fn announce(cluster: &Cluster, c: &Arc<Configuration>, next: &Arc<Configuration>) {
    for position in 0..cluster.servers.len() {
        let pointing = Request::Configured {
            configuration: c.id(),
            descriptor: Some(c.clone()),
            successors: Successors::from(&Pointer::pending(next)),
            body: Body::ReadConfig,
        };
        cluster.ask_directly(position, pointing).await;
    }
}

async fn written(cluster: &Cluster, photos: &Arc<Configuration>, content: &'static str) {
    let writer = cluster.client(Some(&["read,write:photos"]));
    let domain = writer.domain(photos);
    let written = domain.write(&name(), &value(content)).await;
    written.expect("a quorum serves");
}

/// The content that a client whose key may only read gets.
async fn read(cluster: &Cluster, photos: &Arc<Configuration>) -> Bytes {
    let reader = cluster.client(Some(&["read:photos"]));
    let read = reader.domain(photos).read(&name(), None).await;
    let read = read.unwrap_or_else(|error| {
        let kind = photos.dap();
        panic!("{kind:?}: {error:?}: {:?}", reader.env.unauthorised())
    });
    read.value.expect("it is there").contiguous()
}

#[test]
fn a_key_that_only_reads_reads_in_each_kind_with_a_server_down() {
    run(async {
        for kind in KINDS {
            let cluster = Cluster::start(2).await;
            let photos = cluster.create(of_kind(kind, 0)).await;
            written(&cluster, &photos, "x").await;
            assert_eq!(read(&cluster, &photos).await, "x", "{kind:?}");
        }
    });
}

#[test]
fn a_key_that_only_reads_reads_while_a_change_is_pending() {
    run(async {
        for kind in KINDS {
            let cluster = Cluster::start(2).await;
            let photos = cluster.create(of_kind(kind, 0)).await;
            written(&cluster, &photos, "x").await;
            // Its reconfigurer ended before it brought anything there.
            announce(&cluster, &photos, &of_kind(kind, 1)).await;
            assert_eq!(read(&cluster, &photos).await, "x", "{kind:?}");
            written(&cluster, &photos, "y").await;
            assert_eq!(read(&cluster, &photos).await, "y", "{kind:?}");
        }
    });
}

#[test]
fn a_key_that_only_reads_sees_that_nothing_was_written_while_a_change_is_pending() {
    run(async {
        for kind in KINDS {
            let cluster = Cluster::start(2).await;
            let photos = cluster.create(of_kind(kind, 0)).await;
            announce(&cluster, &photos, &of_kind(kind, 1)).await;
            let reader = cluster.client(Some(&["read:photos"]));
            let read = reader.domain(&photos).read(&name(), None).await;
            assert_eq!(read.map(|read| read.value), Ok(None), "{kind:?}");
        }
    });
}

#[test]
fn a_key_that_only_reads_reads_while_the_kind_changes() {
    run(async {
        let conditional = Dap::Conditional { k: 1 };
        for (from, to) in [
            (Dap::Abd, Dap::Ec { k: 1 }),
            (Dap::Ec { k: 1 }, Dap::CasGc { k: 1 }),
            (Dap::CasSs { k: 1 }, Dap::Abd),
            (Dap::Abd, conditional),
            (conditional, Dap::Abd),
            (conditional, Dap::Ec { k: 1 }),
        ] {
            let cluster = Cluster::start(2).await;
            let photos = cluster.create(of_kind(from, 0)).await;
            written(&cluster, &photos, "x").await;
            let next = change(&photos, to);
            announce(&cluster, &photos, &next).await;
            assert_eq!(read(&cluster, &photos).await, "x", "{from:?}, {to:?}");
            written(&cluster, &photos, "y").await;
            assert_eq!(read(&cluster, &photos).await, "y", "{from:?}, {to:?}");
        }
    });
}

#[test]
fn a_key_that_only_reads_reads_what_a_writer_left_at_one_member_of_what_is_pending() {
    run(async {
        for kind in [Dap::Abd, Dap::AbdPublished] {
            let cluster = Cluster::start(3).await;
            let photos = cluster.create(of_kind(kind, 0)).await;
            let next = of_kind(kind, 1);
            announce(&cluster, &photos, &next).await;
            for position in 0..3 {
                let left = put(&next, tag(1), "x", false);
                cluster.ask_directly(position, left).await;
                if position < 2 {
                    // A quorum without that member may answer first: then the version is not there.
                    let reader = cluster.client(Some(&["read:photos"]));
                    let read = reader.domain(&photos).read(&name(), None).await;
                    assert!(read.is_ok(), "{kind:?}, {position}: {read:?}");
                }
            }
            assert_eq!(read(&cluster, &photos).await, "x", "{kind:?}");
        }
    });
}
