//! The redundancy of domains, and the objects that are not at all of their servers.

use crate::html::{badge, table, token};
use crate::pages::domains::field;
use areo_client::{BelowRedundancy, ClusterStatus, DomainHealth, DomainInfo};
use maud::{Markup, html};
use serde::Serialize;

/// A domain as `areo status --json` shows its health, in sentences too.
#[derive(Serialize)]
pub(super) struct DomainView {
    pub(super) name: String,
    redundancy: String,
    verified: String,
    #[serde(flatten)]
    health: DomainHealth,
}

impl DomainView {
    pub(super) fn of(status: &ClusterStatus, domain: &DomainInfo) -> DomainView {
        let health = status.health_of(domain);
        DomainView {
            name: domain.name.clone(),
            redundancy: health.show_redundancy(),
            verified: health.show_verified(),
            health,
        }
    }

    fn state(&self) -> Markup {
        let health = &self.health;
        match () {
            () if !health.serves => badge("bad", "no quorum"),
            () if !health.writes => badge("bad", "no room for writes"),
            () if !health.missing.is_empty() => badge("warning", "below redundancy"),
            () if health.proven_seconds.is_some() => badge("good", "whole"),
            () => badge("plain", "not known yet"),
        }
    }
}

pub(super) fn draw(domains: &[DomainView]) -> Markup {
    let row = |it: &DomainView| {
        vec![
            html! { (it.name) },
            it.state(),
            html! { (it.redundancy) },
            html! { (it.verified) },
        ]
    };
    let rows: Vec<_> = domains.iter().map(row).collect();
    let columns = ["domain", "state", "redundancy", "all records verified"];
    html! {
        (table("Redundancy of domains", &columns, &rows))
        p { "Servers repair what they lack by themselves. Below, all objects of a domain can be looked at, and repaired at once." }
    }
}

pub(super) fn forms(form_token: &str, domains: &[DomainView]) -> Markup {
    let names: Vec<&str> = domains.iter().map(|it| it.name.as_str()).collect();
    let field = |id| field(id, "default", &names);
    html! {
        h2 { "Look at all objects, or repair them now" }
        form method="post" action="/health/look" {
            (token(form_token))
            (field("look-domains"))
            button { "List objects below redundancy" }
        }
        form method="post" action="/health/repair" {
            (token(form_token))
            (field("repair-domains"))
            label for="key" { "One object alone" }
            input id="key" name="key" autocomplete="off" placeholder="all objects";
            button { "Repair now" }
        }
    }
}

/// An object that is not at all of its servers, in a sentence.
pub(super) fn sentence(object: &BelowRedundancy) -> String {
    let listed = |word: &str, servers: &[String]| match servers {
        [] => String::new(),
        servers => format!(", {word} {}", servers.join(", ")),
    };
    let error = object.error.as_ref();
    let sound: Vec<String> = object
        .versions
        .iter()
        .map(|it| {
            format!(
                ", version {} is sound at {}",
                it.version,
                it.sound.join(", ")
            )
        })
        .collect();
    format!(
        "{} '{}': {}{}{}{}{}{}",
        object.kind,
        object.key,
        object.state.word(),
        listed("lacking at", &object.lacking),
        listed("damaged at", &object.damaged),
        listed("not listed by", &object.silent),
        sound.concat(),
        error.map_or_else(String::new, |it| format!(": {it}")),
    )
}
