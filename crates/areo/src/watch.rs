//! The spans that this process remembers of its operations, and the file that keeps them when it ends: a command lives for one operation, so
//! its spans go to a file in the user's state directory, where `areo trace` finds them.

use crate::args::Global;
use crate::output::Output;
use areo_telemetry::export::{InvalidSetting, Settings};
use areo_telemetry::{Limits, Recorder, Sampler, SpanRecord};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// The operations of a process that are watched, unless the environment or `--trace` asks for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WatchMode {
    /// A server: those that its clients watch.
    Callers,
    /// Some of them, as every client does.
    Some,
    /// None: there are too many.
    None,
    /// The operations that the command chooses itself.
    Chosen,
}

/// Size beyond which the file begins anew; its old content is kept once, beside it.
const FILE_BYTES: u64 = 1 << 20;
/// Spans of one command that are kept; a benchmark has millions.
const SPANS: usize = 4096;

/// The longest wait of a command that has ended, or was interrupted, for the ends of operations that it gave up.
const ENDS: Duration = Duration::from_millis(250);
/// The longest wait of a command that has ended for a collector.
const DELIVERY: Duration = Duration::from_secs(1);

/// The recorder of this process, which exports its spans if the standard variables ask for that.
pub(crate) fn recorder(out: Output, watching: WatchMode, global: &Global) -> Recorder {
    let asked = understood(out, Sampler::from_environment());
    let is_asked = global.trace || asked.is_some();
    let sampler = match watching {
        WatchMode::Callers => Sampler::Never,
        _ if global.trace => Sampler::Always,
        WatchMode::None => asked.unwrap_or(Sampler::Never),
        WatchMode::Some | WatchMode::Chosen => asked.unwrap_or(Sampler::USUAL),
    };
    let recorder = Recorder::new(sampler, global.trace_keys, Limits::default());
    recorder.rest(!is_asked && watching == WatchMode::Chosen);
    if let Some(settings) = understood(out, Settings::from_environment()) {
        recorder.export_to(settings);
    }
    recorder
}

/// The setting of a variable. A wrong one is reported, and ignored.
fn understood<T>(out: Output, asked: Result<Option<T>, InvalidSetting>) -> Option<T> {
    asked.unwrap_or_else(|error| {
        out.note(&format!("traces are not exported as asked: {error}"));
        None
    })
}

/// Delivers the remaining spans to the collector, and reports those that it refuses.
pub(crate) fn deliver(out: Output, recorder: &Recorder) {
    let exported = recorder.finish_export(DELIVERY);
    if exported.lost() > 0 {
        let all = exported.lost() + exported.delivered;
        let why = exported.why.as_deref().unwrap_or("too many at once");
        let lost = exported.lost();
        out.note(&format!("{lost} of {all} spans were not exported: {why}"));
    }
}

/// The file for the spans of commands, if there is a place for it.
fn file() -> Option<PathBuf> {
    let absolute = |name| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let home = || Some(absolute("HOME")?.join(".local/state"));
    Some(
        absolute("XDG_STATE_HOME")
            .or_else(home)?
            .join("areo/traces.jsonl"),
    )
}

/// Keeps the spans that the process remembers. No operation depends on it: a failure has no effect.
pub(crate) fn keep(recorder: &Recorder) {
    if recorder.rests() {
        // The user did not ask for its spans.
        return;
    }
    recorder.settle(ENDS);
    let spans = recorder.ring().since(0);
    let Some(file) = file().filter(|_| !spans.is_empty()) else {
        return;
    };
    let line = |span| serde_json::to_string(span).expect("records have text for keys") + "\n";
    let recent = &spans[spans.len().saturating_sub(SPANS)..];
    let lines: String = recent.iter().map(line).collect();
    let write = || {
        let directory = file.parent().expect("it is in a directory");
        fs::create_dir_all(directory)?;
        if fs::metadata(&file).is_ok_and(|about| about.len() > FILE_BYTES) {
            fs::rename(&file, file.with_extension("jsonl.1"))?;
        }
        let mut file = OpenOptions::new().append(true).create(true).open(&file)?;
        // In one piece, so that commands that end at once do not mix their lines.
        file.write_all(lines.as_bytes())
    };
    let _: std::io::Result<()> = write();
}

/// The spans that commands have kept.
pub(crate) fn kept() -> Vec<SpanRecord> {
    let Some(file) = file() else {
        return Vec::new();
    };
    let files = [file.with_extension("jsonl.1"), file];
    let text: String = files.iter().flat_map(fs::read_to_string).collect();
    parse(&text)
}

/// Spans, one on each line. Other lines are skipped: a crash may cut a line off.
pub fn parse(lines: &str) -> Vec<SpanRecord> {
    let parsed = lines.lines().map(serde_json::from_str);
    parsed.filter_map(Result::ok).collect()
}
