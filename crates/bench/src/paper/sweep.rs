//! All but E7: readers and writers of one object or file at once, of E5 with reconfigurers beside them.

use super::actor::{Actor, Cost, Subject};
use super::law;
use super::longevity::Reconfigurers;
use super::report::Law;
use super::scale::{OBJECT_MAX, Parameters};
use super::stage::{Stage, means};
use super::variant::{Algorithm, Variant};
use crate::random::Random;
use crate::run::{RunError, failed};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// What an operation ended with.
type OperationEnd = Result<Cost, String>;

/// Whether there is such a point: objects are one value.
pub(super) fn exists(variant: Variant, size: usize) -> bool {
    variant.algorithm == Algorithm::CoAresF || size <= OBJECT_MAX
}

/// Measures one variant at one size, once. `with_laws`: and its laws, when the others are done.
pub(super) async fn run(
    stage: &Stage<'_>,
    parameters: &Parameters,
    (variant, size): (Variant, usize),
    random: &Random,
    with_laws: Option<&str>,
) -> Result<(BTreeMap<&'static str, f64>, Vec<Law>), RunError> {
    let (n, k) = (parameters.servers, parameters.servers - parameters.parity);
    let domain = stage
        .domain(variant, parameters, k as u8, parameters.writers)
        .await?;
    let subject = Subject {
        connect: &stage.started.connect,
        domain: &domain,
        algorithm: variant.algorithm,
        size,
        blocks: parameters.blocks,
        data: stage.data,
    };
    let mut first = subject.actor(random.derive(0)).await?;
    first.create().await.map_err(failed("write the object"))?;
    let drawn = random.derive(1 << 32);
    let reconfigurers = Reconfigurers::connect(stage, &domain, parameters, &drawn).await?;
    let (reads, writes) = (Rc::default(), Rc::default());
    let mut actors = Vec::new();
    for place in 0..parameters.readers + parameters.writers {
        let random = random.derive(1 + place as u64);
        let mut actor = subject.actor(random.clone()).await?;
        // Not measured: connections, the newest version, a local file.
        actor.read().await.map_err(failed("read the object"))?;
        actors.push((actor, random));
    }
    let cpu = stage.started.cluster.cpu();
    let mut clients = JoinSet::new();
    for (place, (actor, random)) in actors.into_iter().enumerate() {
        let is_reader = place < parameters.readers;
        let ended: &Rc<RefCell<Vec<OperationEnd>>> = if is_reader { &reads } else { &writes };
        let work = work(actor, is_reader, random, parameters.clone(), ended.clone());
        clients.spawn_local(work);
    }
    let reconfigurers = reconfigurers.begin(parameters);
    while let Some(done) = clients.join_next().await {
        done.expect("clients do not panic");
    }
    let reconfigurations = reconfigurers.finish(stage).await;
    let cpu = stage.started.cluster.cpu().saturating_sub(cpu);
    let succeeded = |ended: Rc<RefCell<Vec<OperationEnd>>>| -> Vec<Cost> {
        let report = |ended: OperationEnd| {
            ended
                .map_err(|sentence| stage.failures.borrow_mut().add(sentence))
                .ok()
        };
        ended.take().into_iter().filter_map(report).collect()
    };
    let (reads, writes) = (succeeded(reads), succeeded(writes));
    let mut costs = means(&reads, &writes);
    costs.extend(reconfigurations.quantities());
    let operations = (reads.len() + writes.len()).max(1);
    let each = cpu.as_secs_f64() * 1e3 / operations as f64;
    costs.insert("server_cpu_ms", each);
    let (now, n, k) = reconfigurations.shape((variant, n, k));
    let laws = match with_laws {
        Some(at) => law::quiet(now, &mut first, (n, k, size), (at, !stage.is_far))
            .await
            .map_err(failed("read and write alone"))?,
        None => Vec::new(),
    };
    stage.remove(&domain).await?;
    Ok((costs, laws))
}

/// Operations one after the other, with random waits between them.
async fn work(
    mut actor: Actor,
    is_reader: bool,
    mut random: Random,
    parameters: Parameters,
    ended: Rc<RefCell<Vec<OperationEnd>>>,
) {
    for _ in 0..parameters.operations {
        sleep(random.millis(parameters.wait_ms.0..parameters.wait_ms.1)).await;
        let done = match is_reader {
            true => actor.read().await,
            false => actor.write().await,
        };
        ended.borrow_mut().push(done);
    }
}
