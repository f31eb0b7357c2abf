//! One key: its grants, and everything that can be done about it.

use super::{about_grants, change, grants_field};
use crate::action::Action;
use crate::command::Command;
use crate::door::Visit;
use crate::html::{badge, token};
use crate::page::Page;
use crate::trouble::Trouble;
use areo_client::trust::{ANONYMOUS_NAME, KeyInfo};
use areo_client::units::show_time;
use maud::{Markup, html};
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct KeyPage {
    pub(super) id: String,
}

impl Page for KeyPage {
    const PATH: &'static str = "/keys/key";
    const TITLE: &'static str = "Key";
    /// A line of `areo key ls --json`.
    type View = KeyInfo;

    async fn look(&self, visit: &Visit) -> Result<KeyInfo, Trouble> {
        let keys = super::all(visit).await?;
        let key = keys.into_iter().find(|key| key.id == self.id);
        key.ok_or_else(|| Trouble::not_found(format!("there is no key with the id '{}'", self.id)))
    }

    fn commands(&self, key: &KeyInfo) -> Vec<Command> {
        let change = |verb: &str| Command::new(verb).argument(&key.id);
        let grant = key.grants.iter();
        let grant = grant.fold(change("key grant"), |all, it| all.option("--grant", it));
        let secret = match key.state {
            "revoked" => return vec![Command::new("key ls")],
            "rotating" => change("key retire"),
            _ => change("key rotate"),
        };
        let has_secret = key.name != ANONYMOUS_NAME;
        let secret = has_secret.then_some(secret);
        let all = [grant].into_iter().chain(secret);
        all.chain([change("key revoke")]).collect()
    }

    fn draw(&self, key: &KeyInfo) -> Markup {
        let colour = if key.state == "good" {
            "good"
        } else {
            "warning"
        };
        html! {
            dl {
                dt { "Name" } dd { (key.name) }
                dt { "Id" } dd { (key.id) }
                dt { "State" } dd { (badge(colour, key.state)) }
                @if let Some(seconds) = key.revoked_seconds { dt { "Revoked" } dd { (show_time(seconds.saturating_mul(1000))) } }
                dt { "Grants" } dd { @for grant in &key.grants { code { (grant) } " " } }
            }
        }
    }

    fn forms(&self, visit: &Visit, key: &KeyInfo) -> Markup {
        let named = html! {
            (token(&visit.session.form_token))
            input type="hidden" name="id" value=(key.id);
        };
        if key.state == "revoked" {
            return html! { p { "A key that was revoked counts nowhere, and never again." } };
        }
        html! {
            h2 { "Grants" }
            form method="post" action=(change::ChangeGrants::PATH) {
                (named)
                (grants_field(&key.grants))
                button { "Change grants" }
            }
            (about_grants())
            @if key.name != ANONYMOUS_NAME { (secrets(key, &named)) }
            h2 { "Revoke" }
            p { "Servers refuse the key within seconds, for ever. Programs that have it stop." }
            form method="post" action=(change::Revoke::PATH) {
                (named)
                label.check { input type="checkbox" name="confirm" value="yes" required; "Revoke it" }
                button.danger { "Revoke key" }
            }
        }
    }
}

fn secrets(key: &KeyInfo, named: &Markup) -> Markup {
    html! {
        h2 { "Secret" }
        @if key.state == "rotating" {
            p { "Two secrets count. Drop the older one once all programs have the newer." }
            form method="post" action=(change::Retire::PATH) {
                (named)
                label.check { input type="checkbox" name="confirm" value="yes" required; "All programs have the newer secret" }
                button.danger { "Drop older secret" }
            }
        } @else {
            p { "A second secret is made and shown once. Both count until the older one is dropped here." }
            form method="post" action=(change::Rotate::PATH) {
                (named)
                button { "Make second secret" }
            }
        }
    }
}
