//! All but E7: readers and writers of one object or file at once, of E5 with reconfigurers beside them.

use super::law;
use super::longevity::Reconfigurers;
use super::parameters::{OBJECT_MAX, Parameters};
use super::report::Law;
use super::stage::{Stage, means};
use super::variant::{Algorithm, Variant};
use crate::error::{RunError, failed};
use crate::load::{AnyCaller, Load, Operation, Pace, Plan, Sample, value};
use crate::random::Random;
use std::collections::BTreeMap;
use std::time::Duration;

/// True if there is such a point: objects are one value.
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
    let subject = stage.subject(&domain, parameters, (variant, size));
    let mut first = subject.create(random.derive(0)).await?;
    let drawn = random.derive(1 << 32);
    let reconfigurers = Reconfigurers::connect(stage, &domain, parameters, &drawn).await?;
    let mut actors: Vec<AnyCaller> = Vec::new();
    for place in 0..parameters.readers + parameters.writers {
        let mut actor = subject.actor(random.derive(1 + place as u64)).await?;
        // Not measured: connections, the newest version, a local file.
        actor.read().await.map_err(failed("read the object"))?;
        actors.push(Box::new(actor));
    }
    let plan = Plan {
        readers: parameters.readers,
        writers: parameters.writers,
        operations: Some(parameters.operations as u64),
        pace: Pace::Closed {
            least: Duration::from_millis(parameters.wait_ms.0),
            most: Duration::from_millis(parameters.wait_ms.1),
        },
        seed: random.clone().next(),
        ..subject.plan()
    };
    let load = Load::of(actors, &plan, None);
    let cpu = stage.started.cluster.cpu();
    let reconfigurers = reconfigurers.begin(parameters);
    let ended = load.finish().await;
    let reconfigurations = reconfigurers.finish(stage).await;
    let cpu = stage.started.cluster.cpu().saturating_sub(cpu);
    stage.failures.borrow_mut().merge(ended.failures);
    let samples = ended.samples.into_iter();
    let (reads, writes): (Vec<Sample>, Vec<Sample>) =
        samples.partition(|sample| sample.operation == Operation::Get);
    let mut costs = means(&reads, &writes);
    costs.extend(reconfigurations.quantities());
    let operations = (reads.len() + writes.len()).max(1);
    let each = cpu.as_secs_f64() * 1e3 / operations as f64;
    costs.insert("server_cpu_ms", each);
    let (now, n, k) = reconfigurations.shape((variant, n, k));
    let laws = match with_laws {
        Some(at) => {
            let value = value::content(1, plan.size);
            let measured = law::quiet(now, (&mut first, &value), (n, k, size), (at, !stage.is_far));
            measured.await.map_err(failed("read and write alone"))?
        }
        None => Vec::new(),
    };
    stage.remove(&domain).await?;
    Ok((costs, laws))
}
