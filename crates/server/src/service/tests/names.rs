//! Keys without `admin` that look a name up whose decision has not reached each member of the root domain.

use areo_core::manager::DomainError;
use areo_core::message::{Ballot, CellReply, CellRequest};

use super::*;

fn step(step: CellRequest) -> Request {
    let cell = Bytes::from_static(b"domain/photos/00000000");
    about(&configuration(ROOT, 0), Body::Cell { cell, step })
}

fn ballot() -> Ballot {
    Ballot {
        number: 1,
        proposer: tag(1).writer,
    }
}

/// The creator of the domain ends when one member has accepted its proposal.
async fn begin_creation(cluster: &Cluster, photos: &Arc<Configuration>) {
    let accept = step(CellRequest::Accept {
        ballot: ballot(),
        value: photos.encoded().clone(),
    });
    let accepted = cluster.ask_directly(0, accept).await;
    assert_eq!(accepted, Reply::Cell(CellReply::Accepted));
}

/// The value that the member at this position has accepted.
async fn accepted(cluster: &Cluster, position: usize) -> Option<Bytes> {
    let reply = cluster.ask_directly(position, step(CellRequest::Query));
    match reply.await {
        Reply::Cell(CellReply::Decided(value)) => Some(value),
        Reply::Cell(CellReply::Promised { accepted }) => accepted.map(|(_, value)| value),
        reply => panic!("{reply:?}"),
    }
}

/// Such a key was refused for a moment after another client had created the domain.
#[test]
fn a_key_without_admin_finds_a_domain_whose_creation_is_not_known_as_decided() {
    run(async {
        // A quorum is the first two.
        let cluster = Cluster::start(2).await;
        let photos = configuration(PHOTOS, 0);
        begin_creation(&cluster, &photos).await;
        assert_eq!(accepted(&cluster, 1).await, None);

        let user = cluster.client(Some(&["read:photos"]));
        let root = user.root(&configuration(ROOT, 0));
        let found = root.find_domain("photos").await;
        let refusal = user.env.unauthorised();
        assert_eq!(found, Ok(Some(photos.clone())), "{refusal:?}");
        for position in 0..2 {
            let value = accepted(&cluster, position).await;
            assert_eq!(value.as_ref(), Some(photos.encoded()), "it is decided");
        }
        let listed = root.first_configurations().await;
        assert_eq!(listed, Ok(vec![("photos".into(), photos)]));
    });
}

/// The answer to a ballot comes after the decision, and brings the values that the members have accepted.
#[test]
fn a_key_without_admin_decides_no_value_of_its_own() {
    run(async {
        let cluster = Cluster::start(2).await;
        let (photos, forged) = (configuration(PHOTOS, 0), configuration(DomainId(9), 0));
        let user = cluster.client(Some(&["read,write,list,delete:photos"]));
        let prepare = || {
            let ballot = Ballot {
                number: 7,
                ..ballot()
            };
            step(CellRequest::Prepare { ballot })
        };
        assert_eq!(cluster.ask(&user, 0, prepare()).await, None);
        let root = user.root(&configuration(ROOT, 0));
        let created = root.create_domain("photos", &forged).await;
        refused(&user, &created, "'admin:photos'");
        let value = forged.encoded().clone();
        for number in [0, 7] {
            let (ballot, value) = (Ballot { number, ..ballot() }, value.clone());
            let accept = step(CellRequest::Accept { ballot, value });
            assert_eq!(cluster.ask(&user, 0, accept).await, None);
        }
        for position in 0..2 {
            assert_eq!(accepted(&cluster, position).await, None);
        }

        begin_creation(&cluster, &photos).await;
        // Of the member that has accepted nothing.
        let answer = cluster.ask(&user, 1, prepare()).await;
        let decided = Reply::Cell(CellReply::Decided(photos.encoded().clone()));
        assert_eq!(answer, Some(decided));
        assert_eq!(accepted(&cluster, 1).await.as_ref(), Some(photos.encoded()));
        let found = root.find_domain("photos").await;
        assert_eq!(found, Ok::<_, DomainError>(Some(photos)));
    });
}
