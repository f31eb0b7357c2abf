//! A change that a form asks for.

use crate::Console;
use crate::door::{Visit, equal};
use crate::html::{self, Frame};
use crate::trouble::Trouble;
use axum::Router;
use axum::extract::RawForm;
use axum::http::StatusCode;
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
    let is_ours = token.is_some_and(|it| equal(it, &visit.session.form_token));
    if is_ours { Ok(()) } else { Err(forged()) }
}

/// The route of a change.
pub(crate) fn route<A: Action>() -> Router<Console> {
    Router::new().route(A::PATH, post(carry_out::<A>))
}

async fn carry_out<A: Action>(visit: Visit, RawForm(bytes): RawForm) -> Result<Response, Trouble> {
    let proof: Proof = serde_html_form::from_bytes(&bytes).map_err(|_| forged())?;
    check(&visit, proof.token.as_deref())?;
    let action: A = serde_html_form::from_bytes(&bytes)
        .map_err(|error| Trouble::usage(format!("the form is not complete: {error}")))?;
    Ok(match action.act(&visit).await? {
        Done::See(path) => Redirect::to(&path).into_response(),
        Done::Once(title, body) => {
            let frame = Frame {
                path: A::PATH,
                form_token: &visit.session.form_token,
                key: visit.session.key.as_deref(),
            };
            html::document(title, Some(&frame), &body).into_response()
        }
    })
}
