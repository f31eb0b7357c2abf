//! `areo put`: writes an object.

pub(super) mod content_type;
pub(super) mod source;
pub(super) mod stage;

use super::statistics;
use crate::args::{self, parse_block_size};
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::progress;
use crate::session::{self, Session, Target, failure};
use areo_client::units::show_size;
use areo_client::{
    ConfigurationInfo, Domain, PutOptions, Statistics, StreamError, SweepOptions, Version, limits,
};
use indicatif::ProgressBar;
use serde::Serialize;
use source::Source;
use stage::{Stage, StageCell, given_up, interrupted};
use std::path::Path;
use std::time::Duration;

/// Values below this are through before a spinner could be read.
const COPIED_BYTES: u64 = limits::DEFAULT_COPY_BYTES as u64;
/// The longest time for which a large write looks for blocks that earlier ones left.
const SWEEP_PATIENCE: Duration = Duration::from_secs(1);

/// The output with `--json`.
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

/// The promise of a conditional write about others on the same version.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Promise {
    /// None of them succeeds.
    OneWinner,
    /// A concurrent one may succeed, too.
    Coverable,
}

impl Promise {
    /// The promise of conditional writes in this domain.
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
        written_at_ms: None,
        request: 0,
    };
    session::run_until(async |interrupt| {
        let stage = StageCell::default();
        // Checked before a connection is made.
        let source = Source::open(session.out, file.as_deref(), &interrupt, &stage);
        let what = ("write", &*args.key);
        let put = async {
            let written = put(session, args, source.await?, (options, &stage)).await;
            match interrupt.is_asked() {
                true => Err(interrupted(stage.get(), what)),
                false => written,
            }
        };
        tokio::select! {
            biased;
            outcome = put => outcome,
            failure = given_up(interrupt.clone(), &stage, what) => Err(failure),
        }
    })
}

async fn put(
    session: &Session,
    args: &args::Put,
    mut source: Source,
    (options, stage): (PutOptions, &StageCell),
) -> Outcome {
    let (out, key) = (session.out, &*args.key);
    let (client, domain) = session.domain_to_write(args.keep_replaced).await?;
    #[cfg(feature = "next-version")]
    let options = crate::next_version::described(&client, options).await;
    stage.set(Stage::Reading);
    let (measured, statistics) = domain.measured();
    let block_bytes = u64::from(options.block_bytes);
    let conditional = args.if_version.is_some();
    let promise = conditional.then(|| Promise::of(&domain, args.require_one_winner));
    let promise = promise.transpose()?;
    let bar = match source.is_typed() {
        true => progress::hidden(),
        false => bar(out, source.expected()),
    };
    let length = source.expected().unwrap_or(0);
    let bar = (bar, to_send(&domain.configuration(), length));
    let is_small = source.expected().is_some_and(|bytes| bytes < COPIED_BYTES);
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
    let put = Box::pin(progress::sending(bar, &client, put));
    let version = match is_small {
        true => progress::late(out, &client, put).await,
        false => put.await,
    };
    let version = version.map_err(|error| match error {
        StreamError::Store(error) => failure(error),
        StreamError::Local(error) => Failure::file("read", Path::new(&source.name), &error),
    })?;
    stage.set(Stage::Written(version));
    let written = PutReport {
        domain: domain.name(),
        key,
        version: version.to_string(),
        bytes: source.bytes,
        promise,
        cost: args.stats.stats.then_some(&*statistics),
    };
    applied(report(out, &written, version), ("write", key), version)?;
    if written.bytes > block_bytes {
        sweep_a_little(&domain).await;
    }
    client.close().await;
    Ok(())
}

/// The end of a command whose write was applied, and whose output may not have taken that.
pub(super) fn applied(printed: Outcome, (what, key): (&str, &str), version: Version) -> Outcome {
    let said = |failure: Failure| {
        let why = match failure.message.as_str() {
            "" => "the reader of the output is gone",
            why => why,
        };
        let message = format!("{why}; the {what} of '{key}' was applied, as version {version}");
        Failure::new(failure.code, message)
    };
    printed.map_err(said)
}

/// Writers of large values remove what earlier ones left, as far as that is quickly done: `areo sweep` does all of it.
pub(super) async fn sweep_a_little(domain: &Domain) {
    let sweep = domain.sweep(SweepOptions {
        aside: true,
        ..SweepOptions::default()
    });
    // The next write sweeps the remainder.
    let _ = tokio::time::timeout(SWEEP_PATIENCE, sweep).await;
}

fn bar(out: Output, expected: Option<u64>) -> ProgressBar {
    let Some(length) = expected else {
        return progress::spinner(out, "writing");
    };
    match length {
        ..COPIED_BYTES => progress::hidden(),
        COPIED_BYTES..progress::SHOWN_BYTES => {
            progress::spinner(out, &format!("writing {}", show_size(length)))
        }
        length => progress::bar(out, "writing", length),
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
pub(super) fn block_bytes(session: &Session, flag: Option<usize>) -> Outcome<u32> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::experimental::Experimental;
    use areo_client::{Dap, Shape};

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
}
