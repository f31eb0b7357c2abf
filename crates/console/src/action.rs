//! A change that a form asks for.

use crate::Console;
use crate::door::Visit;
use crate::forms::{compare, forged, route_to};
use crate::html;
use crate::trouble::Trouble;
use axum::Router;
use axum::extract::RawForm;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use maud::Markup;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::future::Future;

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

/// Checks the token that a form carries.
///
/// # Errors
/// Another page made the form.
pub(crate) fn check(visit: &Visit, token: Option<&str>) -> Result<(), Trouble> {
    compare(&visit.session.form_token, token)
}

/// The route of a change.
pub(crate) fn route<A: Action>() -> Router<Console> {
    route_to(A::PATH, post(carry_out::<A>))
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
