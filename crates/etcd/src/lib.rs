//! The way to [etcd](https://etcd.io), version 3, which decides the next configuration of a domain where the domain says so.
//!
//! One request is enough for that: create a key unless it exists, and return its value. etcd acknowledges it when a majority
//! has it on disk. The messages are those of etcd's `rpc.proto`, with the fields that are used here; the encoding skips the
//! others. `etcd-client` would do the same, and be built with `protoc`: decision record 0029.

mod message;

use bytes::Bytes;
use http::uri::PathAndQuery;
use message::{CREATE, Compare, PutRequest, RangeRequest, RequestOp, TxnRequest, TxnResponse};
use std::error::Error;
use std::time::Duration;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

/// Why nothing came of a request.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// The address is none.
    #[error("'{address}' is no address of etcd: {error}")]
    Address {
        /// The address as it was given.
        address: String,
        /// The reason why it is refused.
        error: String,
    },
    /// The server cannot be reached, or not any more.
    #[error("etcd cannot be reached: {error}")]
    Unreachable {
        /// The error of the connection.
        error: String,
    },
    /// The server says no.
    #[error("etcd refused: {error}")]
    Refused {
        /// The sentence of etcd.
        error: String,
    },
}

/// A connection to one member.
#[derive(Clone, Debug)]
pub struct Etcd {
    channel: Channel,
}

impl Etcd {
    /// Connects to a member, such as `http://127.0.0.1:2379`.
    ///
    /// # Errors
    /// [`EtcdError::Address`], [`EtcdError::Unreachable`].
    pub async fn connect(address: &str, timeout: Duration) -> Result<Etcd, EtcdError> {
        let endpoint = Endpoint::from_shared(address.to_owned());
        let endpoint = endpoint.map_err(|error| EtcdError::Address {
            address: address.to_owned(),
            error: reason(&error),
        })?;
        let endpoint = endpoint.connect_timeout(timeout).timeout(timeout);
        let channel = endpoint.tcp_nodelay(true).connect().await;
        let channel = channel.map_err(|error| unreachable(&error))?;
        Ok(Etcd { channel })
    }

    /// Creates the key with this value, if it is not there. Returns the value that it has then: the same one to all clients
    /// who ever asks.
    ///
    /// # Errors
    /// [`EtcdError::Unreachable`]: it may have been created; [`EtcdError::Refused`].
    pub async fn create(&self, key: &str, value: Bytes) -> Result<Bytes, EtcdError> {
        let answer = self.ask(creation(key, value.clone())).await?;
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

    async fn ask(&self, question: TxnRequest) -> Result<TxnResponse, EtcdError> {
        let mut grpc = Grpc::new(self.channel.clone());
        let ready = grpc.ready().await;
        ready.map_err(|error| unreachable(&error))?;
        let path = PathAndQuery::from_static("/etcdserverpb.KV/Txn");
        let codec = ProstCodec::default();
        let answered = grpc.unary(Request::new(question), path, codec).await;
        answered
            .map(tonic::Response::into_inner)
            .map_err(|status| refused(&status))
    }
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
        return unreachable(status);
    }
    let error = status.message().to_owned();
    match status.code() {
        tonic::Code::Unavailable | tonic::Code::Cancelled | tonic::Code::DeadlineExceeded => {
            EtcdError::Unreachable { error }
        }
        _ => EtcdError::Refused { error },
    }
}

fn unreachable(error: &dyn Error) -> EtcdError {
    let error = reason(error);
    EtcdError::Unreachable { error }
}

/// The innermost cause, which says most.
fn reason(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    /// Messages equal the output of `protoc --encode` with etcd's own definitions.
    #[test]
    fn messages_are_those_of_etcd() {
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
