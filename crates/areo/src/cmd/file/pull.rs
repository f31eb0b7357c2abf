//! `areo file pull`.

use super::{base, file_failure, keep, open};
use crate::args;
use crate::cmd::statistics;
use crate::exit::Outcome;
use crate::progress;
use crate::session::{self, Session, failure};
use crate::units::{show_count, show_size};
use areo_client::Statistics;
use areo_client::file::{Progress, PullOptions, PullReport};
use serde::Serialize;

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
    session::run(pull(session, args), "")
}

async fn pull(session: &Session, args: &args::file::Pull) -> Outcome {
    let (out, name) = (session.out, &*args.name);
    let (client, domain, _) = open(session, name).await?;
    let (domain, costs) = domain.measured();
    let file = domain.file(name).map_err(failure)?;
    let (place, known) = base(&domain, name, &args.path);
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
    let pulled = file.pull(&args.path, known.as_ref(), options, told).await;
    spinner.finish_and_clear();
    let pulled = pulled.map_err(file_failure)?;
    keep(out, &pulled.base, place.as_deref());
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
        let (path, size) = (args.path.display(), show_size(pulled.bytes));
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
