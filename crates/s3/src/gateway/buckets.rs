//! Buckets, which are domains.

use super::callers::CallerClient;
use super::reply::Reply;
use super::{GatewayOptions, failure};
use crate::wire::xml::Owner;
use crate::wire::xml::list::BucketEntry;
use crate::wire::{Code, Operation, S3Error, xml};
use areo_client::{Client, DapKind, Domain, DomainInfo, DomainOptions};
use bytes::Bytes;
use http::HeaderName;

const REGION: HeaderName = HeaderName::from_static("x-amz-bucket-region");
const LOCATION: HeaderName = HeaderName::from_static("location");

/// Answers a list of buckets: all domains of the cluster. Domains have no time of creation; 1970 stands for it.
///
/// # Errors
/// Those of the store.
pub(super) async fn list(client: &Client, owner: &Owner) -> Result<Reply, S3Error> {
    let domains = client.domains().await;
    let domains = domains.map_err(|error| failure::of(&error))?;
    let bucket = |domain: DomainInfo| BucketEntry {
        name: domain.name,
        created_ms: 0,
    };
    let buckets: Vec<_> = domains.into_iter().map(bucket).collect();
    Ok(Reply::document(xml::list::buckets(owner, &buckets)))
}

/// Answers the creation of a bucket, of the kind and on so many servers as the caller says.
///
/// # Errors
/// [`Code::InvalidArgument`]: there is no such kind or shape; those of the store.
pub(super) async fn create(
    client: &Client,
    bucket: &str,
    operation: &Operation,
    (document, options): (&Bytes, &GatewayOptions),
) -> Result<Reply, S3Error> {
    let Operation::CreateBucket { kind, n, k } = operation else {
        unreachable!("the caller has looked");
    };
    if !document.is_empty() {
        let location = xml::bucket::read_create(document)?;
        if location.is_some_and(|location| location != options.region) {
            let sentence = format!("buckets are in region {}", options.region);
            return Err(S3Error::new(Code::InvalidLocationConstraint, sentence));
        }
    }
    let kind = match kind {
        Some(word) => kind_of(word)?,
        None => options.kind,
    };
    let candidates = client.candidates().await;
    let candidates = candidates.map_err(|error| failure::of(&error))?;
    let servers = match n {
        None => Vec::new(),
        Some(n) if *n <= candidates.len() => {
            let chosen = candidates[..*n].iter();
            chosen.map(|server| server.name.clone()).collect()
        }
        Some(n) => {
            let there_are = candidates.len();
            let sentence = format!("a bucket on {n} servers needs {n}, and there are {there_are}");
            return Err(S3Error::new(Code::InvalidArgument, sentence));
        }
    };
    let count = n.unwrap_or(candidates.len());
    let k = k.or(options.k).unwrap_or_else(|| kind.default_k(count));
    let wanted = DomainOptions {
        dap: kind.with(k),
        servers,
        ..DomainOptions::default()
    };
    let created = client.create_domain(bucket, wanted).await;
    created.map_err(|error| failure::of_creation(&error))?;
    Ok(Reply::ok().with(LOCATION, &format!("/{bucket}")))
}

fn kind_of(word: &str) -> Result<DapKind, S3Error> {
    let kinds = [
        ("conditional", DapKind::Conditional),
        ("abd", DapKind::Abd),
        ("ec", DapKind::Ec),
        ("cas", DapKind::Cas),
        ("casgc", DapKind::CasGc),
    ];
    let kind = kinds.iter().find(|(known, _)| *known == word);
    kind.map(|(_, kind)| *kind).ok_or_else(|| {
        let known: Vec<&str> = kinds.iter().map(|(word, _)| *word).collect();
        let sentence = format!(
            "x-areo-kind '{}' is no kind of buckets: there are {}",
            word.escape_debug(),
            known.join(", ")
        );
        S3Error::new(Code::InvalidArgument, sentence)
    })
}

/// Answers `HEAD` of a bucket.
pub(super) fn head(options: &GatewayOptions) -> Reply {
    Reply::ok().with(REGION, &options.region)
}

/// Answers the removal of a bucket.
///
/// # Errors
/// [`Code::BucketNotEmpty`]: an object of it is listed; those of the store.
pub(super) async fn delete(client: &CallerClient, domain: &Domain) -> Result<Reply, S3Error> {
    let mut after = String::new();
    loop {
        let page = domain.list("", &after, 1).await;
        let page = page.map_err(|error| failure::of(&error))?;
        if !page.entries.is_empty() {
            let sentence = format!("bucket {} has objects", domain.name());
            return Err(S3Error::new(Code::BucketNotEmpty, sentence));
        }
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    let removed = client.client.remove_domain(domain.name()).await;
    removed.map_err(|error| failure::of(&error))?;
    client.forget(domain.name());
    Ok(Reply::no_content())
}

/// Answers the location of a bucket; the oldest region has none.
pub(super) fn location(options: &GatewayOptions) -> Reply {
    Reply::document(xml::bucket::location(&options.region))
}

/// Answers that a bucket keeps no versions.
pub(super) fn versioning() -> Reply {
    Reply::document(xml::bucket::versioning())
}

/// Answers an ACL: the owner alone. Grants are not shown by it.
pub(super) fn access_control(owner: &Owner) -> Reply {
    Reply::document(xml::bucket::access_control(owner))
}
