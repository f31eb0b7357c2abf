//! The plan of a change: before and after, side by side; and the changes themselves, which go on after the request.

use super::wish::Wish;
use super::{Reconfigure, picture};
use crate::action::{Action, NextPage};
use crate::command::Command;
use crate::door::Visit;
use crate::html::{badge, query, table, token};
use crate::job::{Job, Part};
use crate::page::Page;
use crate::pages::moving::{self, MoveProgress, called, members, show_moved};
use crate::trouble::Trouble;
use areo_client::units::{show_count, show_size};
use areo_client::{
    Change, Client, ConfigurationInfo, Domain, Plan, ReconfigError, ReconfigOutcome, Shape,
};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// The time between two looks at the servers that come.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct PlanPage(Wish);

/// Makes the change of a plan.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Start(Wish);

/// Finishes a change that is pending.
#[derive(Deserialize)]
pub(super) struct Resume {
    domain: String,
}

/// The plan as `areo reconfig plan --json` prints it.
#[derive(Serialize)]
pub(super) struct View {
    domain: String,
    #[serde(flatten)]
    plan: Plan,
    /// The change, with the servers that come and go.
    #[serde(skip)]
    wish: Wish,
}

impl Page for PlanPage {
    const PATH: &'static str = "/reconfigure/plan";
    const TITLE: &'static str = "Plan of a change";
    type View = View;

    async fn look(&self, visit: &Visit) -> Result<View, Trouble> {
        let wish = &self.0;
        if [&wish.server, &wish.add, &wish.remove]
            .iter()
            .all(|it| it.is_empty())
        {
            return Err(Trouble::usage(
                "no server is ticked: tick those that the domain is to have",
            ));
        }
        let domain = moving::find(visit.client(), &wish.domain).await?;
        let sequence = domain.sequence().await?;
        let last = sequence.last().map(|it| &it.configuration);
        let wish = wish.relative_to(last.unwrap_or(&domain.configuration()));
        let plan = domain.plan(&wish.change()?).await?;
        Ok(View {
            domain: wish.domain.clone(),
            plan,
            wish,
        })
    }

    fn commands(&self, view: &View) -> Vec<Command> {
        ["plan", "start"].map(|it| view.wish.command(it)).to_vec()
    }

    fn draw(&self, view: &View) -> Markup {
        let plan = &view.plan;
        html! {
            @if plan.unchanged {
                p.notice { "The domain " (view.domain) " has this configuration already: there is nothing to do." }
            }
            @if !plan.pending.is_empty() {
                p.notice { "The domain " (view.domain) " has a pending change already: it is finished first." }
            }
            @if plan.new.shape.f() == 0 {
                p.notice { "Afterwards no crash is survived: the domain stops when one of its servers does." }
            } @else if plan.new.shape.f() < plan.old.shape.f() {
                p.notice { "Afterwards fewer crashes are survived than now." }
            }
            (table(&format!("The domain {}, now and afterwards", view.domain), &["part", "now", "afterwards"], &rows(plan)))
            div.wide tabindex="0" role="region" aria-label="Servers" { (picture::servers(&plan.old, &plan.new)) }
            h2 { "What it costs" }
            (costs(plan))
            p { "Clients read and write all the time. If this console ends meanwhile, the change stays pending, and any client can resume it." }
        }
    }

    fn forms(&self, visit: &Visit, view: &View) -> Markup {
        html! {
            @if !view.plan.unchanged || !view.plan.pending.is_empty() {
                form method="post" action=(Start::PATH) {
                    (token(&visit.session.form_token))
                    (view.wish.hidden())
                    button { "Start the change" }
                }
            }
            p { a href=(view.wish.back()) { "Back to the form" } }
        }
    }
}

fn rows(plan: &Plan) -> Vec<Vec<Markup>> {
    let (old, new) = (&plan.old, &plan.new);
    let row = |name: &str, of: &dyn Fn(&ConfigurationInfo) -> String| {
        let (old, new) = (of(old), of(new));
        let is_other = old != new;
        vec![
            html! { (name) },
            html! { (old) },
            html! { (new) @if is_other { " " (badge("plain", "new")) } },
        ]
    };
    let shape = |name: &str, of: fn(Shape) -> String| row(name, &|c| of(c.shape));
    vec![
        row("configuration", &|c| c.index.to_string()),
        shape("kind", |it| it.dap().word().to_owned()),
        shape("n, servers", |it| it.n().to_string()),
        shape("k, elements that make a value", |it| it.k().to_string()),
        shape("quorum", |it| it.quorum().to_string()),
        shape("f, crashes that are survived", |it| it.f().to_string()),
        shape("elements that may be lost", |it| {
            it.fragments_spare().to_string()
        }),
        shape("bytes stored per byte written", |it| {
            format!("{:.2}", it.stored_per_byte())
        }),
        row("decided by", &|c| c.decided_by.to_string()),
        row("servers", &members),
    ]
}

fn costs(plan: &Plan) -> Markup {
    let names = |names: Vec<&str>| match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    };
    let least = if plan.more { "more than " } else { "" };
    let silent = plan.unreachable.iter();
    let silent: Vec<String> = silent
        .map(|it| format!("{} ({})", it.server, it.reason))
        .collect();
    let lines = [
        ("servers that come", names(plan.added())),
        ("servers that leave", names(plan.removed())),
        ("servers that stay", names(plan.kept())),
        (
            "servers that do not serve",
            names(silent.iter().map(String::as_str).collect()),
        ),
        (
            "to move",
            format!(
                "{least}{}, {} of values",
                show_count(plan.objects, "object"),
                show_size(plan.bytes)
            ),
        ),
        (
            "to store",
            format!(
                "{least}{} in fragments and copies",
                show_size(plan.element_bytes)
            ),
        ),
        ("to send", format!("{least}{}", show_size(plan.sent_bytes))),
        ("counted by", plan.counted().to_owned()),
    ];
    html! { dl { @for (name, value) in lines { dt { (name) } dd { (value) } } } }
}

impl Action for Start {
    const PATH: &'static str = "/reconfigure/start";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        let wish = self.0;
        let change = wish.change()?;
        let domain = moving::find(visit.client(), &wish.domain).await?;
        let plan = domain.plan(&change).await?;
        let newcomers = Newcomers::at(visit.client().clone(), &plan).await;
        let title = format!("Reconfigure {}", wish.domain);
        let work = |job: Arc<Job>| async move {
            let changed = reconfigure(&job, &domain, &change, plan.objects);
            let ended = tokio::select! {
                ended = changed => ended,
                () = newcomers.follow(&job) => unreachable!("it shows the servers for as long as the change takes"),
            };
            job.parts(newcomers.bars().await);
            ended
        };
        visit
            .begin_unless_refused(title, &wish.command("start"), work)
            .await?;
        Ok(NextPage::See(wish.back()))
    }
}

/// The servers that come by a change, and the objects that they had before it.
struct Newcomers {
    client: Client,
    planned: u64,
    before: BTreeMap<String, u64>,
}

impl Newcomers {
    async fn at(client: Client, plan: &Plan) -> Newcomers {
        let coming = plan.added();
        let status = client.status().await;
        let servers = status.servers.iter();
        let coming = servers.filter(|it| coming.contains(&it.server.name.as_str()));
        let objects = coming.filter_map(|it| {
            let objects = it.status.answered()?.objects;
            Some((it.server.name.clone(), objects))
        });
        Newcomers {
            before: objects.collect(),
            planned: plan.objects,
            client,
        }
    }

    /// The objects that each of them has got since then, out of the planned ones.
    async fn bars(&self) -> Vec<Part> {
        if self.before.is_empty() || self.planned == 0 {
            return Vec::new();
        }
        let status = self.client.status().await;
        let bar = |(name, before): (&String, &u64)| {
            let server = status.servers.iter().find(|it| it.server.name == *name)?;
            let objects = server.status.answered()?.objects;
            // Objects of other domains come on top of the planned ones.
            let got = objects.saturating_sub(*before).min(self.planned);
            Some(Part {
                name: name.clone(),
                done: got,
                total: self.planned,
            })
        };
        self.before.iter().filter_map(bar).collect()
    }

    /// Shows them again and again.
    async fn follow(&self, job: &Job) {
        loop {
            job.parts(self.bars().await);
            sleep(LOOK).await;
        }
    }
}

async fn reconfigure(
    job: &Arc<Job>,
    domain: &Domain,
    change: &Change,
    planned: u64,
) -> Result<String, Trouble> {
    let progress = MoveProgress::new(job, domain.name(), planned);
    let ended = domain.reconfigure(change, progress.follow()).await;
    let name = domain.name();
    Ok(match ended.map_err(left_pending)? {
        ReconfigOutcome::Installed(c) => {
            let moved = show_moved(progress.moved());
            format!("{name} is {} now; {moved} moved", called(&c))
        }
        ReconfigOutcome::Unchanged(c) => {
            format!("{name} has this configuration already, {}", called(&c))
        }
        ReconfigOutcome::Superseded(c) => format!(
            "the change of {name} was made, and others went on from it, to {}",
            called(&c)
        ),
        ReconfigOutcome::LeftOff(c) => format!("the change to {} is left pending", called(&c)),
    })
}

/// The trouble with a change, with what to do about one that is pending.
fn left_pending(error: ReconfigError) -> Trouble {
    let is_lost = !error.lost_objects().is_empty();
    let is_pending = matches!(error, ReconfigError::Pending { .. });
    let mut trouble = Trouble::from(error);
    if is_lost {
        trouble.sentence.push_str("; everything else was moved: write the named objects again or remove them, then resume the change");
    } else if is_pending {
        trouble
            .sentence
            .push_str("; the page of the domain resumes it");
    }
    trouble
}

impl Action for Resume {
    const PATH: &'static str = "/reconfigure/resume";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        let domain = moving::find(visit.client(), &self.domain).await?;
        let title = format!("Resume the change of {}", self.domain);
        let command = Command::new("reconfig start --resume").argument(&self.domain);
        visit
            .begin_unless_refused(title, &command, |job| async move {
                let progress = MoveProgress::new(&job, domain.name(), 0);
                let resumed = domain.resume(progress.follow()).await;
                let resumed = resumed.map_err(left_pending)?;
                let name = domain.name();
                Ok(match resumed {
                    Some(c) => format!("{name} is {} now", called(&c)),
                    None => format!("nothing is pending in {name}"),
                })
            })
            .await?;
        let query = query(&[("domain", &self.domain)]);
        Ok(NextPage::See(format!("{}{query}", Reconfigure::PATH)))
    }
}
