//! Requests without a signature.
//!
//! Their caller is the key `anonymous` of the cluster, which has no secret and is given `read` and `list` alone; without such a key they are refused. Servers judge each request by its grants. The
//! gateway lets through only those requests that servers judge: what it answers by itself, such as the head of a bucket, is for callers with a key.

use super::callers::unsigned;
use crate::wire::{Code, Operation, S3Error};
use http::request::Parts;

/// Headers of signed requests: one of them without a signature is a request that was to be signed.
const OF_SIGNATURES: [&str; 2] = ["x-amz-date", "x-amz-security-token"];

/// Refuses a request without a signature that neither reads nor lists.
///
/// # Errors
/// [`Code::AccessDenied`]; [`Code::InvalidRequest`]: it sets headers of the response.
pub(super) fn check(head: &Parts, operation: &Operation) -> Result<(), S3Error> {
    if OF_SIGNATURES
        .iter()
        .any(|name| head.headers.contains_key(*name))
    {
        return Err(unsigned());
    }
    match operation {
        Operation::GetObject(options) | Operation::HeadObject(options) => {
            // Another page could show the object as a page of this origin.
            match options.overrides.headers.is_empty() {
                true => Ok(()),
                false => Err(S3Error::new(
                    Code::InvalidRequest,
                    "response-* needs a signature: a request without one sets no headers of the response",
                )),
            }
        }
        Operation::GetObjectAttributes { .. } | Operation::ListObjects(_) => Ok(()),
        _ => Err(unsigned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{self, Addressing};
    use http::Request;

    /// The verdict about a request, of which `parse` makes an operation.
    fn judged(method: &str, target: &str, headers: &[(&str, &str)]) -> Result<(), Code> {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let request = wire::parse(&head, &Addressing::default()).unwrap();
        check(&head, &request.operation).map_err(|error| error.code)
    }

    #[test]
    fn only_reading_and_listing_is_for_callers_without_a_key() {
        for (method, target) in [
            ("GET", "/pub/k"),
            ("HEAD", "/pub/k"),
            ("GET", "/pub?list-type=2&prefix=a"),
            ("GET", "/pub"),
        ] {
            assert_eq!(judged(method, target, &[]), Ok(()), "{method} {target}");
        }
        for (method, target) in [
            ("GET", "/"),
            ("HEAD", "/pub"),
            ("PUT", "/pub"),
            ("DELETE", "/pub"),
            ("GET", "/pub?location"),
            ("GET", "/pub?acl"),
            ("GET", "/pub?versions"),
            ("GET", "/pub?uploads"),
            ("GET", "/pub?cors"),
            ("PUT", "/pub?cors"),
            ("GET", "/pub?lifecycle"),
            ("PUT", "/pub?lifecycle"),
            ("POST", "/pub?delete"),
            ("GET", "/pub/k?tagging"),
            ("PUT", "/pub/k?tagging"),
            ("GET", "/pub/k?acl"),
            ("PUT", "/pub/k"),
            ("DELETE", "/pub/k"),
            ("POST", "/pub/k?uploads"),
            ("PUT", "/pub/k?partNumber=1&uploadId=a"),
            ("GET", "/pub/k?uploadId=a"),
            ("POST", "/pub/k?uploadId=a"),
            ("DELETE", "/pub/k?uploadId=a"),
        ] {
            let refused = judged(method, target, &[]);
            assert_eq!(refused, Err(Code::AccessDenied), "{method} {target}");
        }
        let copy = [("x-amz-copy-source", "/pub/other")];
        assert_eq!(judged("PUT", "/pub/k", &copy), Err(Code::AccessDenied));
        let dated = [("x-amz-date", "20261128T000000Z")];
        assert_eq!(judged("GET", "/pub/k", &dated), Err(Code::AccessDenied));
        let page = "/pub/k?response-content-type=text/html";
        assert_eq!(judged("GET", page, &[]), Err(Code::InvalidRequest));
    }
}
