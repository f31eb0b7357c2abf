//! All pages and changes. A page that is not here does not exist.

mod cluster;
mod domains;
mod health;
mod keys;
mod moving;
mod objects;
mod placement;
mod problems;
mod reconfigure;
#[cfg(test)]
mod tests;
mod traces;

use crate::door::Visit;
use crate::page;
use crate::routes::Routes;
use crate::trouble::Trouble;
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .page("/", get(|| async { Redirect::to("/cluster") }))
        .merge(cluster::routes())
        .merge(reconfigure::routes())
        .merge(page::routes::<placement::PlacementPage>())
        .merge(objects::routes())
        .merge(keys::routes())
        .merge(page::routes::<traces::Traces>())
        .merge(health::routes())
        .merge(assets())
}

/// The answer to an address without a page.
pub(crate) async fn missing(visit: Result<Visit, Response>) -> Response {
    let trouble = Trouble::not_found("there is no page at this address");
    trouble.page(visit.as_ref().ok().map(|it| it.frame("")).as_ref())
}

/// The files that browsers keep: style, script and icon.
fn assets() -> Routes {
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
        .fold(Routes::default(), |routes, (path, kind, text)| {
            let headers = [
                (header::CONTENT_TYPE, *kind),
                (header::CACHE_CONTROL, "max-age=300"),
            ];
            let file = move || async move { (headers, *text).into_response() };
            routes.page(path, get(file))
        })
}
