//! `areo up`: a whole cluster on this machine, one process per server.
//!
//! ```text
//! data/cluster.toml     who the servers are and where
//! data/up.lock          held while `areo up` runs
//! data/making           there while a new cluster is made: its directories hold nothing yet
//! data/s1/ s2/ ...      one directory per server; server.log beside the data
//! data/gateway/         server.log of the gateway for S3, if there is one
//! ```

mod data;
mod plan;
mod processes;
mod ready;

use crate::args;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::session::Session;
use areo_server::StopSignals;
use data::{Cluster, Data};
use plan::Plan;
use processes::Processes;

pub(super) fn run(session: &Session, args: args::Up) -> Outcome {
    // Its messages may lead nowhere; the servers go on.
    output::never_wait_for_readers();
    super::server::make_files_private();
    let plan = Plan::new(session, args)?;
    let data = Data::take(&plan)?;
    let cluster = data.cluster(&plan, session.out)?;
    let system = |error: std::io::Error| Failure::other(format!("cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(system)?.block_on(async {
        let mut stop = StopSignals::new().map_err(system)?;
        let mut processes = Processes::start(&plan, &cluster, session.out)?;
        let outcome = serve(session, &plan, &cluster, &mut processes, &mut stop).await;
        session.out.note("stopping the servers");
        let stopped = processes.stop(&mut stop).await;
        outcome.and(stopped)
    })
}

/// Runs until the signal to stop.
async fn serve(
    session: &Session,
    plan: &Plan,
    cluster: &Cluster,
    processes: &mut Processes,
    stop: &mut StopSignals,
) -> Outcome {
    let timeout = session.timeout()?;
    let ready = ready::wait(session.out, plan, cluster, timeout);
    tokio::select! {
        outcome = ready => outcome?,
        outcome = processes.supervise() => return outcome,
        () = stop.next() => return Ok(()),
    }
    if let Some(listen) = &plan.s3 {
        processes.start_gateway(plan, cluster, listen)?;
    }
    let announced = ready::announce(session.out, plan, cluster, |name| processes.pid(name));
    // Where standard output is gone or full, the servers still serve those who know where they are.
    if let Err(failure) = announced.as_ref().map_err(|it| it.message.as_str()) {
        session.out.note(failure);
    }
    tokio::select! {
        outcome = processes.supervise() => outcome,
        () = stop.next() => Ok(()),
    }
}
