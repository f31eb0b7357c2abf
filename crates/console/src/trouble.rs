//! A request that was not carried out: its status, and one sentence for people and programs.

use crate::html::{self, Frame};
use areo_client::journal::{JournalError, RequestError};
use areo_client::trust::{RefusalKind, TrustError};
use areo_client::{
    ConnectError, CreateDomainError, Error, ForgetError, InvalidChoice, ReconfigError,
};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::html;
use serde::Serialize;
use std::fmt::Display;

/// The reason why a page cannot be shown, or a change was not made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) status: StatusCode,
    pub(crate) sentence: String,
}

impl Trouble {
    pub(crate) fn new(status: StatusCode, sentence: impl Display) -> Trouble {
        Trouble {
            status,
            sentence: sentence.to_string(),
        }
    }

    /// A form or an address that makes no sense.
    pub(crate) fn usage(sentence: impl Display) -> Trouble {
        Trouble::new(StatusCode::BAD_REQUEST, sentence)
    }

    pub(crate) fn not_found(sentence: impl Display) -> Trouble {
        Trouble::new(StatusCode::NOT_FOUND, sentence)
    }

    /// The trouble as JSON.
    pub(crate) fn json(&self) -> Response {
        json(self.status, &serde_json::json!({ "error": self.sentence }))
    }
}

/// An answer for programs, which ends with a line feed as the output of the command line does.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let text = serde_json::to_string(value).expect("views have text for keys") + "\n";
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (status, headers, text).into_response()
}

impl Trouble {
    /// The page that says it; within a session it leads to the others.
    pub(crate) fn page(&self, frame: Option<&Frame>) -> Response {
        let (title, what_next) = match self.status {
            StatusCode::FORBIDDEN => (
                "Not allowed",
                "The key of this session has no grant for it: sign out, and open the console with another key.",
            ),
            StatusCode::UNAUTHORIZED => ("Not signed in", "Open the console again."),
            StatusCode::NOT_FOUND => ("Not found", "Go back, or choose a page above."),
            StatusCode::SERVICE_UNAVAILABLE => (
                "Not available",
                "The page Cluster shows which servers are missing. Reload this page to try again.",
            ),
            StatusCode::CONFLICT => (
                "Changed meanwhile",
                "Look at the page again before you repeat it.",
            ),
            _ => ("Not done", "Go back, and change what the sentence names."),
        };
        let body = html! {
            h1 { (title) }
            p.trouble role="alert" { (self.sentence) }
            p { (what_next) }
            @if frame.is_none() { p { a href="/login" { "Sign in" } } }
        };
        (self.status, html::document(title, frame, &body)).into_response()
    }
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        self.page(None)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        let status = match &error {
            Error::NotFound { .. } | Error::Removed { .. } => StatusCode::NOT_FOUND,
            Error::VersionConflict { .. } | Error::Swept { .. } => StatusCode::CONFLICT,
            Error::Unavailable { .. } | Error::Undecided { .. } | Error::Obstructed { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Error::Unauthorised { .. } => StatusCode::FORBIDDEN,
            Error::Invalid { .. } => StatusCode::BAD_REQUEST,
            // An unknown outcome, damage, and what the library may come to tell apart.
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Trouble::new(status, error)
    }
}

impl From<TrustError> for Trouble {
    fn from(error: TrustError) -> Trouble {
        let status = match error.kind() {
            RefusalKind::Unauthorised => StatusCode::FORBIDDEN,
            RefusalKind::NotFound => StatusCode::NOT_FOUND,
            RefusalKind::Usage => StatusCode::BAD_REQUEST,
            RefusalKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Trouble::new(status, error)
    }
}

impl From<ConnectError> for Trouble {
    fn from(error: ConnectError) -> Trouble {
        let status = match &error {
            ConnectError::Unauthorised { .. } => StatusCode::FORBIDDEN,
            ConnectError::NoServer { .. } => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Trouble::new(status, error)
    }
}

impl From<JournalError> for Trouble {
    fn from(error: JournalError) -> Trouble {
        match error {
            JournalError::Operation { error } => error.into(),
            JournalError::Creation { error } => error.into(),
            error @ JournalError::Unreadable { .. } => {
                Trouble::new(StatusCode::INTERNAL_SERVER_ERROR, error)
            }
        }
    }
}

impl From<RequestError> for Trouble {
    fn from(error: RequestError) -> Trouble {
        match error {
            RequestError::Journal { error } => error.into(),
            RequestError::NoIntent { .. } => Trouble::not_found(error),
            RequestError::Refused { .. } => Trouble::new(StatusCode::CONFLICT, error),
        }
    }
}

impl From<InvalidChoice> for Trouble {
    fn from(error: InvalidChoice) -> Trouble {
        Trouble::usage(error)
    }
}

impl From<CreateDomainError> for Trouble {
    fn from(error: CreateDomainError) -> Trouble {
        match error {
            CreateDomainError::Choice { error } => error.into(),
            CreateDomainError::Other { error } => error.into(),
            CreateDomainError::Exists { .. } => Trouble::new(StatusCode::CONFLICT, error),
            CreateDomainError::Unavailable { .. } => {
                Trouble::new(StatusCode::SERVICE_UNAVAILABLE, error)
            }
            error => Trouble::new(StatusCode::INTERNAL_SERVER_ERROR, error),
        }
    }
}

impl From<ReconfigError> for Trouble {
    fn from(error: ReconfigError) -> Trouble {
        let status = match error {
            ReconfigError::Choice { error } => return error.into(),
            ReconfigError::Other { error } => return error.into(),
            ReconfigError::Conflict { .. } => StatusCode::CONFLICT,
            ReconfigError::Unreachable { .. } | ReconfigError::NotBegun { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Trouble::new(status, error)
    }
}

impl From<ForgetError> for Trouble {
    fn from(error: ForgetError) -> Trouble {
        match error {
            ForgetError::Choice { error } => error.into(),
            ForgetError::Other { error } => error.into(),
            ForgetError::Named { .. } | ForgetError::Serves { .. } => {
                Trouble::new(StatusCode::CONFLICT, error)
            }
            error => Trouble::new(StatusCode::INTERNAL_SERVER_ERROR, error),
        }
    }
}
