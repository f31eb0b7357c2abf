use super::*;
use std::borrow::Cow;

fn span(
    span: u64,
    parent: Option<u64>,
    process: &'static str,
    name: &str,
    times: (u64, u64),
) -> SpanRecord {
    let text = serde_json::json!({
        "trace": format!("{:032x}", 0xa1),
        "span": format!("{span:016x}"),
        "parent": parent.map(|it| format!("{it:016x}")),
        "name": name,
        "process": process,
        "start_ns": times.0,
        "duration_ns": times.1,
    });
    serde_json::from_value(text).unwrap()
}

/// A put that waited for the disk of s2, whose name tries to be markup.
fn view() -> View {
    let mut records = vec![
        span(1, None, "client", "areo.write", (1000, 9_000_000)),
        span(2, Some(1), "client", "phase2", (1500, 8_900_000)),
        span(3, Some(2), "client", "net.quorum", (2000, 8_800_000)),
        span(4, Some(3), "s1", "server.access", (3000, 1_000_000)),
        span(5, Some(3), "s2", "server.access", (3000, 8_500_000)),
        span(6, Some(5), "s2", "store.sync", (4000, 8_000_000)),
    ];
    records[3].process = Cow::Borrowed("<b>s1</b>");
    let trace = Trace::assemble(records).remove(0);
    View {
        traces: vec![ListedTrace::from(&trace)],
        operations: BTreeSet::from(["areo.write".to_owned()]),
        shown: Some(TraceDetails::from(trace)),
        left_out: vec!["s3 (127.0.0.1:1) is left out: timed out".into()],
    }
}

fn page(text: &str) -> Traces {
    serde_html_form::from_str(text).unwrap()
}

#[test]
fn a_trace_is_drawn_with_a_bar_for_each_span_and_says_where_the_time_went() {
    let drawn = page("which=slow").draw(&view()).into_string();
    assert!(
        drawn.contains("The longest step is the disk of s2, which made the request durable: 8.00 ms, 89 % of the whole (phase2 › net.quorum)."),
        "{drawn}"
    );
    // Four in the legend.
    assert_eq!(drawn.matches("<rect").count(), 4 + 6, "{drawn}");
    assert!(drawn.contains("class=\"bar-disk\""), "{drawn}");
    assert!(drawn.contains("s3 (127.0.0.1:1) is left out"), "{drawn}");
    assert!(
        !drawn.contains("<b>") && drawn.contains("&lt;b&gt;s1"),
        "{drawn}"
    );
    // The policy of the console forbids both.
    assert!(
        !drawn.contains("style=") && !drawn.contains("<script"),
        "{drawn}"
    );
    assert!(
        drawn.contains(
            "/traces?which=slow&amp;operation=&amp;id=000000000000000000000000000000a1#trace"
        ),
        "{drawn}"
    );
}

#[test]
fn the_view_has_the_spans_that_the_command_prints() {
    let json = serde_json::to_value(view()).unwrap();
    assert_eq!(json["traces"][0]["operation"], "areo.write");
    assert_eq!(json["traces"][0]["duration_ns"], 9_000_000);
    assert_eq!(json["shown"]["records"][5]["name"], "store.sync");
    assert_eq!(json["shown"]["trace"], json["traces"][0]["trace"]);
    let commands = page("").commands(&view());
    let commands: Vec<String> = commands.iter().map(Command::to_string).collect();
    let id = "000000000000000000000000000000a1";
    assert_eq!(
        commands,
        [
            "trace --list --count 30 last".to_owned(),
            format!("trace {id}")
        ]
    );
}
