//! The guard in front of all pages: which hosts a request may name, where a change may come from, and the headers of every answer.

use crate::Console;
use crate::body::{SILENCE, in_time};
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
    let names = &console.0.options.names;
    let refused = refusal(names, request.method(), request.headers());
    let mut response = match refused {
        Some(trouble) => trouble.into_response(),
        None => next.run(request.map(|body| in_time(body, SILENCE))).await,
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

/// The reason why a request to the console of these names is not looked at.
fn refusal(names: &[String], method: &Method, headers: &HeaderMap) -> Option<Trouble> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(host) = text(header::HOST).filter(|host| is_ours(names, host)) else {
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
fn is_ours(names: &[String], host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let is_given = |given: &String| given.eq_ignore_ascii_case(name);
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok()
        || names.iter().any(is_given)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: &Method, headers: &[(&'static str, &'static str)]) -> Option<u16> {
        let header = |(name, value): &(&'static str, &'static str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        let headers = headers.iter().map(header).collect();
        let names = ["Console.example".to_owned()];
        refusal(&names, method, &headers).map(|trouble| trouble.status.as_u16())
    }

    #[test]
    fn a_request_names_an_address_or_a_name_of_the_operator() {
        for host in [
            "127.0.0.1:7470",
            "[::1]:7470",
            "10.0.0.7",
            "[fe80::1]",
            "localhost:7470",
            "console.EXAMPLE:7470",
        ] {
            assert_eq!(status(&Method::GET, &[("host", host)]), None, "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:7470",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.console.example",
            "",
        ] {
            assert_eq!(status(&Method::GET, &[("host", host)]), Some(421), "{host}");
        }
        assert_eq!(status(&Method::GET, &[]), Some(421));
    }

    #[test]
    fn a_change_comes_from_the_origin_that_it_is_sent_to() {
        let host = ("host", "127.0.0.1:7470");
        let sent = |header| status(&Method::POST, &[host, header]);
        for header in [
            ("origin", "http://127.0.0.1:7470"),
            ("origin", "https://127.0.0.1:7470"),
            ("sec-fetch-site", "same-origin"),
            ("accept", "*/*"),
        ] {
            assert_eq!(sent(header), None, "{header:?}");
        }
        for header in [
            ("origin", "null"),
            ("origin", ""),
            ("origin", "http://127.0.0.1:7471"),
            ("origin", "http://evil.example"),
            ("origin", "127.0.0.1:7470"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "none"),
        ] {
            assert_eq!(sent(header), Some(403), "{header:?}");
        }
    }
}
