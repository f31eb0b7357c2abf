//! The page that takes a server out of all domains: another one takes its place, or domains go on with one less.

use super::status;
use crate::action::{Action, NextPage};
use crate::command::Command;
use crate::door::Visit;
use crate::html::{badge, left_out, query, table, token};
use crate::job::{Job, Part};
use crate::page::Page;
use crate::pages::moving::{MoveProgress, called, members};
use crate::trouble::Trouble;
use areo_client::units::show_count;
use areo_client::{
    ClusterStatus, ConfigurationInfo, Departure, ReconfigError, ServerHealth, Successor,
};
use axum::http::StatusCode;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The page with the plan.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Replacement(Choice);

/// Takes the server out of all domains.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Replace(Choice);

/// The server that goes, and the one that comes.
#[derive(Deserialize)]
struct Choice {
    server: String,
    /// The server that comes; empty: a free one.
    #[serde(default)]
    with: String,
    /// Present: where no server is free, a domain goes on with one less.
    fewer: Option<String>,
}

impl Choice {
    fn successor(&self) -> Successor {
        match (self.with.as_str(), &self.fewer) {
            ("", None) => Successor::Free,
            ("", Some(_)) => Successor::FreeOrNone,
            (with, _) => Successor::Server(with.to_owned()),
        }
    }

    fn command(&self) -> Command {
        let command = match self.successor() {
            Successor::Server(with) => Command::new("server replace").option("--with", &with),
            Successor::FreeOrNone => Command::new("server drain"),
            Successor::Free | Successor::Preferred(_) => Command::new("server replace"),
        };
        command.argument(&self.server)
    }
}

/// The address of the page for this server.
pub(super) fn address(health: &ServerHealth) -> String {
    format!(
        "{}{}",
        Replacement::PATH,
        query(&[("server", &health.server.name)])
    )
}

/// The plan. Nothing was changed by looking at it.
#[derive(Serialize)]
pub(super) struct View {
    server: String,
    /// The state of the server, as the status says it.
    state: Option<String>,
    /// Servers that may take its place.
    candidates: Vec<String>,
    /// The address of a server that a new one can join.
    join: Option<String>,
    domains: Vec<Step>,
    /// The reason why it cannot be done so.
    refused: Option<String>,
}

/// The step in one domain.
#[derive(Serialize)]
struct Step {
    domain: String,
    /// The server that comes; `None` if the domain goes on with one less.
    replaced_by: Option<String>,
    old: Option<ConfigurationInfo>,
    new: Option<ConfigurationInfo>,
    /// Crashes that the domain survives now, and with the servers of the plan.
    survives_now: Option<usize>,
    survives_then: Option<usize>,
    /// The reason why its configurations could not be read.
    error: Option<String>,
}

impl Step {
    fn of(status: &ClusterStatus, departure: &Departure) -> Step {
        let (old, new) = (departure.old().ok(), departure.planned().ok());
        let survives = |c: &ConfigurationInfo| {
            let serving = status.serving_of(c).count();
            serving.saturating_sub(c.shape.quorum())
        };
        let coming = old.zip(new).and_then(|(old, new)| {
            let is_new = |id| old.members.iter().all(|it| it.id != id);
            new.members.iter().find(|it| is_new(it.id))
        });
        Step {
            domain: departure.domain().name().to_owned(),
            replaced_by: coming.map(|it| it.name.clone()),
            survives_now: old.map(survives),
            survives_then: new.map(survives),
            error: departure.old().err().map(ToString::to_string),
            old: old.cloned(),
            new: new.cloned(),
        }
    }
}

impl Page for Replacement {
    const PATH: &'static str = "/cluster/replace";
    const TITLE: &'static str = "Replace a server";
    type View = View;

    async fn look(&self, visit: &Visit) -> Result<View, Trouble> {
        let status = status(visit).await?;
        let successor = self.0.successor();
        let planned = visit.client().departures(&self.0.server, &successor).await;
        let (domains, refused) = match planned {
            Ok(departures) => (
                departures.iter().map(|it| Step::of(&status, it)).collect(),
                None,
            ),
            Err(error @ (ReconfigError::Choice { .. } | ReconfigError::Unreachable { .. })) => {
                (Vec::new(), Some(error.to_string()))
            }
            Err(error) => return Err(error.into()),
        };
        let mut servers = status.servers.iter();
        let own = servers.find(|it| it.server.name == self.0.server);
        let may_come = |it: &&ServerHealth| {
            let serves = it.status.answered().is_some_and(|it| it.serving);
            serves && !it.server.leaving && it.server.name != self.0.server
        };
        let candidates: Vec<_> = status.servers.iter().filter(may_come).collect();
        Ok(View {
            server: self.0.server.clone(),
            state: own.map(|it| it.state().to_owned()),
            join: candidates.first().map(|it| it.server.address.clone()),
            candidates: candidates.iter().map(|it| it.server.name.clone()).collect(),
            domains,
            refused,
        })
    }

    fn commands(&self, _view: &View) -> Vec<Command> {
        vec![self.0.command()]
    }

    fn draw(&self, view: &View) -> Markup {
        let server = &view.server;
        html! {
            p {
                "The server " b { (server) } " leaves every domain, and another server takes its place. "
                "The objects of each domain are moved while clients read and write."
            }
            @match view.state.as_deref() {
                Some("serving") => p.notice { (server) " serves at present. Let it run until the change is done: objects are read from it, too." },
                Some(state) => p.notice { (server) " does not serve: " (state) ". What it held is made again from the other servers." },
                None => {}
            }
            @if let Some(refused) = &view.refused {
                p.trouble role="alert" { (refused) }
                p {
                    "Choose another server below, let domains go on with one less, or add a server: "
                    code { "areo token create > token" } " makes a token, and on the new machine "
                    code { "areo server --data DIR --listen HOST:PORT --join " (view.join.as_deref().unwrap_or("ADDRESS")) " --token token" }
                    " joins the cluster. This page shows the plan once it serves."
                }
            } @else if view.domains.is_empty() {
                p.done { "No domain names " (server) ": there is nothing to replace. Once it is stopped, the page Cluster can forget it." }
            } @else {
                (table("What will change", &COLUMNS, &view.domains.iter().take(ROWS).map(row).collect::<Vec<_>>()))
                (left_out(view.domains.len(), ROWS, "domain"))
            }
        }
    }

    fn forms(&self, visit: &Visit, view: &View) -> Markup {
        let choice = &self.0;
        html! {
            @if !view.domains.is_empty() {
                form method="post" action=(Replace::PATH) {
                    (token(&visit.session.form_token))
                    input type="hidden" name="server" value=(choice.server);
                    input type="hidden" name="with" value=(choice.with);
                    @if choice.fewer.is_some() { input type="hidden" name="fewer" value="on"; }
                    button.danger { "Replace " (view.server) " now" }
                }
            }
            h2 { "Another plan" }
            form method="get" action=(Replacement::PATH) {
                input type="hidden" name="server" value=(choice.server);
                label {
                    "Replace it by"
                    select name="with" {
                        option value="" selected[choice.with.is_empty()] { "a free server, chosen for each domain" }
                        @for name in &view.candidates {
                            option value=(name) selected[*name == choice.with] { (name) }
                        }
                    }
                }
                label.check {
                    input type="checkbox" name="fewer" value="on" checked[choice.fewer.is_some()];
                    "where no server is free, go on with one less"
                }
                button { "Show the plan" }
            }
        }
    }
}

/// Domains that are named: a server may be in ten thousand.
const ROWS: usize = 100;

const COLUMNS: [&str; 6] = [
    "domain",
    "now",
    "afterwards",
    "f",
    "survives crashes now",
    "survives crashes afterwards",
];

fn row(step: &Step) -> Vec<Markup> {
    let shown = |c: &Option<ConfigurationInfo>| {
        html! { @if let Some(c) = c { (c.shape) " on " (members(c)) } @else { "not known" } }
    };
    let count = |it: Option<usize>| match it {
        Some(0) => badge("warning", "0"),
        Some(crashes) => badge("good", &crashes.to_string()),
        None => html! { "–" },
    };
    let f = step.old.as_ref().zip(step.new.as_ref());
    let f = f.map(|(old, new)| (old.shape.f(), new.shape.f()));
    vec![
        html! { (step.domain) },
        shown(&step.old),
        match &step.error {
            Some(error) => html! { p.trouble { (error) } },
            None => shown(&step.new),
        },
        html! { @if let Some((old, new)) = f { (old) " → " (new) } @else { "–" } },
        count(step.survives_now),
        count(step.survives_then),
    ]
}

impl Action for Replace {
    const PATH: &'static str = "/cluster/replace/start";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        let (choice, client) = (self.0, visit.client());
        let successor = choice.successor();
        let begun = client.begin_departure(&choice.server, &successor, |_| true);
        let departures = begun.await?.unwrap_or_default();
        if departures.is_empty() {
            let sentence = format!(
                "no domain names '{}': there is nothing to do",
                choice.server
            );
            return Err(Trouble::new(StatusCode::CONFLICT, sentence));
        }
        let title = format!("Replace {}", choice.server);
        let command = choice.command();
        visit
            .begin_unless_refused(title, &command, |job| async move {
                leave(&job, &choice.server, &departures).await
            })
            .await?;
        Ok(NextPage::See("/cluster".into()))
    }
}

/// Takes the server out of one domain after the other. One that fails does not keep the others from it.
async fn leave(job: &Arc<Job>, server: &str, departures: &[Departure]) -> Result<String, Trouble> {
    let part = |departure: &Departure| Part {
        name: departure.domain().name().to_owned(),
        done: 0,
        total: 1,
    };
    let mut parts: Vec<Part> = departures.iter().map(part).collect();
    job.parts(parts.clone());
    let mut failed: Vec<Trouble> = Vec::new();
    let mut waiting = Vec::new();
    for (departure, part) in departures.iter().zip(0..) {
        match change(job, departure).await {
            Ok(sentence) => {
                parts[part].done = 1;
                waiting.extend(sentence);
            }
            Err(trouble) => failed.push(trouble),
        }
        job.parts(parts.clone());
    }
    if let Some(first) = failed.first() {
        let domains = show_count(departures.len() as u64, "domain");
        return Err(Trouble::new(
            first.status,
            format!(
                "{} of {domains} not done, replace it again to go on: {}",
                failed.len(),
                first.sentence
            ),
        ));
    }
    let waiting = match waiting.is_empty() {
        true => "every object has all its elements".into(),
        false => waiting.join("; "),
    };
    Ok(format!(
        "No domain names {server} any more, and {waiting}. Once it is stopped for good, forget it."
    ))
}

/// Changes the domain, and repairs the server that comes. A sentence about objects that wait for servers.
async fn change(job: &Arc<Job>, departure: &Departure) -> Result<Option<String>, Trouble> {
    let domain = departure.domain();
    let name = domain.name();
    let mut planned = 0;
    if let Some(change) = departure.change() {
        // What there is to move is only shown.
        planned = domain.plan(change).await.map_or(0, |plan| plan.objects);
    }
    let moved = MoveProgress::new(job, name, planned);
    let c = departure.run(moved.follow()).await?;
    let (shown, named) = (Arc::clone(job), name.to_owned());
    let looked = move |objects| {
        let objects = show_count(objects, "object");
        shown.step(format!("{named}: repairing, {objects} looked at"), 0, 0);
    };
    let redundancy = domain.repair(looked).await?;
    job.step(format!("{name} is {} now", called(&c)), 0, 0);
    let below = redundancy.below();
    let waits = below > 0 && !redundancy.being_reconfigured;
    Ok(waits.then(|| {
        let servers: Vec<&str> = redundancy.waiting_for().into_iter().collect();
        let objects = show_count(below, "object");
        format!("{objects} of '{name}' wait for {}", servers.join(", "))
    }))
}
