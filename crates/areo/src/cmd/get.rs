//! `areo get`: reads an object.

use super::statistics::{self, Cost};
use crate::args;
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::progress;
use crate::session::{self, Session, failure};
use crate::units::show_size;
use areo_client::{Client, Domain, Object, Statistics};
use bytes::Bytes;
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What is printed with `--json`.
#[derive(Serialize)]
struct Read<'a> {
    domain: &'a str,
    key: &'a str,
    version: String,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(flatten)]
    cost: Option<Cost>,
}

pub(super) fn run(session: &Session, args: &args::Get) -> Outcome {
    let file = args
        .output
        .as_deref()
        .filter(|path| *path != Path::new("-"));
    if session.out.json && file.is_none() && !args.version_only {
        return Err(Failure::usage(
            "with --json the value needs a place of its own: pass -o FILE, or --version-only",
        ));
    }
    if let Some(file) = file {
        check_place(file)?;
    }
    session::run(get(session, args, file), "")
}

async fn get(session: &Session, args: &args::Get, file: Option<&Path>) -> Outcome {
    let (client, domain) = session.domain().await?;
    match args.version_only {
        true => version_only(session.out, &domain, args).await?,
        false => value(session.out, &client, &domain, args, file).await?,
    }
    client.close().await;
    Ok(())
}

async fn version_only(out: Output, domain: &Domain, args: &args::Get) -> Outcome {
    let (domain, statistics) = domain.measured();
    let info = domain.stat(&args.key).await.map_err(failure)?;
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
    statistics::print(out, read.cost.as_ref());
    out.line(&read.version)
}

fn cost(args: &args::Get, statistics: &Statistics) -> Option<Cost> {
    args.stats.stats.then(|| Cost::of(statistics))
}

async fn value(
    out: Output,
    client: &Client,
    domain: &Domain,
    args: &args::Get,
    file: Option<&Path>,
) -> Outcome {
    let spinner = progress::spinner(out, &format!("reading '{}'", out.foreign(&args.key)));
    // Asked only if the value turns out to be large and somebody watches.
    let length = async || domain.stat(&args.key).await.ok().map(|info| info.length);
    let (measured, statistics) = domain.measured();
    let get = measured.get(&args.key);
    let object = progress::receiving(out, spinner, client, length, get).await;
    let object = object.map_err(failure)?;
    let cost = cost(args, &statistics);
    statistics::print(out, cost.as_ref());
    let Some(path) = file else {
        // Said in full, `-o -` means it.
        if out.terminal && args.output.is_none() {
            check_text(&object)?;
        }
        return object.content.iter().try_for_each(|piece| out.bytes(piece));
    };
    write(out, path, &object.content, object.length)
        .map_err(|error| Failure::file("write", path, &error))?;
    if out.json {
        return out.object(&Read {
            domain: domain.name(),
            key: &args.key,
            version: object.version.to_string(),
            bytes: object.length,
            file: Some(path.display().to_string()),
            cost,
        });
    }
    let (path, size) = (path.display(), show_size(object.length));
    out.note(&format!("{path}: {size}, version {}", object.version));
    Ok(())
}

/// A terminal that obeys a binary value does surprising things.
fn check_text(object: &Object) -> Outcome {
    let control = |byte: &u8| byte.is_ascii_control() && !b"\n\r\t".contains(byte);
    match object.content.iter().flatten().any(control) {
        true => Err(Failure::usage(format!(
            "the value is not text ({}): redirect it, or pass -o FILE (-o - prints it all the same)",
            show_size(object.length)
        ))),
        false => Ok(()),
    }
}

/// Finds out before the value is read that it could not be written.
fn check_place(path: &Path) -> Outcome {
    let refused = |why: &str| Failure::other(format!("cannot write {}: {why}", path.display()));
    if path.is_dir() {
        return Err(refused("it is a directory; name a file in it"));
    }
    match folder(path).is_dir() {
        true => Ok(()),
        false => Err(refused("there is no such directory")),
    }
}

fn folder(path: &Path) -> &Path {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Puts the pieces into a file, which appears complete or not at all: they are written beside it under another name,
/// which goes away with the process.
fn write(out: Output, path: &Path, pieces: &[Bytes], bytes: u64) -> io::Result<()> {
    let bar = progress::bar(out, "writing", bytes);
    let fill = |file: &mut File| {
        let mut file = bar.wrap_write(file);
        pieces.iter().try_for_each(|piece| file.write_all(piece))
    };
    // The file that a link names is replaced, not the link.
    let target: PathBuf = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    if fs::metadata(&target).is_ok_and(|metadata| !metadata.is_file()) {
        // A pipe or a device has no place beside it.
        fill(&mut OpenOptions::new().write(true).open(&target)?)?;
    } else {
        let everyone = fs::metadata(&target)
            .map_or_else(|_| fs::Permissions::from_mode(0o666), |m| m.permissions());
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix(".areo-").permissions(everyone);
        let mut beside = builder.tempfile_in(folder(&target))?;
        fill(beside.as_file_mut())?;
        beside.persist(&target)?;
    }
    bar.finish_and_clear();
    Ok(())
}

#[cfg(test)]
mod tests;
