//! A client of [etcd](https://etcd.io), version 3: as much as is needed to measure it beside Areo, and to have it decide which
//! configuration of a domain comes next.
//!
//! Puts are durable at a majority, and reads are linearizable, as etcd has it unless it is told otherwise. The messages
//! are those of etcd's `rpc.proto`, with the fields that are used here; others are skipped by the encoding.

mod message;

use bytes::Bytes;
use http::uri::PathAndQuery;
use message::{
    CREATE, Compare, PutRequest, PutResponse, RangeRequest, RangeResponse, RequestOp,
    StatusRequest, StatusResponse, TxnRequest, TxnResponse,
};
use prost::Message;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

/// Frames of HTTP/2 that may be on their way before the other side has taken them, in bytes: the default of 64 KiB holds
/// up larger values.
const WINDOW_BYTES: u32 = 8 << 20;
/// Largest answer that is taken, in bytes.
const ANSWER_BYTES: usize = 128 << 20;

/// Why nothing came of a request.
#[derive(Debug)]
pub enum EtcdError {
    /// The address is none.
    Address {
        /// As it was given.
        address: String,
        /// What is wrong with it.
        error: String,
    },
    /// The server cannot be reached, or not any more.
    Unreachable {
        /// Why.
        error: String,
    },
    /// The server says no.
    Refused {
        /// In its words.
        error: String,
    },
}

impl std::fmt::Display for EtcdError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EtcdError::Address { address, error } => {
                write!(f, "'{address}' is no address of etcd: {error}")
            }
            EtcdError::Unreachable { error } => write!(f, "etcd cannot be reached: {error}"),
            EtcdError::Refused { error } => write!(f, "etcd refused: {error}"),
        }
    }
}

impl std::error::Error for EtcdError {}

/// What a member says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its version, such as `3.4.23`.
    pub version: String,
    /// It leads.
    pub leads: bool,
    /// Somebody leads.
    pub has_leader: bool,
}

/// A connection to one member at a time, which any number of requests share.
#[derive(Clone, Debug)]
pub struct Etcd {
    members: Arc<[Channel]>,
    /// How often another member had to be taken; the clones of a connection move on together.
    moved: Arc<AtomicUsize>,
}

impl Etcd {
    /// Connects to a member, such as `http://127.0.0.1:2379`.
    ///
    /// # Errors
    /// [`EtcdError::Address`], [`EtcdError::Unreachable`].
    pub async fn connect(address: &str, timeout: Duration) -> Result<Etcd, EtcdError> {
        Etcd::connect_to_any(&[address.to_owned()], timeout).await
    }

    /// Connects to the first of these members. Once the one that is asked cannot be reached any more, the next one is:
    /// from the next request on, because nobody knows what became of the one that failed.
    ///
    /// # Errors
    /// [`EtcdError::Address`], [`EtcdError::Unreachable`]: the first one.
    pub async fn connect_to_any(
        addresses: &[String],
        timeout: Duration,
    ) -> Result<Etcd, EtcdError> {
        let mut members = Vec::new();
        for address in addresses {
            let endpoint = endpoint(address, timeout)?;
            members.push(match members.is_empty() {
                true => {
                    let connected = endpoint.connect().await;
                    connected.map_err(|error| EtcdError::Unreachable {
                        error: reason(&error),
                    })?
                }
                false => endpoint.connect_lazy(),
            });
        }
        assert!(!members.is_empty(), "there is somebody to connect to");
        Ok(Etcd {
            members: members.into(),
            moved: Arc::default(),
        })
    }

    /// Writes a value: at a majority when this returns.
    ///
    /// # Errors
    /// [`EtcdError::Unreachable`], [`EtcdError::Refused`].
    pub async fn put(&self, key: &str, value: Bytes) -> Result<(), EtcdError> {
        let key = Bytes::copy_from_slice(key.as_bytes());
        let put = PutRequest { key, value };
        let answer: Result<PutResponse, _> = self.ask("/etcdserverpb.KV/Put", put).await;
        answer.map(drop)
    }

    /// Reads a value, linearizably; `None`: there is none.
    ///
    /// # Errors
    /// [`EtcdError::Unreachable`], [`EtcdError::Refused`].
    pub async fn get(&self, key: &str) -> Result<Option<Bytes>, EtcdError> {
        let key = Bytes::copy_from_slice(key.as_bytes());
        let answer: RangeResponse = self
            .ask("/etcdserverpb.KV/Range", RangeRequest { key })
            .await?;
        Ok(answer.kvs.into_iter().next().map(|found| found.value))
    }

    /// Creates the key with this value, if it is not there. Returns the value that it has then: the same one to everybody
    /// who ever asks.
    ///
    /// # Errors
    /// [`EtcdError::Unreachable`]: it may have been created; [`EtcdError::Refused`].
    pub async fn create(&self, key: &str, value: Bytes) -> Result<Bytes, EtcdError> {
        let answer: TxnResponse = self
            .ask("/etcdserverpb.KV/Txn", creation(key, value.clone()))
            .await?;
        if answer.succeeded {
            return Ok(value);
        }
        let ranges = answer.responses.into_iter().filter_map(|op| op.range);
        let mut found = ranges.flat_map(|range| range.kvs);
        let found = found.next().ok_or_else(|| EtcdError::Refused {
            error: format!("'{key}' is there and was not told"),
        })?;
        Ok(found.value)
    }

    /// What the member says of itself.
    ///
    /// # Errors
    /// [`EtcdError::Unreachable`], [`EtcdError::Refused`].
    pub async fn status(&self) -> Result<MemberStatus, EtcdError> {
        let path = "/etcdserverpb.Maintenance/Status";
        let status: StatusResponse = self.ask(path, StatusRequest {}).await?;
        let member = status.header.map_or(0, |header| header.member_id);
        Ok(MemberStatus {
            leads: status.leader != 0 && status.leader == member,
            has_leader: status.leader != 0,
            version: status.version,
        })
    }

    async fn ask<Q, A>(&self, path: &'static str, question: Q) -> Result<A, EtcdError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let moved = self.moved.load(Ordering::Relaxed);
        let answered = self.ask_member(moved % self.members.len(), path, question);
        let answered = answered.await;
        if let Err(EtcdError::Unreachable { .. }) = answered {
            // Unless somebody else has moved on already.
            let (next, relaxed) = (moved.wrapping_add(1), Ordering::Relaxed);
            let _ = self.moved.compare_exchange(moved, next, relaxed, relaxed);
        }
        answered
    }

    async fn ask_member<Q, A>(
        &self,
        member: usize,
        path: &'static str,
        question: Q,
    ) -> Result<A, EtcdError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let channel = self.members[member].clone();
        let mut grpc = Grpc::new(channel).max_decoding_message_size(ANSWER_BYTES);
        let ready = grpc.ready().await;
        ready.map_err(|error| EtcdError::Unreachable {
            error: reason(&error),
        })?;
        let path = PathAndQuery::from_static(path);
        let codec = ProstCodec::<Q, A>::default();
        let answered = grpc.unary(Request::new(question), path, codec).await;
        answered
            .map(tonic::Response::into_inner)
            .map_err(|status| refused(&status))
    }
}

fn endpoint(address: &str, timeout: Duration) -> Result<Endpoint, EtcdError> {
    let endpoint = Endpoint::from_shared(address.to_owned());
    let endpoint = endpoint.map_err(|error| EtcdError::Address {
        address: address.to_owned(),
        error: reason(&error),
    })?;
    Ok(endpoint
        .connect_timeout(timeout)
        .timeout(timeout)
        .tcp_nodelay(true)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES))
}

fn creation(key: &str, value: Bytes) -> TxnRequest {
    let key = Bytes::copy_from_slice(key.as_bytes());
    let is_absent = Compare {
        target: CREATE,
        key: key.clone(),
        create_revision: Some(0),
    };
    let put = RequestOp {
        put: Some(PutRequest {
            key: key.clone(),
            value,
        }),
        range: None,
    };
    let get = RequestOp {
        put: None,
        range: Some(RangeRequest { key }),
    };
    TxnRequest {
        compare: vec![is_absent],
        success: vec![put],
        failure: vec![get],
    }
}

fn refused(status: &Status) -> EtcdError {
    // The server has not said anything: the connection failed.
    if status.source().is_some() {
        return EtcdError::Unreachable {
            error: reason(status),
        };
    }
    let error = status.message().to_owned();
    match status.code() {
        tonic::Code::Unavailable | tonic::Code::Cancelled | tonic::Code::DeadlineExceeded => {
            EtcdError::Unreachable { error }
        }
        _ => EtcdError::Refused { error },
    }
}

/// The innermost cause, which says most.
fn reason(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `protoc --encode` has them for etcd's own definitions.
    #[test]
    fn messages_are_those_of_etcd() {
        let put = PutRequest {
            key: Bytes::from_static(b"k"),
            value: Bytes::from_static(b"v1"),
        };
        assert_eq!(put.encode_to_vec(), b"\x0a\x01k\x12\x02v1");
        // header { member_id: 300 }, kvs { key, create_revision, mod_revision, version, value }, count: 1
        let answer =
            b"\x0a\x03\x10\xac\x02\x12\x0e\x0a\x01k\x10\x02\x18\x03\x20\x01\x2a\x03abc\x20\x01";
        let answer = RangeResponse::decode(&answer[..]).unwrap();
        assert_eq!(answer.kvs[0].value, "abc");
        // compare { target: CREATE, key, create_revision: 0 }, success { request_put }, failure { request_range }
        let creation = creation("k", Bytes::from_static(b"v")).encode_to_vec();
        let expected = b"\x0a\x07\x10\x01\x1a\x01k\x28\x00\
            \x12\x08\x12\x06\x0a\x01k\x12\x01v\x1a\x05\x0a\x03\x0a\x01k";
        assert_eq!(creation, expected);
        // responses { response_range { kvs { key, create_revision, value } } }
        let answer = b"\x1a\x0d\x0a\x0b\x12\x09\x0a\x01k\x10\x02\x2a\x02ab";
        let answer = TxnResponse::decode(&answer[..]).unwrap();
        let range = answer.responses[0].range.as_ref().unwrap();
        assert!(!answer.succeeded && range.kvs[0].value == "ab");
        // header { member_id: 7 }, version: "3.4.23", dbSize: 1, leader: 7
        let status = b"\x0a\x02\x10\x07\x12\x063.4.23\x18\x01\x20\x07";
        let status = StatusResponse::decode(&status[..]).unwrap();
        assert_eq!((status.leader, status.header.unwrap().member_id), (7, 7));
        assert_eq!(status.version, "3.4.23");
    }

    #[test]
    fn what_is_no_address_is_told() {
        let runtime = tonic_runtime();
        let connect = |address: &'static str| {
            runtime.block_on(Etcd::connect(address, Duration::from_secs(5)))
        };
        let error = connect("http://[").unwrap_err().to_string();
        assert!(
            error.starts_with("'http://[' is no address of etcd"),
            "{error}"
        );
        let error = connect("http://127.0.0.1:1").unwrap_err().to_string();
        assert!(
            error.starts_with("etcd cannot be reached: Connection refused"),
            "{error}"
        );
    }

    fn tonic_runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    }
}
