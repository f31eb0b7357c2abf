//! `areo put`: writes an object.

mod content_type;

use super::statistics::{self, Cost};
use crate::args::{self, parse_max_object};
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::progress;
use crate::session::{self, Session, Target, failure};
use crate::units::show_size;
use areo_client::{ConfigurationInfo, Error, Invalid, PutOptions, Version, limits};
use serde::Serialize;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

/// Values below this are through before a spinner could be read.
const COPIED_BYTES: u64 = limits::DEFAULT_COPY_BYTES as u64;

/// What is printed with `--json`.
#[derive(Serialize)]
struct Written<'a> {
    domain: &'a str,
    key: &'a str,
    version: String,
    bytes: usize,
    #[serde(flatten)]
    cost: Option<Cost>,
}

pub(super) fn run(session: &Session, args: args::Put) -> Outcome {
    let limit = limit(session, args.max_object)?;
    let file = args.file.filter(|file| file != Path::new("-"));
    let guessed = file.as_deref().and_then(content_type::of);
    // Read before anything is sent: a writer that waits for input must not hold a write half done.
    let value = read(session.out, file, limit)?;
    let options = PutOptions {
        content_type: args.content_type.or(guessed.map(Into::into)),
        user_metadata: args.meta,
        max_object_bytes: limit,
    };
    let key = args.key;
    let interrupted = format!("interrupted: the write of '{key}' may have been applied");
    let (basis, stats) = (args.if_version, args.stats);
    session::run(
        put(session, &key, value, options, (basis, stats)),
        &interrupted,
    )
}

async fn put(
    session: &Session,
    key: &str,
    value: Vec<u8>,
    options: PutOptions,
    (basis, stats): (Option<args::Basis>, args::Stats),
) -> Outcome {
    let (client, domain) = session.domain().await?;
    let (domain, statistics) = domain.measured();
    let bytes = value.len();
    let what = format!("writing {}", show_size(bytes as u64));
    let bar = match bytes as u64 {
        ..COPIED_BYTES => progress::hidden(),
        COPIED_BYTES..progress::SHOWN_BYTES => progress::spinner(session.out, &what),
        length => progress::bar(session.out, &what, to_send(&domain.configuration(), length)),
    };
    let put = async {
        match basis {
            Some(args::Basis(version)) => domain.write_if(key, value, version, options).await,
            None => domain.put(key, value, options).await,
        }
    };
    let version = progress::sending(bar, &client, put)
        .await
        .map_err(failure)?;
    let written = Written {
        domain: domain.name(),
        key,
        version: version.to_string(),
        bytes,
        cost: stats.stats.then(|| Cost::of(&statistics)),
    };
    report(session.out, &written, version)?;
    client.close().await;
    Ok(())
}

/// Bytes that go to all servers together for a value of this length, but for a few.
fn to_send(configuration: &ConfigurationInfo, length: u64) -> u64 {
    let shape = configuration.shape;
    let pieces = match length <= configuration.copy_bytes.into() {
        true => 1,
        false => shape.k() as u64,
    };
    length.div_ceil(pieces) * shape.n() as u64
}

fn report(out: Output, written: &Written, version: Version) -> Outcome {
    if out.json {
        return out.object(written);
    }
    statistics::print(out, written.cost.as_ref());
    if !out.terminal {
        return out.line(&version.to_string());
    }
    let (key, size) = (out.foreign(written.key), show_size(written.bytes as u64));
    match out.quiet {
        true => Ok(()),
        false => out.line(&format!("'{key}' is version {version} now, {size}")),
    }
}

/// The largest value to send: as flag, configuration or cluster file say.
fn limit(session: &Session, flag: Option<u64>) -> Outcome<u64> {
    let limit = session.settings.get(flag, "max-object", parse_max_object)?;
    if let Some(limit) = limit {
        return Ok(limit);
    }
    Ok(match session.target()? {
        Target::File(_, file) => file.max_object,
        Target::Addresses(_) => limits::DEFAULT_VALUE_BYTES,
    })
}

/// The value, from a file or from standard input.
fn read(out: Output, file: Option<PathBuf>, limit: u64) -> Outcome<Vec<u8>> {
    let Some(path) = file else {
        let input = std::io::stdin();
        if input.is_terminal() {
            out.note("reading the value from the terminal, until Ctrl-D");
        }
        return read_up_to(
            input.lock(),
            "standard input",
            limit,
            &progress::hidden(),
            0,
        );
    };
    let failed = |error| Failure::file("read", &path, &error);
    let source = File::open(&path).map_err(failed)?;
    let metadata = source.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(Failure::other(format!(
            "{} is a directory, an object holds one file: put its files one by one",
            path.display()
        )));
    }
    if metadata.len() > limit {
        return Err(too_large(metadata.len(), limit));
    }
    let bar = progress::bar(out, "reading", metadata.len());
    let name = path.display().to_string();
    let value = read_up_to(source, &name, limit, &bar, metadata.len());
    bar.finish_and_clear();
    value
}

fn read_up_to(
    source: impl Read,
    name: &str,
    limit: u64,
    bar: &indicatif::ProgressBar,
    expected: u64,
) -> Outcome<Vec<u8>> {
    let expected = usize::try_from(expected).expect("below the limit, which is 1 GiB at most");
    let mut value = Vec::with_capacity(expected);
    // One byte more tells a value at the limit from one beyond.
    let read = bar
        .wrap_read(source)
        .take(limit + 1)
        .read_to_end(&mut value);
    read.map_err(|error| Failure::file("read", Path::new(name), &error))?;
    match value.len() as u64 > limit {
        true => Err(Failure::usage(format!(
            "{name} has more than {} ({limit} bytes), the most that one object holds here: larger values need the file layer",
            show_size(limit)
        ))),
        false => Ok(value),
    }
}

fn too_large(bytes: u64, limit_bytes: u64) -> Failure {
    failure(Error::Invalid {
        reason: Invalid::ValueTooLarge { bytes, limit_bytes },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;
    use areo_client::{Dap, Options, Shape};

    const OUT: Output = Output {
        json: false,
        terminal: false,
        progress: false,
        colour: false,
        quiet: true,
        verbose: 0,
    };

    #[test]
    fn values_are_read_up_to_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("value");
        for (bytes, fits) in [(0, true), (1, true), (100, true), (101, false)] {
            std::fs::write(&path, vec![7; bytes]).unwrap();
            let value = read(OUT, Some(path.clone()), 100);
            if fits {
                assert_eq!(value.unwrap().len(), bytes);
                continue;
            }
            let refused = value.unwrap_err();
            assert_eq!(refused.code, Code::Usage);
            assert!(refused.message.contains("101 bytes"), "{refused}");
            assert!(refused.message.contains("file layer"), "{refused}");
        }
        let endless = read_up_to(
            std::io::repeat(0),
            "standard input",
            10,
            &progress::hidden(),
            0,
        );
        let refused = endless.unwrap_err();
        assert_eq!(refused.code, Code::Usage);
        assert!(
            refused
                .message
                .starts_with("standard input has more than 10 B")
        );
    }

    #[test]
    fn every_server_is_sent_a_copy_or_an_element() {
        let configuration = |dap, n, copy_bytes| ConfigurationInfo {
            index: 0,
            shape: Shape::new(dap, n).unwrap(),
            delta: 0,
            copy_bytes,
            options: Options::default(),
            members: Vec::new(),
        };
        let coded = configuration(Dap::Ec { k: 3 }, 5, 16);
        assert_eq!(to_send(&coded, 16), 5 * 16, "a copy each");
        assert_eq!(to_send(&coded, 17), 5 * 6, "an element each");
        assert_eq!(to_send(&configuration(Dap::Abd, 3, 0), 17), 3 * 17);
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let refused = read(OUT, Some(directory.path().into()), 100).unwrap_err();
        assert_eq!(refused.code, Code::Other);
        assert!(refused.message.contains("is a directory"), "{refused}");
        let missing = directory.path().join("missing");
        let refused = read(OUT, Some(missing), 100).unwrap_err();
        assert_eq!(refused.code, Code::Other);
        assert!(
            refused
                .message
                .ends_with("missing: no such file or directory")
        );
    }
}
