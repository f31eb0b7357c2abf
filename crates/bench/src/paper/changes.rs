//! J1 to J3: readers of one object beside changes of the servers that are made at the same time. What they are, and what runs come to, is
//! that of the same experiments in virtual time ([`areo_sim::measure`]).

use super::{ServerOptions, start};
use crate::error::{RunError, failed};
use crate::load::{AnyCaller, Load, Look, Pace, Phase, Plan, value};
use crate::proxy::Proxy;
use crate::reconfig::proposed;
use crate::setup::StartedCluster;
use crate::target::connected;
use crate::target::{Answer, CallError, Caller, Cost};
use areo_client::experimental::Experimental;
use areo_client::{
    Change, Client, ConfigurationInfo, Domain, DomainOptions, ReconfigKind, ReconfigOutcome,
    Statistics, Version,
};
use areo_sim::measure::{MadeChange, PlannedRun, Read, Reads, Run};
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::sleep;

/// Key of the object.
const KEY: &str = "register";
/// Reads before it is measured, so that every member has the object.
const READS_BEFORE: usize = 60;

/// Servers that all runs of an experiment share.
pub struct ChangesStage {
    domains: Cell<u64>,
    /// The time that readers are alone, before and after.
    margin: Duration,
    started: StartedCluster,
    _proxy: Option<Proxy>,
}

impl ChangesStage {
    /// Starts the servers. `margin`: time in which readers are alone, before and after. Dropping it ends the
    /// processes and removes their files.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn start(
        options: &ServerOptions,
        servers: usize,
        margin: Duration,
    ) -> Result<ChangesStage, RunError> {
        let (proxy, started) = start(options, servers).await?;
        Ok(ChangesStage {
            domains: Cell::new(0),
            margin,
            started,
            _proxy: proxy,
        })
    }

    /// Makes the run, in a domain of its own.
    ///
    /// # Errors
    /// [`RunError`]: something did not succeed, a read did not find the object, or a change was lost.
    pub async fn run(&self, plan: &PlannedRun<'_>) -> Result<Run, RunError> {
        self.domains.update(|number| number + 1);
        let name = format!("changes-{}", self.domains.get());
        let measured = LocalSet::new()
            .run_until(self.measured(&name, plan))
            .await?;
        let removed = self.started.client.remove_domain(&name).await;
        removed.map_err(failed("remove the domain"))?;
        Ok(measured)
    }

    async fn measured(&self, name: &str, plan: &PlannedRun<'_>) -> Result<Run, RunError> {
        let experiment = plan.experiment;
        let scene = Rc::new(self.scene(name, plan).await?);
        let mut reconfigurers = Vec::new();
        for _ in 0..plan.reconfigurers {
            reconfigurers.push(connected(&self.started.connect, name).await?);
        }
        let mut readers: Vec<AnyCaller> = Vec::new();
        for _ in 0..experiment.readers {
            let (client, domain) = connected(&self.started.connect, name).await?;
            let (domain, cost) = domain.measured();
            let found = scene.read(&domain).await;
            found.map_err(failed("read the object"))?;
            readers.push(Box::new(Reader {
                scene: scene.clone(),
                domain,
                cost,
                _client: client,
            }));
        }
        let load = Load::of(readers, &load_of(plan), None);
        load.enter(Phase::Still);
        let begun = load.begun();
        sleep(self.margin).await;
        let changes = self.change((plan, begun), reconfigurers, &scene).await?;
        sleep(self.margin).await;
        let ended = load.stop().await;
        let time = begun.elapsed();
        if let Some(sentence) = ended.failures.first.into_iter().next() {
            return Err(failed("read the object")(sentence));
        }
        self.check_members(name, plan).await?;
        let reads = ended.samples.into_iter().map(|sample| Read {
            reader: sample.client,
            begun: sample.begun,
            took: sample.took,
            requests: sample.cost.counts.requests as usize,
            configurations: sample.cost.counts.configurations as usize,
        });
        Ok(Run {
            reads: reads.collect(),
            changes,
            // The final ones after the first that readers or reconfigurers heard of.
            configurations: scene.configurations.borrow().len() - 1,
            counted: (Duration::ZERO, time),
            // What happens is no function of the seed.
            hash: 0,
        })
    }

    /// Lets all reconfigurers make their changes at the same time, in a run that has begun.
    async fn change(
        &self,
        (plan, begun): (&PlannedRun<'_>, Instant),
        reconfigurers: Vec<(Client, Domain)>,
        scene: &Scene,
    ) -> Result<Vec<MadeChange>, RunError> {
        let mut changes = JoinSet::new();
        for (number, (client, domain)) in reconfigurers.into_iter().enumerate() {
            let change = self.replacement(plan, number);
            changes.spawn_local(async move {
                let (done, proposed) = proposed(&domain, &change).await;
                drop(client);
                (done, proposed, Instant::now())
            });
        }
        let mut made = Vec::new();
        while let Some(ended) = changes.join_next().await {
            let (done, proposed, ended) = ended.expect("reconfigurers do not panic");
            let done = done.map_err(failed("change the servers"))?;
            if let ReconfigOutcome::Installed(known) | ReconfigOutcome::Superseded(known) = done {
                scene.note(known);
            }
            let proposed = proposed.ok_or("nothing was proposed");
            let proposed = proposed.map_err(failed("change the servers"))?;
            made.push(MadeChange {
                begun: proposed - begun,
                took: ended - proposed,
            });
        }
        Ok(made)
    }

    /// Makes the domain, writes the object, and brings it to all members.
    async fn scene(&self, name: &str, plan: &PlannedRun<'_>) -> Result<Scene, RunError> {
        let experiment = plan.experiment;
        let (dap, options) = experiment.reads.domain();
        let options = DomainOptions {
            dap,
            servers: self.started.servers[..experiment.servers].to_vec(),
            experimental: Experimental {
                thrift: Some(options.thrift),
                single_contact: Some(options.single_contact),
                ..Experimental::default()
            },
            reconfig: kind(plan.way.name),
            ..DomainOptions::default()
        };
        let made = self.started.client.create_domain(name, options).await;
        let domain = made.map_err(failed("make the domain"))?;
        let put = domain.put(KEY, vec![7; experiment.bytes]);
        let scene = Scene {
            written: put.await.map_err(failed("write the object"))?,
            is_regular: experiment.reads == Reads::Regular,
            configurations: RefCell::default(),
        };
        for _ in 0..READS_BEFORE {
            let found = scene.read(&domain).await;
            found.map_err(failed("read the object"))?;
        }
        scene.note(domain.configuration());
        Ok(scene)
    }

    /// The change of this reconfigurer: one server by another one.
    fn replacement(&self, plan: &PlannedRun<'_>, number: usize) -> Change {
        Change {
            add: vec![self.started.servers[plan.experiment.servers + number].clone()],
            remove: vec![self.started.servers[number].clone()],
            ..Change::default()
        }
    }

    /// Every change was made.
    async fn check_members(&self, name: &str, plan: &PlannedRun<'_>) -> Result<(), RunError> {
        let (_client, domain) = connected(&self.started.connect, name).await?;
        let last = domain.configuration();
        let members: BTreeSet<&str> = last.members.iter().map(|of| &*of.name).collect();
        let kept = plan.reconfigurers..plan.experiment.servers + plan.reconfigurers;
        let expected = self.started.servers[kept].iter();
        let expected: BTreeSet<&str> = expected.map(|name| &**name).collect();
        match members == expected {
            true => Ok(()),
            false => Err(failed("change the servers")(format!(
                "a change was lost: the members are {members:?}"
            ))),
        }
    }
}

/// The load of readers, who look at the object themselves.
fn load_of(plan: &PlannedRun<'_>) -> Plan {
    Plan {
        readers: plan.experiment.readers,
        objects: 1,
        size: value::HEAD,
        look: Look::Not,
        pace: Pace::Every {
            period: plan.pause.unwrap_or_default(),
        },
        keeps_samples: true,
        seed: plan.seed,
        ..Plan::default()
    }
}

fn kind(way: &str) -> ReconfigKind {
    let mut all = ReconfigKind::ALL.into_iter();
    let found = all.find(|kind| kind.word() == way);
    found.expect("a way has the word of a domain's")
}

/// The state that the clients of a run share.
struct Scene {
    written: Version,
    is_regular: bool,
    /// All that were heard of, as index and members.
    configurations: RefCell<BTreeSet<(u32, Vec<String>)>>,
}

impl Scene {
    /// Reads the object, and nothing else.
    async fn read(&self, domain: &Domain) -> Result<(), String> {
        let found = match self.is_regular {
            true => domain.get_regular(KEY).await,
            false => domain.get(KEY).await,
        };
        match found {
            Ok(found) if found.version == self.written => Ok(()),
            Ok(found) => Err(format!("it has another version: {}", found.version)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn note(&self, configuration: ConfigurationInfo) {
        let members = configuration.members.into_iter().map(|member| member.name);
        let known = (configuration.index, members.collect());
        self.configurations.borrow_mut().insert(known);
    }
}

/// A reader of the object: a client of its own.
struct Reader {
    scene: Rc<Scene>,
    domain: Domain,
    cost: Arc<Statistics>,
    /// Lives as long as its domain is used.
    _client: Client,
}

impl Caller for Reader {
    fn get<'a>(&'a mut self, _key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), CallError> {
        Box::pin(async {
            let before = self.cost.counts();
            self.scene.read(&self.domain).await?;
            let counts = self.cost.since(before);
            if counts.configurations > 1 {
                self.scene.note(self.domain.configuration());
            }
            let cost = Cost {
                counts,
                ..Cost::default()
            };
            Ok((None, cost))
        })
    }
}
