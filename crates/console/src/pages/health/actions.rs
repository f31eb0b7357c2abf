//! The changes of the page *Health*: decisions about intents, the pause of the autopilot, and repairs.

use super::redundancy;
use crate::action::{Action, NextPage};
use crate::command::Command;
use crate::door::Visit;
use crate::job::Job;
use crate::pages::moving::find;
use crate::trouble::Trouble;
use areo_client::journal::JournalObjects;
use areo_client::units::show_count;
use areo_client::{Domain, Redundancy};
use axum::http::StatusCode;
use serde::Deserialize;
use std::sync::Arc;

/// Objects that a job names.
const NAMED: usize = 100;

fn back(part: &str) -> NextPage {
    NextPage::See(format!("/health#{part}"))
}

/// The journal, to be written.
async fn journal(visit: &Visit) -> Result<JournalObjects, Trouble> {
    let found = JournalObjects::find(visit.client()).await?;
    found.ok_or_else(|| {
        Trouble::not_found("no autopilot has run in this cluster: `areo autopilot` runs one")
    })
}

/// Has the change of an intent carried out.
#[derive(Deserialize)]
pub(super) struct Approve {
    number: u64,
}

impl Action for Approve {
    const PATH: &'static str = "/health/approve";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        journal(visit).await?.approve(self.number).await?;
        Ok(back("autopilot"))
    }
}

/// Gives an intent up for as long as its reason lasts.
#[derive(Deserialize)]
pub(super) struct Decline {
    number: u64,
}

impl Action for Decline {
    const PATH: &'static str = "/health/decline";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        journal(visit).await?.decline(self.number).await?;
        Ok(back("autopilot"))
    }
}

/// Has a change that failed tried again.
#[derive(Deserialize)]
pub(super) struct Retry {
    number: u64,
}

impl Action for Retry {
    const PATH: &'static str = "/health/retry";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        journal(visit).await?.retry(self.number).await?;
        Ok(back("autopilot"))
    }
}

/// Pauses the autopilot, or ends that.
#[derive(Deserialize)]
pub(super) struct Pause {
    pause: Switch,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Switch {
    On,
    Off,
}

impl Action for Pause {
    const PATH: &'static str = "/health/pause";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        let is_paused = self.pause == Switch::On;
        journal(visit).await?.pause(is_paused).await?;
        Ok(back("autopilot"))
    }
}

/// Looks at all objects of a domain, and names those that are not at all of its servers.
#[derive(Deserialize)]
pub(super) struct Look {
    domain: String,
}

impl Action for Look {
    const PATH: &'static str = "/health/look";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        let domain = find(visit.client(), &self.domain).await?;
        let title = format!("Objects of '{}' below redundancy", self.domain);
        let command = list(&self.domain);
        visit.begin(title, &command, |job| async move {
            let looked = domain.redundancy(progress(&job)).await?;
            Ok(report(&job, &domain, &looked).unwrap_or_else(|refusal| refusal))
        })?;
        Ok(back("redundancy"))
    }
}

/// Brings the objects of a domain, or one of them, to all of its servers.
#[derive(Deserialize)]
pub(super) struct Repair {
    domain: String,
    /// The object; empty: all.
    #[serde(default)]
    key: String,
}

impl Action for Repair {
    const PATH: &'static str = "/health/repair";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        let Repair { domain: name, key } = self;
        let domain = find(visit.client(), &name).await?;
        let title = format!("Repair of '{name}'");
        let mut command = Command::new("repair retry").option("--domain", &name);
        if !key.is_empty() {
            command = command.argument(&key);
        }
        visit.begin(title, &command, |job| async move {
            let repaired = match key.as_str() {
                "" => domain.repair(progress(&job)).await?,
                key => domain.repair_object(key).await?,
            };
            let refused = |sentence| Trouble::new(StatusCode::SERVICE_UNAVAILABLE, sentence);
            report(&job, &domain, &repaired).map_err(refused)
        })?;
        Ok(back("redundancy"))
    }
}

/// The command that names objects below redundancy.
fn list(domain: &str) -> Command {
    Command::new("repair ls").option("--domain", domain)
}

fn progress(job: &Arc<Job>) -> impl Fn(u64) + Send + 'static {
    let job = Arc::clone(job);
    move |objects| job.step(format!("{} so far", show_count(objects, "object")), 0, 0)
}

/// Names the objects that are below redundancy, and says whether there are any: an error is the reason and what to do.
fn report(job: &Job, domain: &Domain, looked: &Redundancy) -> Result<String, String> {
    let named = looked.below.iter().take(NAMED).map(redundancy::sentence);
    let mut lines: Vec<String> = named.collect();
    let more = looked.below().saturating_sub(lines.len() as u64);
    if more > 0 && !lines.is_empty() {
        let (more, command) = (show_count(more, "other object"), list(domain.name()));
        lines.push(format!("and {more}: `areo {command}` names up to 1000"));
    }
    job.found(lines);
    let servers = domain.configuration().members.len();
    match looked.show_lack(domain.name(), servers) {
        Some(sentence) => Err(sentence),
        None => Ok(format!(
            "all {} are at all {servers} servers; {} brought to servers that lacked them",
            show_count(looked.objects, "object"),
            show_count(looked.repaired, "element"),
        )),
    }
}
