//! The page *Cluster*: servers and domains, and what to do about them.

use crate::door::Visit;
use crate::html::{badge, query, table};
use crate::page::Page;
use crate::trouble::Trouble;
use areo_client::units::show_size;
use areo_client::{ClusterStatus, ClusterSummary, DomainHealth, DomainInfo, ServerHealth};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
pub(super) struct Cluster {}

/// Everything that `areo status --json` prints.
#[derive(Serialize)]
pub(super) struct View {
    cluster: ClusterSummary,
    servers: Vec<ServerHealth>,
    domains: Vec<DomainView>,
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

impl Page for Cluster {
    const PATH: &'static str = "/cluster";
    const TITLE: &'static str = "Cluster";
    type View = View;

    async fn look(&self, visit: &Visit) -> Result<View, Trouble> {
        let status = visit.client().status().await;
        let domains = status.all_domains().into_iter();
        Ok(View {
            cluster: status.summary(),
            domains: domains.map(|it| DomainView::of(&status, it)).collect(),
            servers: status.servers,
        })
    }

    fn commands(&self, _view: &View) -> Vec<String> {
        vec!["status".into()]
    }

    fn draw(&self, view: &View) -> Markup {
        html! {
            p { (view.cluster.serving) " of " (view.cluster.servers) " servers serve." }
            (servers(&view.servers))
            (domains(&view.domains))
        }
    }
}

fn servers(servers: &[ServerHealth]) -> Markup {
    let row = |it: &ServerHealth| {
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
        vec![
            html! { (it.server.name) },
            badge(colour, state),
            html! { (it.server.address) },
            html! { @if let Some(status) = status { (status.objects) } @else { "–" } },
            html! { @if let Some(status) = status { (show_size(status.stored_bytes)) } @else { "–" } },
            html! { (it.server.version) },
        ]
    };
    let rows: Vec<_> = servers.iter().map(row).collect();
    let columns = ["server", "state", "address", "objects", "stored", "version"];
    table("Servers", &columns, &rows)
}

fn domains(domains: &[DomainView]) -> Markup {
    let row = |it: &DomainView| {
        let (c, name) = (&it.domain.configuration, &it.domain.name);
        let colour = match it.survives {
            _ if !it.health.serves => "bad",
            0 => "warning",
            _ => "good",
        };
        vec![
            html! { a href={ "/reconfigure" (query(&[("domain", name)])) } { (name) } },
            html! { (c.shape.dap().word()) },
            html! { "[" (c.shape.n()) ", " (c.shape.k()) "]" },
            html! { (c.shape.quorum()) },
            badge(colour, &it.survives.to_string()),
            html! { @if let Some(objects) = it.health.objects { (objects) } @else { "–" } },
        ]
    };
    let rows: Vec<_> = domains.iter().map(row).collect();
    let columns = [
        "domain",
        "kind",
        "[n, k]",
        "quorum",
        "survives crashes now",
        "objects",
    ];
    table("Domains", &columns, &rows)
}
