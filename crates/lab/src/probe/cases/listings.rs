//! Reads and listings after writes.

use super::{Case, Claim, Remarks, read_everywhere, together};
use crate::probe::operation::{Condition, ShownOperation};
use crate::probe::run::{Client, Run};
use std::sync::Arc;

/// Steps of each client that reads and writes.
const STEPS: usize = 12;
/// Objects that the clients share.
const OBJECTS: usize = 4;
/// Objects that each client lists.
const LISTED: usize = 4;

/// Clients that write, delete and read a few objects at once, each step at the next endpoint.
pub(super) async fn read_after_write(run: &Arc<Run>, clients: usize) -> Remarks {
    let case = Case::ReadAfterWrite.name();
    let keys: Vec<String> = (0..OBJECTS).map(|_| run.key(case)).collect();
    let work = |run: &Arc<Run>, client: Client| {
        let (run, keys) = (run.clone(), keys.clone());
        async move {
            for step in 0..STEPS {
                let at = Client {
                    number: client.number,
                    endpoint: (client.endpoint + step) % run.endpoints(),
                };
                let key = &keys[(client.number + step / 3) % OBJECTS];
                match (client.number + step) % 6 {
                    0 | 1 => {
                        run.put(at, key, Condition::None).await;
                    }
                    2 if client.number == 0 => {
                        run.delete(at, key, Condition::None).await;
                    }
                    3 => {
                        run.head(at, key).await;
                    }
                    _ => {
                        run.get(at, key).await;
                    }
                }
            }
        }
    };
    together(run, clients, work).await;
    for key in &keys {
        read_everywhere(run, key).await;
    }
    // Without other clients: each endpoint shows what another one wrote.
    for client in run.clients(run.endpoints()) {
        let key = run.key(case);
        for _ in 0..2 {
            run.put(client, &key, Condition::None).await;
            read_everywhere(run, &key).await;
        }
        run.delete(client, &key, Condition::None).await;
        read_everywhere(run, &key).await;
    }
    Remarks::default()
}

/// Clients that write objects, list, delete some and list again, each at the next endpoint.
pub(super) async fn list_after_write(run: &Arc<Run>, clients: usize) -> Remarks {
    let case = Case::ListAfterWrite.name();
    let prefix = format!("{}{case}/", run.prefix);
    let work = |run: &Arc<Run>, client: Client| {
        let (run, prefix) = (run.clone(), prefix.clone());
        async move {
            let reader = Client {
                number: client.number,
                endpoint: (client.endpoint + 1) % run.endpoints(),
            };
            let keys: Vec<String> = (0..LISTED).map(|_| run.key(case)).collect();
            for key in &keys {
                run.put(client, key, Condition::None).await;
            }
            run.list(reader, &prefix, &keys).await;
            for key in &keys[..LISTED / 2] {
                run.delete(client, key, Condition::None).await;
            }
            run.list(reader, &prefix, &keys).await;
            run.list(client, &prefix, &keys).await;
        }
    };
    together(run, clients, work).await;
    Remarks::default()
}

/// Five objects in pages of two, all of them and those after the second one.
pub(super) async fn pages(run: &Arc<Run>) -> Remarks {
    let prefix = format!("{}{}/", run.prefix, Case::Pages.name());
    let mut keys: Vec<String> = (0..5).map(|_| run.key(Case::Pages.name())).collect();
    let client = run.clients(1)[0];
    let mut remarks = Remarks::default();
    for key in keys.iter().rev() {
        if !run.put(client, key, Condition::None).await.is_done() {
            return remarks;
        }
    }
    keys.sort();
    for client in run.clients(run.endpoints()) {
        for after in [None, Some(keys[1].clone())] {
            let listed = run
                .store
                .list(client.endpoint, &prefix, after.as_deref(), 2);
            let listed = match listed.await {
                Ok(listing) => listing,
                Err(reply) => {
                    run.reject("LIST", &reply);
                    continue;
                }
            };
            let shown: Vec<&str> = listed.entries.iter().map(|(key, _)| key.as_str()).collect();
            let expected = match after {
                None => &keys[..],
                Some(_) => &keys[2..],
            };
            if shown == expected && listed.pages >= expected.len().div_ceil(2) {
                continue;
            }
            let after = after.map_or(String::new(), |key| format!(" start-after={key}"));
            remarks.claims.push(Claim {
                what: "the pages of a listing do not show each key once and in order".to_owned(),
                operations: vec![ShownOperation {
                    from_ms: 0.0,
                    to_ms: None,
                    client: format!("client {}", client.number),
                    endpoint: run.store.caller.endpoints[client.endpoint].to_string(),
                    request: format!("LIST {prefix} max-keys=2{after}"),
                    answer: format!(
                        "{} pages: {}; there are {}",
                        listed.pages,
                        shown.join(" "),
                        expected.join(" ")
                    ),
                }],
            });
        }
    }
    remarks
}
