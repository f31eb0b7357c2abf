//! Messages of etcd's `rpc.proto`: the fields that are used.

use bytes::Bytes;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
}

/// A read of one key. It is linearizable, because `serializable` is not set.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RangeResponse {
    #[prost(message, repeated, tag = "2")]
    pub(crate) kvs: Vec<KeyValue>,
}

/// All of `success` if every comparison holds, all of `failure` otherwise, in one step.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) failure: Vec<RequestOp>,
}

/// A comparison of a key's field. The comparison is EQUAL, because no other result is set.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Compare {
    #[prost(int32, tag = "2")]
    pub(crate) target: i32,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) key: Bytes,
    #[prost(int64, optional, tag = "5")]
    pub(crate) create_revision: Option<i64>,
}

/// [`Compare::target`]: the revision at which the key was created, 0 if it is not there.
pub(crate) const CREATE: i32 = 1;

/// One operation of a transaction: a read or a put.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RequestOp {
    #[prost(message, optional, tag = "1")]
    pub(crate) range: Option<RangeRequest>,
    #[prost(message, optional, tag = "2")]
    pub(crate) put: Option<PutRequest>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TxnResponse {
    #[prost(bool, tag = "2")]
    pub(crate) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(crate) responses: Vec<ResponseOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResponseOp {
    #[prost(message, optional, tag = "1")]
    pub(crate) range: Option<RangeResponse>,
}
