//! Where the time of one operation went, in sentences: which share, and which step of which server was the longest.

use crate::record::SpanRecord;
use crate::summary::{Row, Share, summarize};
use crate::trace::{Node, Trace};
use crate::waterfall::duration;

/// The time for which the span of a request may outlast the call that waited for it.
const SLACK_NS: u64 = 1_000_000;

/// A step of an operation that took time, without the steps that are part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Step {
    ns: u64,
    what: Work,
    /// The spans from the operation down to it, the operation left out.
    path: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Work {
    /// The disk of a server made a batch durable.
    Disk { server: String },
    /// A server had the request, and did not sync.
    Server { server: String },
    /// The request or the reply was on its way, or waited in a queue.
    Way { server: String },
    /// A call of which no server remembers its part.
    Call,
    /// The client computed in this span.
    Client { span: String },
}

/// The sentences for people that say where the time went; empty if the trace has no operation.
pub fn explain(trace: &Trace) -> Vec<String> {
    let is_operation = |it: &&Node| it.span.name.starts_with("areo.");
    let Some(operation) = trace.roots.iter().find(is_operation) else {
        return Vec::new();
    };
    let rows = summarize(std::slice::from_ref(trace));
    let row = rows.iter().find(|row| row.span == operation.span.name);
    let mut sentences: Vec<String> = row
        .map(|row| shares(&operation.span, row))
        .into_iter()
        .collect();
    let mut steps = Vec::new();
    find_steps(operation, "", &mut steps);
    if let Some(longest) = steps.into_iter().max_by_key(|step| step.ns) {
        sentences.extend(longest.sentences(operation.span.duration_ns));
    }
    if let Some(reason) = operation.span.attributes.get("error.type") {
        sentences.push(format!("It failed: {reason}."));
    }
    sentences
}

fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

fn shares(operation: &SpanRecord, row: &Row) -> String {
    let word = |share| match share {
        Share::Communication => "waiting for servers",
        Share::Encode => "encoding",
        Share::Decode => "decoding",
        Share::Configuration => "finding configurations",
        Share::Other => "other work of the client",
    };
    let of = |share: Share| {
        let part = *row.shares.get(&share).filter(|part| **part >= 0.005)?;
        let disk = match share {
            Share::Communication if row.disk >= 0.005 => {
                format!(", {} of the whole for their disks", percent(row.disk))
            }
            _ => String::new(),
        };
        Some(format!("{} {}{disk}", percent(part), word(share)))
    };
    let parts: Vec<String> = Share::ALL.into_iter().filter_map(of).collect();
    let took = duration(operation.duration_ns);
    format!("{} took {took}: {}.", operation.name, parts.join("; "))
}

fn find_steps(node: &Node, path: &str, steps: &mut Vec<Step>) {
    for part in &node.parts {
        let name = &*part.span.name;
        let below = match path {
            "" => name.to_owned(),
            path => format!("{path} › {name}"),
        };
        match name {
            "net.quorum" => call(part, &below, steps),
            "ec.encode" | "ec.decode" | "file.divide" | "file.identify" => steps.push(Step {
                ns: part.span.duration_ns,
                what: Work::Client { span: name.into() },
                path: below,
            }),
            _ => find_steps(part, &below, steps),
        }
    }
}

/// The steps of a quorum call: those of the server that it waited for last.
fn call(call: &Node, path: &str, steps: &mut Vec<Step>) {
    let whole = call.span.duration_ns;
    let Some(last) = awaited(call) else {
        let (ns, what, path) = (whole, Work::Call, path.to_owned());
        steps.push(Step { ns, what, path });
        return;
    };
    let (served, server) = (last.span.duration_ns, last.span.process.to_string());
    let syncs = last.parts.iter().filter(|it| it.span.name == "store.sync");
    let sync = syncs.map(|it| it.span.duration_ns).max().unwrap_or(0);
    let disk = sync.min(served);
    let mut add = |ns, what| {
        let path = path.to_owned();
        steps.push(Step { ns, what, path });
    };
    add(
        disk,
        Work::Disk {
            server: server.clone(),
        },
    );
    add(
        served - disk,
        Work::Server {
            server: server.clone(),
        },
    );
    add(whole - served, Work::Way { server });
}

/// The request that ended last before the call was decided. Where the clock of a server is another one, so that no request lies within the call, the longest
/// of those that took no longer than the call: one that took longer was not waited for.
fn awaited(call: &Node) -> Option<&Node> {
    // A server may note the end of a request after the client has the reply.
    let slack = (call.span.duration_ns / 10).min(SLACK_NS);
    let (begin, end) = (call.span.start_ns, call.span.end_ns() + slack);
    let within = |it: &&Node| it.span.start_ns >= begin && it.span.end_ns() <= end;
    let last = call
        .parts
        .iter()
        .filter(within)
        .max_by_key(|it| it.span.end_ns());
    let fits = |it: &&Node| it.span.duration_ns <= call.span.duration_ns;
    let longest = || {
        call.parts
            .iter()
            .filter(fits)
            .max_by_key(|it| it.span.duration_ns)
    };
    last.or_else(longest)
}

impl Step {
    /// The step, and the next thing to look at.
    fn sentences(&self, whole_ns: u64) -> Vec<String> {
        let share = percent(self.ns as f64 / whole_ns.max(1) as f64);
        let (what, next) = match &self.what {
            Work::Disk { server } => (
                format!("the disk of {server}, which made the request durable"),
                format!(
                    "If {server} is often the slowest, compare its `areo_store_sync_seconds` with that of the others; `areo server replace {server}` puts another server in its place."
                ),
            ),
            Work::Server { server } => (
                format!("the work of {server} on the request, its disk left out"),
                format!("If {server} is often the slowest, look at what else runs on its machine."),
            ),
            Work::Way { server } => (
                format!("the way to {server} and back"),
                format!(
                    "If that is often so, look at the network between this client and {server}, and at how busy both are."
                ),
            ),
            Work::Call => (
                "a call of servers, of which none remembers its part".into(),
                "Look at a later trace: servers keep some thousand spans.".into(),
            ),
            Work::Client { span } => (
                format!("{span}, which this client computed"),
                "A smaller value, or another [n, k], takes less.".into(),
            ),
        };
        let took = duration(self.ns);
        let path = &self.path;
        vec![
            format!("The longest step is {what}: {took}, {share} of the whole ({path})."),
            next,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SpanId;
    use crate::trace::tests::example;

    #[test]
    fn the_longest_step_is_named_with_its_server() {
        let explained = |records| explain(&Trace::assemble(records)[0]);
        let mut records = example();
        records[0].duration_ns = 310_000;
        let sentences = explained(records.clone());
        assert_eq!(
            sentences[..2],
            [
                "areo.read took 1.00 ms: 60 % waiting for servers; 20 % decoding; 20 % other work of the client.",
                "The longest step is the work of s2 on the request, its disk left out: 310 µs, 31 % of the whole (dap.get_data › net.quorum).",
            ]
        );
        // Another server was slower than the call: the call did not wait for it.
        let sync = |span, parent, process: &'static str, us: u64| SpanRecord {
            name: "store.sync".into(),
            process: process.into(),
            span: SpanId(span),
            parent: Some(SpanId(parent)),
            start_ns: 1_300_000,
            duration_ns: us * 1000,
            ..example().remove(0)
        };
        records[1].duration_ns = 700_000;
        records.push(sync(8, 4, "s1", 690));
        records.push(sync(9, 5, "s2", 305));
        let sentences = explained(records);
        assert!(
            sentences[1].starts_with("The longest step is the disk of s2"),
            "{sentences:?}"
        );
        let mut records = example();
        records[0].duration_ns = 200_000;
        let way = explained(records);
        assert!(
            way[1].starts_with("The longest step is the way to s2 and back: 400 µs"),
            "{way:?}"
        );
        // s1 worked for longer, and long before.
        let mut records = example();
        (records[0].start_ns, records[0].duration_ns) = (1_690_000, 5_000);
        let stopped = explained(records);
        assert!(
            stopped[1].starts_with("The longest step is the way to s2 and back: 595 µs"),
            "{stopped:?}"
        );
        // The clocks of servers are an hour ahead.
        let mut records = example();
        for it in records.iter_mut().filter(|it| it.process != "client") {
            it.start_ns += 3_600_000_000_000;
        }
        let ahead = explained(records);
        assert!(ahead[1].contains(" s2"), "{ahead:?}");
    }

    #[test]
    fn a_request_without_its_operation_is_not_explained() {
        let mut records = example();
        records.retain(|it| it.process == "s1");
        assert_eq!(explain(&Trace::assemble(records)[0]), Vec::<String>::new());
    }
}
