//! One line for each event, for people or as JSON, with the identity of the span that it happened in.

use super::limit::Limit;
use crate::output::{self, lost_lines, visible};
use areo_telemetry::{Context, context_of};
use serde_json::{Map, Value};
use std::fmt::{self, Debug, Write};
use std::time::Instant;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Span, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::registry::LookupSpan;

/// Fields that belong to users. No line above debug level has them, even if the code that logs adds them.
const THEIRS: [&str; 4] = ["key", "value", "content", "object"];

/// Formats events as lines of the log.
pub(super) struct Lines {
    pub(super) json: bool,
    pub(super) limit: Limit,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let is_detail = *metadata.level() > Level::INFO;
        // Who asks for details gets all of them.
        let left_out = match is_detail {
            true => Some(0),
            false => self.limit.admit(metadata.callsite(), Instant::now()),
        };
        let Some(left_out) = left_out else {
            return Ok(());
        };
        let mut fields = Fields {
            is_detail,
            ..Fields::default()
        };
        event.record(&mut fields);
        let left_out = left_out + lost_lines();
        if left_out > 0 {
            fields.others.insert("left_out".into(), left_out.into());
        }
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let context = context_of(&Span::current());
        let line = match self.json {
            true => json(&time, metadata, fields, context),
            false => text(&time, metadata, &fields, context),
        };
        writeln!(writer, "{line}")
    }
}

/// The fields of an event.
#[derive(Default)]
struct Fields {
    is_detail: bool,
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    fn set(&mut self, field: &Field, value: Value) {
        if self.is_detail || !THEIRS.contains(&field.name()) {
            self.others.insert(field.name().into(), value);
        }
    }
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            _ => self.set(field, value.into()),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

fn json(time: &str, metadata: &Metadata<'_>, fields: Fields, context: Option<Context>) -> String {
    let mut line = Map::new();
    let mut set = |name: &str, value: String| line.insert(name.into(), value.into());
    set("timestamp", time.into());
    set("level", metadata.level().as_str().to_ascii_lowercase());
    set("target", metadata.target().into());
    set("message", fields.message);
    if let Some(context) = context {
        set("trace_id", context.trace.to_string());
        set("span_id", context.span.to_string());
    }
    line.extend(fields.others);
    output::json(Value::Object(line).to_string())
}

fn text(time: &str, metadata: &Metadata<'_>, fields: &Fields, context: Option<Context>) -> String {
    let (level, target) = (metadata.level(), metadata.target());
    let mut line = format!("{time} {level:>5} {target}: {}", fields.message);
    for (name, value) in &fields.others {
        let _ = match value {
            Value::String(text) => write!(line, " {name}={text}"),
            value => write!(line, " {name}={value}"),
        };
    }
    if let Some(context) = context {
        let _ = write!(line, " trace_id={}", context.trace);
    }
    visible(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::{Layer, SubscriberExt};
    use tracing_subscriber::registry::Registry;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Lines that come of this.
    fn logged(json: bool, work: impl FnOnce()) -> Vec<String> {
        let memory = Memory::default();
        let writer = memory.clone();
        let lines = Lines {
            json,
            limit: Limit::default(),
        };
        let layer = tracing_subscriber::fmt::layer()
            .event_format(lines)
            .with_writer(move || writer.clone())
            .with_filter(tracing_subscriber::filter::LevelFilter::TRACE);
        let subscriber = Registry::default().with(layer);
        tracing::subscriber::with_default(subscriber, work);
        let text = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
        text.lines().map(ToOwned::to_owned).collect()
    }

    fn event() {
        tracing::warn!(remote = %"1.2.3.4", calls = 3_u64, slow = true, "it is\nodd");
    }

    #[test]
    fn an_event_is_one_line() {
        let text = logged(false, event);
        assert_eq!(text.len(), 1, "{text:?}");
        let ending = "it is\\nodd calls=3 remote=1.2.3.4 slow=true";
        assert!(text[0].ends_with(ending), "{text:?}");
        assert!(text[0].contains("  WARN areo::log::line"), "{text:?}");
        let json = logged(true, event);
        assert_eq!(json.len(), 1, "{json:?}");
        let line: Value = serde_json::from_str(&json[0]).unwrap();
        assert_eq!(
            (&line["level"], &line["calls"]),
            (&"warn".into(), &3.into())
        );
        assert_eq!(line["message"], "it is\nodd");
        assert_eq!(
            (&line["remote"], &line["slow"]),
            (&"1.2.3.4".into(), &true.into())
        );
        assert!(
            line["timestamp"]
                .as_str()
                .is_some_and(|time| time.ends_with('Z'))
        );
    }

    #[test]
    fn what_belongs_to_users_is_for_those_who_debug() {
        for json in [true, false] {
            let lines = logged(json, || {
                tracing::error!(key = "secret", content = ?b"secret", "bad");
                tracing::info!(value = %"secret", "fine");
            });
            assert_eq!(lines.len(), 2);
            assert!(!format!("{lines:?}").contains("secret"), "{lines:?}");
            let debug = logged(json, || tracing::debug!(key = "secret", "tried"));
            assert!(debug[0].contains("secret"), "{debug:?}");
        }
    }

    #[test]
    fn a_flood_is_cut_but_not_for_those_who_debug() {
        let lines = logged(false, || (0..100).for_each(|_| event()));
        assert_eq!(lines.len(), super::super::limit::LINES as usize);
        let lines = logged(false, || (0..100).for_each(|_| tracing::debug!("x")));
        assert_eq!(lines.len(), 100);
    }
}
