//! Asking servers and this machine for the spans that they remember.

use crate::door::Visit;
use crate::trouble::Trouble;
use areo_client::ServerInfo;
use areo_client::trust::AccessKey;
use areo_telemetry::SpanRecord;
use areo_telemetry::admin::{self, AdminError};
use axum::http::StatusCode;
use futures_util::future::join_all;
use std::time::Duration;

/// The longest wait for the spans of a server.
const PATIENCE: Duration = Duration::from_secs(2);

/// Spans of several processes, and the servers without an answer.
pub(super) struct SpanCollection {
    pub(super) records: Vec<SpanRecord>,
    pub(super) left_out: Vec<String>,
}

/// The spans that the servers have at these paths, and those of this machine. A session with a key shows it to the servers, which judge its grants; that of
/// the console itself is a process of this machine's user, as `areo trace` is.
///
/// # Errors
/// The servers are not known, or the key has no grant to see traces.
pub(super) async fn collect(visit: &Visit, paths: &[String]) -> Result<SpanCollection, Trouble> {
    let servers = visit.client().servers().await?;
    let asked = servers.iter().map(|server| ask(visit, server, paths));
    let answers = join_all(asked).await;
    let (mut records, mut left_out, mut answered) = (Vec::new(), Vec::new(), 0);
    for (server, answer) in servers.iter().zip(answers) {
        match answer {
            Ok(spans) => {
                answered += 1;
                records.extend(spans);
            }
            Err(AdminError::Status { status })
                if status == StatusCode::FORBIDDEN || status == StatusCode::UNAUTHORIZED =>
            {
                let sentence = format!(
                    "{} shows no traces to this session: that takes an access key with the grant 'trace', or a console that runs as the user of the server on its machine",
                    server.name
                );
                if visit.session.access_key.is_some() {
                    return Err(Trouble::new(StatusCode::FORBIDDEN, sentence));
                }
                left_out.push(sentence);
            }
            Err(why) => left_out.push(format!(
                "{} ({}) is left out: {why}",
                server.name, server.admin
            )),
        }
    }
    // What this machine remembers is of operations of all sessions: the grant to see it has been shown once a server has judged it.
    if visit.session.access_key.is_none() || answered > 0 {
        records.extend((visit.console.0.options.remembered)());
    }
    Ok(SpanCollection { records, left_out })
}

async fn ask(
    visit: &Visit,
    server: &ServerInfo,
    paths: &[String],
) -> Result<Vec<SpanRecord>, AdminError> {
    let key = visit.session.access_key.as_ref();
    let bearer = key.map(AccessKey::expose_text);
    let mut records = Vec::new();
    for path in paths {
        let lines = match &bearer {
            Some(bearer) => admin::get_as(bearer, &server.admin, path, PATIENCE).await?,
            None => admin::get(&server.admin, path, PATIENCE).await?,
        };
        // A crash may cut a line off.
        records.extend(lines.lines().filter_map(|it| serde_json::from_str(it).ok()));
    }
    Ok(records)
}
