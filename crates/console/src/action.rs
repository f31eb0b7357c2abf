//! A change that a form asks for.

use crate::Console;
use crate::door::{Visit, equal};
use crate::html;
use crate::trouble::Trouble;
use axum::Router;
use axum::extract::RawForm;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, post};
use maud::Markup;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Mutex;

/// One change. Its value is what the form asks for: the fields are those of the form.
pub(crate) trait Action: DeserializeOwned + Send + 'static {
    /// The path that the form is sent to.
    const PATH: &'static str;

    /// Makes the change, by the session's client.
    fn act(self, visit: &Visit) -> impl Future<Output = Result<Done, Trouble>> + Send;
}

/// The page after a change.
pub(crate) enum Done {
    /// Another page, by its path and query.
    See(String),
    /// A page that is shown once, as one with a secret: its title, and its body.
    Once(&'static str, Markup),
}

#[derive(Deserialize)]
struct Proof {
    token: Option<String>,
}

/// The refusal of a form that was not made by a page of this session.
pub(crate) fn forged() -> Trouble {
    let sentence = "the form is not of this session: reload the page it is on, and send it again";
    Trouble::new(StatusCode::FORBIDDEN, sentence)
}

/// Checks the token that a form carries.
///
/// # Errors
/// Another page made the form.
pub(crate) fn check(visit: &Visit, token: Option<&str>) -> Result<(), Trouble> {
    compare(&visit.session.form_token, token)
}

fn compare(of_session: &str, given: Option<&str>) -> Result<(), Trouble> {
    let is_ours = given.is_some_and(|given| equal(given, of_session));
    if is_ours { Ok(()) } else { Err(forged()) }
}

/// The paths of all changes that have a route.
static PATHS: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());

/// The paths that have a route so far.
pub(crate) fn paths() -> Vec<&'static str> {
    let paths = PATHS.lock().expect("no holder of the lock panics");
    paths.iter().copied().collect()
}

/// The route of a change.
pub(crate) fn route<A: Action>() -> Router<Console> {
    route_to(A::PATH, post(carry_out::<A>))
}

/// The route of a change whose form has another format. Every change has its route from here, so that the tests of misuse know it.
pub(crate) fn route_to(path: &'static str, by: MethodRouter<Console>) -> Router<Console> {
    PATHS
        .lock()
        .expect("no holder of the lock panics")
        .insert(path);
    Router::new().route(path, by)
}

async fn carry_out<A: Action>(visit: Visit, RawForm(bytes): RawForm) -> Response {
    let frame = visit.frame(A::PATH);
    match done::<A>(&visit, &bytes).await {
        Ok(Done::See(path)) => Redirect::to(&path).into_response(),
        Ok(Done::Once(title, body)) => html::document(title, Some(&frame), &body).into_response(),
        Err(trouble) => trouble.page(Some(&frame)),
    }
}

async fn done<A: Action>(visit: &Visit, bytes: &[u8]) -> Result<Done, Trouble> {
    let proof: Proof = serde_html_form::from_bytes(bytes).map_err(|_| forged())?;
    check(visit, proof.token.as_deref())?;
    let action: A = serde_html_form::from_bytes(bytes)
        .map_err(|error| Trouble::usage(format!("the form is not complete: {error}")))?;
    action.act(visit).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_carries_the_token_of_its_session() {
        assert_eq!(compare("a1", Some("a1")), Ok(()));
        for given in [None, Some(""), Some("a"), Some("a2"), Some("a1a1")] {
            assert_eq!(compare("a1", given), Err(forged()), "{given:?}");
        }
    }

    #[test]
    fn every_change_has_a_path_of_its_own() {
        let paths = crate::action_paths();
        for path in ["/logout", "/objects/upload", "/keys/revoke"] {
            assert!(paths.contains(&path), "{path}: {paths:?}");
        }
    }
}
