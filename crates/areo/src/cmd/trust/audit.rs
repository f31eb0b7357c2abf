//! `areo audit`: who changed the trust of the cluster, and when.

use super::{failure, now_seconds, show_seconds};
use crate::args;
use crate::exit::Outcome;
use crate::output::columns;
use crate::session::{self, Session};
use areo_client::trust::AuditInfo;
use areo_trust::protocol::KeyRow;
use areo_trust::registry::{Actor, AuditRecord};
use std::time::Duration;

pub(in crate::cmd) fn run(session: &Session, command: &args::Audit) -> Outcome {
    let args::Audit::Ls { since } = command;
    session::run(ls(session, *since), "")
}

async fn ls(session: &Session, since: Option<Duration>) -> Outcome {
    let client = session.connect().await?;
    let since = since.map_or(0, |since| now_seconds().saturating_sub(since.as_secs()));
    let changes = client.trust().audit(since).await.map_err(failure)?;
    let keys = client.trust().keys().await.map_err(failure)?;
    let out = session.out;
    if out.json {
        let mut changes = changes.iter().map(AuditInfo::from);
        changes.try_for_each(|change| out.object(&change))?;
    } else {
        let row = |change: &AuditRecord| {
            vec![
                show_seconds(change.origin.now_seconds),
                change.what.word().to_owned(),
                change.about.clone(),
                by(change.origin.by, &keys),
                change.origin.address.clone(),
            ]
        };
        let rows: Vec<_> = changes.iter().map(row).collect();
        let columns = columns("time | what | about | by | address");
        out.short_table(&columns, &["time", "what", "by"], &rows)?;
    }
    client.close().await;
    Ok(())
}

/// A key by its name, which people know.
fn by(actor: Actor, keys: &[KeyRow]) -> String {
    let name = match actor {
        Actor::Key(id) => keys.iter().find(|key| key.id == id).map(|key| &key.name),
        Actor::Server(_) | Actor::Founder => None,
    };
    name.map_or_else(|| actor.to_string(), |name| format!("key {name}"))
}
