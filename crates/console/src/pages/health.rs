//! The page *Health*: problems with the next step, the redundancy of each domain, and the autopilot.

mod actions;
mod autopilot;
mod redundancy;

use crate::door::Visit;
use crate::html::{badge, job};
use crate::job::JobView;
use crate::page::{self, Page};
use crate::trouble::Trouble;
use crate::{Console, action};
use areo_client::{ClusterStatus, Problem};
use axum::Router;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use actions::{Approve, Decline, Look, Pause, Repair, Retry};

pub(super) fn router() -> Router<Console> {
    page::route::<Health>()
        .merge(action::route::<Approve>())
        .merge(action::route::<Decline>())
        .merge(action::route::<Retry>())
        .merge(action::route::<Pause>())
        .merge(action::route::<Look>())
        .merge(action::route::<Repair>())
}

#[derive(Deserialize)]
struct Health {}

/// The health of the cluster, and what is done about it.
#[derive(Serialize)]
struct View {
    problems: Vec<ProblemView>,
    /// The state of an upgrade; none: all servers are of one version, and it is final.
    upgrade: Option<String>,
    domains: Vec<redundancy::DomainView>,
    autopilot: autopilot::View,
    jobs: Vec<JobView>,
    /// For the buttons beside the intents.
    #[serde(skip)]
    form_token: String,
}

#[derive(Serialize)]
struct ProblemView {
    /// True if operations fail now.
    outage: bool,
    problem: String,
}

impl From<Problem> for ProblemView {
    fn from(problem: Problem) -> ProblemView {
        ProblemView {
            outage: problem.is_outage,
            problem: problem.text,
        }
    }
}

impl Page for Health {
    const PATH: &'static str = "/health";
    const TITLE: &'static str = "Health";
    type View = View;

    async fn look(&self, visit: &Visit) -> Result<View, Trouble> {
        let status = visit.client().status().await;
        if let Err(error) = &status.domains {
            return Err(error.clone().into());
        }
        Ok(View {
            problems: status
                .problems()
                .into_iter()
                .map(ProblemView::from)
                .collect(),
            upgrade: status.show_upgrade(),
            domains: domains(&status),
            autopilot: autopilot::look(visit).await,
            jobs: visit.jobs(),
            form_token: visit.session.form_token.clone(),
        })
    }

    fn commands(&self, _view: &View) -> Vec<String> {
        [
            "status",
            "repair status",
            "autopilot status",
            "autopilot journal",
        ]
        .map(String::from)
        .into()
    }

    fn draw(&self, view: &View) -> Markup {
        html! {
            h2 { "Problems" }
            @if view.problems.is_empty() { p.done { "No problem: every domain has a quorum, and survives a crash." } }
            @for it in &view.problems {
                p class=(if it.outage { "trouble" } else { "notice" }) {
                    (if it.outage { badge("bad", "operations fail") } else { badge("warning", "at risk") }) " " (it.problem)
                }
            }
            @if !view.problems.is_empty() {
                p { "A server that is only stopped repairs itself once it runs. One that is lost is replaced on the page " a href="/reconfigure" { "Reconfigure" } ", or by the autopilot below." }
            }
            @if let Some(upgrade) = &view.upgrade { h2 { "Upgrade" } p.notice { (upgrade) } }
            h2 #redundancy { "Redundancy" }
            (redundancy::draw(&view.domains))
            @for it in &view.jobs { (job(it)) }
            h2 #autopilot { "Autopilot" }
            (autopilot::draw(&view.autopilot, &view.form_token))
        }
    }

    fn forms(&self, visit: &Visit, view: &View) -> Markup {
        redundancy::forms(&visit.session.form_token, &view.domains)
    }
}

fn domains(status: &ClusterStatus) -> Vec<redundancy::DomainView> {
    let all = status.all_domains().into_iter();
    all.map(|it| redundancy::DomainView::of(status, &it))
        .collect()
}

#[cfg(test)]
mod tests;
