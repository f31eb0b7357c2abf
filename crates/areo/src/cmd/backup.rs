//! `areo backup`: writes what has changed since the last run into a directory.
//!
//! Each object is read by itself, at one version of it. The run is no picture of one moment: writes go on meanwhile.

mod read;

use super::archive::{Archive, Begin, DomainLine, FORMAT, ItemName, Kind, Line, State, Writer};
use super::cp::list;
use super::many::{Ending, Job, WINDOW_BYTES, each};
use crate::args::{self, VERSION};
use crate::exit::{Code, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::progress;
use crate::session::{self, Session, failure};
use areo_client::units::{show_count, show_size};
use areo_client::{Client, Domain};
use read::{Found, Read, Reading};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The result; the last line with `--json`.
#[derive(Serialize, Default, Debug)]
struct Report {
    run: u64,
    domains: u64,
    /// Objects and files that were read.
    read: u64,
    bytes: u64,
    unchanged: u64,
    deleted: u64,
    unreadable: u64,
}

/// A run that is under way.
struct Run<'a> {
    session: &'a Session,
    interrupt: &'a Interrupt,
    client: Client,
    archive: Arc<Archive>,
    writer: Writer,
    /// The state after all earlier runs and the lines of this one so far.
    state: State,
    report: Report,
    /// The failures of objects that are not in the run.
    unreadable: Vec<Failure>,
}

pub(super) fn run(session: &Session, args: &args::Backup) -> Outcome {
    let (domain, folder) = names(args)?;
    session::run_until(async |interrupt| backup(session, domain, folder, &interrupt).await)
}

/// The domain, if one is named, and the directory.
fn names(args: &args::Backup) -> Outcome<(Option<String>, PathBuf)> {
    let text = |name: &OsString| name.to_string_lossy().into_owned();
    match (&args.names[..], args.all) {
        ([folder], true) => Ok((None, folder.into())),
        ([domain, folder], false) => Ok((Some(text(domain)), folder.into())),
        ([_], false) => Err(Failure::usage(
            "name a domain and a directory, as `areo backup photos DIR`; or pass --all for all domains",
        )),
        _ => Err(Failure::usage(
            "--all is for all domains: name a directory alone",
        )),
    }
}

async fn backup(
    session: &Session,
    domain: Option<String>,
    folder: PathBuf,
    interrupt: &Interrupt,
) -> Outcome {
    let out = session.out;
    let client = session.connect().await?.with_window(WINDOW_BYTES);
    let all = domain.is_none();
    let names = if let Some(domain) = domain {
        vec![domain]
    } else {
        let domains = progress::late(out, &client, client.domains()).await;
        let domains = domains.map_err(failure)?;
        domains.into_iter().map(|domain| domain.name).collect()
    };
    let mut domains = Vec::new();
    for name in &names {
        let found = progress::late(out, &client, client.domain(name)).await;
        domains.push(found.map_err(failure)?);
    }
    let mut run = Run::begin(session, client, (&folder, &names), interrupt)?;
    if all {
        run.note_removed(&names)?;
    }
    for domain in &domains {
        let ending = run.domain(domain).await?;
        if !ending.is_complete() {
            return ending.outcome(&format!(
                "{}; the run has not ended: run it again to go on",
                run.report.sentence()
            ));
        }
    }
    run.end().await
}

impl<'a> Run<'a> {
    fn begin(
        session: &'a Session,
        client: Client,
        (folder, names): (&PathBuf, &[String]),
        interrupt: &'a Interrupt,
    ) -> Outcome<Run<'a>> {
        let archive = Archive::create(folder)?;
        let last = archive.last_run()?;
        let mut state = archive.state(last)?;
        let cluster = client.cluster().to_string();
        if let Some(other) = state.begin.as_ref().filter(|it| it.cluster != cluster) {
            return Err(Failure::usage(format!(
                "{} holds a backup of the cluster {}, and this is {cluster}: name another directory",
                folder.display(),
                other.cluster
            )));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let begin = Begin {
            format: FORMAT,
            run: last + 1,
            cluster,
            program: VERSION.into(),
            begun_at_ms: now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(0)),
        };
        let writer = archive.begin(begin, names, &mut state)?;
        Ok(Run {
            session,
            interrupt,
            client,
            archive: Arc::new(archive),
            writer,
            state,
            report: Report {
                run: last + 1,
                ..Report::default()
            },
            unreadable: Vec::new(),
        })
    }

    fn write(&mut self, line: Line) -> Outcome {
        let written = self.writer.write(&line);
        written.map_err(|error| Failure::file("write", self.writer.path(), &error))?;
        self.state.apply(line);
        Ok(())
    }

    /// Notes which domains of the runs before there are no more.
    fn note_removed(&mut self, names: &[String]) -> Outcome {
        let known: Vec<String> = self.state.domains.keys().cloned().collect();
        for domain in known.into_iter().filter(|known| !names.contains(known)) {
            self.write(Line::Removed { domain })?;
        }
        Ok(())
    }

    /// Reads the changes of a domain.
    async fn domain(&mut self, domain: &Domain) -> Outcome<Ending> {
        let (out, client) = (self.session.out, self.client.clone());
        let listing = async {
            let objects = list(domain, "").await?;
            let files = read::files(domain).await?;
            Ok::<_, Failure>((objects, files))
        };
        let (objects, files) = progress::late(out, &client, listing).await?;
        let name = |kind, key: String| ItemName {
            domain: domain.name().into(),
            kind,
            key,
        };
        let objects = objects.into_iter().map(|entry| Found {
            name: name(Kind::Object, entry.key),
            version: Some(entry.version.to_string()),
            bytes: entry.length,
        });
        // What has changed in a file its blocks say.
        let files = files.into_iter().map(|key| Found {
            name: name(Kind::File, key),
            version: None,
            bytes: 0,
        });
        let found: Vec<Found> = objects.chain(files).collect();
        let there: BTreeSet<ItemName> = found.iter().map(|found| found.name.clone()).collect();
        self.note_deleted(domain.name(), &there)?;
        let before = found.len();
        let changed: Vec<Found> = found
            .into_iter()
            .filter(|it| {
                it.version.is_none() || self.state.version(&it.name) != it.version.as_deref()
            })
            .collect();
        self.report.unchanged += (before - changed.len()) as u64;
        let ending = self.read(domain, changed).await;
        if ending.is_complete() {
            self.report.domains += 1;
            self.write(Line::Domain(described(domain)))?;
        }
        Ok(ending)
    }

    fn note_deleted(&mut self, domain: &str, there: &BTreeSet<ItemName>) -> Outcome {
        let known = self.state.items.keys();
        let gone = known.filter(|name| name.domain == domain && !there.contains(*name));
        for name in gone.cloned().collect::<Vec<_>>() {
            self.report.deleted += 1;
            self.write(Line::Delete { name })?;
        }
        Ok(())
    }

    async fn read(&mut self, domain: &Domain, changed: Vec<Found>) -> Ending {
        let what = format!("backing up '{}'", domain.name());
        let bytes: u64 = changed.iter().map(|found| found.bytes).sum();
        let bar = match bytes {
            progress::SHOWN_BYTES.. => progress::bar(self.session.out, &what, bytes),
            _ => progress::spinner(self.session.out, &what),
        };
        let reading = Reading {
            domain: domain.clone(),
            archive: Arc::clone(&self.archive),
            bar: bar.clone(),
        };
        let versions = changed.into_iter().map(|found| {
            let known = self.state.version(&found.name).map(str::to_owned);
            (found, known)
        });
        let versions: Vec<_> = versions.collect();
        let jobs = versions.into_iter().map(|(found, known)| Job {
            bytes: found.bytes,
            work: reading.clone().read(found, known),
        });
        let (client, interrupt) = (self.client.clone(), self.interrupt);
        let reading = each(jobs, interrupt, |_| true, |read| self.note(read));
        let ending = progress::naming(&bar, &client, reading).await;
        bar.finish_and_clear();
        ending
    }

    /// Notes the result of reading an item.
    fn note(&mut self, read: Read) -> Outcome {
        match read {
            Read::Item(item) => {
                self.report.read += 1;
                self.report.bytes += item.bytes;
                self.write(Line::Put(item))
            }
            Read::Unchanged => {
                self.report.unchanged += 1;
                Ok(())
            }
            Read::Gone(name) if self.state.items.contains_key(&name) => {
                self.report.deleted += 1;
                self.write(Line::Delete { name })
            }
            Read::Gone(_) => Ok(()),
            Read::Unreadable(name, failure) => {
                self.report.unreadable += 1;
                let why = failure.message.clone();
                self.unreadable.push(failure);
                self.write(Line::Unreadable { name, why })
            }
        }
    }

    /// Ends the run: finishes the archive and prints the report.
    async fn end(self) -> Outcome {
        let (out, report) = (self.session.out, self.report);
        let (archive, writer) = (self.archive, self.writer);
        let run = report.run;
        let finish = move || archive.finish(run, writer);
        let finished = tokio::task::spawn_blocking(finish).await;
        finished.expect("writing does not panic")?;
        self.client.close().await;
        if out.json {
            out.object(&report)?;
        }
        let sentence = report.sentence();
        out.note(&format!(
            "run {run}: {sentence}; each at one version of it, and not all at one moment"
        ));
        let rest = "all else is in the backup, and of these what an earlier run read";
        Ending::with(self.unreadable).outcome(rest)
    }
}

impl Report {
    fn sentence(&self) -> String {
        let (read, bytes) = (show_count(self.read, "object"), show_size(self.bytes));
        let (unchanged, deleted) = (self.unchanged, self.deleted);
        format!("{read} read ({bytes}), {unchanged} unchanged, {deleted} deleted since")
    }
}

fn described(domain: &Domain) -> DomainLine {
    let configuration = domain.configuration();
    let shape = configuration.shape;
    DomainLine {
        domain: domain.name().into(),
        id: domain.id(),
        dap: shape.dap().to_string(),
        n: shape.n(),
        k: shape.k(),
        delta: configuration.delta,
        copy_limit_bytes: configuration.copy_bytes,
        reconfig: configuration.reconfig.word().into(),
        consensus: configuration.decided_by.to_string(),
        experimental: configuration.experimental.settings(),
    }
}

/// True if only this object cannot be read.
fn is_lost(failure: &Failure) -> bool {
    failure.code == Code::Corrupted
}
