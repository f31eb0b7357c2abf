//! S3 over an Areo cluster.
//!
//! A request goes through four parts, and each of them can be read without the others:
//!
//! | part | turns | into |
//! |---|---|---|
//! | [`wire`] | the head of an HTTP request, and the XML of its body | an [`S3Request`](wire::S3Request): one enum, typed, or an [`S3Error`](wire::S3Error) |
//! | [`auth`] | a signature, and the key of a day | the caller, or an error |
//! | [`body`] | the bytes of the connection, whichever way they are framed | the bytes of the object, with their checksums verified |
//! | [`gateway`] | a request and a client of the cluster | a response |
//!
//! A bucket is a domain and an object of it is an object of that domain, so that the native interface and S3 show each other's objects. The
//! gateway keeps nothing but caches: any number of them serve one cluster, and each request may go to another one.
//!
//! Source: `docs/s3.md` says which operations work, are refused, and come later.

pub mod auth;
pub mod body;
pub mod fuzzing;
pub mod gateway;
pub mod wire;
