//! `areo put`: writes an object.

mod content_type;

use super::statistics;
use crate::args::{self, parse_block_size};
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::progress;
use crate::session::{self, Session, Target, failure};
use crate::units::show_size;
use areo_client::{
    ConfigurationInfo, Domain, PutOptions, Statistics, StreamError, SweepOptions, Version, limits,
};
use indicatif::ProgressBar;
use serde::Serialize;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

/// Values below this are through before a spinner could be read.
const COPIED_BYTES: u64 = limits::DEFAULT_COPY_BYTES as u64;
/// How long a large write looks after what earlier ones left.
const SWEEP_PATIENCE: Duration = Duration::from_secs(1);

/// What is printed with `--json`.
#[derive(Serialize)]
struct PutReport<'a> {
    domain: &'a str,
    key: &'a str,
    version: String,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    promise: Option<Promise>,
    #[serde(flatten)]
    cost: Option<&'a Statistics>,
}

/// What a conditional write promises of others on the same version.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Promise {
    /// None of them succeeds.
    OneWinner,
    /// A concurrent one may succeed, too.
    Coverable,
}

impl Promise {
    /// That of this domain.
    ///
    /// # Errors
    /// A usage error if one winner is required of a domain that does not give it.
    pub(super) fn of(domain: &Domain, require_one_winner: bool) -> Outcome<Promise> {
        match domain.has_one_winner() {
            true => Ok(Promise::OneWinner),
            false if require_one_winner => Err(failure(areo_client::Error::Invalid {
                reason: areo_client::Invalid::NotConditional {
                    domain: domain.name().into(),
                },
            })),
            false => Ok(Promise::Coverable),
        }
    }

    /// The rest of a sentence.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Promise::OneWinner => "no other write on that version succeeds",
            Promise::Coverable => "a concurrent write on that version may have succeeded, too",
        }
    }
}

pub(super) fn run(session: &Session, args: &args::Put) -> Outcome {
    let file = args.file.clone().filter(|file| file != Path::new("-"));
    let guessed = file.as_deref().and_then(content_type::of);
    let options = PutOptions {
        content_type: args.content_type.clone().or(guessed.map(Into::into)),
        user_metadata: args.meta.clone(),
        etag: None,
        block_bytes: block_bytes(session, args.block_size)?,
        request: 0,
    };
    let key = &args.key;
    let interrupted = format!("interrupted: the write of '{key}' may have been applied");
    session::run(put(session, args, file, options), &interrupted)
}

async fn put(
    session: &Session,
    args: &args::Put,
    file: Option<PathBuf>,
    options: PutOptions,
) -> Outcome {
    let (out, key) = (session.out, &*args.key);
    // Checked before a connection is made.
    let mut source = Source::open(out, file).await?;
    let (client, domain) = session.domain_to_write(args.keep_replaced).await?;
    let (measured, statistics) = domain.measured();
    let block_bytes = u64::from(options.block_bytes);
    let conditional = args.if_version.is_some();
    let promise = conditional.then(|| Promise::of(&domain, args.require_one_winner));
    let promise = promise.transpose()?;
    let bar = bar(out, &domain.configuration(), source.expected);
    let put = async {
        match &args.if_version {
            None => measured.put_stream(key, &mut source, options).await,
            Some(args::Basis(version)) if promise == Some(Promise::OneWinner) => {
                let put = measured.compare_and_put_stream(key, &mut source, *version, options);
                put.await
            }
            Some(args::Basis(version)) => {
                let value = source.read_all().await.map_err(StreamError::Local)?;
                let put = measured.write_if(key, value, *version, options).await;
                Ok(put?)
            }
        }
    };
    let version = progress::sending(bar, &client, put).await;
    let version = version.map_err(|error| match error {
        StreamError::Store(error) => failure(error),
        StreamError::Local(error) => Failure::file("read", Path::new(&source.name), &error),
    })?;
    let written = PutReport {
        domain: domain.name(),
        key,
        version: version.to_string(),
        bytes: source.bytes,
        promise,
        cost: args.stats.stats.then_some(&*statistics),
    };
    report(out, &written, version)?;
    if written.bytes > block_bytes {
        sweep_a_little(&domain).await;
    }
    client.close().await;
    Ok(())
}

/// Writers of large values remove what earlier ones left, as far as that is quickly done: `areo sweep` does all of it.
async fn sweep_a_little(domain: &Domain) {
    let sweep = domain.sweep(SweepOptions {
        aside: true,
        ..SweepOptions::default()
    });
    // The next write sweeps the remainder.
    let _ = tokio::time::timeout(SWEEP_PATIENCE, sweep).await;
}

fn bar(out: Output, configuration: &ConfigurationInfo, expected: Option<u64>) -> ProgressBar {
    let Some(length) = expected else {
        return progress::spinner(out, "writing");
    };
    let what = format!("writing {}", show_size(length));
    match length {
        ..COPIED_BYTES => progress::hidden(),
        COPIED_BYTES..progress::SHOWN_BYTES => progress::spinner(out, &what),
        length => progress::bar(out, &what, to_send(configuration, length)),
    }
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

fn report(out: Output, written: &PutReport, version: Version) -> Outcome {
    if out.json {
        return out.object(written);
    }
    statistics::print(out, written.cost);
    if !out.terminal {
        return out.line(&version.to_string());
    }
    let (key, size) = (out.foreign(written.key), show_size(written.bytes));
    match out.quiet {
        true => Ok(()),
        false => out.line(&match written.promise {
            None => format!("'{key}' is version {version} now, {size}"),
            Some(promise) => {
                let promise = promise.sentence();
                format!("'{key}' is version {version} now, {size}: {promise}")
            }
        }),
    }
}

/// The length of blocks: as flag or configuration say, and never more than the servers of the cluster file take.
fn block_bytes(session: &Session, flag: Option<usize>) -> Outcome<u32> {
    let chosen = session.settings.get(flag, "block-size", parse_block_size)?;
    let most = match session.target()? {
        Target::File(_, file) => file.max_object,
        Target::Addresses(_) => limits::VALUE_BYTES,
    };
    match chosen {
        Some(chosen) if chosen as u64 > most => Err(Failure::usage(format!(
            "the servers take no more than {} at once (`areo up --max-object`): blocks of {} are too large",
            show_size(most),
            show_size(chosen as u64)
        ))),
        Some(chosen) => Ok(u32::try_from(chosen).expect("64 MiB at most")),
        None => {
            let most = u32::try_from(most).unwrap_or(u32::MAX);
            Ok(limits::DEFAULT_BLOCK_BYTES.min(most.max(limits::MIN_BLOCK_BYTES)))
        }
    }
}

/// Where the value comes from: a file, or standard input.
struct Source {
    name: String,
    reader: Box<dyn AsyncRead + Unpin>,
    /// Its length, if that is known.
    expected: Option<u64>,
    /// Bytes that came.
    bytes: u64,
}

impl Source {
    async fn open(out: Output, file: Option<PathBuf>) -> Outcome<Source> {
        let Some(path) = file else {
            if io::stdin().is_terminal() {
                out.note("reading the value from the terminal, until Ctrl-D");
            }
            return Ok(Source {
                name: "standard input".into(),
                reader: Box::new(tokio::io::stdin()),
                expected: None,
                bytes: 0,
            });
        };
        let failed = |error| Failure::file("read", &path, &error);
        let file = File::open(&path).await.map_err(failed)?;
        let metadata = file.metadata().await.map_err(failed)?;
        if metadata.is_dir() {
            return Err(Failure::other(format!(
                "{} is a directory, an object holds one file: put its files one by one",
                path.display()
            )));
        }
        Ok(Source {
            name: path.display().to_string(),
            reader: Box::new(file),
            expected: metadata.is_file().then_some(metadata.len()),
            bytes: 0,
        })
    }
}

impl Source {
    /// All of it, or one byte more than a coverable write takes.
    async fn read_all(&mut self) -> io::Result<Vec<u8>> {
        let mut value = Vec::new();
        let most = limits::DEFAULT_VALUE_BYTES + 1;
        self.take(most).read_to_end(&mut value).await?;
        Ok(value)
    }
}

impl AsyncRead for Source {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(context, out))?;
        self.bytes += (out.filled().len() - before) as u64;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;
    use areo_client::experimental::Experimental;
    use areo_client::{Dap, Shape};

    const OUT: Output = Output {
        json: false,
        terminal: false,
        progress: false,
        colour: false,
        quiet: true,
        verbose: 0,
    };

    #[test]
    fn every_server_is_sent_a_copy_or_an_element() {
        let configuration = |dap, n, copy_bytes| ConfigurationInfo {
            index: 0,
            shape: Shape::new(dap, n).unwrap(),
            delta: 0,
            copy_bytes,
            experimental: Experimental::default(),
            decided_by: areo_client::Decider::Members,
            reconfig: areo_client::ReconfigKind::default(),
            leader: None,
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
        let open = |path: PathBuf| {
            let opened = session::run(Source::open(OUT, Some(path)), "");
            opened.map(|source| source.expected)
        };
        let refused = open(directory.path().into()).unwrap_err();
        assert_eq!(refused.code, Code::Other);
        assert!(refused.message.contains("is a directory"), "{refused}");
        let refused = open(directory.path().join("missing")).unwrap_err();
        assert_eq!(refused.code, Code::Other);
        assert!(
            refused
                .message
                .ends_with("missing: no such file or directory")
        );
        let path = directory.path().join("value");
        std::fs::write(&path, "seven..").unwrap();
        assert_eq!(open(path), Ok(Some(7)));
        assert_eq!(open("/dev/null".into()), Ok(None), "of any length");
    }
}
