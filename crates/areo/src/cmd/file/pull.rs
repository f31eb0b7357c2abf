//! `areo file pull`.

use super::{base, file_failure, keep, open};
use crate::args;
use crate::cmd::{check_open, statistics};
use crate::exit::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::visible;
use crate::progress;
use crate::session::{self, Session, failure};
use areo_client::file::{Progress, PullOptions, PullReport};
use areo_client::units::{show_count, show_size};
use areo_client::{Statistics, place};
use serde::Serialize;
use std::time::Duration;
use tokio::time::sleep;

#[derive(Serialize)]
struct Report<'a> {
    domain: &'a str,
    name: &'a str,
    #[serde(flatten)]
    pulled: &'a PullReport,
    #[serde(flatten)]
    cost: Option<&'a Statistics>,
}

pub(super) fn run(session: &Session, args: &args::file::Pull) -> Outcome {
    check_open(&args.path)?;
    session::run_until(async |mut interrupt| {
        tokio::select! {
            outcome = pull(session, args, interrupt.clone()) => outcome,
            () = until_stuck(&mut interrupt) => Err(Failure::interrupted()),
        }
    })
}

/// Waits for a signal, and then as long as the file beside the target may take to go away.
async fn until_stuck(interrupt: &mut Interrupt) {
    interrupt.asked().await;
    sleep(Duration::from_millis(500)).await;
}

async fn pull(session: &Session, args: &args::file::Pull, mut interrupt: Interrupt) -> Outcome {
    let (out, name) = (session.out, &*args.name);
    let (client, domain, _) = open(session, name).await?;
    let (domain, costs) = domain.measured();
    let file = domain.file(name).map_err(failure)?;
    let is_stream = place::is_stream(&args.path).unwrap_or(false);
    let (place, known) = match is_stream {
        true => (None, None),
        false => base(&domain, name, &args.path),
    };
    let options = PullOptions { force: args.force };
    let spinner = progress::spinner(out, &format!("reading '{}'", out.foreign(name)));
    let told = spinner.clone();
    let received = std::cell::Cell::new(0);
    let told = move |progress| {
        if let Progress::Received { bytes, total } = progress {
            received.set(received.get() + bytes);
            let (done, total) = (show_size(received.get()), show_size(total));
            told.set_message(format!("{done} of {total}"));
        }
    };
    let pull = file.pull(&args.path, known.as_ref(), options, told);
    let pulled = tokio::select! {
        biased;
        pulled = progress::naming(&spinner, &client, pull) => Some(pulled),
        () = interrupt.asked() => None,
    };
    spinner.finish_and_clear();
    let Some(pulled) = pulled else {
        // What was written beside the target goes away on the client's own thread before it answers this.
        client.close().await;
        return Err(Failure::interrupted());
    };
    let pulled = pulled.map_err(file_failure)?;
    if !is_stream {
        keep(out, &pulled.base, place.as_deref());
    }
    let cost = args.stats.stats.then_some(&*costs);
    if out.json {
        out.object(&Report {
            domain: domain.name(),
            name,
            pulled: &pulled,
            cost,
        })?;
    } else {
        statistics::print(out, cost);
        let path = visible(&args.path.display().to_string());
        let size = show_size(pulled.bytes);
        let (blocks, fetched) = (show_count(pulled.blocks as u64, "block"), pulled.fetched);
        let sent = show_size(pulled.fetched_bytes);
        if pulled.unchanged {
            out.note(&format!("{path} is up to date: {size} in {blocks}"));
        } else {
            out.note(&format!(
                "{path}: {size} in {blocks}, {fetched} fetched ({sent})"
            ));
        }
    }
    client.close().await;
    Ok(())
}
