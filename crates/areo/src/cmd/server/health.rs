//! `areo server health`: whether a server serves, as its admin port tells a container engine.

use super::{DEFAULT_LISTEN, default_admin};
use crate::args::{HealthOf, HealthQuestion};
use crate::config;
use crate::exit::{Code, Failure, Outcome};
use crate::session::{self, Session};
use areo_telemetry::admin;
use serde::Serialize;

/// The output with `--json`.
#[derive(Serialize)]
struct HealthReport<'a> {
    /// The address of the admin port.
    admin: &'a str,
    /// The asked path: `live`, `ready` or `cluster`.
    health: &'static str,
}

pub(super) fn run(session: &Session, question: HealthQuestion) -> Outcome {
    let settings = &session.settings;
    let set = settings.get(question.admin, "server.admin", config::text)?;
    let listen = settings.get(None, "server.listen", config::text)?;
    let usual = || default_admin(listen.as_deref().unwrap_or(DEFAULT_LISTEN));
    let admin = set.map_or_else(usual, Ok)?;
    session::run(ask(session, &admin, question.of.unwrap_or_default()), "")
}

async fn ask(session: &Session, admin: &str, of: HealthOf) -> Outcome {
    let patience = session.timeout()?;
    let (health, lack) = match of {
        HealthOf::Live => ("live", "does not run"),
        HealthOf::Ready => ("ready", "does not serve"),
        HealthOf::Cluster => ("cluster", "sees no quorum of a domain, or does not serve"),
    };
    let answer = admin::get(admin, &format!("/health/{health}"), patience).await;
    answer.map_err(|why| {
        let sentence = format!("the server with its admin port at {admin} {lack}: {why}");
        Failure::new(Code::Unavailable, sentence)
    })?;
    let out = session.out;
    if out.json {
        out.object(&HealthReport { admin, health })?;
    } else if !out.quiet {
        out.line(health)?;
    }
    Ok(())
}
