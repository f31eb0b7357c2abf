//! Amazon's examples, and requests that differ from them in one thing each.

use http::HeaderValue;

use super::*;
use crate::auth::vectors::{
    self, DAY, KEY_ID, NOW_SECONDS, REGION, SECRET, authorization, head, signed_with,
};
use crate::auth::{Caller, SigningKeys, authenticate, derive_signing_key};

const HOST: (&str, &str) = ("host", "examplebucket.s3.amazonaws.com");
const DATE: (&str, &str) = ("x-amz-date", "20130524T000000Z");
const HASH: (&str, &str) = ("x-amz-content-sha256", "UNSIGNED-PAYLOAD");

fn key() -> SigningKey {
    derive_signing_key(SECRET, DAY, REGION, SERVICE)
}

fn examples() -> Vec<(&'static str, Parts)> {
    vec![
        ("get object", vectors::get_object()),
        ("put object", vectors::put_object()),
        ("get lifecycle", vectors::get_lifecycle()),
        ("list objects", vectors::list_objects()),
        ("presigned", vectors::presigned()),
        ("chunked", vectors::chunked()),
        ("with trailer", vectors::with_trailer()),
    ]
}

fn judge(parts: &Parts) -> Result<Option<VerifiedSignature>, S3Error> {
    judge_at(parts, NOW_SECONDS)
}

fn judge_at(parts: &Parts, now: u64) -> Result<Option<VerifiedSignature>, S3Error> {
    let Some(claim) = Claim::parse(parts)? else {
        return Ok(None);
    };
    claim.check_region(REGION)?;
    let keys = [key()];
    let keys = match claim.key_id() {
        KEY_ID => &keys[..],
        _ => &[],
    };
    claim.verify(parts, keys, now).map(Some)
}

fn code(parts: &Parts) -> Code {
    judge(parts).expect_err("it is refused").code
}

#[test]
fn each_example_of_amazon_is_verified() {
    for (name, parts) in examples() {
        let verified = judge(&parts).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(verified.unwrap().key_id, KEY_ID, "{name}");
    }
}

#[test]
fn payloads_of_the_examples() {
    let payload = |parts: &Parts| judge(parts).unwrap().unwrap().payload;
    let welcome = sha256(b"Welcome to Amazon S3.");
    assert_eq!(payload(&vectors::put_object()), Payload::Hashed(welcome));
    assert_eq!(payload(&vectors::presigned()), Payload::Unsigned);
    assert_eq!(payload(&vectors::chunked()), Payload::SignedChunks);
    assert_eq!(
        payload(&vectors::with_trailer()),
        Payload::SignedChunksTrailer
    );
}

#[test]
fn a_request_without_a_signature_is_anonymous() {
    assert!(judge(&head("GET", "/a?acl", &[HOST])).unwrap().is_none());
}

#[test]
fn every_flipped_bit_of_a_header_is_refused() {
    for (example, parts) in examples() {
        for name in parts.headers.keys() {
            let value = parts.headers[name].as_bytes();
            for bit in 0..value.len() * 8 {
                let mut bytes = value.to_vec();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let Ok(flipped) = HeaderValue::from_bytes(&bytes) else {
                    continue;
                };
                let mut changed = parts.clone();
                changed.headers.insert(name, flipped);
                let judged = judge(&changed);
                let shown = bytes.escape_ascii();
                assert!(judged.is_err(), "{example}: {name}: {shown}: {judged:?}");
            }
        }
    }
}

#[test]
fn every_flipped_bit_of_a_target_is_refused() {
    for (example, parts) in examples() {
        let target = parts.uri.to_string();
        for bit in 0..target.len() * 8 {
            let mut bytes = target.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let Ok(uri) = http::Uri::try_from(&bytes[..]) else {
                continue;
            };
            // Hexadecimal digits of an escape, and names of a signature's parameters, have two sizes.
            let is_letter_size = bit % 8 == 5 && bytes[bit / 8].is_ascii_alphabetic();
            let mut changed = parts.clone();
            changed.uri = uri;
            // A slash at the front may turn the target into a name of a host.
            if changed.uri.path() == parts.uri.path() && changed.uri.query() == parts.uri.query() {
                continue;
            }
            match judge(&changed) {
                Err(_) => {}
                Ok(None) => assert_eq!(changed.uri.query(), None, "{example}: {}", changed.uri),
                Ok(Some(_)) => assert!(is_letter_size, "{example}: {}", changed.uri),
            }
        }
    }
}

#[test]
fn another_method_another_key_and_no_key_are_refused() {
    for (example, mut parts) in examples() {
        let claim = Claim::parse(&parts).unwrap().unwrap();
        let refused =
            |keys: &[SigningKey]| claim.verify(&parts, keys, NOW_SECONDS).unwrap_err().code;
        assert_eq!(refused(&[]), Code::InvalidAccessKeyId, "{example}");
        let other = derive_signing_key("another", DAY, REGION, SERVICE);
        let tomorrow = derive_signing_key(SECRET, DAY + 1, REGION, SERVICE);
        let others = [other.clone(), tomorrow];
        assert_eq!(refused(&others), Code::SignatureDoesNotMatch, "{example}");
        for keys in [[other.clone(), key()], [key(), other]] {
            let verified = claim.verify(&parts, &keys, NOW_SECONDS);
            assert!(verified.is_ok(), "{example}: one of two keys");
        }
        parts.method = http::Method::DELETE;
        assert_eq!(code(&parts), Code::SignatureDoesNotMatch, "{example}");
    }
}

#[test]
fn times_of_a_header() {
    let skew = MAX_SKEW_SECONDS;
    let at = |now| judge_at(&vectors::get_object(), now).map_err(|error| error.code);
    for now in [NOW_SECONDS - skew, NOW_SECONDS + skew] {
        assert!(at(now).is_ok(), "{now}");
    }
    for now in [0, NOW_SECONDS - skew - 1, NOW_SECONDS + skew + 1, u64::MAX] {
        assert_eq!(at(now).unwrap_err(), Code::RequestTimeTooSkewed, "{now}");
    }
}

#[test]
fn times_of_a_presigned_url() {
    let at = |now| judge_at(&vectors::presigned(), now).map_err(|error| error.code);
    for now in [NOW_SECONDS - MAX_SKEW_SECONDS, NOW_SECONDS + 86400] {
        assert!(at(now).is_ok(), "{now}");
    }
    for now in [
        0,
        NOW_SECONDS - MAX_SKEW_SECONDS - 1,
        NOW_SECONDS + 86401,
        u64::MAX,
    ] {
        assert_eq!(at(now).unwrap_err(), Code::AccessDenied, "{now}");
    }
}

#[test]
fn another_region_is_refused_with_the_expected_one() {
    for parts in [vectors::get_object(), vectors::presigned()] {
        let claim = Claim::parse(&parts).unwrap().unwrap();
        let error = claim.check_region("eu-north-1").unwrap_err();
        assert!(error.message.ends_with("expecting 'eu-north-1'"), "{error}");
    }
}

#[test]
fn headers_that_change_the_meaning_must_be_signed() {
    let mut parts = vectors::get_object();
    let acl = HeaderValue::from_static("public-read");
    parts.headers.insert("x-amz-acl", acl.clone());
    let error = judge(&parts).unwrap_err();
    assert_eq!(error.code, Code::AccessDenied);
    assert!(error.message.contains("'x-amz-acl'"), "{error}");
    let mut parts = vectors::presigned();
    parts.headers.insert("x-amz-acl", acl);
    assert_eq!(code(&parts), Code::AccessDenied);
    let without_host = signed_with(&key(), head("GET", "/", &[HOST, DATE, HASH]), |names| {
        names.retain(|name| *name != "host");
    });
    let error = judge(&without_host).unwrap_err();
    assert_eq!(error.code, Code::AccessDenied);
    assert!(error.message.contains("'host'"), "{error}");
    let without_type = head("GET", "/", &[HOST, DATE, HASH, ("content-type", "a/b")]);
    let without_type = signed_with(&key(), without_type, |names| {
        names.retain(|name| *name != "content-type");
    });
    assert!(judge(&without_type).is_ok(), "Amazon does not ask for it");
}

#[test]
fn a_target_with_another_host_is_refused() {
    for mut parts in [vectors::get_object(), vectors::presigned()] {
        let target = parts.uri.to_string();
        let on = |host: &str| format!("http://{host}{target}").parse().unwrap();
        parts.uri = on("examplebucket.s3.amazonaws.com");
        assert!(judge(&parts).is_ok(), "it is the signed one");
        for host in [
            "another.s3.amazonaws.com",
            "examplebucket.s3.amazonaws.com:80",
        ] {
            parts.uri = on(host);
            assert_eq!(code(&parts), Code::AccessDenied, "{host}");
        }
    }
}

#[test]
fn a_signed_header_must_be_there() {
    let mut parts = vectors::get_object();
    parts.headers.remove("range");
    let error = judge(&parts).unwrap_err();
    assert_eq!(error.code, Code::SignatureDoesNotMatch);
    assert!(error.message.contains("'range'"), "{error}");
}

#[test]
fn a_date_without_x_amz_is_taken() {
    for date in ["Fri, 24 May 2013 00:00:00 GMT", "20130524T000000Z"] {
        let parts = head("GET", "/a", &[HOST, ("date", date), HASH]);
        let parts = signed_with(&key(), parts, |_| {});
        assert!(judge(&parts).is_ok(), "{date}");
    }
    for headers in [vec![HOST, HASH], vec![HOST, HASH, ("date", "today")]] {
        let mut headers = headers;
        let value = authorization("host;x-amz-content-sha256", &"0".repeat(64));
        headers.push(("authorization", &value));
        assert_eq!(code(&head("GET", "/", &headers)), Code::AccessDenied);
    }
}

#[test]
fn a_payload_must_be_declared() {
    let value = authorization("host;x-amz-date", &"0".repeat(64));
    let parts = head("GET", "/", &[HOST, DATE, ("authorization", &value)]);
    assert_eq!(code(&parts), Code::InvalidRequest);
    let value = authorization("host;x-amz-content-sha256;x-amz-date", &"0".repeat(64));
    let hash = ("x-amz-content-sha256", "anything");
    let parts = head("GET", "/", &[HOST, DATE, hash, ("authorization", &value)]);
    assert_eq!(code(&parts), Code::InvalidArgument);
}

/// Changes of a text, and the code that each of them is refused with.
type Changes<'a> = [(Code, &'a [(&'a str, &'a str)])];

fn check_changes(good: &str, changes: &Changes<'_>, judged: impl Fn(&str) -> Code) {
    for (expected, changes) in changes {
        for (from, to) in *changes {
            let changed = good.replacen(from, to, 1);
            assert_ne!(changed, good, "{from}");
            assert_eq!(judged(&changed), *expected, "{changed}");
        }
    }
}

#[test]
fn authorizations_that_are_refused() {
    let good = authorization("host;x-amz-content-sha256;x-amz-date", &"0".repeat(64));
    let judged = |value: &str| {
        let headers = [HOST, DATE, HASH, ("authorization", value)];
        code(&head("GET", "/", &headers))
    };
    assert_eq!(judged(&good), Code::SignatureDoesNotMatch, "it can be read");
    let spaced = good.replace(',', " ,  ");
    assert_eq!(judged(&spaced), Code::SignatureDoesNotMatch, "it too");
    let kind = "AWS4-HMAC-SHA256";
    let changes: &Changes<'_> = &[
        (
            Code::InvalidRequest,
            &[(kind, "AWS"), (kind, "AWS4-ECDSA-P256-SHA256")],
        ),
        (
            Code::InvalidArgument,
            &[(kind, "Bearer"), ("AWS4-HMAC-SHA256 ", "")],
        ),
        (
            Code::AuthorizationHeaderMalformed,
            &[
                ("Credential=", "Credentials="),
                ("Credential=AKIAIOSFODNN7EXAMPLE", "Credential="),
                ("/20130524", "/20130525"),
                ("/20130524", "/+0130524"),
                ("/20130524", "/020130524"),
                ("/20130524", ""),
                ("us-east-1", ""),
                ("us-east-1", "us-west-2"),
                ("/s3/", "/sts/"),
                ("aws4_request", "aws4"),
                ("host;", "Host;"),
                ("host;", "host;host;"),
                ("host;", "range;host;"),
                ("host;", ";host;"),
                ("Signature=0", "Signature="),
                ("Signature=0", "Signature=00"),
                ("Signature=0", "Signature=A"),
                (",Signature", ",Signature=1,Signature"),
                (",Signature", ",Else=1,Signature"),
                (",Signature", ",,Signature"),
            ],
        ),
    ];
    check_changes(&good, changes, judged);
    for value in ["", "AWS AKIAIOSFODNN7EXAMPLE:frJIUN8DYpKDtOLCwo//yllqDzg="] {
        assert!(judge(&head("GET", "/", &[("authorization", value)])).is_err());
    }
}

#[test]
fn presigned_urls_that_are_refused() {
    let good = vectors::presigned().uri.to_string();
    let judged = |target: &str| code(&head("GET", target, &[HOST]));
    let end = "&X-Amz-Signature=";
    let changes: &Changes<'_> = &[
        (
            Code::InvalidRequest,
            &[
                ("=AWS4-HMAC-SHA256", "=AWS4-ECDSA-P256-SHA256"),
                (end, "&X-Amz-Security-Token=a&X-Amz-Signature="),
                (end, "&AWSAccessKeyId=a&X-Amz-Signature="),
            ],
        ),
        (
            Code::InvalidArgument,
            &[
                ("=AWS4-HMAC-SHA256", "=HMAC"),
                (end, "&X-Amz-Content-Sha256=none&X-Amz-Signature="),
            ],
        ),
        (
            Code::SignatureDoesNotMatch,
            &[
                ("=86400", "=604800"),
                (end, "&acl&X-Amz-Signature="),
                (
                    end,
                    "&X-Amz-Content-Sha256=UNSIGNED-PAYLOAD&X-Amz-Signature=",
                ),
            ],
        ),
        (
            Code::AuthorizationQueryParametersError,
            &[
                ("X-Amz-Algorithm=AWS4-HMAC-SHA256&", ""),
                ("X-Amz-Date=20130524T000000Z&", ""),
                ("X-Amz-Date=20130524T000000Z", "X-Amz-Date=20130524"),
                ("X-Amz-Date=20130524T0", "X-Amz-Date=20130525T0"),
                ("X-Amz-Expires=86400&", ""),
                ("=86400", "=0"),
                ("=86400", "=-1"),
                ("=86400", "=%2B86400"),
                ("=86400", "="),
                ("=86400", "=604801"),
                ("=86400", "=99999999999999999999999"),
                ("&X-Amz-SignedHeaders=host", ""),
                ("SignedHeaders=host", "SignedHeaders=host%3Bhost"),
                (end, "&X-Amz-Signature=1&X-Amz-Signature="),
                (end, "&x-amz-signature=1&X-Amz-Signature="),
                (end, "&X-Amz-Sig="),
            ],
        ),
    ];
    check_changes(&good, changes, judged);
    for target in ["/?AWSAccessKeyId=a&Signature=b&Expires=1", "/?signature=b"] {
        assert_eq!(judged(target), Code::InvalidRequest, "{target}");
    }
}

#[test]
fn one_parameter_of_a_signature_is_a_signature() {
    for name in [
        "X-Amz-Algorithm",
        "X-Amz-Credential",
        "X-Amz-Date",
        "X-Amz-Expires",
        "X-Amz-SignedHeaders",
        "X-Amz-Signature",
    ] {
        for name in [name.to_owned(), name.to_ascii_lowercase()] {
            let target = format!("/?{name}=a");
            assert!(judge(&head("GET", &target, &[HOST])).is_err(), "{target}");
        }
    }
}

#[test]
fn two_signatures_and_repeated_headers_are_refused() {
    let value = authorization("host", &"0".repeat(64));
    let target = vectors::presigned().uri.to_string();
    let both = head("GET", &target, &[HOST, ("authorization", &value)]);
    assert_eq!(code(&both), Code::InvalidRequest);
    for name in ["authorization", "x-amz-date", "x-amz-content-sha256"] {
        let mut parts = vectors::get_object();
        let value = parts.headers[name].clone();
        parts.headers.append(name, value);
        assert_eq!(code(&parts), Code::InvalidRequest, "{name}");
    }
    for name in ["host", "range"] {
        let mut parts = vectors::get_object();
        let value = parts.headers[name].clone();
        parts.headers.append(name, value);
        assert!(judge(&parts).is_err(), "{name}");
    }
    let token = head(
        "GET",
        "/",
        &[HOST, DATE, HASH, ("x-amz-security-token", "a")],
    );
    let token = signed_with(&key(), token, |_| {});
    assert_eq!(code(&token), Code::InvalidRequest);
}

#[test]
fn a_path_is_signed_as_it_is_sent() {
    for target in [
        "/b/a%20b",
        "/b//c/../d/.",
        "/b/%C3%A9?prefix=a%2Fb&delimiter=%20",
        "/b/a+b~",
    ] {
        let parts = signed_with(&key(), head("GET", target, &[HOST, DATE, HASH]), |_| {});
        assert!(judge(&parts).is_ok(), "{target}");
        let mut changed = parts.clone();
        changed.uri = target.replace("/b/", "/b/./").parse().unwrap();
        assert_eq!(code(&changed), Code::SignatureDoesNotMatch, "{target}");
    }
}

/// A holder of one access key.
struct OneKey;

impl SigningKeys for OneKey {
    async fn signing_keys(
        &self,
        key_id: &str,
        day: u32,
        region: &str,
    ) -> Result<Vec<SigningKey>, S3Error> {
        assert!(day == DAY && region == REGION, "judged before");
        match key_id {
            KEY_ID => Ok(vec![key()]),
            _ => Err(S3Error::new(
                Code::InvalidAccessKeyId,
                "there is no such key",
            )),
        }
    }
}

#[tokio::test]
async fn callers_are_authenticated() {
    let judge = async |parts: Parts, region: &str, now: u64| {
        let caller = authenticate(&parts, region, &OneKey, now).await;
        caller.map_err(|error| error.code)
    };
    let anonymous = judge(head("GET", "/", &[HOST]), REGION, NOW_SECONDS).await;
    assert!(matches!(anonymous, Ok(Caller::Anonymous)));
    let caller = judge(vectors::get_object(), REGION, NOW_SECONDS)
        .await
        .unwrap();
    assert_eq!(caller.key_id(), Some(KEY_ID));
    assert!(caller.chain().is_some() && Caller::Anonymous.chain().is_none());
    let refused = judge(vectors::get_object(), "eu-west-1", NOW_SECONDS).await;
    assert_eq!(refused.unwrap_err(), Code::AuthorizationHeaderMalformed);
    let refused = judge(vectors::get_object(), REGION, NOW_SECONDS + 3600).await;
    assert_eq!(refused.unwrap_err(), Code::RequestTimeTooSkewed);
    let mut other = vectors::get_object();
    let value = other.headers["authorization"].to_str().unwrap();
    let value = value.replace(KEY_ID, "another").parse().unwrap();
    other.headers.insert("authorization", value);
    let refused = judge(other, REGION, NOW_SECONDS).await;
    assert_eq!(refused.unwrap_err(), Code::InvalidAccessKeyId);
}
