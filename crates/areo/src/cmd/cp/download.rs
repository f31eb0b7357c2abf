//! Copies objects to files.

use super::names::{folders, path_of};
use super::tree::Tree;
use super::{Copied, Copying, cannot_copy, is_same};
use crate::cmd::get::file_for;
use crate::cmd::many::{Ending, Job, READS, concerns_all, each};
use crate::exit::{Code, Failure, Outcome};
use crate::output::visible;
use crate::progress;
use crate::session::failure;
use areo_client::place::{self, Place};
use areo_client::{Domain, Entry, Error};
use indicatif::ProgressBar;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use tokio::task::spawn_blocking;

/// An object, and the file that it becomes.
struct Pair {
    key: String,
    file: PathBuf,
    bytes: u64,
    dry_run: bool,
}

/// The beginning of the keys below a folder.
pub(super) fn prefix(key: &str) -> String {
    match key.is_empty() || key.ends_with('/') {
        true => key.to_owned(),
        false => format!("{key}/"),
    }
}

pub(super) async fn run(copying: &mut Copying<'_>, key: &str, to: &Path) -> Outcome<Ending> {
    if copying.args.recursive {
        return folder(copying, &prefix(key), to).await;
    }
    let name = copying.domain.name();
    if key.is_empty() || key.ends_with('/') {
        return Err(Failure::usage(format!(
            "areo://{name}/{key} names no object: pass -r to copy all whose keys begin so"
        )));
    }
    let file = file_for(to, key)?;
    place::check(&file).map_err(|error| Failure::file("write", &file, &error))?;
    let info = progress::late(copying.out(), &copying.client, copying.domain.stat(key)).await;
    let bytes = info.map_err(failure)?.length;
    let pair = Pair {
        key: key.into(),
        file,
        bytes,
        dry_run: copying.args.dry_run,
    };
    download(copying, vec![pair]).await
}

async fn folder(copying: &mut Copying<'_>, prefix: &str, to: &Path) -> Outcome<Ending> {
    match fs::metadata(to) {
        Ok(about) if !about.is_dir() => {
            let why = format!("cannot write {}: it is no folder", to.display());
            return Err(Failure::usage(why));
        }
        _ => {}
    }
    let mut entries = copying.list(prefix).await?;
    if entries.is_empty() {
        let (domain, key) = (copying.domain.name(), prefix.trim_end_matches('/'));
        let sentence = format!("there is no object below areo://{domain}/{prefix}");
        let hint = match key.is_empty() {
            true => String::new(),
            false => format!(": an object '{key}' is copied without -r"),
        };
        return Err(Failure::new(Code::NotFound, sentence + &hint));
    }
    for entry in &mut entries {
        entry.key.drain(..prefix.len());
    }
    let (pairs, refused) = pairs(&entries, prefix, (to, copying.args.dry_run));
    let wanted: HashSet<PathBuf> = pairs.iter().map(|pair| pair.file.clone()).collect();
    let ending = Ending::with(refused).and(download(copying, pairs).await?);
    match copying.args.delete && ending.is_complete() && to.is_dir() {
        true => delete(copying, (prefix, to), &wanted),
        false => Ok(ending),
    }
}

/// Files for objects, whose keys are those below the prefix; and why the others have none.
fn pairs(
    entries: &[Entry],
    prefix: &str,
    (to, dry_run): (&Path, bool),
) -> (Vec<Pair>, Vec<Failure>) {
    let folders = folders(entries);
    let (mut pairs, mut refused) = (Vec::with_capacity(entries.len()), Vec::new());
    for entry in entries {
        let key = format!("{prefix}{}", entry.key);
        let path = match path_of(&entry.key) {
            Ok(_) if folders.contains(&*entry.key) => Err(format!(
                "there are keys below '{key}/', and a file cannot be a folder as well"
            )),
            path => path,
        };
        match path {
            Ok(path) => pairs.push(Pair {
                file: to.join(path),
                bytes: entry.length,
                key,
                dry_run,
            }),
            Err(why) => refused.push(cannot_copy(&format!("'{key}'"), &why)),
        }
    }
    (pairs, refused)
}

async fn download(copying: &mut Copying<'_>, pairs: Vec<Pair>) -> Outcome<Ending> {
    let bar = copying.bar(pairs.len(), pairs.iter().map(|pair| pair.bytes).sum());
    let domain = copying.domain.clone();
    let jobs = pairs.into_iter().map(|pair| Job {
        bytes: pair.bytes,
        work: copy(domain.clone(), pair, bar.clone()),
    });
    let (client, interrupt) = (copying.client.clone(), copying.interrupt);
    let note = |(pair, copied): (Pair, Copied)| copying.note(copied, &pair.key, &pair.file);
    let copy = each(jobs, interrupt, concerns_all, note);
    let ending = progress::naming(&bar, &client, copy).await;
    bar.finish_and_clear();
    Ok(ending)
}

async fn copy(domain: Domain, pair: Pair, bar: ProgressBar) -> Outcome<(Pair, Copied)> {
    let about = fs::metadata(&pair.file);
    if about.is_ok_and(|it| it.is_file() && it.len() == pair.bytes)
        && is_same(&domain, &pair.key, &pair.file, pair.bytes).await?
    {
        bar.inc(pair.bytes);
        return Ok((pair, Copied::Unchanged));
    }
    if pair.dry_run {
        let bytes = pair.bytes;
        return Ok((pair, Copied::Bytes(bytes)));
    }
    for _ in 0..READS {
        match read(&domain, &pair, &bar).await {
            Err(Read::WrittenOver) => {}
            Err(Read::Failed(failure)) => return Err(failure),
            Ok(copied) => return Ok((pair, copied)),
        }
    }
    Err(cannot_copy(
        &format!("'{}'", pair.key),
        &format!("it was written over during each of {READS} reads"),
    ))
}

/// The reason that an object was not read.
enum Read {
    WrittenOver,
    Failed(Failure),
}

impl From<Error> for Read {
    fn from(error: Error) -> Read {
        match error {
            Error::VersionConflict { .. } => Read::WrittenOver,
            error => Read::Failed(failure(error)),
        }
    }
}

/// Writes an object into its file, which appears complete or not at all.
async fn read(domain: &Domain, pair: &Pair, bar: &ProgressBar) -> Result<Copied, Read> {
    let mut stream = match domain.get_stream(&pair.key).await {
        Err(Error::NotFound { key: Some(_), .. }) => return Ok(Copied::Gone),
        opened => opened?,
    };
    let failed = |error: std::io::Error| Read::Failed(Failure::file("write", &pair.file, &error));
    let file = pair.file.clone();
    let open = move || {
        if let Some(folder) = file.parent().filter(|it| !it.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        place::check(&file)?;
        Place::open(&file)
    };
    let place = spawn_blocking(open).await;
    let mut place = place.expect("opening does not panic").map_err(failed)?;
    while let Some(piece) = stream.next().await? {
        let bytes = piece.len() as u64;
        place.write(piece).await.map_err(failed)?;
        bar.inc(bytes);
    }
    place.keep().await.map_err(failed)?;
    Ok(Copied::Bytes(stream.streamed().bytes))
}

/// Deletes files of which there is no object, and folders that are empty then.
fn delete(
    copying: &mut Copying<'_>,
    (prefix, folder): (&str, &Path),
    wanted: &HashSet<PathBuf>,
) -> Outcome<Ending> {
    let tree = Tree::read(folder)?;
    let mut failures = Vec::new();
    if !tree.refused.is_empty() {
        let (count, shown) = (tree.refused.len(), folder.display());
        let note = visible(&format!(
            "left alone in {shown}: {count} that no object could become"
        ));
        copying.out().note(&note);
    }
    for file in tree.files {
        if wanted.contains(&file.path) {
            continue;
        }
        if !copying.args.dry_run
            && let Err(error) = fs::remove_file(&file.path)
        {
            failures.push(Failure::file("delete", &file.path, &error));
            continue;
        }
        copying.note_deleted(&format!("{prefix}{}", file.name), &file.path)?;
        let parents = file.path.ancestors().skip(1);
        for parent in parents.take_while(|parent| *parent != folder && !copying.args.dry_run) {
            if fs::remove_dir(parent).is_err() {
                break;
            }
        }
    }
    Ok(Ending::with(failures))
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::Version;

    #[test]
    fn a_key_beside_keys_below_it_is_refused_and_the_others_are_not() {
        let entry = |key: &str| Entry {
            key: key.into(),
            version: Version::INITIAL,
            length: 1,
            etag: None,
            written_at_ms: None,
            damaged: false,
        };
        let entries = ["../x", "a", "a.txt", "a/b", "c/"].map(entry);
        let (pairs, refused) = pairs(&entries, "p/", (Path::new("to"), false));
        let found: Vec<_> = pairs.iter().map(|it| (&*it.key, &*it.file)).collect();
        let path = Path::new;
        assert_eq!(
            found,
            [("p/a.txt", path("to/a.txt")), ("p/a/b", path("to/a/b"))]
        );
        let why: Vec<_> = refused.iter().map(|it| &*it.message).collect();
        assert!(why[0].starts_with("cannot copy 'p/../x': '..'"), "{why:?}");
        assert!(why[1].contains("'p/a'") && why[1].contains("keys below 'p/a/'"));
        assert!(why[2].contains("ends with '/'"), "{why:?}");
        assert_eq!(why.len(), 3);
        assert_eq!([prefix(""), prefix("a"), prefix("a/")], ["", "a/", "a/"]);
    }
}
