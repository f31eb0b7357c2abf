//! `areo cp`: copies files to objects and objects to files, one or a folder of them.
//!
//! An object or a file that has the length and the checksum of its source is not copied, so that an interrupted copy goes on when it is run again.

mod download;
mod ends;
mod names;
mod tree;
mod upload;

use super::many::{Ending, WINDOW_BYTES};
use crate::args;
use crate::exit::{Failure, Outcome, plain};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress;
use crate::session::{self, Session, failure};
use areo_client::units::{show_count, show_size};
use areo_client::{Client, Domain, Entry, checksum_of};
use ends::End;
use futures_util::TryStreamExt;
use indicatif::ProgressBar;
use serde::Serialize;
use std::fs::File;
use std::path::Path;
use tokio::task::spawn_blocking;

pub(super) fn run(session: &Session, args: &args::Cp) -> Outcome {
    let ends = (
        End::parse("source", &args.source)?,
        End::parse("target", &args.target)?,
    );
    let refused = |why: &str| Err(Failure::usage(why));
    match ends {
        (End::Files(from), End::Objects(to)) => session::run_until(async |interrupt| {
            let mut copying = Copying::begin(session, args, to.domain, &interrupt).await?;
            let copied = upload::run(&mut copying, &from, &to.key).await;
            copying.end(copied).await
        }),
        (End::Objects(from), End::Files(to)) => session::run_until(async |interrupt| {
            let mut copying = Copying::begin(session, args, from.domain, &interrupt).await?;
            let copied = download::run(&mut copying, &from.key, &to).await;
            copying.end(copied).await
        }),
        (End::Files(_), End::Files(_)) => {
            refused("`areo cp` copies from or to a domain: name one end as areo://DOMAIN/KEY")
        }
        (End::Objects(_), End::Objects(_)) => refused(
            "both ends are in domains: copy the objects to a folder, and the folder to the other domain; or use `areo backup` and `areo restore --as`",
        ),
    }
}

/// A copy that is under way.
struct Copying<'a> {
    session: &'a Session,
    args: &'a args::Cp,
    interrupt: &'a Interrupt,
    client: Client,
    domain: Domain,
    report: Report,
}

/// The result; the last line with `--json`.
#[derive(Serialize, Default, Debug)]
struct Report {
    copied: u64,
    bytes: u64,
    unchanged: u64,
    deleted: u64,
    dry_run: bool,
}

/// One step; a line with `--json` or of a dry run.
#[derive(Serialize, Debug)]
struct Step<'a> {
    action: Action,
    key: &'a str,
    file: String,
    bytes: u64,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
enum Action {
    Copy,
    Delete,
}

/// The result of copying one object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Copied {
    /// The object was copied, or would be: its bytes.
    Bytes(u64),
    /// The target had this content already.
    Unchanged,
    /// The object was deleted meanwhile.
    Gone,
}

impl<'a> Copying<'a> {
    async fn begin(
        session: &'a Session,
        args: &'a args::Cp,
        domain: String,
        interrupt: &'a Interrupt,
    ) -> Outcome<Copying<'a>> {
        let client = session.connect().await?.with_window(WINDOW_BYTES);
        let found = progress::late(session.out, &client, client.domain(&domain)).await;
        Ok(Copying {
            domain: found.map_err(failure)?,
            client,
            session,
            args,
            interrupt,
            report: Report {
                dry_run: args.dry_run,
                ..Report::default()
            },
        })
    }

    fn out(&self) -> Output {
        self.session.out
    }

    /// All objects whose keys begin so.
    async fn list(&self, prefix: &str) -> Outcome<Vec<Entry>> {
        let list = list(&self.domain, prefix);
        progress::late(self.out(), &self.client, list).await
    }

    fn bar(&self, count: usize, bytes: u64) -> ProgressBar {
        let what = match self.args.dry_run {
            true => "comparing".to_owned(),
            false => format!("copying {}", show_count(count as u64, "object")),
        };
        match self.args.dry_run || bytes < progress::SHOWN_BYTES {
            true => progress::spinner(self.out(), &what),
            false => progress::bar(self.out(), &what, bytes),
        }
    }

    /// Notes what became of an object, and says so.
    fn note(&mut self, copied: Copied, key: &str, file: &Path) -> Outcome {
        match copied {
            Copied::Unchanged => self.report.unchanged += 1,
            Copied::Gone => {}
            Copied::Bytes(bytes) => {
                self.report.copied += 1;
                self.report.bytes += bytes;
                self.say(Action::Copy, key, file, bytes)?;
            }
        }
        Ok(())
    }

    fn note_deleted(&mut self, key: &str, file: &Path) -> Outcome {
        self.report.deleted += 1;
        self.say(Action::Delete, key, file, 0)
    }

    fn say(&self, action: Action, key: &str, file: &Path, bytes: u64) -> Outcome {
        let (out, file) = (self.out(), file.display().to_string());
        let step = Step {
            action,
            key,
            file,
            bytes,
        };
        if out.json {
            return out.object(&step);
        }
        if !self.args.dry_run {
            return Ok(());
        }
        let word = match action {
            Action::Copy => "copy",
            Action::Delete => "delete",
        };
        let (key, file) = (out.foreign(key), out.foreign(&step.file));
        out.line(&format!("{word}\t{key}\t{file}"))
    }

    async fn end(self, copied: Outcome<Ending>) -> Outcome {
        let ending = copied?;
        let (out, report) = (self.session.out, self.report);
        self.client.close().await;
        let done = report.sentence();
        if ending.is_complete() {
            out.note(&done);
            return match out.json {
                true => out.object(&report),
                false => Ok(()),
            };
        }
        let kept = match self.args.delete {
            true => "; nothing was deleted",
            false => "",
        };
        ending.outcome(&format!("{done}{kept}; run it again to go on"))
    }
}

impl Report {
    fn sentence(&self) -> String {
        let (copied, bytes) = (show_count(self.copied, "object"), show_size(self.bytes));
        let word = match self.dry_run {
            true => "to copy",
            false => "copied",
        };
        let unchanged = match self.unchanged {
            0 => String::new(),
            unchanged => format!(", {unchanged} unchanged"),
        };
        let deleted = match (self.deleted, self.dry_run) {
            (0, _) => String::new(),
            (deleted, true) => format!(", {deleted} to delete"),
            (deleted, false) => format!(", {deleted} deleted"),
        };
        format!("{copied} {word} ({bytes}){unchanged}{deleted}")
    }
}

/// All objects of a domain whose keys begin so, in order.
pub(super) async fn list(domain: &Domain, prefix: &str) -> Outcome<Vec<Entry>> {
    domain.list_all(prefix).try_collect().await.map_err(failure)
}

/// True if the object's length and checksum are those of the file, which has `bytes` bytes.
async fn is_same(domain: &Domain, key: &str, path: &Path, bytes: u64) -> Outcome<bool> {
    let info = match domain.stat(key).await {
        Ok(info) => info,
        Err(areo_client::Error::NotFound { key: Some(_), .. }) => return Ok(false),
        Err(error) => return Err(failure(error)),
    };
    if info.length != bytes {
        return Ok(false);
    }
    let (of_file, here) = (info.metadata.checksum, path.to_owned());
    let read = spawn_blocking(move || checksum_of(File::open(here)?)).await;
    let read = read.expect("reading does not panic");
    let found = read.map_err(|error| Failure::file("read", path, &error))?;
    Ok(of_file.is_some_and(|checksum| (info.length, checksum) == found))
}

/// A failure to copy this one.
fn cannot_copy(what: &str, why: &str) -> Failure {
    Failure::other(format!("cannot copy {what}: {why}"))
}

/// The reason of the operating system.
fn cannot_read(path: &Path, error: &std::io::Error) -> Failure {
    cannot_copy(&path.display().to_string(), &plain(error))
}
