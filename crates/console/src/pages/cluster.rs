//! The page *Cluster*: servers and domains, what is wrong with them, and what to do about it.

mod forget;
mod metrics;
mod replace;

use super::domains::{DomainPage, Start};
use super::problems;
use crate::action;
use crate::command::Command;
use crate::door::Visit;
use crate::html::{badge, jobs, query, table};
use crate::job::JobView;
use crate::page::{self, Page};
use crate::routes::Routes;
use crate::trouble::Trouble;
use areo_client::journal::now_ms;
use areo_client::units::{show_count, show_size, show_time};
use areo_client::{ClusterStatus, ClusterSummary, DomainHealth, DomainInfo, Problem, ServerHealth};
use axum::http::StatusCode;
use maud::{Markup, html};
use metrics::Numbers;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub(super) fn routes() -> Routes {
    Routes::default()
        .merge(page::routes::<Cluster>())
        .merge(page::routes::<replace::Replacement>())
        .merge(action::routes::<replace::Replace>())
        .merge(page::routes::<forget::ForgetPage>())
        .merge(action::routes::<forget::Forget>())
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Cluster(Start);

/// Everything that `areo status --json` prints, a page of the domains, with the problems, the numbers of admin ports, and the changes by this key.
#[derive(Serialize)]
struct View {
    cluster: ClusterSummary,
    problems: Vec<Problem>,
    servers: Vec<ServerView>,
    #[serde(flatten)]
    page: DomainPage<DomainView>,
    jobs: Vec<JobView>,
}

impl View {
    fn of(start: &Start, status: ClusterStatus, numbers: Vec<Numbers>, jobs: Vec<JobView>) -> View {
        let domain = |it| DomainView::of(&status, it);
        let page = start.page(Cluster::PATH, status.all_domains(), domain);
        let (cluster, problems) = (status.summary(), status.problems());
        let servers = status.servers.into_iter().zip(numbers);
        let server = |(health, numbers)| ServerView { health, numbers };
        View {
            cluster,
            problems,
            servers: servers.map(server).collect(),
            page,
            jobs,
        }
    }
}

#[derive(Serialize)]
struct ServerView {
    #[serde(flatten)]
    health: ServerHealth,
    #[serde(flatten)]
    numbers: Numbers,
}

/// A domain with its health.
#[derive(Serialize)]
struct DomainView {
    #[serde(flatten)]
    domain: DomainInfo,
    #[serde(flatten)]
    health: DomainHealth,
    /// The crashes that it survives now: its serving members beyond a quorum.
    survives: usize,
}

impl DomainView {
    fn of(status: &ClusterStatus, domain: DomainInfo) -> DomainView {
        let spare = |c| {
            status
                .serving_of(c)
                .count()
                .saturating_sub(c.shape.quorum())
        };
        DomainView {
            survives: domain.in_use().map(spare).min().unwrap_or(0),
            health: status.health_of(&domain),
            domain,
        }
    }
}

/// The state of the cluster, as the key of the session sees it.
///
/// # Errors
/// The key has no grant for it.
pub(super) async fn status(visit: &Visit) -> Result<ClusterStatus, Trouble> {
    let status = visit.client().status().await;
    match status.unauthorised() {
        Some(sentence) => Err(Trouble::new(StatusCode::FORBIDDEN, sentence)),
        None => Ok(status),
    }
}

impl Page for Cluster {
    const PATH: &'static str = "/cluster";
    const TITLE: &'static str = "Cluster";
    type View = View;

    async fn look(&self, visit: &Visit) -> Result<View, Trouble> {
        let status = status(visit).await?;
        let numbers = metrics::look(&status.servers).await;
        Ok(View::of(&self.0, status, numbers, visit.jobs()))
    }

    fn commands(&self, _view: &View) -> Vec<Command> {
        vec![Command::new("status")]
    }

    fn draw(&self, view: &View) -> Markup {
        html! {
            (trouble(view))
            p { (view.cluster.serving) " of " (show_count(view.cluster.servers as u64, "server")) " serve." }
            (jobs(&view.jobs))
            (servers(&view.servers))
            (domains(&view.page.domains))
            (self.0.links(Cluster::PATH, &view.page))
        }
    }
}

/// The problems, and servers that do not answer.
fn trouble(view: &View) -> Markup {
    let silent = view
        .servers
        .iter()
        .filter(|it| it.health.status.answered().is_none() && it.health.domains != Some(0));
    let silent: Vec<&ServerView> = silent.collect();
    html! {
        @if !view.problems.is_empty() || !silent.is_empty() {
            h2 { "Problems" }
        }
        (problems::draw(&view.problems))
        @for it in silent {
            p.notice {
                b { (it.health.server.name) " does not answer" }
                " (" (it.health.state()) "). Start it again if you can: it still has its data. If it is lost for good, "
                a href=(replace::address(&it.health)) { "replace " (it.health.server.name) " by another server" }
                "."
            }
        }
    }
}

fn servers(servers: &[ServerView]) -> Markup {
    let rows: Vec<_> = servers.iter().map(server).collect();
    let columns = [
        "server",
        "state",
        "reached by",
        "domains",
        "objects",
        "stored",
        "sync p99",
        "refusals",
        "certificate until",
        "version",
        "do",
    ];
    table("Servers", &columns, &rows)
}

fn server(view: &ServerView) -> Vec<Markup> {
    let (it, numbers) = (&view.health, &view.numbers);
    let status = it.status.answered();
    let colour = match status {
        Some(status) if status.serving && !it.is_full() => "good",
        Some(_) => "warning",
        None => "bad",
    };
    let state = if it.is_full() {
        "disk full"
    } else {
        it.state()
    };
    let maintenance = it.server.maintenance.as_ref();
    let is_maintained = maintenance.is_some_and(|it| it.holds(now_ms()));
    let known = |text: Option<String>| html! { @if let Some(text) = text { (text) } @else { "–" } };
    let reached = numbers.reached_by.zip(numbers.watched_by);
    vec![
        html! { (it.server.name) @for (key, text) in &it.server.labels { " " small { (key) "=" (text) } } },
        html! { (badge(colour, state)) @if it.server.leaving { " " (badge("warning", "leaving")) } @if is_maintained { " " (badge("warning", "in maintenance")) } },
        known(reached.map(|(by, of)| format!("{by} of {of} servers"))),
        known(it.domains.map(|it| it.to_string())),
        known(status.map(|it| it.objects.to_string())),
        known(status.map(|it| show_size(it.stored_bytes))),
        known(numbers.sync_p99_seconds.map(show_p99)),
        known(numbers.refusals.as_ref().map(|it| {
            let all = it.iter().map(|(reason, count)| format!("{reason} {count}"));
            let all: Vec<String> = all.collect();
            if all.is_empty() {
                "none".into()
            } else {
                all.join(", ")
            }
        })),
        known(numbers.certificate.map(|it| match it {
            0 => "none".into(),
            seconds => show_time(seconds.saturating_mul(1000)),
        })),
        html! { (it.server.version) },
        html! {
            @if it.domains == Some(0) {
                a href=(forget::address(it)) aria-label={ "Forget " (it.server.name) } { "Forget" }
            } @else {
                a href=(replace::address(it)) aria-label={ "Replace " (it.server.name) } { "Replace" }
            }
        },
    ]
}

/// An upper bound of a time, which is the largest of a bucket.
fn show_p99(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) => format!("≤ {time:?}"),
        Err(_) => "longer than is measured".into(),
    }
}

fn domains(domains: &[DomainView]) -> Markup {
    let row = |it: &DomainView| {
        let (c, name) = (&it.domain.configuration, &it.domain.name);
        let (colour, means) = match it.survives {
            _ if !it.health.serves => ("bad", "no quorum serves".to_owned()),
            0 => ("warning", "0: the next crash stops it".to_owned()),
            survives => ("good", survives.to_string()),
        };
        let pending = it.domain.pending.as_ref().is_some_and(|it| !it.is_empty());
        vec![
            html! { (name) },
            html! { (c.shape.dap().word()) },
            html! { "[" (c.shape.n()) ", " (c.shape.k()) "]" },
            html! { (c.shape.quorum()) },
            badge(colour, &means),
            html! { (it.health.show_redundancy()) },
            html! { @if let Some(objects) = it.health.objects { (objects) } @else { "–" } },
            html! {
                a href={ "/reconfigure" (query(&[("domain", name)])) } aria-label={ "Reconfigure " (name) } { "Reconfigure" }
                @if pending { " " (badge("warning", "a change is pending")) }
            },
        ]
    };
    let rows: Vec<_> = domains.iter().map(row).collect();
    let columns = [
        "domain",
        "kind",
        "[n, k]",
        "quorum",
        "survives crashes now",
        "redundancy",
        "objects",
        "do",
    ];
    table("Domains", &columns, &rows)
}

#[cfg(test)]
mod tests;
