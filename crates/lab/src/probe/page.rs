//! The verdict as a page: one file, without scripts and without anything from elsewhere, that can be printed.

use super::report::{CaseReport, Report, StartupReport, Verdict, ViolationReport};
use std::fmt::Write;

const STYLE: &str = "\
body{font:15px/1.45 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}\
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:1.6rem}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0;border-bottom:1px solid #ccc}\
td.n{text-align:right;white-space:nowrap}code{font-size:.85em;overflow-wrap:anywhere}\
.holds{color:#14622c}.violated{color:#a3150f;font-weight:bold}.unjudged{color:#7a4a00;font-weight:bold}\
.refused,.not-offered,.not-drawn{color:#555}\
@media print{body{margin:0;max-width:none;font-size:11px}tr,h2{break-inside:avoid;break-after:auto}}";

/// A page with the verdict. `command` is how the run was started, `date` when.
pub fn page(report: &Report, command: &str, date: &str) -> String {
    let mut page =
        String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width\">");
    let title = format!("S3 at {}", report.endpoints.join(", "));
    let title = escaped(&title);
    let mut add = |text: &str| page.push_str(text);
    add(&format!(
        "<title>{title}</title><style>{STYLE}</style></head><body>"
    ));
    add(&format!("<h1>{title}: {}</h1>", word(report.verdict)));
    add(&format!(
        "<p>{} operations in {:.1} s, bucket <code>{}</code>. <code>{}</code>, {}.</p>",
        report.operations,
        report.seconds,
        escaped(&report.bucket),
        escaped(command),
        escaped(date)
    ));
    add(
        "<table><thead><tr><th>Case</th><th>Verdict</th><th>Question</th><th>Succeeded</th><th>Lost</th><th>Unknown</th></tr></thead><tbody>",
    );
    for case in &report.cases {
        add(&row(case));
    }
    add("</tbody></table>");
    for case in &report.cases {
        for violation in &case.violations {
            add(&counterexample(case.name, violation));
        }
    }
    add("<h2>Checks of others when they start</h2><table><tbody>");
    for StartupReport {
        name,
        question,
        verdict,
        ..
    } in &report.startup_checks
    {
        let word = word(*verdict);
        add(&format!(
            "<tr><td>{name}</td><td>{word}</td><td>{question}</td></tr>"
        ));
    }
    add(&format!(
        "</tbody></table><p>{}</p></body></html>\n",
        escaped(report.limits)
    ));
    page
}

fn row(case: &CaseReport) -> String {
    let sentence = match case.sentence.as_str() {
        "" => String::new(),
        sentence => format!("<br><small>{}</small>", escaped(sentence)),
    };
    format!(
        "<tr><td>{}</td><td>{}</td><td>{}{sentence}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
        case.name,
        word(case.verdict),
        escaped(case.question),
        case.succeeded,
        case.lost,
        case.unknown
    )
}

fn counterexample(name: &str, violation: &ViolationReport) -> String {
    let mut out = format!(
        "<h2>{name}: {}</h2><p>The smallest set of operations that shows it:</p><table><thead><tr><th>From, ms</th><th>To, ms</th><th>Client</th><th>Endpoint</th><th>Request</th><th>Answer</th></tr></thead><tbody>",
        escaped(&violation.what)
    );
    for one in &violation.operations {
        let to = one.to_ms.map_or("?".to_owned(), |to| format!("{to:.3}"));
        let written = write!(
            out,
            "<tr><td class=\"n\">{:.3}</td><td class=\"n\">{to}</td><td>{}</td><td>{}</td><td><code>{}</code></td><td><code>{}</code></td></tr>",
            one.from_ms,
            escaped(&one.client),
            escaped(&one.endpoint),
            escaped(&one.request),
            escaped(&one.answer)
        );
        written.expect("a text takes everything");
    }
    out.push_str("</tbody></table>");
    out
}

fn word(verdict: Verdict) -> String {
    let class = match verdict {
        Verdict::Holds => "holds",
        Verdict::NotOffered => "not-offered",
        Verdict::Refused => "refused",
        Verdict::NotDrawn => "not-drawn",
        Verdict::Unjudged => "unjudged",
        Verdict::Violated => "violated",
    };
    format!("<span class=\"{class}\">{}</span>", verdict.word())
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
