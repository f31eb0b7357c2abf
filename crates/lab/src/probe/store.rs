//! Requests of S3 in a bucket, and what their answers mean.

use super::http::{Answer, Call, Caller, Lost};
use super::operation::{Condition, Ending};
use super::xml;
use bytes::Bytes;
use http::{HeaderName, Method, header};

const INVOCATION: HeaderName = HeaderName::from_static("amz-sdk-invocation-id");
/// Keys of the probe consist of characters that need no encoding but for the slash, which a query encodes.
const SLASH: &str = "%2F";

/// The beginning of the text of a request that the endpoint has not seen.
pub(super) const NOT_SENT: &str = "not sent: ";

/// The bucket of a run.
pub(super) struct Store {
    pub(super) caller: Caller,
    pub(super) bucket: String,
}

/// The outcome of a request.
pub(super) struct Reply {
    pub(super) ending: Ending,
    /// The status and the code, for people.
    pub(super) text: String,
    /// The answer, if there is one.
    pub(super) answer: Option<Box<Answer>>,
}

/// The entries of a listing.
pub(super) struct Listing {
    /// Each key with its ETag, in the order of the pages.
    pub(super) entries: Vec<(String, String)>,
    /// The number of pages.
    pub(super) pages: usize,
}

/// The condition of a write with the ETag that it names.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) name: HeaderName,
    pub(super) value: String,
}

impl Header {
    /// The header of a condition. `etag` is that of the value which the condition names.
    pub(super) fn of(condition: &Condition, etag: Option<String>) -> Option<Header> {
        let (name, value) = match condition {
            Condition::None => return None,
            Condition::Absent => (header::IF_NONE_MATCH, "*".to_owned()),
            Condition::Match(_) => (header::IF_MATCH, etag?),
        };
        Some(Header { name, value })
    }
}

impl Store {
    /// Sends a request about an object, or about the bucket if there is no key.
    pub(super) async fn send(&self, endpoint: usize, mut call: Call, key: Option<&str>) -> Reply {
        let query = std::mem::take(&mut call.target);
        let bucket = &self.bucket;
        call.target = match key {
            Some(key) => format!("/{bucket}/{key}{query}"),
            None => format!("/{bucket}{query}"),
        };
        match self.caller.send(endpoint, &call).await {
            Ok(answer) => read(answer),
            Err(Lost::NotSent(why)) => Reply {
                ending: Ending::Rejected,
                text: format!("{NOT_SENT}{why}"),
                answer: None,
            },
            Err(Lost::Unknown(why)) => Reply {
                ending: Ending::Unknown,
                text: why,
                answer: None,
            },
        }
    }

    /// Puts a value.
    pub(super) async fn put(
        &self,
        endpoint: usize,
        key: &str,
        value: &str,
        condition: Option<Header>,
        invocation: &str,
    ) -> Reply {
        let call = with(call(Method::PUT, "", value), condition, invocation);
        self.send(endpoint, call, Some(key)).await
    }

    /// Makes an object absent.
    pub(super) async fn delete(
        &self,
        endpoint: usize,
        key: &str,
        condition: Option<Header>,
        invocation: &str,
    ) -> Reply {
        let call = with(call(Method::DELETE, "", ""), condition, invocation);
        self.send(endpoint, call, Some(key)).await
    }

    /// Begins an upload in parts, sends one part, and returns the id and the document that completes it.
    ///
    /// # Errors
    /// The reply that is no success.
    pub(super) async fn upload(
        &self,
        endpoint: usize,
        key: &str,
        value: &str,
    ) -> Result<Upload, Reply> {
        let begun = self.send(endpoint, call(Method::POST, "?uploads", ""), Some(key));
        let begun = begun.await;
        let id = begun
            .answer
            .as_ref()
            .filter(|_| begun.ending == Ending::Done);
        let id = id.and_then(|answer| {
            let leaves = xml::leaves(&answer.body);
            xml::first(&leaves, "InitiateMultipartUploadResult/UploadId")
        });
        let Some(id) = id else { return Err(begun) };
        let query = format!("?partNumber=1&uploadId={}", encoded(&id));
        let part = self.send(endpoint, call(Method::PUT, &query, value), Some(key));
        let part = part.await;
        let etag = part.etag().filter(|_| part.ending == Ending::Done);
        let Some(etag) = etag else { return Err(part) };
        let etag = etag.replace('"', "&quot;");
        let document = format!(
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part></CompleteMultipartUpload>"
        );
        Ok(Upload { id, document })
    }

    /// Completes an upload in parts.
    pub(super) async fn complete(
        &self,
        endpoint: usize,
        key: &str,
        upload: &Upload,
        condition: Option<Header>,
        invocation: &str,
    ) -> Reply {
        let query = format!("?uploadId={}", encoded(&upload.id));
        let call = with(
            call(Method::POST, &query, &upload.document),
            condition,
            invocation,
        );
        self.send(endpoint, call, Some(key)).await
    }

    /// All keys with a prefix and after a key, in pages of `page` keys.
    ///
    /// # Errors
    /// The reply that is no success.
    pub(super) async fn list(
        &self,
        endpoint: usize,
        prefix: &str,
        after: Option<&str>,
        page: usize,
    ) -> Result<Listing, Reply> {
        let mut listing = Listing {
            entries: Vec::new(),
            pages: 0,
        };
        let slashed = |text: &str| text.replace('/', SLASH);
        let mut from = after.map_or(String::new(), |key| {
            format!("&start-after={}", slashed(key))
        });
        loop {
            let query = format!(
                "?list-type=2&max-keys={page}&prefix={}{from}",
                slashed(prefix)
            );
            let reply = self
                .send(endpoint, call(Method::GET, &query, ""), None)
                .await;
            let Some(answer) = reply
                .answer
                .as_ref()
                .filter(|_| reply.ending == Ending::Done)
            else {
                return Err(reply);
            };
            listing.pages += 1;
            let leaves = xml::leaves(&answer.body);
            let key = "ListBucketResult/Contents/Key";
            let etag = "ListBucketResult/Contents/ETag";
            listing.entries.extend(xml::pairs(&leaves, key, etag));
            let token = xml::first(&leaves, "ListBucketResult/NextContinuationToken");
            let is_more = xml::first(&leaves, "ListBucketResult/IsTruncated");
            match token.filter(|_| is_more.as_deref() == Some("true")) {
                // A listing that never ends is one that cannot be read.
                Some(_) if listing.pages > 10_000 => return Err(reply),
                Some(token) => from = format!("&continuation-token={}", encoded(&token)),
                None => return Ok(listing),
            }
        }
    }
}

/// An upload with its one part.
pub(super) struct Upload {
    pub(super) id: String,
    document: String,
}

impl Reply {
    /// The ETag, quoted as the store has it.
    pub(super) fn etag(&self) -> Option<String> {
        let answer = self.answer.as_ref()?;
        let header = answer.headers.get(header::ETAG);
        let header = header
            .and_then(|etag| etag.to_str().ok())
            .map(str::to_owned);
        header.or_else(|| {
            let leaves = xml::leaves(&answer.body);
            xml::first(&leaves, "CompleteMultipartUploadResult/ETag")
        })
    }
}

/// A request with a query, which begins with a question mark or is empty.
pub(super) fn call(method: Method, query: &str, body: &str) -> Call {
    Call {
        method,
        target: query.to_owned(),
        headers: Vec::new(),
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

fn with(mut call: Call, condition: Option<Header>, invocation: &str) -> Call {
    call.headers
        .extend(condition.map(|one| (one.name, one.value)));
    call.headers.push((INVOCATION, invocation.to_owned()));
    call
}

/// A value of a query: all but letters, digits and `-._~` is encoded.
pub(super) fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The meaning of an answer.
fn read(answer: Answer) -> Reply {
    // The body of a GET may be a value, and no value begins so.
    let leaves = match answer.body.first() {
        Some(b'<') => xml::leaves(&answer.body),
        _ => Vec::new(),
    };
    // A completion may say 200 and then fail.
    let code = xml::first(&leaves, "Error/Code");
    let ending = match (answer.status, code.as_deref()) {
        (501, _) | (_, Some("NotImplemented")) => Ending::NotImplemented,
        (304 | 404 | 412, _) | (_, Some("PreconditionFailed")) => Ending::ConditionFailed,
        (409, _) | (_, Some("ConditionalRequestConflict")) => Ending::Conflict,
        (200..=299, None) => Ending::Done,
        (200..=299 | 408 | 429 | 500..=599, _) => Ending::Unknown,
        _ => Ending::Rejected,
    };
    let text = match code {
        Some(code) => format!("{} {code}", answer.status),
        None => answer.status.to_string(),
    };
    Reply {
        ending,
        text,
        answer: Some(Box::new(answer)),
    }
}
