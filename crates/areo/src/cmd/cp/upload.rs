//! Copies files to objects.

use super::tree::{LocalFile, Tree};
use super::{Copied, Copying, cannot_copy, cannot_read, is_same};
use crate::cmd::many::{Ending, Job, concerns_all, each};
use crate::cmd::put::source::Source;
use crate::cmd::put::stage::StageCell;
use crate::cmd::put::{block_bytes, content_type, sweep_a_little};
use crate::exit::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress;
use crate::session::failure;
use areo_client::{Domain, Entry, PutOptions, StreamError, limits};
use indicatif::ProgressBar;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file, and the key of its object.
#[derive(Clone)]
struct Pair {
    file: LocalFile,
    key: String,
    /// An object of that key may be the file already.
    compare: bool,
}

/// The parts that all uploads of a copy share.
#[derive(Clone)]
struct Shared {
    out: Output,
    domain: Domain,
    interrupt: Interrupt,
    bar: ProgressBar,
    block_bytes: u32,
    dry_run: bool,
}

pub(super) async fn run(copying: &mut Copying<'_>, from: &Path, key: &str) -> Outcome<Ending> {
    let about = std::fs::metadata(from).map_err(|error| cannot_read(from, &error))?;
    let shown = from.display();
    match (about.is_dir(), copying.args.recursive) {
        (true, true) => folder(copying, from, key).await,
        (true, false) => Err(Failure::usage(format!(
            "{shown} is a folder: pass -r to copy what is in it"
        ))),
        (false, true) => Err(Failure::usage(format!(
            "{shown} is no folder: copy it without -r"
        ))),
        (false, false) => {
            let pair = single(from, key, about.len())?;
            upload(copying, vec![pair]).await
        }
    }
}

/// One file: a key that ends with `/` gets its name.
fn single(from: &Path, key: &str, bytes: u64) -> Outcome<Pair> {
    let name = from.file_name().and_then(|name| name.to_str());
    let key = match (key.is_empty() || key.ends_with('/'), name) {
        (false, _) => key.to_owned(),
        (true, Some(name)) => format!("{key}{name}"),
        (true, None) => {
            let shown = from.display().to_string();
            let why = "its name can be no key: name one";
            return Err(cannot_copy(&shown, why));
        }
    };
    let file = LocalFile {
        name: key.clone(),
        path: from.into(),
        bytes,
    };
    Ok(Pair {
        file,
        key,
        compare: true,
    })
}

async fn folder(copying: &mut Copying<'_>, from: &Path, key: &str) -> Outcome<Ending> {
    let prefix = super::download::prefix(key);
    let here = from.to_owned();
    let read = tokio::task::spawn_blocking(move || Tree::read(&here)).await;
    let tree = read.expect("reading does not panic")?;
    let entries = copying.list(&prefix).await?;
    let mut there: BTreeMap<String, Entry> = entries
        .into_iter()
        .map(|entry| (entry.key.clone(), entry))
        .collect();
    if copying.args.delete && tree.files.is_empty() && !there.is_empty() {
        let (shown, count) = (from.display(), there.len());
        return Err(Failure::usage(format!(
            "there is no file in {shown}, so that --delete would delete all {count} objects of areo://{}/{prefix}: delete them by `areo rm`",
            copying.domain.name()
        )));
    }
    let mut refused = tree.refused;
    let mut pairs = Vec::with_capacity(tree.files.len());
    for file in tree.files {
        let key = format!("{prefix}{}", file.name);
        if key.len() > limits::KEY_BYTES {
            let why = format!(
                "its key would have {} bytes, and 1024 are the most",
                key.len()
            );
            refused.push(cannot_copy(&file.path.display().to_string(), &why));
            continue;
        }
        let entry = there.remove(&key);
        let compare = entry.is_some_and(|entry| !entry.damaged && entry.length == file.bytes);
        pairs.push(Pair { file, key, compare });
    }
    let ending = Ending::with(refused).and(upload(copying, pairs).await?);
    let surplus: Vec<String> = there.into_keys().collect();
    match copying.args.delete && ending.is_complete() {
        true => Ok(delete(copying, from, (&prefix, surplus)).await),
        false => Ok(ending),
    }
}

async fn upload(copying: &mut Copying<'_>, pairs: Vec<Pair>) -> Outcome<Ending> {
    let bytes = pairs.iter().map(|pair| pair.file.bytes).sum();
    let bar = copying.bar(pairs.len(), bytes);
    let shared = Shared {
        out: copying.out(),
        domain: copying.domain.clone(),
        interrupt: copying.interrupt.clone(),
        bar: bar.clone(),
        block_bytes: block_bytes(copying.session, None)?,
        dry_run: copying.args.dry_run,
    };
    let in_blocks = pairs
        .iter()
        .any(|pair| pair.file.bytes > shared.block_bytes.into());
    let jobs = pairs.into_iter().map(|pair| Job {
        bytes: pair.file.bytes,
        work: copy(shared.clone(), pair),
    });
    let (client, interrupt) = (copying.client.clone(), copying.interrupt);
    let note = |(pair, copied): (Pair, Copied)| copying.note(copied, &pair.key, &pair.file.path);
    let copy = each(jobs, interrupt, concerns_all, note);
    let ending = progress::naming(&bar, &client, copy).await;
    bar.finish_and_clear();
    if in_blocks && ending.is_complete() && !shared.dry_run {
        sweep_a_little(&shared.domain).await;
    }
    Ok(ending)
}

async fn copy(shared: Shared, pair: Pair) -> Outcome<(Pair, Copied)> {
    let Pair { file, key, compare } = &pair;
    if *compare && is_same(&shared.domain, key, &file.path, file.bytes).await? {
        shared.bar.inc(file.bytes);
        return Ok((pair, Copied::Unchanged));
    }
    if shared.dry_run {
        let bytes = file.bytes;
        return Ok((pair, Copied::Bytes(bytes)));
    }
    let stage = StageCell::default();
    let (out, interrupt) = (shared.out, &shared.interrupt);
    let mut source = Source::open(out, Some(&file.path), interrupt, &stage).await?;
    source.bar = shared.bar.clone();
    let options = PutOptions {
        content_type: content_type::of(&file.path).map(Into::into),
        block_bytes: shared.block_bytes,
        ..PutOptions::default()
    };
    let put = shared.domain.put_stream(key, &mut source, options).await;
    put.map_err(|error| match error {
        StreamError::Store(error) => failure(error),
        StreamError::Local(error) => Failure::file("read", &file.path, &error),
    })?;
    let bytes = source.bytes;
    Ok((pair, Copied::Bytes(bytes)))
}

/// Deletes objects of which there is no file.
async fn delete(
    copying: &mut Copying<'_>,
    folder: &Path,
    (prefix, keys): (&str, Vec<String>),
) -> Ending {
    let (domain, dry_run) = (copying.domain.clone(), copying.args.dry_run);
    let jobs = keys.into_iter().map(|key| {
        let domain = domain.clone();
        let work = async move {
            match dry_run {
                true => Ok(key),
                false => match domain.delete(&key).await {
                    Ok(_) | Err(areo_client::Error::NotFound { key: Some(_), .. }) => Ok(key),
                    Err(error) => Err(failure(error)),
                },
            }
        };
        Job { work, bytes: 0 }
    });
    let interrupt = copying.interrupt;
    let note = |key: String| {
        let path: PathBuf = folder.join(&key[prefix.len()..]);
        copying.note_deleted(&key, &path)
    };
    each(jobs, interrupt, concerns_all, note).await
}
