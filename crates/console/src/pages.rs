//! All pages and changes. A page that is not here does not exist.

mod cluster;
mod health;
mod keys;
mod moving;
mod objects;
mod placement;
mod reconfigure;
#[cfg(test)]
mod tests;
mod traces;

use crate::trouble::Trouble;
use crate::{Console, page};
use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/", get(|| async { Redirect::to("/cluster") }))
        .merge(cluster::router())
        .merge(reconfigure::router())
        .merge(page::route::<placement::PlacementPage>())
        .merge(objects::router())
        .merge(keys::router())
        .merge(page::route::<traces::Traces>())
        .merge(health::router())
        .merge(assets())
        .fallback(async || Trouble::not_found("there is no page at this address"))
}

/// The files that browsers keep: style, script and icon.
fn assets() -> Router<Console> {
    const FILES: [(&str, &str, &str); 3] = [
        (
            "/assets/console.css",
            "text/css; charset=utf-8",
            include_str!("assets/console.css"),
        ),
        (
            "/assets/console.js",
            "text/javascript; charset=utf-8",
            include_str!("assets/console.js"),
        ),
        (
            "/assets/icon.svg",
            "image/svg+xml",
            include_str!("assets/icon.svg"),
        ),
    ];
    FILES
        .iter()
        .fold(Router::new(), |router, (path, kind, text)| {
            let headers = [
                (header::CONTENT_TYPE, *kind),
                (header::CACHE_CONTROL, "max-age=300"),
            ];
            router.route(
                path,
                get(move || async move { (headers, *text).into_response() }),
            )
        })
}
