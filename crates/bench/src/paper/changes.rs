//! J1 to J3: readers of one object beside changes of the servers that are made at the same time.

use super::{ServerOptions, start};
use crate::proxy::Proxy;
use crate::random::Random;
use crate::reconfig::proposed;
use crate::run::{RunError, failed};
use crate::setup::StartedCluster;
use areo_client::experimental::Experimental;
use areo_client::{
    Change, Client, ConfigurationInfo, Dap, Domain, DomainOptions, PutOptions, ReconfigKind,
    ReconfigOutcome, Statistics, Version,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{sleep, sleep_until};

/// The object.
const KEY: &str = "register";
/// Reads before it is measured, so that every member has the object.
const READS_BEFORE: usize = 60;

/// One run: who reads how, and how many change the servers at the same time.
#[derive(Clone, Debug)]
pub struct ChangesRun {
    /// How the domain is reconfigured.
    pub reconfig: ReconfigKind,
    /// How it keeps the object.
    pub dap: Dap,
    /// What else it is made with.
    pub experimental: Experimental,
    /// Reads write nothing back.
    pub is_regular: bool,
    /// Members of each configuration.
    pub servers: usize,
    /// Clients that read.
    pub readers: usize,
    /// Bytes of the object.
    pub bytes: usize,
    /// Each of them replaces one server by one that has no part in the domain.
    pub reconfigurers: usize,
    /// From one read of a reader to the next; `None`: none.
    pub pause: Option<Duration>,
    /// How long readers are alone, before and after.
    pub margin: Duration,
    /// What it is drawn from.
    pub seed: u64,
}

/// A read. Times are since the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct ClientRead {
    /// The number of the reader.
    pub reader: usize,
    /// When it began.
    pub begun: Duration,
    /// How long it took.
    pub took: Duration,
    /// Requests that it sent.
    pub requests: u64,
    /// Configurations that it asked.
    pub configurations: u64,
}

/// What a run came to.
#[derive(Debug)]
pub struct ChangesMeasured {
    /// All reads.
    pub reads: Vec<ClientRead>,
    /// When each change was proposed, and how long it took from there.
    pub changes: Vec<(Duration, Duration)>,
    /// Final configurations after the first one that readers or reconfigurers heard of.
    pub configurations: usize,
    /// How long it was measured.
    pub time: Duration,
}

/// Servers that all runs of an experiment share.
pub struct ChangesStage {
    domains: Cell<u64>,
    started: StartedCluster,
    _proxy: Option<Proxy>,
}

impl ChangesStage {
    /// Starts so many servers. Dropping it ends the processes and removes what they left.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn start(options: &ServerOptions, servers: usize) -> Result<ChangesStage, RunError> {
        let (proxy, started) = start(options, servers).await?;
        Ok(ChangesStage {
            domains: Cell::new(0),
            started,
            _proxy: proxy,
        })
    }

    /// Makes the run, in a domain of its own.
    ///
    /// # Errors
    /// [`RunError`]: something did not succeed, a read did not find the object, or a change was lost.
    pub async fn run(&self, run: &ChangesRun) -> Result<ChangesMeasured, RunError> {
        self.domains.update(|number| number + 1);
        let name = format!("changes-{}", self.domains.get());
        let measured = LocalSet::new().run_until(self.measured(&name, run)).await?;
        let removed = self.started.client.remove_domain(&name).await;
        removed.map_err(failed("remove the domain"))?;
        Ok(measured)
    }

    async fn measured(&self, name: &str, run: &ChangesRun) -> Result<ChangesMeasured, RunError> {
        let scene = Rc::new(self.scene(name, run).await?);
        let mut reconfigurers = Vec::new();
        for _ in 0..run.reconfigurers {
            reconfigurers.push(self.connect(name).await?);
        }
        let mut readers = Vec::new();
        for number in 0..run.readers {
            let (client, domain) = self.connect(name).await?;
            let (domain, cost) = domain.measured();
            let found = scene.read(&domain).await;
            found.map_err(failed("read the object"))?;
            readers.push((number, client, domain, cost));
        }
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        let mut random = Random::new(run.seed);
        for (number, client, domain, cost) in readers {
            let pause = run.pause.unwrap_or_default();
            let first = begun + pause * random.below(1000) as u32 / 1000;
            let reader = Reader {
                number,
                domain,
                cost,
                begun,
                _client: client,
            };
            tasks.spawn_local(reader.read_on(scene.clone(), first, pause));
        }
        sleep(run.margin).await;
        let mut changes = JoinSet::new();
        for (number, (client, domain)) in reconfigurers.into_iter().enumerate() {
            let change = self.replacement(run, number);
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
            made.push((proposed - begun, ended - proposed));
        }
        sleep(run.margin).await;
        scene.is_over.set(true);
        let mut reads = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            let ended = ended.expect("readers do not panic");
            reads.extend(ended.map_err(failed("read the object"))?);
        }
        let time = begun.elapsed();
        self.check_members(name, run).await?;
        Ok(ChangesMeasured {
            reads,
            changes: made,
            configurations: scene.configurations.borrow().len() - 1,
            time,
        })
    }

    async fn connect(&self, name: &str) -> Result<(Client, Domain), RunError> {
        let client = Client::connect(self.started.connect.clone()).await;
        let client = client.map_err(failed("connect a client"))?;
        let domain = client.domain(name).await;
        let domain = domain.map_err(failed("find the domain"))?;
        Ok((client, domain))
    }

    /// Makes the domain, writes the object, and brings it to all members.
    async fn scene(&self, name: &str, run: &ChangesRun) -> Result<Scene, RunError> {
        let options = DomainOptions {
            dap: run.dap,
            servers: self.started.servers[..run.servers].to_vec(),
            experimental: run.experimental,
            reconfig: run.reconfig,
            ..DomainOptions::default()
        };
        let made = self.started.client.create_domain(name, options).await;
        let domain = made.map_err(failed("make the domain"))?;
        let put = domain.put(KEY, vec![7; run.bytes], PutOptions::default());
        let scene = Scene {
            written: put.await.map_err(failed("write the object"))?,
            is_regular: run.is_regular,
            is_over: Cell::new(false),
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
    fn replacement(&self, run: &ChangesRun, number: usize) -> Change {
        Change {
            add: vec![self.started.servers[run.servers + number].clone()],
            remove: vec![self.started.servers[number].clone()],
            ..Change::default()
        }
    }

    /// Every change was made.
    async fn check_members(&self, name: &str, run: &ChangesRun) -> Result<(), RunError> {
        let (_client, domain) = self.connect(name).await?;
        let last = domain.configuration();
        let members: BTreeSet<&str> = last.members.iter().map(|of| &*of.name).collect();
        let expected = &self.started.servers[run.reconfigurers..run.servers + run.reconfigurers];
        let expected: BTreeSet<&str> = expected.iter().map(|name| &**name).collect();
        match members == expected {
            true => Ok(()),
            false => Err(failed("change the servers")(format!(
                "a change was lost: the members are {members:?}"
            ))),
        }
    }
}

/// What the clients of a run share.
struct Scene {
    written: Version,
    is_regular: bool,
    is_over: Cell<bool>,
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

struct Reader {
    number: usize,
    domain: Domain,
    cost: Arc<Statistics>,
    /// When the run began.
    begun: Instant,
    /// Lives as long as its domain is used.
    _client: Client,
}

impl Reader {
    /// Reads until it is over.
    async fn read_on(
        self,
        scene: Rc<Scene>,
        mut next: Instant,
        pause: Duration,
    ) -> Result<Vec<ClientRead>, String> {
        let mut reads = Vec::new();
        while !scene.is_over.get() {
            sleep_until(next.into()).await;
            let (before, begun) = (self.cost.counts(), Instant::now());
            scene.read(&self.domain).await?;
            let (after, ended) = (self.cost.counts(), Instant::now());
            let read = ClientRead {
                reader: self.number,
                begun: begun - self.begun,
                took: ended - begun,
                requests: after.requests - before.requests,
                configurations: after.configurations - before.configurations,
            };
            if read.configurations > 1 {
                scene.note(self.domain.configuration());
            }
            reads.push(read);
            next = (next + pause).max(ended);
        }
        Ok(reads)
    }
}
