//! `areo file`: files as lists of blocks.

mod blocks;
mod pull;
mod push;

use crate::args::{self, file::Cut};
use crate::exit::{Code, Failure, Outcome, plain};
use crate::output::Output;
use crate::progress;
use crate::session::{self, Session, failure};
use areo_client::file::{Base, Chunking, Difference, DifferenceKind, File, FileError, Method};
use areo_client::units::show_size;
use areo_client::{Client, Domain};
use serde::Serialize;
use std::path::{Path, PathBuf};

pub(super) fn run(session: &Session, command: args::File) -> Outcome {
    match command {
        args::File::Push(args) => push::run(session, &args),
        args::File::Pull(args) => pull::run(session, &args),
        args::File::Cat(args) => session::run(cat(session, &args.name), ""),
        args::File::Diff(args) => session::run(diff(session, &args), ""),
        args::File::Blocks(args) => session::run(blocks::run(session, &args.name), ""),
        args::File::Ls { prefix } => session::run(ls(session, &prefix), ""),
        args::File::Rm(args) => {
            let name = &args.name;
            let interrupted = format!("interrupted: '{name}' may be removed");
            session::run(rm(session, name), &interrupted)
        }
    }
}

/// A client, and a file of the domain that is meant.
async fn open(session: &Session, name: &str) -> Outcome<(Client, Domain, File)> {
    let (client, domain) = session.domain().await?;
    let file = domain.file(name).map_err(failure)?;
    Ok((client, domain, file))
}

/// The failure of the process for an error of a file.
pub(super) fn file_failure(error: FileError) -> Failure {
    let sentence = error.to_string();
    match error {
        FileError::Error(error) => failure(error),
        FileError::NotFound { .. } => Failure::new(
            Code::NotFound,
            format!("{sentence}: `areo file ls` lists those that exist"),
        ),
        FileError::IsObject { .. } | FileError::Chunking(_) => Failure::usage(sentence),
        FileError::Modified { .. } | FileError::NoBase { .. } => {
            Failure::new(Code::Precondition, sentence)
        }
        FileError::NotAFile { .. } | FileError::Changed { .. } | FileError::GivenUp => {
            Failure::other(sentence)
        }
        FileError::Local { path, what, source } => Failure::file(what, &path, &source),
        FileError::Output { source } => crate::output::cannot_print(source),
    }
}

/// The directory that keeps the bases of local files.
fn bases() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let absolute = |path: &PathBuf| path.is_absolute();
    let cache = variable("XDG_CACHE_HOME").filter(absolute);
    let cache = cache.or_else(|| Some(variable("HOME").filter(absolute)?.join(".cache")));
    Some(cache?.join("areo").join("files"))
}

/// The place of the base of a local file, and the base.
fn base(domain: &Domain, name: &str, path: &Path) -> (Option<PathBuf>, Option<Base>) {
    let place = bases().map(|folder| Base::place(&folder, &domain.id(), name, path));
    let base = place.as_deref().and_then(Base::load);
    (place, base)
}

/// Keeps a base. Without it the next push or pull takes longer.
fn keep(out: Output, base: &Base, place: Option<&Path>) {
    let kept = match place {
        Some(place) => base.save(place).map_err(|error| plain(&error)),
        None => Err("there is no home directory".into()),
    };
    if let Err(why) = kept {
        out.note(&format!(
            "cannot remember what the local file is based on: {why}; the next push needs --fresh, and replaces what others write"
        ));
    }
}

/// The chunking that the flags name, else that of the last time, else the usual one.
fn chunking(cut: &Cut, base: Option<&Base>) -> Outcome<Chunking> {
    let usual = base.map(Base::chunking).unwrap_or_default();
    let method = match cut.chunking {
        Some(args::file::Method::Fastcdc) => Method::FastCdc,
        Some(args::file::Method::Rabin) => Method::Rabin,
        None => usual.method(),
    };
    let (min, avg, max) = usual.sizes();
    let (min, avg) = (cut.min.unwrap_or(min), cut.avg.unwrap_or(avg));
    let chunking = Chunking::new(method, min, avg, cut.max.unwrap_or(max));
    chunking.map_err(|error| Failure::usage(error.to_string()))
}

async fn cat(session: &Session, name: &str) -> Outcome {
    if session.out.json {
        return Err(Failure::usage(
            "with --json the content needs a place of its own: `areo file pull NAME PATH`",
        ));
    }
    let (client, _, file) = open(session, name).await?;
    let (out, title) = (
        session.out,
        format!("reading '{}'", session.out.foreign(name)),
    );
    let spinner = progress::spinner(out, &title);
    let shown = spinner.clone();
    let read = file.read(move |piece| {
        // A spinner takes the line away that it is drawn on.
        if out.terminal {
            shown.finish_and_clear();
        }
        crate::output::write(piece)
    });
    let read = progress::naming(&spinner, &client, read).await;
    spinner.finish_and_clear();
    read.map_err(file_failure)?;
    client.close().await;
    Ok(())
}

async fn ls(session: &Session, prefix: &str) -> Outcome {
    let (client, domain) = session.domain().await?;
    let (out, mut after) = (session.out, Some(String::new()));
    while let Some(from) = after {
        let files = progress::late(out, &client, domain.files(prefix, &from)).await;
        let (files, next) = files.map_err(failure)?;
        for file in files {
            if out.json {
                out.object(&file)?;
            } else {
                out.line(&out.foreign(&file.name))?;
            }
        }
        after = next;
    }
    client.close().await;
    Ok(())
}

#[derive(Serialize)]
struct FileRemovalReport<'a> {
    domain: &'a str,
    name: &'a str,
    version: String,
}

async fn rm(session: &Session, name: &str) -> Outcome {
    let (client, domain, file) = open(session, name).await?;
    let out = session.out;
    let version = progress::late(out, &client, file.remove()).await;
    let version = version.map_err(file_failure)?.to_string();
    let domain = domain.name();
    match (out.json, out.terminal && !out.quiet) {
        (true, _) => out.object(&FileRemovalReport {
            domain,
            name,
            version,
        })?,
        (false, true) => out.line(&format!("'{}' is removed", out.foreign(name)))?,
        (false, false) => {}
    }
    client.close().await;
    Ok(())
}

async fn diff(session: &Session, args: &args::file::Diff) -> Outcome {
    let (client, domain, file) = open(session, &args.name).await?;
    let (_, base) = base(&domain, &args.name, &args.path);
    let chunking = chunking(&args.cut, base.as_ref())?;
    let diff = file.diff(&args.path, chunking);
    let differences = progress::late(session.out, &client, diff).await;
    for difference in differences.map_err(file_failure)? {
        if session.out.json {
            session.out.object(&difference)?;
        } else {
            session.out.line(&sentence(&difference))?;
        }
    }
    client.close().await;
    Ok(())
}

fn sentence(difference: &Difference) -> String {
    let (sign, kind) = match difference.kind {
        DifferenceKind::Equal => ('=', "equal"),
        DifferenceKind::Replaced => ('!', "replaced"),
        DifferenceKind::Added => ('+', "added"),
        DifferenceKind::Removed => ('-', "removed"),
    };
    let Difference { there, here, .. } = difference;
    let size = |range: &std::ops::Range<u64>| show_size(range.end - range.start);
    let (there_bytes, here_bytes) = (size(there), size(here));
    format!(
        "{sign} {kind:<8}  {there_bytes} at {} there, {here_bytes} at {} here",
        there.start, here.start
    )
}
