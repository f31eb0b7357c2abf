//! Promises for all words on the command line, and for all files. Each function takes one input and panics if a promise
//! is broken: nothing panics on the way, and what is refused is refused in words. It says whether the input was taken, so
//! that a driver notices when it only ever meets the first check.
//!
//! The targets in `fuzz/` call these, and so does a test that needs nothing but a stable toolchain
//! (`crates/areo/tests/fuzz.rs`).

use crate::args::{
    Cli, DapWord, DurabilityWord, LogWord, parse_block_size, parse_max_object, sentence,
};
use crate::config::{self, KEYS, Settings, number, path, text, word};
use crate::exit::{Code, Outcome};
use areo_client::cluster_file;
use areo_client::units::{parse_size, parse_timeout};
use clap::Parser;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The configuration file, and behind the first byte 0, if there is one, variables of the environment, which bytes 0 part.
/// Every key is asked for as commands do.
pub fn configuration(input: &[u8]) -> bool {
    let mut parts = input.split(|byte| *byte == 0);
    let file = parts.next().unwrap_or_default();
    let variables: Vec<(OsString, OsString)> = parts.filter_map(variable).collect();
    let Ok(file) = std::str::from_utf8(file) else {
        // Refused by the reader of the file.
        return false;
    };
    let mut settings = Settings::default();
    let loaded = settings
        .read_file(Path::new("areo.toml"), file)
        .and_then(|()| settings.read_environment(&variables));
    let taken = loaded.and_then(|()| KEYS.iter().try_for_each(|key| ask(&settings, key)));
    if let Err(failure) = &taken {
        assert_eq!(failure.code, Code::Usage);
        assert!(!failure.message.is_empty());
    }
    taken.is_ok()
}

fn variable(part: &[u8]) -> Option<(OsString, OsString)> {
    let at = part.iter().position(|byte| *byte == b'=')?;
    let os = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    Some((os(&part[..at]), os(&part[at + 1..])))
}

/// Asks for one key with the parser of the commands that use it.
fn ask(settings: &Settings, key: &'static str) -> Outcome {
    match key {
        "timeout" | "s3.lifecycle-every" => settings.get(None, key, parse_timeout).map(drop),
        "repair-rate" | "scrub-rate" => settings.get(None, key, parse_size).map(drop),
        "max-object" => settings.get(None, key, parse_max_object).map(drop),
        "block-size" => settings.get(None, key, parse_block_size).map(drop),
        "log" => settings.get::<LogWord>(None, key, word).map(drop),
        "up.dap" => settings.get::<DapWord>(None, key, word).map(drop),
        "up.durability" | "server.durability" => {
            settings.get::<DurabilityWord>(None, key, word).map(drop)
        }
        "up.servers" | "up.k" => settings.get::<u8>(None, key, number).map(drop),
        "hardware-id" => settings.get::<u32>(None, key, number).map(drop),
        "up.port" => settings.get::<u16>(None, key, number).map(drop),
        "json" | "up.restart" | "up.allow-f0" => settings.switch(false, key).map(drop),
        "key" => settings.get(None, key, config::key).map(drop),
        "token" => settings.get(None, key, config::token).map(drop),
        "up.data" | "server.data" => settings.get(None, key, path).map(drop),
        _ => settings.get(None, key, text).map(drop),
    }
}

/// The cluster file. What is taken survives being written and read again.
pub fn cluster_file(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else {
        return false;
    };
    match cluster_file::parse(text) {
        Ok(file) => {
            let again = cluster_file::parse(&file.text());
            assert_eq!(again.as_ref(), Ok(&file));
            assert!(!file.addresses().is_empty());
            true
        }
        Err(why) => {
            assert!(!why.is_empty());
            false
        }
    }
}

/// The command line, one argument per line. A refusal is one line with words in it.
pub fn arguments(input: &[u8]) -> bool {
    let lines = input.split(|byte| *byte == b'\n').map(OsStr::from_bytes);
    let lines = lines.filter(|line| !line.is_empty());
    match Cli::try_parse_from(std::iter::once(OsStr::new("areo")).chain(lines)) {
        Ok(_) => true,
        Err(error) => {
            assert!([0, 2].contains(&error.exit_code()));
            let sentence = sentence(&error);
            assert!(!sentence.trim().is_empty() && !sentence.contains('\n'));
            // Help that was asked for is as good as a command.
            !error.use_stderr()
        }
    }
}
