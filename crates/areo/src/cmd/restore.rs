//! `areo restore`: writes what a backup has into domains, or verifies the backup.

mod check;
mod domain;
mod write;

use super::archive::{Archive, State};
use super::many::{Ending, Job, WINDOW_BYTES, each};
use super::put::block_bytes;
use crate::args;
use crate::exit::{Code, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::progress;
use crate::session::{self, Session};
use areo_client::units::{show_count, show_size};
use areo_client::{Client, Domain};
use serde::Serialize;
use std::collections::HashSet;
use std::sync::Arc;
use write::{Restored, Writing};

/// The result; the last line with `--json`.
#[derive(Serialize, Default, Debug)]
struct Report {
    domains: u64,
    /// Objects and files that were written.
    restored: u64,
    bytes: u64,
    unchanged: u64,
    /// Objects that were there and differ from the backup.
    kept: u64,
}

pub(super) fn run(session: &Session, args: &args::Restore) -> Outcome {
    if args.check {
        return session::run(check::run(session.out, &args.dir), "");
    }
    let archive = Archive::open(&args.dir)?;
    let last = archive.last_run()?;
    let run = match args.run {
        Some(run) if run > last => {
            let (count, dir) = (show_count(last, "run"), args.dir.display());
            let sentence = format!("there is no run {run} in {dir}: it has {count}");
            return Err(Failure::new(Code::NotFound, sentence));
        }
        run => run.unwrap_or(last),
    };
    if run == 0 {
        let sentence = format!(
            "no run of the backup in {} has ended: `areo backup` goes on with it",
            args.dir.display()
        );
        return Err(Failure::new(Code::NotFound, sentence));
    }
    let state = archive.state(run)?;
    let names = chosen(&state, args)?;
    let archive = Arc::new(archive);
    session::run_until(async |interrupt| {
        restore(session, args, (&archive, &state, &names), &interrupt).await
    })
}

/// The domains to restore.
fn chosen(state: &State, args: &args::Restore) -> Outcome<Vec<String>> {
    let all: Vec<String> = state.domains.keys().cloned().collect();
    let listed = || match all.is_empty() {
        true => "none".to_owned(),
        false => all.join(", "),
    };
    match (&args.only, &args.target) {
        (Some(only), _) if !all.contains(only) => Err(Failure::new(
            Code::NotFound,
            format!("the backup has no domain '{only}'; it has: {}", listed()),
        )),
        (Some(only), _) => Ok(vec![only.clone()]),
        (None, Some(_)) if all.len() != 1 => Err(Failure::usage(format!(
            "--as is for one domain: choose it by --only; the backup has: {}",
            listed()
        ))),
        (None, _) => Ok(all),
    }
}

async fn restore(
    session: &Session,
    args: &args::Restore,
    (archive, state, names): (&Arc<Archive>, &State, &[String]),
    interrupt: &Interrupt,
) -> Outcome {
    let out = session.out;
    let client = session.connect().await?.with_window(WINDOW_BYTES);
    let (mut report, mut ending) = (Report::default(), Ending::default());
    for name in names {
        let target = args.target.as_ref().unwrap_or(name);
        let line = &state.domains[name];
        let domain = domain::find_or_create(session, &client, (target, line)).await?;
        let writing = Writing {
            archive: Arc::clone(archive),
            block_bytes: block_bytes(session, None)?,
            overwrite: args.overwrite,
            domain,
            there: Arc::default(),
            bar: progress::hidden(),
        };
        let restored = one(
            session,
            (&client, state, name),
            writing,
            interrupt,
            &mut report,
        )
        .await;
        ending = ending.and(restored?);
        let goes_on = |failure: &Failure| failure.code == Code::Corrupted;
        if ending.interrupted || !ending.failures.iter().all(goes_on) {
            break;
        }
        report.domains += 1;
    }
    client.close().await;
    let sentence = report.sentence();
    if !ending.is_complete() {
        return ending.outcome(&format!("{sentence}; run it again to go on"));
    }
    match out.json {
        true => out.object(&report)?,
        false => out.note(&sentence),
    }
    match report.kept {
        0 => Ok(()),
        kept => Err(Failure::new(
            Code::Precondition,
            format!(
                "{} differ from the backup and were left as they are: pass --overwrite to replace them, or --as to restore under another name",
                show_count(kept, "object")
            ),
        )),
    }
}

/// Restores the items of one domain.
async fn one(
    session: &Session,
    (client, state, name): (&Client, &State, &str),
    writing: Writing,
    interrupt: &Interrupt,
    report: &mut Report,
) -> Outcome<Ending> {
    let (out, domain) = (session.out, writing.domain.clone());
    let there = progress::late(out, client, there(&domain)).await?;
    let items = || state.items.values().filter(|it| it.name.domain == name);
    let bytes: u64 = items().map(|item| item.bytes).sum();
    let what = format!("restoring '{}'", domain.name());
    let bar = match bytes {
        progress::SHOWN_BYTES.. => progress::bar(out, &what, bytes),
        _ => progress::spinner(out, &what),
    };
    let writing = Writing {
        there: Arc::new(there),
        bar: bar.clone(),
        ..writing
    };
    let jobs = items().map(|item| Job {
        bytes: item.bytes,
        work: writing.clone().write(item.clone()),
    });
    let note = |restored: Restored| {
        match restored {
            Restored::Written(bytes) => {
                report.restored += 1;
                report.bytes += bytes;
            }
            Restored::Unchanged => report.unchanged += 1,
            Restored::Kept => report.kept += 1,
        }
        Ok(())
    };
    // One damaged object keeps no other from being restored.
    let stops = |code| code != Code::Corrupted;
    let restoring = each(jobs, interrupt, stops, note);
    let ending = progress::naming(&bar, client, restoring).await;
    bar.finish_and_clear();
    Ok(ending)
}

/// The keys of all objects of a domain.
async fn there(domain: &Domain) -> Outcome<HashSet<String>> {
    let entries = super::cp::list(domain, "").await?;
    Ok(entries.into_iter().map(|entry| entry.key).collect())
}

impl Report {
    fn sentence(&self) -> String {
        let (restored, bytes) = (show_count(self.restored, "object"), show_size(self.bytes));
        format!(
            "{restored} restored ({bytes}), {} unchanged",
            self.unchanged
        )
    }
}
