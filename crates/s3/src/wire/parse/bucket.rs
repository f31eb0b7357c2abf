//! Operations on a bucket.

use super::fields::{Fields, text};
use super::{check_new_bucket_name, invalid, listing, not_allowed, put};
use crate::wire::error::{Code, S3Error};
use crate::wire::request::{Change, Operation};
use http::header::{ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use http::{HeaderMap, Method};

/// The operation of this method on a bucket of this name.
pub(super) fn operation(
    method: &Method,
    name: &str,
    fields: &mut Fields,
) -> Result<Operation, S3Error> {
    if let Some(operation) = document(method, fields) {
        return Ok(operation);
    }
    match *method {
        Method::GET => get(fields),
        Method::HEAD => Ok(Operation::HeadBucket),
        Method::PUT => {
            // A subresource that is not known must not create a bucket.
            fields.refuse_parameters(method)?;
            create(name, fields)
        }
        Method::DELETE => Ok(Operation::DeleteBucket),
        Method::POST if fields.has("delete") => Ok(Operation::DeleteObjects),
        Method::POST => {
            fields.refuse_parameters(method)?;
            let sentence = "uploads by a form (POST on a bucket) are not implemented: use PUT";
            Err(S3Error::new(Code::NotImplemented, sentence))
        }
        _ => Err(not_allowed(method, "a bucket", fields)),
    }
}

/// The document that a method asks for or changes.
pub(super) fn change(method: &Method) -> Option<Change> {
    match *method {
        Method::GET => Some(Change::Get),
        Method::PUT => Some(Change::Put),
        Method::DELETE => Some(Change::Delete),
        _ => None,
    }
}

fn document(method: &Method, fields: &mut Fields) -> Option<Operation> {
    let change = change(method)?;
    if fields.has("cors") {
        Some(Operation::BucketCors(change))
    } else if fields.has("lifecycle") {
        Some(Operation::BucketLifecycle(change))
    } else if fields.has("tagging") {
        Some(Operation::BucketTagging(change))
    } else {
        None
    }
}

fn get(fields: &mut Fields) -> Result<Operation, S3Error> {
    if fields.has("location") {
        Ok(Operation::GetBucketLocation)
    } else if fields.has("versioning") {
        Ok(Operation::GetBucketVersioning)
    } else if fields.has("acl") {
        Ok(Operation::GetAcl)
    } else if fields.has("versions") {
        listing::versions(fields)
    } else if fields.has("uploads") {
        listing::uploads(fields)
    } else {
        listing::objects(fields)
    }
}

fn create(name: &str, fields: &mut Fields) -> Result<Operation, S3Error> {
    check_new_bucket_name(name)?;
    fields.only("x-amz-acl", put::ACLS)?;
    fields.only("x-amz-object-ownership", &["BucketOwnerEnforced"])?;
    fields.only("x-amz-bucket-object-lock-enabled", &["false", "False"])?;
    let kind = fields.header("x-areo-kind")?;
    if let Some(text) = kind.as_deref().filter(|text| text.is_empty()) {
        return Err(invalid("x-areo-kind", text, "it is a word"));
    }
    let n = number(fields, "x-areo-n")?;
    let k = number(fields, "x-areo-k")?;
    if let (Some(n), Some(k)) = (n, k)
        && k > n
    {
        let takes = "it is not larger than x-areo-n";
        return Err(invalid("x-areo-k", &k.to_string(), takes));
    }
    let n = n.map(usize::from);
    Ok(Operation::CreateBucket { kind, n, k })
}

fn number(fields: &mut Fields, name: &str) -> Result<Option<u8>, S3Error> {
    let Some(text) = fields.header(name)? else {
        return Ok(None);
    };
    match text.parse() {
        Ok(number) if number > 0 => Ok(Some(number)),
        _ => Err(invalid(name, &text, "it is a number from 1 to 255")),
    }
}

/// `OPTIONS`: a browser asks which requests a page of another origin may make.
pub(super) fn preflight(headers: &HeaderMap) -> Result<Operation, S3Error> {
    let value = |name| headers.get(name).map(text);
    let (Some(origin), Some(method)) = (value(ORIGIN), value(ACCESS_CONTROL_REQUEST_METHOD)) else {
        let sentence = "OPTIONS needs the headers Origin and Access-Control-Request-Method";
        return Err(S3Error::new(Code::InvalidRequest, sentence));
    };
    let lines = headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS);
    let lines: Vec<String> = lines.iter().map(text).collect();
    let names = lines.iter().flat_map(|line| line.split(','));
    let names = names.map(|name| name.trim().to_ascii_lowercase());
    let headers = names.filter(|name| !name.is_empty()).collect();
    Ok(Operation::Preflight {
        origin,
        method,
        headers,
    })
}
