//! E5: reconfigurers beside readers and writers. The way of keeping values alternates, the servers are drawn.

use super::figures::mean;
use super::parameters::Parameters;
use super::stage::Stage;
use super::variant::Variant;
use crate::error::RunError;
use crate::random::Random;
use crate::target::connected;
use areo_client::{
    Change, Client, ConfigurationInfo, DapKind, Domain, ReconfigError, ReconfigOutcome,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// A configuration has one of these numbers of servers, as many as there are.
const SERVERS: [usize; 5] = [3, 5, 7, 9, 11];

/// The outcome of a change.
enum ChangeOutcome {
    /// The change was installed, after this number of milliseconds.
    Installed(f64, ConfigurationInfo),
    /// Another change was installed instead.
    Lost,
    /// The change failed, with this sentence.
    Failed(String),
}

/// The running reconfigurers.
pub(super) struct Reconfigurers {
    tasks: JoinSet<Vec<ChangeOutcome>>,
    /// The others have ended.
    is_over: Rc<Cell<bool>>,
}

/// Reconfigurers that are connected, and have not begun: how long that takes is no part of the time in which others work.
pub(super) struct ReadyReconfigurers(Vec<Reconfigurer>);

/// The changes of reconfigurers.
#[derive(Default)]
pub(super) struct Reconfigurations {
    ms: Vec<f64>,
    lost: usize,
    /// The configuration that is in use now, if it is not the first one any more.
    last: Option<ConfigurationInfo>,
}

impl ReadyReconfigurers {
    /// Lets the reconfigurers begin.
    pub(super) fn begin(self, parameters: &Parameters) -> Reconfigurers {
        let (mut tasks, is_over) = (JoinSet::new(), Rc::new(Cell::new(false)));
        let pause = Duration::from_millis(parameters.change_ms);
        for reconfigurer in self.0 {
            tasks.spawn_local(reconfigurer.work(parameters.changes, pause, is_over.clone()));
        }
        Reconfigurers { tasks, is_over }
    }
}

impl Reconfigurers {
    /// Connects them. Without reconfigurers nothing happens.
    pub(super) async fn connect(
        stage: &Stage<'_>,
        domain: &str,
        parameters: &Parameters,
        random: &Random,
    ) -> Result<ReadyReconfigurers, RunError> {
        let mut reconfigurers = Vec::new();
        for number in 0..parameters.reconfigurers {
            let (client, domain) = connected(&stage.started.connect, domain).await?;
            reconfigurers.push(Reconfigurer {
                domain,
                servers: stage.started.servers.clone(),
                random: random.derive(number as u64),
                _client: client,
            });
        }
        Ok(ReadyReconfigurers(reconfigurers))
    }

    /// Lets them finish their current changes.
    pub(super) async fn finish(mut self, stage: &Stage<'_>) -> Reconfigurations {
        self.is_over.set(true);
        let mut all = Reconfigurations::default();
        while let Some(done) = self.tasks.join_next().await {
            for changed in done.expect("reconfigurers do not panic") {
                match changed {
                    ChangeOutcome::Installed(ms, configuration) => all.installed(ms, configuration),
                    ChangeOutcome::Lost => all.lost += 1,
                    ChangeOutcome::Failed(sentence) => stage.failures.borrow_mut().add(sentence),
                }
            }
        }
        all
    }
}

impl Reconfigurations {
    fn installed(&mut self, ms: f64, configuration: ConfigurationInfo) {
        self.ms.push(ms);
        let is_later = |last: &ConfigurationInfo| last.index < configuration.index;
        if self.last.as_ref().is_none_or(is_later) {
            self.last = Some(configuration);
        }
    }

    /// Their results, as quantities of a run.
    pub(super) fn quantities(&self) -> BTreeMap<&'static str, f64> {
        let mut quantities = BTreeMap::new();
        if let Some(mean) = mean(&self.ms) {
            quantities.insert("reconfiguration_ms", mean);
            quantities.insert("reconfigurations", self.ms.len() as f64);
            quantities.insert("reconfigurations_lost", self.lost as f64);
        }
        quantities
    }

    /// The variant, n and k that are in use now.
    pub(super) fn shape(&self, first: (Variant, usize, usize)) -> (Variant, usize, usize) {
        let Some(last) = &self.last else {
            return first;
        };
        let dap = last.shape.dap().into();
        (Variant { dap, ..first.0 }, last.shape.n(), last.shape.k())
    }
}

struct Reconfigurer {
    domain: Domain,
    /// All there are, by name.
    servers: Vec<String>,
    random: Random,
    /// Lives as long as its domain is used.
    _client: Client,
}

impl Reconfigurer {
    async fn work(
        mut self,
        changes: usize,
        pause: Duration,
        is_over: Rc<Cell<bool>>,
    ) -> Vec<ChangeOutcome> {
        let mut done = Vec::new();
        for number in 0..changes {
            sleep(pause).await;
            if is_over.get() {
                break;
            }
            done.push(self.change(number).await);
        }
        done
    }

    async fn change(&mut self, number: usize) -> ChangeOutcome {
        let change = wanted(&self.servers, number, &mut self.random);
        let begun = Instant::now();
        let done = self.domain.reconfigure(&change, |_| {}).await;
        let ms = begun.elapsed().as_secs_f64() * 1e3;
        match done {
            Ok(ReconfigOutcome::Installed(configuration)) => {
                ChangeOutcome::Installed(ms, configuration)
            }
            Ok(_) | Err(ReconfigError::Conflict { .. }) => ChangeOutcome::Lost,
            Err(error) => ChangeOutcome::Failed(error.to_string()),
        }
    }
}

/// The change of this number: from erasure coding to replication first, then back.
fn wanted(servers: &[String], number: usize, random: &mut Random) -> Change {
    let possible = SERVERS.iter().filter(|n| **n <= servers.len()).count();
    let n = SERVERS[random.index(possible)];
    let chosen = random.subset(n, servers.len());
    let chosen = (0..servers.len()).filter(|place| chosen >> place & 1 == 1);
    // m = 1 of 3, 2 of 5, and so on to 5 of 11.
    let k = n - (n - 1) / 2;
    let (dap, k) = match number % 2 {
        0 => (DapKind::Abd, None),
        _ => (DapKind::Ec, Some(k as u8)),
    };
    Change {
        servers: chosen.map(|place| servers[place].clone()).collect(),
        dap: Some(dap),
        k,
        allow_f0: true,
        ..Change::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_alternate_and_servers_are_drawn() {
        let servers: Vec<String> = (0..7).map(|i| format!("s{i}")).collect();
        let mut random = Random::new(3);
        let mut sizes = [0; 12];
        for number in 0..200 {
            let change = wanted(&servers, number, &mut random);
            let n = change.servers.len();
            sizes[n] += 1;
            let expected = match number % 2 {
                0 => (Some(DapKind::Abd), None),
                _ => (Some(DapKind::Ec), Some(n as u8 / 2 + 1)),
            };
            assert_eq!((change.dap, change.k), expected);
        }
        let drawn: Vec<usize> = (0..12).filter(|n| sizes[*n] > 0).collect();
        assert_eq!(drawn, [3, 5, 7]);
    }
}
