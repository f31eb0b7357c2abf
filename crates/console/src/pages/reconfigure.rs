//! The page *Reconfigure*: the configurations of a domain, and the form that changes them.

mod create;
mod picture;
mod plan;
mod wish;

use super::cluster::status;
use super::domains::{DomainPage, Start};
use super::moving::{self, called};
use crate::action;
use crate::command::Command;
use crate::door::Visit;
use crate::html::{badge, jobs, query, table, token};
use crate::job::JobView;
use crate::page::{self, Page};
use crate::routes::Routes;
use crate::trouble::Trouble;
use areo_client::{ConfigurationGraph, ConfigurationInfo, DomainInfo, ReconfigKind, ServerHealth};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

pub(super) fn routes() -> Routes {
    Routes::default()
        .merge(page::routes::<Reconfigure>())
        .merge(page::routes::<plan::PlanPage>())
        .merge(action::routes::<plan::Start>())
        .merge(action::routes::<plan::Resume>())
        .merge(action::routes::<create::Create>())
}

#[derive(Deserialize)]
struct Reconfigure {
    domain: Option<String>,
    /// The last domain of the page before; empty: the first page.
    #[serde(default)]
    after: String,
}

/// A page of the domains, and of the chosen one everything that `areo domain show --json` prints.
#[derive(Serialize)]
struct View {
    #[serde(flatten)]
    page: DomainPage<DomainInfo>,
    chosen: Option<DomainDetails>,
    servers: Vec<ServerHealth>,
    jobs: Vec<JobView>,
}

#[derive(Serialize)]
struct DomainDetails {
    #[serde(flatten)]
    info: DomainInfo,
    graph: Option<ConfigurationGraph>,
    /// The reason why its configurations could not be read.
    unread: Option<String>,
}

impl DomainDetails {
    async fn find(visit: &Visit, name: &str) -> Result<DomainDetails, Trouble> {
        let domain = moving::find(visit.client(), name).await?;
        let (graph, unread) = match domain.graph().await {
            Ok(graph) => (Some(graph), None),
            Err(error @ areo_client::Error::Unauthorised { .. }) => return Err(error.into()),
            Err(error) => (None, Some(error.to_string())),
        };
        let pending = |graph: &ConfigurationGraph| {
            let entries = graph.nodes.iter().filter(|entry| !entry.is_final);
            entries.map(|entry| entry.configuration.clone()).collect()
        };
        let info = DomainInfo {
            name: domain.name().into(),
            id: domain.id(),
            configuration: domain.configuration(),
            pending: graph.as_ref().map(pending),
        };
        Ok(DomainDetails {
            info,
            graph,
            unread,
        })
    }

    /// The configuration that a change begins with.
    fn last(&self) -> &ConfigurationInfo {
        let pending = self.info.pending.iter().flatten();
        pending.last().unwrap_or(&self.info.configuration)
    }

    fn is_pending(&self) -> bool {
        self.info.pending.as_ref().is_some_and(|it| !it.is_empty())
    }
}

impl Page for Reconfigure {
    const PATH: &'static str = "/reconfigure";
    const TITLE: &'static str = "Reconfigure";
    type View = View;

    async fn look(&self, visit: &Visit) -> Result<View, Trouble> {
        let status = status(visit).await?;
        let chosen = match self.domain.as_deref().filter(|it| !it.is_empty()) {
            Some(name) => Some(DomainDetails::find(visit, name).await?),
            None => None,
        };
        Ok(View {
            page: self
                .start()
                .page(Reconfigure::PATH, status.all_domains(), |it| it),
            chosen,
            servers: status.servers,
            jobs: visit.jobs(),
        })
    }

    fn commands(&self, view: &View) -> Vec<Command> {
        let Some(chosen) = &view.chosen else {
            let create = "domain create NAME --dap KIND --k K --servers A,B,C";
            return ["domain ls", create].map(Command::new).into();
        };
        let all = ["domain show", "reconfig status", "reconfig plan"];
        let resume = chosen.is_pending().then_some("reconfig start --resume");
        let all = all.into_iter().chain(resume);
        all.map(|it| Command::new(it).argument(&chosen.info.name))
            .collect()
    }

    fn draw(&self, view: &View) -> Markup {
        html! {
            (jobs(&view.jobs))
            @match &view.chosen {
                Some(chosen) => (configurations(chosen)),
                None => {
                    p { "Servers, kind and code of a domain can be changed while clients read and write. Choose the domain:" }
                    (domains(&view.page.domains))
                    (self.start().links(Reconfigure::PATH, &view.page))
                }
            }
        }
    }

    fn forms(&self, visit: &Visit, view: &View) -> Markup {
        match &view.chosen {
            Some(chosen) => html! {
                @if chosen.is_pending() { (resume(visit, &chosen.info.name)) }
                (change(chosen, &view.servers))
                p { a href=(Reconfigure::PATH) { "Choose another domain" } }
            },
            None => create::form(visit, &view.servers),
        }
    }
}

impl Reconfigure {
    fn start(&self) -> Start {
        let after = self.after.clone();
        Start { after }
    }
}

fn domains(domains: &[DomainInfo]) -> Markup {
    let row = |it: &DomainInfo| {
        let c = &it.configuration;
        let is_pending = it.pending.as_ref().is_some_and(|it| !it.is_empty());
        vec![
            html! { a href={ (Reconfigure::PATH) (query(&[("domain", &it.name)])) } { (it.name) } },
            html! { (c.shape) },
            html! { (c.shape.quorum()) },
            html! { (c.shape.f()) },
            html! { (moving::members(c)) },
            html! { @if is_pending { (badge("warning", "a change is pending")) } @else { "none" } },
        ]
    };
    let rows: Vec<_> = domains.iter().map(row).collect();
    let columns = ["domain", "kind [n,k]", "quorum", "f", "servers", "change"];
    table("Domains", &columns, &rows)
}

fn configurations(chosen: &DomainDetails) -> Markup {
    let c = &chosen.info.configuration;
    let crashes = c.shape.f();
    html! {
        h2 { "Domain " (chosen.info.name) }
        p {
            "In use: " (called(c)) ". An operation needs the answers of " (c.shape.quorum()) " of " (c.shape.n()) " servers, so that "
            (crashes) @if crashes == 1 { " crash is" } @else { " crashes are" } " survived (f). "
            "The next configuration is decided by: " (c.decided_by) ". Way of reconfiguration: " (c.reconfig.word()) "."
        }
        @if let Some(unread) = &chosen.unread {
            p.trouble role="alert" { (unread) "; the page shows what the directory knows of the domain." }
        }
        @if let Some(graph) = &chosen.graph {
            div.wide tabindex="0" role="region" aria-label="Configurations" { (picture::sequence(graph)) }
        }
        @if chosen.is_pending() {
            p.notice { "A change is pending: another client makes it, or has left it. Reads and writes go on. Any client can finish it." }
        }
    }
}

fn resume(visit: &Visit, domain: &str) -> Markup {
    html! {
        form method="post" action={ (<plan::Resume as action::Action>::PATH) } {
            (token(&visit.session.form_token))
            input type="hidden" name="domain" value=(domain);
            button { "Resume the pending change" }
        }
    }
}

/// A box to tick for each server: its name, its state, and whether it is ticked.
fn boxes(servers: &[ServerHealth], is_ticked: &dyn Fn(&ServerHealth) -> bool) -> Markup {
    html! {
        fieldset {
            legend { "Servers" }
            @for it in servers {
                label.check {
                    input type="checkbox" name="server" value=(it.server.name) checked[is_ticked(it)];
                    (it.server.name)
                    @if it.state() != "serving" { " (" (it.state()) ")" }
                    @if it.server.leaving { " (leaving)" }
                }
            }
        }
    }
}

/// The form for a change, which leads to its plan.
fn change(chosen: &DomainDetails, servers: &[ServerHealth]) -> Markup {
    let last = chosen.last();
    let is_member = |it: &ServerHealth| last.members.iter().any(|m| m.id == it.server.id);
    let changes_all = last.reconfig == ReconfigKind::Ares;
    html! {
        h2 { "Change it" }
        form method="get" action=(plan::PlanPage::PATH) {
            input type="hidden" name="domain" value=(chosen.info.name);
            (boxes(servers, &is_member))
            @if changes_all {
                label {
                    "Kind"
                    select name="kind" {
                        option value="" { "as it is: " (last.shape.dap().word()) }
                        (wish::kinds(None))
                    }
                }
                label {
                    "k, fragments that make a value"
                    input type="number" name="k" min="1" max="254" placeholder=(last.shape.k());
                }
                label {
                    "Who decides on later changes"
                    input name="consensus" placeholder=(last.decided_by) pattern="members|etcd=.+";
                }
            } @else {
                p { "This domain is reconfigured by " (last.reconfig.word()) ": its servers alone can change." }
            }
            fieldset {
                legend { "Accept" }
                label.check { input type="checkbox" name="force" value="on"; "servers that do not serve at present" }
                label.check { input type="checkbox" name="allow_f0" value="on"; "a domain that survives no crash" }
            }
            button { "Show the plan" }
        }
        p { "Nothing is changed before you have seen the plan. A field that you leave empty stays as it is; a domain that becomes erasure-coded gets k = servers − 2, so that it survives one crash." }
    }
}

#[cfg(test)]
mod tests;
