//! A page: a view of the cluster, drawn for people, and the same view as JSON.

use crate::command::Command;
use crate::door::Visit;
use crate::html;
use crate::routes::Routes;
use crate::trouble::{Trouble, json};
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::StreamExt;
use futures_util::stream::unfold;
use maud::{Markup, html};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// The time between two looks for a live page.
const LIVE: Duration = Duration::from_secs(2);

/// One page. Its value is what the address asks for: the fields are those of the query.
pub(crate) trait Page: DeserializeOwned + Send + Sync + 'static {
    /// Its path. That with `.json` has the view, and that with `/live` the changes of its live part.
    const PATH: &'static str;
    /// The heading, which is its name in the navigation.
    const TITLE: &'static str;
    /// Everything that is on the page, as `.json` has it.
    type View: Serialize + Send + Sync;

    /// Asks the servers for the view.
    fn look(&self, visit: &Visit) -> impl Future<Output = Result<Self::View, Trouble>> + Send;

    /// The commands that show what the page shows, and do what its forms do.
    fn commands(&self, view: &Self::View) -> Vec<Command>;

    /// The part that shows the view: it is replaced when the view changes, so that it has no forms that people fill in.
    fn draw(&self, view: &Self::View) -> Markup;

    /// Forms and links below it, which stay as they are.
    fn forms(&self, _visit: &Visit, _view: &Self::View) -> Markup {
        html! {}
    }
}

/// The routes of a page.
pub(crate) fn routes<P: Page>() -> Routes {
    Routes::default()
        .page(P::PATH, get(shown::<P>))
        .page(&format!("{}.json", P::PATH), get(as_json::<P>))
        .page(&format!("{}/live", P::PATH), get(live::<P>))
}

fn parse<P: Page>(query: Option<&str>) -> Result<P, Trouble> {
    let parsed = serde_html_form::from_str(query.unwrap_or_default());
    parsed.map_err(|error| Trouble::usage(format!("the address makes no sense: {error}")))
}

async fn shown<P: Page>(visit: Visit, RawQuery(query): RawQuery) -> Response {
    let frame = visit.frame(P::PATH);
    match body::<P>(&visit, query).await {
        Ok(body) => html::document(P::TITLE, Some(&frame), &body).into_response(),
        Err(trouble) => trouble.page(Some(&frame)),
    }
}

async fn body<P: Page>(visit: &Visit, query: Option<String>) -> Result<Markup, Trouble> {
    let page: P = parse(query.as_deref())?;
    let view = page.look(visit).await?;
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    Ok(html! {
        h1 { (P::TITLE) }
        div data-live=(format!("{}/live{query}", P::PATH)) { (page.draw(&view)) }
        (page.forms(visit, &view))
        p.twin {
            "On the command line: "
            @for command in page.commands(&view) { code { "areo " (command) } " " }
            a href=(format!("{}.json{query}", P::PATH)) { "JSON" }
        }
    })
}

async fn as_json<P: Page>(visit: Visit, RawQuery(query): RawQuery) -> Response {
    let looked = async { parse::<P>(query.as_deref())?.look(&visit).await };
    match looked.await {
        Ok(view) => json(StatusCode::OK, &view),
        Err(trouble) => trouble.json(),
    }
}

/// Events with the live part, each time it has changed, for as long as the session goes on.
async fn live<P: Page>(visit: Visit, RawQuery(query): RawQuery) -> Result<Response, Trouble> {
    let page: P = parse(query.as_deref())?;
    let place = visit.session.stream().ok_or_else(|| {
        let sentence = "this session has too many live pages: close one";
        Trouble::new(StatusCode::TOO_MANY_REQUESTS, sentence)
    })?;
    let session = Arc::clone(&visit.session);
    let looks = unfold(
        (page, visit, None::<String>),
        |(page, visit, before)| async move {
            loop {
                tokio::time::sleep(LIVE).await;
                let drawn = match page.look(&visit).await {
                    Ok(view) => page.draw(&view),
                    Err(trouble) => html! { p.trouble role="alert" { (trouble.sentence) } },
                };
                let drawn = drawn.into_string();
                if before.as_ref() != Some(&drawn) {
                    let event = Event::default().data(&drawn);
                    return Some((Ok::<_, Infallible>(event), (page, visit, Some(drawn))));
                }
            }
        },
    );
    let looks = looks.take_until(async move {
        session.ended().await;
        drop(place);
    });
    Ok(Sse::new(looks)
        .keep_alive(KeepAlive::default())
        .into_response())
}
