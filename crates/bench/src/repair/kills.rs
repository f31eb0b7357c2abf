//! A member that is killed again and again while it repairs itself.

use super::{MEMBER, RECEIVED, Trial, UNBOUNDED, metric, serve, until_whole};
use crate::cluster::Cluster;
use crate::error::{RunError, failed};
use crate::setup::SERVE;
use serde::Serialize;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Bytes of objects in a second: a few objects come at once, and no more before the member is killed.
const RATE: &str = "1MiB";
/// The interval at which the member is looked at: repairs between two looks are more than was needed.
const GLANCE: Duration = Duration::from_millis(5);

/// A member that was killed while it repaired itself.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Killed {
    /// The number of kills, by SIGKILL.
    pub kills: u32,
    /// Objects that it lacked at each start, as a client that asks all members sees it; the last one of which it was not killed.
    pub lacking: Vec<u64>,
    /// Bytes of the elements that it lacked.
    pub share_bytes: f64,
    /// Bytes that came to it in all of its lives, until it lacked nothing.
    pub received_bytes: f64,
    /// The time from the first start until it lacked nothing, in seconds.
    pub seconds: f64,
}

impl Killed {
    /// After each kill it lacked less than before: it never began again.
    pub fn always_went_on(&self) -> bool {
        self.lacking.is_sorted_by(|before, after| before > after)
    }
}

impl Trial<'_> {
    /// The member was away while half of the objects were written anew, and is killed each time that an element has come to it.
    pub(super) async fn kill_often(&self, cluster: &mut Cluster) -> Result<Killed, RunError> {
        self.overwrite_half(cluster).await?;
        let (kills, mut lacking, mut received_bytes) = (self.options.kills, Vec::new(), 0.0);
        let begun = Instant::now();
        for _ in 0..kills {
            serve(cluster, &["--repair-rate", RATE]).await?;
            let lacks = self.lacking().await?;
            lacking.push(lacks);
            let mut received = 0.0;
            while lacks > 0 && received < self.element_bytes {
                sleep(GLANCE).await;
                received = metric(cluster, MEMBER, RECEIVED).await?;
            }
            received_bytes += received;
            cluster.kill(MEMBER).await;
        }
        serve(cluster, &["--repair-rate", UNBOUNDED]).await?;
        lacking.push(self.lacking().await?);
        until_whole(cluster, MEMBER).await?;
        Ok(Killed {
            kills,
            lacking,
            share_bytes: self.half_share(),
            received_bytes: received_bytes + metric(cluster, MEMBER, RECEIVED).await?,
            seconds: begun.elapsed().as_secs_f64(),
        })
    }

    /// Objects that the member lacks, as it says itself, and the others.
    async fn lacking(&self) -> Result<u64, RunError> {
        let begun = Instant::now();
        loop {
            match self.domain.redundancy(|_| {}).await {
                // Servers that are busy may be late.
                Ok(looked) if looked.below.iter().all(|it| it.silent.is_empty()) => {
                    return Ok(looked.below());
                }
                Err(error) if begun.elapsed() > SERVE => {
                    return Err(failed("look at the objects")(error));
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
}
