//! The value of an object, as a file: it is never a page of the console, because a stranger may have written it.

use crate::Console;
use crate::door::Visit;
use crate::trouble::Trouble;
use axum::Router;
use axum::body::Body;
use axum::extract::RawQuery;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

pub(super) const PATH: &str = "/objects/download";
/// A browser that shows the file all the same gives it no origin, no script and nothing to load.
const POLICY: &str = "sandbox; default-src 'none'";

pub(super) fn router() -> Router<Console> {
    Router::new().route(PATH, get(download))
}

#[derive(Deserialize)]
struct Wanted {
    domain: String,
    key: String,
}

async fn download(visit: Visit, RawQuery(query): RawQuery) -> Result<Response, Trouble> {
    let wanted = serde_html_form::from_str::<Wanted>(query.as_deref().unwrap_or_default());
    let wanted = wanted.map_err(|error| Trouble::usage(format!("the address: {error}")))?;
    let domain = visit.client().domain(&wanted.domain).await?;
    let value = domain.get_stream(&wanted.key).await?;
    let headers = [
        (header::CONTENT_LENGTH, HeaderValue::from(value.length())),
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        ),
        (header::CONTENT_DISPOSITION, disposition(&wanted.key)),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(POLICY),
        ),
    ];
    let body = Body::from_stream(value.into_stream());
    Ok((headers, body).into_response())
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
