//! The page *Health*: problems with the next step, the redundancy of each domain, and the autopilot.

mod actions;
mod autopilot;
mod redundancy;

use super::cluster::status;
use super::domains::{DomainPage, Start};
use super::problems;
use crate::action;
use crate::command::Command;
use crate::door::Visit;
use crate::html::jobs;
use crate::job::JobView;
use crate::page::{self, Page};
use crate::routes::Routes;
use crate::trouble::Trouble;
use areo_client::{ClusterStatus, Problem};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use actions::{Approve, Decline, Look, Pause, Repair, Retry};

pub(super) fn routes() -> Routes {
    page::routes::<Health>()
        .merge(action::routes::<Approve>())
        .merge(action::routes::<Decline>())
        .merge(action::routes::<Retry>())
        .merge(action::routes::<Pause>())
        .merge(action::routes::<Look>())
        .merge(action::routes::<Repair>())
}

#[derive(Default, Deserialize)]
#[serde(transparent)]
struct Health(Start);

/// The health of the cluster, with a page of its domains, and the changes that mend it.
#[derive(Serialize)]
struct View {
    problems: Vec<Problem>,
    /// The state of an upgrade; none: all servers are of one version, and it is final.
    upgrade: Option<String>,
    #[serde(flatten)]
    page: DomainPage<redundancy::DomainView>,
    autopilot: autopilot::View,
    jobs: Vec<JobView>,
    /// For the buttons beside the intents.
    #[serde(skip)]
    form_token: String,
}

impl View {
    fn of(start: &Start, status: &ClusterStatus, autopilot: autopilot::View) -> View {
        let domain = |it| redundancy::DomainView::of(status, &it);
        View {
            problems: status.problems(),
            upgrade: status.show_upgrade(),
            page: start.page(Health::PATH, status.all_domains(), domain),
            autopilot,
            jobs: Vec::new(),
            form_token: String::new(),
        }
    }
}

impl Page for Health {
    const PATH: &'static str = "/health";
    const TITLE: &'static str = "Health";
    type View = View;

    async fn look(&self, visit: &Visit) -> Result<View, Trouble> {
        let status = status(visit).await?;
        Ok(View {
            jobs: visit.jobs(),
            form_token: visit.session.form_token.clone(),
            ..View::of(&self.0, &status, autopilot::look(visit).await)
        })
    }

    fn commands(&self, _view: &View) -> Vec<Command> {
        let verbs = [
            "status",
            "repair status",
            "repair ls --domain DOMAIN",
            "repair retry --domain DOMAIN [KEY]",
            "autopilot status",
            "autopilot journal",
        ];
        verbs.map(Command::new).into()
    }

    fn draw(&self, view: &View) -> Markup {
        html! {
            h2 { "Problems" }
            @if view.problems.is_empty() { p.done { "No problem: every domain has a quorum, and survives a crash." } }
            (problems::draw(&view.problems))
            @if !view.problems.is_empty() {
                p { "A server that is only stopped repairs itself once it runs. One that is lost is replaced on the page " a href="/cluster" { "Cluster" } ", or by the autopilot below." }
            }
            @if let Some(upgrade) = &view.upgrade { h2 { "Upgrade" } p.notice { (upgrade) } }
            (jobs(&view.jobs))
            h2 #redundancy { "Redundancy" }
            (redundancy::draw(&view.page.domains))
            (self.0.links(Health::PATH, &view.page))
            h2 #autopilot { "Autopilot" }
            (autopilot::draw(&view.autopilot, &view.form_token))
        }
    }

    fn forms(&self, visit: &Visit, view: &View) -> Markup {
        redundancy::forms(&visit.session.form_token, &view.page.domains)
    }
}

#[cfg(test)]
mod tests;
