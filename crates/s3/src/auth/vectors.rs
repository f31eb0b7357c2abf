//! Amazon's published examples of signatures for S3.

use http::request::Parts;

use super::canonical;
use super::key::SigningKey;

/// The access key of all examples.
pub(crate) const KEY_ID: &str = "AKIAIOSFODNN7EXAMPLE";
/// The secret of that access key.
pub(crate) const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
/// The region of all examples.
pub(crate) const REGION: &str = "us-east-1";
/// The day of all examples, as yyyymmdd.
pub(crate) const DAY: u32 = 20_130_524;
/// The time of all examples, in seconds since 1970.
pub(crate) const NOW_SECONDS: u64 = 1_369_353_600;

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const WELCOME: &str = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
const BUCKET_HOST: (&str, &str) = ("host", "examplebucket.s3.amazonaws.com");
const DATE: (&str, &str) = ("x-amz-date", "20130524T000000Z");

/// A head from its method, target and headers.
pub(crate) fn head(method: &str, target: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = http::Request::builder().method(method).uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

/// The value of `Authorization`.
pub(crate) fn authorization(signed_headers: &str, signature: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential={KEY_ID}/{DAY}/{REGION}/s3/aws4_request,SignedHeaders={signed_headers},Signature={signature}"
    )
}

/// A head that is signed in its header.
fn signed(method: &str, target: &str, headers: &[(&str, &str)], signature: &str) -> Parts {
    let mut names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    let value = authorization(&names.join(";"), signature);
    let all = [headers, &[("authorization", value.as_str())]].concat();
    head(method, target, &all)
}

/// The example "GET Object".
pub(crate) fn get_object() -> Parts {
    let headers = [
        BUCKET_HOST,
        ("range", "bytes=0-9"),
        ("x-amz-content-sha256", EMPTY),
        DATE,
    ];
    let signature = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
    signed("GET", "/test.txt", &headers, signature)
}

/// The example "PUT Object".
pub(crate) fn put_object() -> Parts {
    let headers = [
        BUCKET_HOST,
        ("date", "Fri, 24 May 2013 00:00:00 GMT"),
        DATE,
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ("x-amz-content-sha256", WELCOME),
    ];
    let signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
    signed("PUT", "/test$file.text", &headers, signature)
}

/// The example "GET Bucket Lifecycle".
pub(crate) fn get_lifecycle() -> Parts {
    let headers = [BUCKET_HOST, ("x-amz-content-sha256", EMPTY), DATE];
    let signature = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543";
    signed("GET", "/?lifecycle", &headers, signature)
}

/// "Get Bucket (List Objects)".
pub(crate) fn list_objects() -> Parts {
    let headers = [BUCKET_HOST, ("x-amz-content-sha256", EMPTY), DATE];
    let signature = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
    signed("GET", "/?max-keys=2&prefix=J", &headers, signature)
}

/// "Authenticating Requests: Using Query Parameters".
pub(crate) fn presigned() -> Parts {
    let target = format!(
        "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={KEY_ID}%2F{DAY}%2F{REGION}%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z\
         &X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
         &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    );
    head("GET", &target, &[BUCKET_HOST])
}

/// "Transferring Payload in Multiple Chunks": the head.
pub(crate) fn chunked() -> Parts {
    let headers = [
        ("host", "s3.amazonaws.com"),
        DATE,
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
        ("content-encoding", "aws-chunked"),
        ("x-amz-decoded-content-length", "66560"),
        ("content-length", "66824"),
    ];
    let signature = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
    signed("PUT", "/examplebucket/chunkObject.txt", &headers, signature)
}

/// "Including Trailing Headers": the head.
pub(crate) fn with_trailer() -> Parts {
    let headers = [
        ("host", "s3.amazonaws.com"),
        DATE,
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        (
            "x-amz-content-sha256",
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
        ),
        ("content-encoding", "aws-chunked"),
        ("x-amz-decoded-content-length", "66560"),
        ("x-amz-trailer", "x-amz-checksum-crc32c"),
    ];
    let signature = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e";
    signed("PUT", "/examplebucket/chunkObject.txt", &headers, signature)
}

/// The body of both: 66 560 times `a`, in three chunks with these signatures, and `end`.
fn body(signatures: [&str; 3], end: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for (length, signature) in [65536, 1024, 0].into_iter().zip(signatures) {
        body.extend(format!("{length:x};chunk-signature={signature}\r\n").bytes());
        body.extend(std::iter::repeat_n(b'a', length));
        if length > 0 {
            body.extend(b"\r\n");
        }
    }
    body.extend(end.bytes());
    body
}

/// The body of [`chunked`].
pub(crate) fn chunked_body() -> Vec<u8> {
    let signatures = [
        "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
        "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
    ];
    body(signatures, "\r\n")
}

/// The body of [`with_trailer`].
pub(crate) fn trailer_body() -> Vec<u8> {
    let signatures = [
        "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
        "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
        "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
    ];
    let end = "x-amz-checksum-crc32c:sOO8/Q==\r\n\
               x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n";
    body(signatures, end)
}

/// Signs a head in its header. `choose` changes the names of the signed headers, which are all at first.
pub(crate) fn signed_with(
    key: &SigningKey,
    mut parts: Parts,
    choose: impl Fn(&mut Vec<&str>),
) -> Parts {
    let headers = parts.headers.clone();
    let mut names: Vec<&str> = headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    choose(&mut names);
    let owned: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let payload = headers["x-amz-content-sha256"].to_str().unwrap();
    let request = canonical::request(&parts, &owned, payload, |_| false).unwrap();
    let hash = canonical::hex(&canonical::sha256(&request));
    let text =
        format!("AWS4-HMAC-SHA256\n20130524T000000Z\n{DAY}/{REGION}/s3/aws4_request\n{hash}");
    let signature = ring::hmac::sign(&key.hmac(), text.as_bytes());
    let value = authorization(&names.join(";"), &canonical::hex(signature.as_ref()));
    let value = value.parse().unwrap();
    parts.headers.insert("authorization", value);
    parts
}
