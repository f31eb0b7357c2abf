//! `areo get`: reads an object.

use super::statistics;
use crate::args;
use crate::exit::{Failure, Outcome};
use crate::output::{Output, visible};
use crate::progress;
use crate::session::{self, Session, failure};
use areo_client::place::Place;
use areo_client::units::show_size;
use areo_client::{Client, Domain, ObjectStream, Statistics};
use bytes::Bytes;
use indicatif::ProgressBar;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use tokio::task::spawn_blocking;

/// The output with `--json`.
#[derive(Serialize)]
struct Read<'a> {
    domain: &'a str,
    key: &'a str,
    version: String,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(flatten)]
    cost: Option<&'a Statistics>,
}

pub(super) fn run(session: &Session, args: &args::Get) -> Outcome {
    let file = args.file.as_deref().or(args.output.as_deref());
    let file = file.filter(|path| *path != Path::new("-"));
    if session.out.json && file.is_none() && !args.version_only {
        return Err(Failure::usage(
            "with --json the value needs a place of its own: pass -o FILE, or --version-only",
        ));
    }
    let file = file.map(|file| file_for(file, &args.key)).transpose()?;
    if let Some(file) = &file {
        super::check_place(file)?;
    }
    session::run(get(session, args, file.as_deref()), "")
}

async fn get(session: &Session, args: &args::Get, file: Option<&Path>) -> Outcome {
    let (client, domain) = session.domain().await?;
    if args.version_only {
        version_only(session.out, (&client, &domain), args).await?;
    } else {
        value(session.out, (&client, &domain), args, file).await?;
    }
    client.close().await;
    Ok(())
}

async fn version_only(
    out: Output,
    (client, domain): (&Client, &Domain),
    args: &args::Get,
) -> Outcome {
    let (domain, statistics) = domain.measured();
    let info = progress::late(out, client, domain.stat(&args.key)).await;
    let info = info.map_err(failure)?;
    let read = Read {
        domain: domain.name(),
        key: &args.key,
        version: info.version.to_string(),
        bytes: info.length,
        file: None,
        cost: cost(args, &statistics),
    };
    if out.json {
        return out.object(&read);
    }
    statistics::print(out, read.cost);
    out.line(&read.version)
}

fn cost<'a>(args: &args::Get, statistics: &'a Statistics) -> Option<&'a Statistics> {
    args.stats.stats.then_some(statistics)
}

async fn value(
    out: Output,
    (client, domain): (&Client, &Domain),
    args: &args::Get,
    file: Option<&Path>,
) -> Outcome {
    let spinner = progress::spinner(out, &format!("reading '{}'", out.foreign(&args.key)));
    let (measured, statistics) = domain.measured();
    let begin = async {
        match args.range {
            None => measured.get_stream(&args.key).await,
            Some((start, end)) => measured.get_range(&args.key, (start, end)).await,
        }
    };
    let stream = progress::naming(&spinner, client, begin).await;
    spinner.finish_and_clear();
    let mut stream = stream.map_err(failure)?;
    let Some(path) = file else {
        // Said in full, `-o -` means it.
        let checks = out.terminal && args.output.is_none() && args.file.is_none();
        return print(out, (client, &mut stream), checks).await.map(|()| {
            statistics::print(out, cost(args, &statistics));
        });
    };
    write(out, path, (client, &mut stream)).await?;
    let cost = cost(args, &statistics);
    statistics::print(out, cost);
    let read = stream.streamed();
    if out.json {
        return out.object(&Read {
            domain: domain.name(),
            key: &args.key,
            version: read.version.to_string(),
            bytes: read.bytes,
            file: Some(path.display().to_string()),
            cost,
        });
    }
    let path = visible(&path.display().to_string());
    let size = show_size(read.bytes);
    out.note(&format!("{path}: {size}, version {}", read.version));
    Ok(())
}

/// Puts the pieces on standard output as they come.
async fn print(
    out: Output,
    (client, stream): (&Client, &mut ObjectStream),
    checks: bool,
) -> Outcome {
    let mut waits = out;
    while let Some(piece) = next(waits, &progress::hidden(), (client, stream)).await? {
        if checks {
            check_text(&piece, stream.length())?;
        }
        // A spinner takes the line away that it is drawn on.
        waits.progress = out.progress && (!out.terminal || piece.ends_with(b"\n"));
        // Its reader may take as long as it likes, and a signal is to be noticed meanwhile.
        let print = spawn_blocking(move || out.bytes(&piece)).await;
        print.expect("printing does not panic")?;
    }
    Ok(())
}

/// The next piece, with the names of the servers that it is late at: beside the bar, or alone.
async fn next(
    out: Output,
    bar: &ProgressBar,
    (client, stream): (&Client, &mut ObjectStream),
) -> Outcome<Option<Bytes>> {
    let piece = match bar.is_hidden() {
        true => progress::late(out, client, stream.next()).await,
        false => progress::naming(bar, client, stream.next()).await,
    };
    piece.map_err(failure)
}

/// A terminal that obeys a binary value does surprising things.
fn check_text(piece: &[u8], length: u64) -> Outcome {
    let control = |byte: &u8| byte.is_ascii_control() && !b"\n\r\t".contains(byte);
    if piece.iter().any(control) {
        Err(Failure::usage(format!(
            "the value is not text ({}): redirect it, or pass -o FILE (-o - prints it all the same)",
            show_size(length)
        )))
    } else {
        Ok(())
    }
}

/// The file for the value of this key: `path`, or in the directory `path` the last part of the key.
pub(super) fn file_for(path: &Path, key: &str) -> Outcome<PathBuf> {
    let refused = |why: &str| Failure::other(format!("cannot write {}: {why}", path.display()));
    if !path.is_dir() {
        return Ok(path.into());
    }
    let name = key.rsplit('/').next().unwrap_or(key);
    match name {
        "" | "." | ".." => Err(refused("it is a directory; name a file in it")),
        name if name.contains('\0') => Err(refused("the key is no name of a file")),
        name => match path.join(name) {
            file if file.is_dir() => Err(refused(&format!(
                "'{name}' in it is a directory; name another file"
            ))),
            file => Ok(file),
        },
    }
}

/// Puts the pieces there.
async fn write(
    out: Output,
    path: &Path,
    (client, stream): (&Client, &mut ObjectStream),
) -> Outcome {
    let bar = progress::bar(out, "reading", stream.length());
    let failed = |error: io::Error| Failure::file("write", path, &error);
    let named = path.to_owned();
    // A pipe is opened when its reader comes.
    let place = spawn_blocking(move || Place::open(&named)).await;
    let mut place = place.expect("opening does not panic").map_err(failed)?;
    while let Some(piece) = next(out, &bar, (client, stream)).await? {
        let bytes = piece.len() as u64;
        place.write(piece).await.map_err(failed)?;
        bar.inc(bytes);
    }
    place.keep().await.map_err(failed)?;
    bar.finish_and_clear();
    Ok(())
}

#[cfg(test)]
mod tests;
