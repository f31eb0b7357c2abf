//! The steps of a change of a domain, as its job shows them.

use crate::job::Job;
use areo_client::units::{show_count, show_size};
use areo_client::{Client, ConfigurationInfo, Domain, Error, Progress, ROOT_DOMAIN, Transferred};
use std::sync::{Arc, Mutex};

/// The domain of this name; that of [`ROOT_DOMAIN`] holds the list of servers and domains.
pub(super) async fn find(client: &Client, name: &str) -> Result<Domain, Error> {
    match name {
        ROOT_DOMAIN => Ok(client.root_domain().await),
        name => client.domain(name).await,
    }
}

/// A change of one domain that is under way.
pub(super) struct MoveProgress {
    job: Arc<Job>,
    domain: String,
    /// Objects that the plan counted.
    planned: u64,
    moved: Mutex<Transferred>,
}

impl MoveProgress {
    pub(super) fn new(job: &Arc<Job>, domain: &str, planned: u64) -> Arc<MoveProgress> {
        Arc::new(MoveProgress {
            job: Arc::clone(job),
            domain: domain.to_owned(),
            planned,
            moved: Mutex::default(),
        })
    }

    /// A function that shows each step.
    pub(super) fn follow(self: &Arc<MoveProgress>) -> impl Fn(Progress) + Send + 'static {
        let moved = Arc::clone(self);
        move |progress| moved.step(progress)
    }

    /// The moved objects and bytes so far.
    pub(super) fn moved(&self) -> Transferred {
        *self.moved.lock().expect("no holder of the lock panics")
    }

    fn step(&self, progress: Progress) {
        let phase = match progress {
            Progress::Deciding => "deciding on the next configuration".into(),
            Progress::Announcing => "the next configuration is decided, its objects move".into(),
            Progress::Transferring { objects, bytes } => {
                let mut moved = self.moved.lock().expect("no holder of the lock panics");
                moved.objects += objects;
                moved.bytes += bytes;
                format!("moving, {} so far", show_moved(*moved))
            }
            Progress::Finalizing => "finalizing".into(),
            Progress::Collecting => "dropping the old configuration".into(),
            Progress::Waiting {
                leader,
                transferred,
            } => {
                *self.moved.lock().expect("no holder of the lock panics") = transferred;
                format!(
                    "waiting for the leader, server {leader}: {} so far",
                    show_moved(transferred)
                )
            }
        };
        let objects = self.moved().objects;
        let sentence = format!("{}: {phase}", self.domain);
        // Objects that were created meanwhile come on top of the plan.
        self.job.step(sentence, objects, self.planned.max(objects));
    }
}

/// `12 objects, 3.0 MiB`.
pub(super) fn show_moved(moved: Transferred) -> String {
    let objects = show_count(moved.objects, "object");
    format!("{objects}, {}", show_size(moved.bytes))
}

/// `configuration 3, ec [5,3] on s1, s2, s3, s4, s5`.
pub(super) fn called(c: &ConfigurationInfo) -> String {
    format!("configuration {}, {} on {}", c.index, c.shape, members(c))
}

/// The names of the members, in order.
pub(super) fn members(c: &ConfigurationInfo) -> String {
    let names: Vec<&str> = c.members.iter().map(|it| it.name.as_str()).collect();
    names.join(", ")
}
