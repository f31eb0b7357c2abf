//! A change that a form asks for.

use crate::door::Visit;
use crate::forms::{compare, forged};
use crate::html;
use crate::routes::Routes;
use crate::trouble::Trouble;
use axum::extract::RawForm;
use axum::extract::rejection::RawFormRejection;
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
    fn act(self, visit: &Visit) -> impl Future<Output = Result<NextPage, Trouble>> + Send;
}

/// The page after a change.
pub(crate) enum NextPage {
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
pub(crate) fn routes<A: Action>() -> Routes {
    Routes::default().form(A::PATH, post(carry_out::<A>))
}

async fn carry_out<A: Action>(visit: Visit, form: Result<RawForm, RawFormRejection>) -> Response {
    let frame = visit.frame(A::PATH);
    match next::<A>(&visit, form).await {
        Ok(NextPage::See(path)) => Redirect::to(&path).into_response(),
        Ok(NextPage::Once(title, body)) => {
            html::document(title, Some(&frame), &body).into_response()
        }
        Err(trouble) => trouble.page(Some(&frame)),
    }
}

async fn next<A: Action>(
    visit: &Visit,
    form: Result<RawForm, RawFormRejection>,
) -> Result<NextPage, Trouble> {
    let RawForm(bytes) =
        form.map_err(|error| Trouble::new(error.status(), format!("the form: {error}")))?;
    let proof: Proof = serde_html_form::from_bytes(&bytes).map_err(|_| forged())?;
    check(visit, proof.token.as_deref())?;
    let action: A = serde_html_form::from_bytes(&bytes)
        .map_err(|error| Trouble::usage(format!("the form is not complete: {error}")))?;
    action.act(visit).await
}
