//! The value of an object, as a file: it is never a page of the console, because a stranger may have written it.

use crate::door::Visit;
use crate::routes::Routes;
use crate::trouble::Trouble;
use axum::body::Body;
use axum::extract::RawQuery;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::StreamExt;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use std::sync::Arc;

pub(super) const PATH: &str = "/objects/download";
/// A browser that shows the file all the same gives it no origin, no script and nothing to load.
const POLICY: &str = "sandbox; default-src 'none'";

pub(super) fn routes() -> Routes {
    Routes::default().page(PATH, get(download))
}

#[derive(Deserialize)]
struct DownloadQuery {
    domain: String,
    key: String,
}

async fn download(visit: Visit, RawQuery(query): RawQuery) -> Response {
    let opened = open(&visit, query.as_deref().unwrap_or_default()).await;
    opened.unwrap_or_else(|trouble| trouble.page(Some(&visit.frame(PATH))))
}

async fn open(visit: &Visit, query: &str) -> Result<Response, Trouble> {
    let query = serde_html_form::from_str::<DownloadQuery>(query);
    let query = query.map_err(|error| Trouble::usage(format!("the address: {error}")))?;
    let domain = visit.client().domain(&query.domain).await?;
    let value = domain.get_stream(&query.key).await?;
    let headers = [
        (header::CONTENT_LENGTH, HeaderValue::from(value.length())),
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        ),
        (header::CONTENT_DISPOSITION, disposition(&query.key)),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(POLICY),
        ),
    ];
    let (session, used) = (Arc::clone(&visit.session), Arc::clone(&visit.session));
    let pieces = value.into_stream().inspect(move |_| used.touch());
    let pieces = pieces.take_until(async move { session.ended().await });
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// A file of the name that stands last in the key: plain letters for old browsers, all of them for others.
pub(super) fn disposition(key: &str) -> HeaderValue {
    let last = key.rsplit('/').find(|part| !part.is_empty());
    let name = last.unwrap_or("object");
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
    let plain: String = name
        .chars()
        .map(|it| if is_plain(it) { it } else { '_' })
        .collect();
    let plain = match plain.trim_start_matches('.') {
        "" => "object",
        plain => plain,
    };
    let all = utf8_percent_encode(name, NON_ALPHANUMERIC);
    let line = format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{all}");
    HeaderValue::from_str(&line).expect("these letters are a header")
}
