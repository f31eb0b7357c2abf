//! A file of a browser becomes an object. It is streamed: a console has a few blocks of it in memory.

use super::{object, object_path};
use crate::door::Visit;
use crate::page::Page;
use crate::routes::Routes;
use crate::trouble::Trouble;
use crate::{action, forms, html};
use areo_client::{PutOptions, StreamError, limits};
use axum::extract::multipart::{Field, MultipartError, MultipartRejection};
use axum::extract::{DefaultBodyLimit, Multipart};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use futures_util::TryStreamExt;
use maud::{Markup, html};
use std::io;
use std::pin::pin;
use tokio_util::io::StreamReader;

const PATH: &str = "/objects/upload";
/// Bytes of a field that is no file, at most.
const FIELD_BYTES: usize = 4096;

pub(super) fn routes() -> Routes {
    let form = post(upload).layer(DefaultBodyLimit::disable());
    Routes::default().form(PATH, form)
}

pub(super) fn form(form_token: &str, domain: &str, prefix: &str) -> Markup {
    html! {
        h2 { "Upload" }
        form method="post" action=(PATH) enctype="multipart/form-data" {
            // The file comes last: what is before it says whether and where it is written.
            (html::token(form_token))
            input type="hidden" name="domain" value=(domain);
            label { "Key; one that ends with / gets the name of the file" input name="key" value=(prefix); }
            label { "File" input type="file" name="file" required; }
            button { "Upload" }
        }
        p { "An object that has this key already is replaced." }
    }
}

/// The form on its way: the next part of it has this name.
struct Parts(Multipart);

impl Parts {
    async fn next(&mut self, name: &str) -> Result<Field<'_>, Trouble> {
        let field = self.0.next_field().await.map_err(broken)?;
        field.filter(|it| it.name() == Some(name)).ok_or_else(|| {
            Trouble::usage(format!(
                "the form has no field '{name}' at its place: token, domain, key and file follow one another"
            ))
        })
    }

    /// The text of the next field, which is short.
    async fn text(&mut self, name: &str) -> Result<String, Trouble> {
        let mut field = self.next(name).await?;
        let mut text = Vec::new();
        while let Some(piece) = field.chunk().await.map_err(broken)? {
            text.extend_from_slice(&piece);
            if text.len() > FIELD_BYTES {
                let sentence = format!("the field '{name}' has more than {FIELD_BYTES} bytes");
                return Err(Trouble::new(StatusCode::PAYLOAD_TOO_LARGE, sentence));
            }
        }
        String::from_utf8(text).map_err(|_| Trouble::usage(format!("'{name}' is no text")))
    }
}

#[allow(clippy::needless_pass_by_value)] // For `map_err`.
fn broken(error: MultipartError) -> Trouble {
    let sentence = format!("the file did not come as a whole, and nothing was written: {error}");
    match error.status() {
        // The browser stopped, or went away.
        StatusCode::INTERNAL_SERVER_ERROR => Trouble::usage(sentence),
        status => Trouble::new(status, sentence),
    }
}

async fn upload(visit: Visit, form: Result<Multipart, MultipartRejection>) -> Response {
    let Ok(form) = form else {
        return forms::forged().page(Some(&visit.frame(PATH)));
    };
    // A task of its own: it tidies up, too, after a browser that goes away in the middle, when its request is dropped.
    let writing = tokio::spawn(write(visit.clone(), Parts(form)));
    match writing.await.expect("an upload does not panic") {
        Ok(written) => Redirect::to(&written).into_response(),
        Err(trouble) => trouble.page(Some(&visit.frame(PATH))),
    }
}

/// Writes the object; the path of its page.
async fn write(visit: Visit, mut parts: Parts) -> Result<String, Trouble> {
    let given = parts.text("token").await.map_err(|trouble| {
        // A form of another kind has no token where this one has it.
        let is_usage = trouble.status == StatusCode::BAD_REQUEST;
        if is_usage { forms::forged() } else { trouble }
    })?;
    action::check(&visit, Some(&given))?;
    let domain = parts.text("domain").await?;
    let mut key = parts.text("key").await?;
    let file = parts.next("file").await?;
    if key.is_empty() || key.ends_with('/') {
        let name = file.file_name().filter(|name| !name.is_empty());
        let name =
            name.ok_or_else(|| Trouble::usage("no file was chosen, and no key was given"))?;
        key.push_str(name);
    }
    let is_short = |it: &&str| it.len() <= limits::CONTENT_TYPE_BYTES;
    let options = PutOptions {
        content_type: file.content_type().filter(is_short).map(str::to_owned),
        ..PutOptions::default()
    };
    let domain = visit.client().domain(&domain).await?;
    let source = pin!(StreamReader::new(file.map_err(io::Error::other)));
    let written = domain.put_stream(&key, source, options).await;
    written.map_err(|error| match error {
        StreamError::Store(error) => error.into(),
        StreamError::Local(error) => Trouble::usage(format!(
            "the file did not come as a whole, and nothing was written: {error}"
        )),
    })?;
    Ok(object_path(object::ObjectPage::PATH, domain.name(), &key))
}
