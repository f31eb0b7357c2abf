//! The guard in front of all pages: which hosts a request may name, where a change may come from, and the headers of every answer.

use crate::Console;
use crate::trouble::Trouble;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;

/// Everything on a page comes from the console itself; no page is part of another one.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Puts the guard in front of these routes.
pub(crate) fn protect(router: Router<Console>, console: &Console) -> Router<Console> {
    router.layer(from_fn_with_state(console.clone(), judge))
}

async fn judge(State(console): State<Console>, request: Request, next: Next) -> Response {
    let refused = refusal(&console, request.method(), request.headers());
    let mut response = match refused {
        Some(trouble) => trouble.into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        // A download has a narrower policy of its own.
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The reason why a request is not looked at.
fn refusal(console: &Console, method: &Method, headers: &HeaderMap) -> Option<Trouble> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(host) = text(header::HOST).filter(|host| is_ours(console, host)) else {
        let sentence =
            "the console is not reached by this name: pass it with `areo console --name NAME`";
        return Some(Trouble::new(StatusCode::MISDIRECTED_REQUEST, sentence));
    };
    if *method == Method::GET || *method == Method::HEAD {
        return None;
    }
    let is_foreign = match text(header::ORIGIN) {
        Some(origin) => origin
            .split_once("://")
            .is_none_or(|(_, from)| from != host),
        // An old browser, or no browser: the token of the form decides.
        None => {
            text(HeaderName::from_static("sec-fetch-site")).is_some_and(|it| it != "same-origin")
        }
    };
    let sentence = "the form was sent by a page of another origin";
    is_foreign.then(|| Trouble::new(StatusCode::FORBIDDEN, sentence))
}

/// True for an address, `localhost`, and the names that the operator gave. The name of a stranger may resolve to this machine; an address cannot.
fn is_ours(console: &Console, host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let is_given = |given: &String| given.eq_ignore_ascii_case(name);
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok()
        || console.0.options.names.iter().any(is_given)
}
