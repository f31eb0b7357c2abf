//! Writes and deletions with conditions.

use super::{Case, Claim, Remarks, race, read_everywhere, together};
use crate::probe::operation::{Condition, Ending, ShownOperation};
use crate::probe::run::{Client, Observation, Run, bare};
use std::sync::Arc;

/// The start-up check of celld: four writes of one object, one after the other, each at the next endpoint.
pub(super) async fn four_writes(run: &Arc<Run>) -> Remarks {
    let key = run.key(Case::FourWrites.name());
    let at = |number: usize| run.clients(number + 1)[number];
    let first = run.put(at(0), &key, Condition::Absent).await;
    run.put(at(1), &key, Condition::Absent).await;
    let on_first = Condition::Match(first.value.clone());
    if first.is_done() {
        run.put(at(2), &key, on_first.clone()).await;
        run.put(at(3), &key, on_first).await;
    }
    read_everywhere(run, &key).await;
    Remarks::default()
}

/// One ETag for one version, in all answers.
pub(super) async fn etags(run: &Arc<Run>) -> Remarks {
    let mut remarks = Remarks::default();
    for client in run.clients(run.endpoints()) {
        let key = run.key(Case::Etags.name());
        let written = run.put(client, &key, Condition::None).await;
        let of_put = run.etag(&key, &written.value);
        if !written.is_done() {
            continue;
        }
        let reader = run.clients(client.number + 2)[client.number + 1];
        let get = run.get_etag(reader, &key).await;
        let head = run.head(reader, &key).await;
        let listed = run.store.list(reader.endpoint, &key, None, 7).await.ok();
        let listed = listed.and_then(|listing| listing.entries.into_iter().next());
        let listed = listed.map(|(_, etag)| etag);
        let named = [
            ("PUT", of_put),
            ("GET", get),
            ("HEAD", head),
            ("LIST", listed),
        ];
        let of_put = named[0].1.clone();
        for (request, etag) in &named[1..] {
            if let (Some(etag), Some(of_put)) = (etag, &of_put)
                && bare(etag) != bare(of_put)
            {
                let shown = |request: &str, etag: &str| ShownOperation {
                    from_ms: 0.0,
                    to_ms: None,
                    client: format!("client {}", client.number),
                    endpoint: run.store.caller.endpoints[client.endpoint].to_string(),
                    request: format!("{request} {key}"),
                    answer: format!("ETag {etag}"),
                };
                remarks.claims.push(Claim {
                    what: format!(
                        "the answer to the write and {request} name two ETags of one version"
                    ),
                    operations: vec![shown("PUT", of_put), shown(request, etag)],
                });
            }
        }
    }
    remarks
}

/// Writers that create one object.
pub(super) async fn create(run: &Arc<Run>, case: Case, writers: usize, rounds: usize) -> Remarks {
    for _ in 0..rounds {
        let key = run.key(case.name());
        race(run, &key, writers, &Condition::Absent).await;
        read_everywhere(run, &key).await;
    }
    Remarks::default()
}

/// Writers that replace one version, round after round.
pub(super) async fn replace(run: &Arc<Run>, case: Case, writers: usize, rounds: usize) -> Remarks {
    let key = run.key(case.name());
    let first = run.put(run.clients(1)[0], &key, Condition::None).await;
    let mut base = first.value;
    for _ in 0..rounds {
        race(run, &key, writers, &Condition::Match(base.clone())).await;
        match read_everywhere(run, &key).await {
            Observation::Value(value) => base = value,
            Observation::Absent | Observation::Nothing => break,
        }
    }
    Remarks::default()
}

/// The gate of buzz: 32 writers.
pub(super) async fn gate(run: &Arc<Run>, writers: usize) -> Remarks {
    create(run, Case::Gate, writers, 2).await;
    replace(run, Case::Gate, writers, 2).await;
    let note = match run.endpoints() {
        1 => "over one endpoint: name two to draw it over two".to_owned(),
        count => format!("over {count} endpoints"),
    };
    Remarks {
        note: Some(note),
        ..Remarks::default()
    }
}

/// Deletions of a version that is gone, of the current one, and beside writers of it.
pub(super) async fn delete(run: &Arc<Run>, writers: usize, rounds: usize) -> Remarks {
    let case = Case::ConditionalDelete.name();
    for client in run.clients(run.endpoints()) {
        let key = run.key(case);
        let old = run.put(client, &key, Condition::None).await;
        let new = run.put(client, &key, Condition::None).await;
        if !(old.is_done() && new.is_done()) {
            continue;
        }
        let stale = Condition::Match(old.value);
        let ending = run.delete(client, &key, stale).await;
        read_everywhere(run, &key).await;
        if ending == Ending::Done {
            continue;
        }
        run.delete(client, &key, Condition::Match(new.value)).await;
        read_everywhere(run, &key).await;
    }
    for _ in 0..rounds {
        let key = run.key(case);
        let first = run.put(run.clients(1)[0], &key, Condition::None).await;
        if !first.is_done() {
            continue;
        }
        let base = Condition::Match(first.value);
        let either = |run: &Arc<Run>, client: Client| {
            let (run, key, base) = (run.clone(), key.clone(), base.clone());
            async move {
                // Both kinds of writers at each endpoint.
                if (client.number / run.endpoints()).is_multiple_of(2) {
                    run.delete(client, &key, base).await;
                } else {
                    run.put(client, &key, base).await;
                }
            }
        };
        together(run, writers, either).await;
        read_everywhere(run, &key).await;
    }
    Remarks::default()
}
