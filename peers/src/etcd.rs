//! etcd, through `etcd-client`.

use areo_bench::etcd::EtcdMembers;
use areo_bench::load::counter;
use areo_bench::target::{
    About, Answer, CallError, Caller, Cost, Target, TargetError, TargetName, TargetOptions,
    start_failed,
};
use bytes::Bytes;
use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, Error, KeyValue, KvClient, Txn, TxnOp,
    TxnOpResponse,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Older ones are warned of: what they take says little of etcd today.
const CURRENT: (u32, u32) = (3, 6);
/// Time in which a cluster must elect a leader.
const SERVE: Duration = Duration::from_secs(30);
/// Timeout of asking a member whether it leads.
const ANSWER: Duration = Duration::from_secs(1);
/// Clients that share a connection.
const SHARE: usize = 16;
/// The largest request or answer: etcd is started with the same limit, the client's own is 4 MiB.
const MESSAGE_MAX: usize = 128 << 20;

/// A cluster of etcd.
pub(crate) struct Cluster {
    about: About,
    members: EtcdMembers,
    /// Endpoint of the leader, which clients use during the measurement: a request to another member takes one more
    /// hop.
    leader: Vec<String>,
    /// Endpoints that clients use after a failure.
    all: Rc<[String]>,
    timeout: Duration,
    /// Number of clients so far, and the connection of the last one.
    connections: RefCell<(usize, Option<KvClient>)>,
}

/// Starts a cluster, and waits for its leader.
pub(crate) async fn start(wanted: &TargetOptions) -> Result<Cluster, TargetError> {
    let servers = wanted.servers;
    let members = EtcdMembers::start(&wanted.data, servers, wanted.memory).await?;
    let begun = Instant::now();
    let (place, version) = loop {
        if let Some(found) = leader(&members).await {
            break found;
        }
        if begun.elapsed() > SERVE {
            let why = format!("no member leads after {} s", SERVE.as_secs());
            return Err(start_failed(TargetName::Etcd)(&why));
        }
        sleep(Duration::from_millis(50)).await;
    };
    let all = members.endpoints();
    let about = About {
        target: TargetName::Etcd,
        version,
        servers,
        keeps: format!(
            "{servers} replicas, linearizable puts and gets; requests up to 128 MiB instead of 1.5"
        ),
        durability: match wanted.memory {
            true => "files without fsync (--unsafe-no-fsync)".into(),
            false => "fsync at a majority".into(),
        },
        connections: format!(
            "etcd-client: to the leader, each shared by {SHARE} clients; to any member once that fails"
        ),
    };
    Ok(Cluster {
        about,
        leader: vec![all[place].clone()],
        all: all.into(),
        members,
        timeout: wanted.timeout,
        connections: RefCell::default(),
    })
}

/// A warning if the version of etcd is older than the current one.
pub(crate) fn outdated(about: &About) -> Option<String> {
    let mut numbers = about.version.split('.').map(|part| part.parse().ok());
    let version = (numbers.next()??, numbers.next()??);
    let is_old = about.target == TargetName::Etcd && version < CURRENT;
    let (major, minor) = CURRENT;
    is_old.then(|| {
        format!(
            "etcd {} is older than {major}.{minor}, and slower: peers/README.md says where a current one can be had",
            about.version
        )
    })
}

async fn connect(endpoints: &[String], timeout: Duration) -> Result<Client, Error> {
    let options = ConnectOptions::new()
        .with_connect_timeout(timeout)
        .with_timeout(timeout);
    Client::connect(endpoints, Some(options)).await
}

async fn connect_kv(endpoints: &[String], timeout: Duration) -> Result<KvClient, Error> {
    let client = connect(endpoints, timeout).await?.kv_client();
    let client = client.max_decoding_message_size(MESSAGE_MAX);
    Ok(client.max_encoding_message_size(MESSAGE_MAX))
}

/// The place of the leading member, and its version.
async fn leader(members: &EtcdMembers) -> Option<(usize, String)> {
    for (place, member) in members.members().iter().enumerate() {
        let endpoint = std::slice::from_ref(&member.endpoint);
        let Ok(mut client) = connect(endpoint, ANSWER).await else {
            continue;
        };
        let Ok(status) = client.status().await else {
            continue;
        };
        let id = status.header().map(etcd_client::ResponseHeader::member_id);
        if id == Some(status.leader()) {
            return Some((place, status.version().to_owned()));
        }
    }
    None
}

impl Target for Cluster {
    fn about(&self) -> &About {
        &self.about
    }

    fn caller(&self) -> Answer<'_, Box<dyn Caller>, TargetError> {
        Box::pin(async {
            let shared = {
                let (clients, connection) = &mut *self.connections.borrow_mut();
                *clients += 1;
                connection.clone().filter(|_| (*clients - 1) % SHARE != 0)
            };
            let client = match shared {
                Some(client) => client,
                None => match connect_kv(&self.leader, self.timeout).await {
                    Ok(client) => client,
                    Err(error) => return Err(start_failed(TargetName::Etcd)(&error)),
                },
            };
            self.connections.borrow_mut().1 = Some(client.clone());
            Ok(Box::new(EtcdCaller {
                client,
                all: self.all.clone(),
                revisions: HashMap::new(),
                timeout: self.timeout,
            }) as Box<dyn Caller>)
        })
    }

    fn processes(&self) -> Vec<u32> {
        let members = self.members.members().iter();
        members.map(|member| member.process.id()).collect()
    }

    fn stored(&self) -> u64 {
        self.members.stored()
    }

    fn kill(&mut self) -> Answer<'_, String, TargetError> {
        Box::pin(async {
            let (place, _) = leader(&self.members).await.ok_or(TargetError::Kill {
                target: TargetName::Etcd,
                why: "no member leads".into(),
            })?;
            let name = self.members.kill(place);
            Ok(format!(
                "{name}, the leader: the others elect another when they have not heard of it for a second"
            ))
        })
    }
}

struct EtcdCaller {
    client: KvClient,
    all: Rc<[String]>,
    /// The revisions that it wrote or read last, for objects that it writes on a condition.
    revisions: HashMap<String, i64>,
    timeout: Duration,
}

impl EtcdCaller {
    /// Connects to any member after a failure: the one that led may be gone.
    async fn failed(&mut self, error: Error) -> CallError {
        if let Ok(client) = connect_kv(&self.all, self.timeout).await {
            self.client = client;
        }
        CallError::Unknown(error.to_string())
    }

    /// The object as it is, with the revision at which it was written last.
    async fn read(&mut self, key: &str) -> Result<Option<KeyValue>, Error> {
        Ok(self.client.get(key, None).await?.take_kvs().pop())
    }

    /// Writes if the object was written last at this revision, 0 if it is not there: the revision of this write, or what is
    /// there.
    async fn compare_and_put(
        &mut self,
        key: &str,
        value: Bytes,
        revision: i64,
    ) -> Result<Result<i64, Option<KeyValue>>, Error> {
        let is_there = Compare::mod_revision(key, CompareOp::Equal, revision);
        let transaction = Txn::new()
            .when([is_there])
            .and_then([TxnOp::put(key, value, None)])
            .or_else([TxnOp::get(key, None)]);
        let done = self.client.txn(transaction).await?;
        if done.succeeded() {
            let header = done
                .header()
                .map_or(0, etcd_client::ResponseHeader::revision);
            return Ok(Ok(header));
        }
        let found = done.op_responses().into_iter().find_map(|it| match it {
            TxnOpResponse::Get(mut got) => got.take_kvs().pop(),
            _ => None,
        });
        Ok(Err(found))
    }
}

/// The revision at which an object was written last; 0: it does not exist.
fn revision(found: Option<&KeyValue>) -> i64 {
    found.map_or(0, KeyValue::mod_revision)
}

impl Caller for EtcdCaller {
    fn put<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            match self.client.put(key, value, None).await {
                Ok(_) => Ok(Cost::default()),
                Err(error) => Err(self.failed(error).await),
            }
        })
    }

    fn get<'a>(&'a mut self, key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), CallError> {
        Box::pin(async move {
            match self.read(key).await {
                Ok(found) => {
                    let value = found.map(|found| Bytes::from(found.into_key_value().1));
                    Ok((value, Cost::default()))
                }
                Err(error) => Err(self.failed(error).await),
            }
        })
    }

    fn put_if<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            let known = match self.revisions.remove(key) {
                Some(known) => known,
                None => match self.read(key).await {
                    Ok(found) => revision(found.as_ref()),
                    Err(error) => return Err(self.failed(error).await),
                },
            };
            match self.compare_and_put(key, value, known).await {
                Ok(Ok(revision)) => {
                    self.revisions.insert(key.to_owned(), revision);
                    Ok(Cost::default())
                }
                Ok(Err(_)) => {
                    let sentence = format!("'{key}' was written by another client");
                    Err(CallError::NotApplied(sentence))
                }
                Err(error) => Err(self.failed(error).await),
            }
        })
    }

    fn increment<'a>(&'a mut self, key: &'a str) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            let mut found = match self.read(key).await {
                Ok(found) => found,
                Err(error) => {
                    let failed = self.failed(error).await;
                    return Err(CallError::NotApplied(failed.to_string()));
                }
            };
            loop {
                let count = counter::count(found.as_ref().map(KeyValue::value));
                let next = counter::value(count + 1);
                let put = self.compare_and_put(key, next, revision(found.as_ref()));
                match put.await {
                    Ok(Ok(_)) => return Ok(Cost::default()),
                    // The answer says what is there.
                    Ok(Err(latest)) => found = latest,
                    Err(error) => return Err(self.failed(error).await),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_etcd_is_warned_of() {
        let of = |target, version: &str| {
            outdated(&About {
                target,
                version: version.into(),
                servers: 3,
                keeps: String::new(),
                durability: String::new(),
                connections: String::new(),
            })
        };
        let warning = of(TargetName::Etcd, "3.4.23").expect("it is old");
        assert!(
            warning.contains("3.4.23") && warning.contains("3.6"),
            "{warning}"
        );
        assert_eq!(of(TargetName::Etcd, "3.6.0"), None);
        assert_eq!(of(TargetName::Etcd, "4.0.0-rc.1"), None);
        assert_eq!(of(TargetName::Redis, "3.4.23"), None);
        assert_eq!(of(TargetName::Etcd, "unknown"), None);
    }
}
