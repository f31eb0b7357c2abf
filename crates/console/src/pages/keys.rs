//! The page *Keys*: who may do what, and who changed that.

mod change;
mod create;
mod key;
mod secret;

use crate::action::{self, Action, NextPage};
use crate::command::Command;
use crate::door::Visit;
use crate::html::{badge, query, table, token};
use crate::page::{self, Page};
use crate::routes::Routes;
use crate::trouble::Trouble;
use areo_client::trust::{AuditInfo, Grant, Grants, KeyInfo};
use areo_client::units::show_time;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// The changes of trust that are shown are younger.
const AUDIT: Duration = Duration::from_hours(30 * 24);
/// The number of them that is shown at most.
const CHANGES: usize = 50;

pub(super) fn routes() -> Routes {
    Routes::default()
        .merge(page::routes::<Keys>())
        .merge(page::routes::<key::KeyPage>())
        .merge(action::routes::<create::Create>())
        .merge(action::routes::<change::ChangeGrants>())
        .merge(action::routes::<change::Rotate>())
        .merge(action::routes::<change::Retire>())
        .merge(action::routes::<change::Revoke>())
}

/// The page that shows a key after a change.
fn after(id: &str) -> NextPage {
    NextPage::See(key_path(id))
}

/// The address of the page of a key.
fn key_path(id: &str) -> String {
    format!("{}{}", key::KeyPage::PATH, query(&[("id", id)]))
}

#[derive(Deserialize)]
struct Keys {}

/// The lines of `areo key ls --json`, and the latest lines of `areo audit ls --json`, the last one first.
#[derive(Serialize)]
struct View {
    keys: Vec<KeyInfo>,
    audit: Vec<AuditInfo>,
}

/// All keys, by name.
async fn all(visit: &Visit) -> Result<Vec<KeyInfo>, Trouble> {
    let rows = visit.client().trust().keys().await?;
    let mut keys: Vec<KeyInfo> = rows.iter().map(KeyInfo::from).collect();
    keys.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
    Ok(keys)
}

impl Page for Keys {
    const PATH: &'static str = "/keys";
    const TITLE: &'static str = "Keys";
    type View = View;

    async fn look(&self, visit: &Visit) -> Result<View, Trouble> {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let since = now.saturating_sub(AUDIT).as_secs();
        let changes = visit.client().trust().audit(since).await?;
        let changes = changes.iter().rev().take(CHANGES);
        Ok(View {
            keys: all(visit).await?,
            audit: changes.map(AuditInfo::from).collect(),
        })
    }

    fn commands(&self, _view: &View) -> Vec<Command> {
        let verbs = [
            "key ls",
            "audit ls --since 30d",
            "key create NAME --grant GRANT",
        ];
        verbs.map(Command::new).into()
    }

    fn draw(&self, view: &View) -> Markup {
        html! {
            (keys(&view.keys))
            (audit(view))
        }
    }

    fn forms(&self, visit: &Visit, _view: &View) -> Markup {
        html! {
            h2 { "New key" }
            form method="post" action=(create::Create::PATH) {
                (token(&visit.session.form_token))
                label { "Name" input name="name" required maxlength="63"; }
                (grants_field(&[]))
                button { "Make key" }
            }
            (about_grants())
        }
    }
}

fn keys(keys: &[KeyInfo]) -> Markup {
    let row = |key: &KeyInfo| {
        let colour = match key.state {
            "good" => "good",
            "rotating" => "warning",
            _ => "plain",
        };
        vec![
            html! { a href=(key_path(&key.id)) { (key.name) } },
            html! { (key.id) },
            badge(colour, key.state),
            html! { @for grant in &key.grants { code { (grant) } " " } },
        ]
    };
    let rows: Vec<_> = keys.iter().map(row).collect();
    table("Keys", &["key", "id", "state", "grants"], &rows)
}

fn audit(view: &View) -> Markup {
    let by = |change: &AuditInfo| {
        let id = change.by.strip_prefix("key ");
        let key = id.and_then(|id| view.keys.iter().find(|key| key.id == id));
        key.map_or_else(|| change.by.clone(), |key| format!("key {}", key.name))
    };
    let row = |change: &AuditInfo| {
        vec![
            html! { (show_time(change.seconds.saturating_mul(1000))) },
            html! { (change.what) },
            html! { (change.about) },
            html! { (by(change)) },
            html! { (change.address) },
        ]
    };
    let rows: Vec<_> = view.audit.iter().map(row).collect();
    let columns = ["time", "what", "about", "by", "address"];
    table("Latest changes", &columns, &rows)
}

/// The field for grants, of which each is a line.
fn grants_field(grants: &[String]) -> Markup {
    html! {
        label {
            "Grants, each on a line of its own"
            textarea name="grants" rows="4" cols="40" required placeholder="read,write,list:default" { (grants.join("\n")) }
        }
    }
}

fn about_grants() -> Markup {
    html! {
        p {
            "A grant is of a domain, as " code { "read,write,list:photos" } " with the verbs read, write, list, delete and admin; "
            code { "photos-*" } " are all domains whose names begin so, and " code { "*" } " all of them. Or it is of the whole cluster: "
            code { "status" } ", " code { "reconfig" } ", " code { "keys" } ", " code { "join" } ", " code { "trace" } ", " code { "gateway" } "."
        }
    }
}

/// Reads the lines of the field.
fn parse_grants(text: &str) -> Result<Grants, Trouble> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let grants: Result<Vec<Grant>, _> = lines.map(str::parse).collect();
    let grants = grants.and_then(Grants::new).map_err(Trouble::usage)?;
    if grants.all().is_empty() {
        return Err(Trouble::usage(
            "a key needs a grant: write one, as read,list:default",
        ));
    }
    Ok(grants)
}

#[cfg(test)]
mod tests;
