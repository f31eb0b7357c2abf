//! Heads of requests, and documents in their bodies.

use crate::wire::xml::{bucket, cors, delete, lifecycle, multipart, tagging};
use crate::wire::{Addressing, S3Error, parse};

/// The head of a request: a line `METHOD URI`, and a line `name: value` for each header.
pub fn request(input: &[u8]) -> bool {
    let Some(head) = head(input) else {
        return false;
    };
    let domains = vec!["s3.example".to_owned(), "eu.s3.example".to_owned()];
    let virtual_host = parse(&head, &Addressing { domains });
    let path_style = parse(&head, &Addressing::default());
    for parsed in [&virtual_host, &path_style] {
        match parsed {
            Ok(request) => {
                let key = request.target.key();
                assert!(key.is_none_or(|key| (1..=1024).contains(&key.len())));
            }
            Err(refusal) => check_refusal(refusal),
        }
    }
    path_style.is_ok()
}

fn head(input: &[u8]) -> Option<http::request::Parts> {
    let mut lines = input.split(|byte| *byte == b'\n');
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let (method, uri) = first.split_once(' ')?;
    let mut request = http::Request::builder().method(method).uri(uri);
    for line in lines.filter(|line| !line.is_empty()) {
        let at = line.iter().position(|byte| *byte == b':')?;
        request = request.header(&line[..at], line[at + 1..].trim_ascii());
    }
    Some(request.body(()).ok()?.into_parts().0)
}

/// A document in the body of a request, read by every reader.
pub fn document(input: &[u8]) -> bool {
    let again = "what is written can be read";
    let tags = tagging::read_tagging(input, tagging::OF_BUCKET);
    let tags = tags.map(|read| {
        let text = tagging::tagging(&read);
        let second = tagging::read_tagging(text.as_bytes(), tagging::OF_BUCKET);
        assert_eq!(second.as_ref(), Ok(&read), "{again}");
    });
    let rules = cors::read_cors(input).map(|read| {
        let second = cors::read_cors(cors::cors(&read).as_bytes());
        assert_eq!(second.as_ref(), Ok(&read), "{again}");
    });
    let expirations = lifecycle::read_lifecycle(input).map(|read| {
        let second = lifecycle::read_lifecycle(lifecycle::lifecycle(&read).as_bytes());
        assert_eq!(second.as_ref(), Ok(&read), "{again}");
    });
    let deleted = delete::read_delete(input).map(|read| {
        let keys = 1..=delete::KEYS;
        assert!(keys.contains(&read.objects.len()));
    });
    let parts = multipart::read_complete(input).map(|read| {
        assert!(read.is_sorted_by(|a, b| a.part < b.part));
    });
    let created = bucket::read_create(input).map(drop);
    let results = [tags, rules, expirations, deleted, parts, created];
    results
        .iter()
        .filter_map(|it| it.as_ref().err())
        .for_each(check_refusal);
    results.iter().any(Result::is_ok)
}

fn check_refusal(refusal: &S3Error) {
    assert!(!refusal.message.trim().is_empty());
    assert!(!refusal.message.contains(char::is_control));
}

#[cfg(test)]
mod tests {
    use areo_fuzzing::{Driver, kept};

    #[test]
    fn requests_of_any_bytes() {
        Driver {
            target: super::request,
            corpus: &kept("s3_request"),
            words: &"GET |PUT |POST |DELETE |HEAD |OPTIONS |/bucket|/key|//|?|&|=|%2F|%|+|uploads|uploadId=u|partNumber=1|list-type=2|versions|\
                 versionId=null|acl|cors|tagging|attributes|max-keys=|1001|prefix=|x-id=|response-expires=|X-Amz-Signature=|\nhost: |s3.example|\
                 \nrange: bytes=|\nif-match: |\nif-none-match: *|\nif-modified-since: |\nx-amz-copy-source: |/from/a|\nx-amz-meta-a: |\n\
                 x-amz-checksum-crc32: |AAAAAA==|\nx-amz-trailer: |\ncontent-encoding: |aws-chunked,|\nx-amz-tagging: a=b|\nx-amz-acl: private|\
                 \namz-sdk-invocation-id: |\nx-areo-n: 5"
                .split('|')
                .collect::<Vec<_>>(),
            seed: 1,
            cost: 1,
        }
        .run();
    }

    #[test]
    fn documents_of_any_bytes() {
        Driver {
            target: super::document,
            corpus: &kept("s3_document"),
            words: &"<Delete>|</Delete>|<Object>|</Object>|<Key>|</Key>|<ETag>|</ETag>|<Quiet>true</Quiet>|<VersionId>null</VersionId>|<Part>|\
                 </Part>|<PartNumber>|</PartNumber>|<Tag>|</Tag>|<Value>|</Value>|<Rule>|</Rule>|<Filter/>|<Prefix>|</Prefix>|<Days>|</Days>|\
                 <CORSRule>|</CORSRule>|<AllowedOrigin>|*|&amp;|&#x|&#0;|;|&|<![CDATA[|]]>|<!--|-->|<!DOCTYPE|<?xml|?>|xmlns=|\"|\r|\0|65536"
                .split('|')
                .collect::<Vec<_>>(),
            seed: 2,
            cost: 1,
        }
        .run();
    }
}
