//! The common part of commands with real servers: places of data and files, the kind of a domain, and the end of the work.

use areo::args::DapWord;
use areo::exit::{Failure, Outcome, plain};
use areo::output::Output;
use areo::{program, session};
use areo_bench::RunError;
use areo_bench::cluster::{Program, product};
use areo_client::units::{exact_size, parse_size};
use areo_client::{Dap, DapKind, Shape};
use indicatif::ProgressBar;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The program that runs servers: the product at this path, or the one beside this program.
///
/// # Errors
/// There is none.
pub fn servers(areo: Option<&Path>) -> Outcome<Program> {
    let path = product(areo).map_err(Failure::usage)?;
    Ok(Program {
        connect: session::connect_options(),
        ..Program::new(move || program::server(&path))
    })
}

/// Bytes of an object, from 16 on: the first 16 identify a value.
///
/// # Errors
/// A sentence with what is allowed.
pub fn size_up_to(most: u64, text: &str) -> Result<usize, String> {
    match parse_size(text)? {
        bytes if (16..=most).contains(&bytes) => Ok(bytes as usize),
        _ => {
            let most = exact_size(most);
            Err(format!("objects have 16 bytes to {most} here, not {text}"))
        }
    }
}

/// The directory in which servers keep their data.
///
/// # Errors
/// It is none, or its name is not UTF-8.
pub fn data_directory(data: Option<PathBuf>) -> Outcome<PathBuf> {
    let data = data.unwrap_or_else(std::env::temp_dir);
    if !data.is_dir() {
        let data = data.display();
        return Err(Failure::usage(format!(
            "--data {data} is no directory: name one that exists"
        )));
    }
    if data.to_str().is_none() {
        return Err(Failure::usage(
            "--data is not UTF-8: name another directory",
        ));
    }
    Ok(data)
}

/// Creates the file of the history, so that an error comes now, and not when servers run already.
///
/// # Errors
/// It cannot be written.
pub fn history(history: Option<PathBuf>) -> Outcome<Option<PathBuf>> {
    if let Some(history) = &history {
        let created = File::create(history);
        created.map_err(|error| Failure::file("write the history", history, &error))?;
    }
    Ok(history)
}

/// A new file, so that an error comes before anything is measured.
///
/// # Errors
/// It cannot be.
pub fn create(path: PathBuf) -> Outcome<(PathBuf, File)> {
    match File::create(&path) {
        Ok(file) => Ok((path, file)),
        Err(error) => Err(Failure::file("write", &path, &error)),
    }
}

/// Fills files that were created before.
///
/// # Errors
/// One cannot be written.
pub fn write<const N: usize>(files: [(Option<(PathBuf, File)>, &str); N]) -> Outcome {
    for (file, text) in files {
        if let Some((path, mut file)) = file {
            let written = file.write_all(text.as_bytes());
            written.map_err(|error| Failure::file("write", &path, &error))?;
        }
    }
    Ok(())
}

/// An operation that failed is a failure of the whole measurement.
///
/// # Errors
/// The first of them.
pub fn none_failed(failed: u64, failures: &[String], seed: Option<u64>) -> Outcome {
    let Some(first) = failures.first() else {
        return Ok(());
    };
    let seed = seed.map_or(String::new(), |seed| format!(" (seed {seed})"));
    let message = format!("{failed} operations failed{seed}, the first one: {first}");
    Err(Failure::other(message))
}

/// The way in which a domain on this many servers keeps values.
///
/// # Errors
/// Replicas have no `k`.
pub fn dap(dap: DapWord, k: Option<u8>, servers: usize) -> Outcome<Dap> {
    let kind = DapKind::from(dap);
    match k {
        Some(_) if !kind.is_coded() => {
            Err(Failure::usage("--k is for --dap ec: replicas are whole"))
        }
        k => Ok(kind.with(k.unwrap_or_else(|| Shape::default_k(servers)))),
    }
}

/// Does the work, and shows the report.
///
/// # Errors
/// The work or the output failed.
pub fn finish<R: Serialize>(
    out: Output,
    (what, bar): (&str, &ProgressBar),
    work: impl Future<Output = Result<R, RunError>>,
    print: impl FnOnce(Output, &R) -> Outcome,
) -> Outcome<R> {
    let work = async { work.await.map_err(|error| failure(what, &error)) };
    let report = session::run(work, "");
    bar.finish_and_clear();
    let report = report?;
    match out.json {
        true => out.object(&report)?,
        false => print(out, &report)?,
    }
    Ok(report)
}

/// The command as it was typed, but for where the program is.
pub fn command(program: &str) -> String {
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    format!("{program} {}", words.join(" "))
}

/// Short enough to be typed again.
pub fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) % 1_000_000_000
}

fn failure(what: &str, error: &RunError) -> Failure {
    let why = match error {
        RunError::System { what, source } => format!("cannot {what}: {}", plain(source)),
        RunError::Failed(sentence) => sentence.clone(),
    };
    Failure::other(format!("{what} could not do its work: {why}"))
}
