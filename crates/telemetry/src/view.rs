//! Measurements or traces as one page that needs nothing else: the JSON that was printed, and the script that draws it.

use crate::compare::{rows, went};
use crate::{SpanRecord, Trace};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Draws a report: pure functions, of which `page`, `html` and `pictures` are for others.
pub const SCRIPT: &str = concat!(
    include_str!("view/view.js"),
    include_str!("view/pictures.js"),
    include_str!("view/traces.js"),
);
/// The page around it.
const SHELL: &str = include_str!("view/view.html");
/// Reports that the script can draw, by their field `report`.
const REPORTS: [&str; 4] = ["peers", "paper", "wide-area", "traces"];

/// True if this is a report that can be drawn.
pub fn is_known(report: &Value) -> bool {
    let name = report["report"].as_str();
    name.is_some_and(|name| REPORTS.contains(&name))
}

/// The page of a report that serialises itself.
///
/// # Panics
/// It is not one that [`is_known`].
pub fn page(report: &impl Serialize) -> String {
    let report = serde_json::to_value(report).expect("a report is JSON");
    assert!(is_known(&report), "its name says how it is drawn");
    // In a page no text of it can end the element that it is in.
    let report = report.to_string().replace('<', "\\u003c");
    let script = SHELL.replace("SCRIPT", SCRIPT);
    script.replacen("REPORT", &report, 1)
}

/// Names of domains, by the ids that spans have.
pub type DomainNames = BTreeMap<String, String>;

/// The page of traces, one below the other.
pub fn traces(traces: &[Trace], domains: &DomainNames) -> String {
    let spans = spans(traces);
    page(&json!({ "report": "traces", "spans": spans, "domains": domains }))
}

/// The page of two traces on one axis.
pub fn compared(first: &Trace, second: &Trace, domains: &DomainNames) -> String {
    // A trace may be compared with itself.
    let traces = [first.clone(), second.clone()];
    let distinct = &traces[..if first.id == second.id { 1 } else { 2 }];
    let (went, rounds) = went(first, second);
    let compared = json!({
        "traces": [first.id, second.id],
        "rows": rows(first, second),
        "went": went,
        "rounds": rounds,
    });
    page(&json!({
        "report": "traces",
        "spans": spans(distinct),
        "domains": domains,
        "compared": compared,
    }))
}

fn spans(traces: &[Trace]) -> Vec<&SpanRecord> {
    let all = traces.iter().flat_map(Trace::walk);
    all.map(|(_, span)| span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value as Attribute;
    use crate::trace::tests::example;

    #[test]
    fn a_page_fetches_nothing_and_takes_no_markup_from_outside() {
        let mut records = example();
        let key = Attribute::Text("</script><script>alert(1)</script>REPORT SCRIPT".into());
        records[2].attributes.insert("key".into(), key);
        let page = traces(&Trace::assemble(records), &DomainNames::new());
        assert!(!page.contains("<script>alert") && page.contains("\\u003cscript>alert(1)"));
        assert_eq!(
            page.matches("</script>").count(),
            2,
            "one of data, one of code"
        );
        let own = page.replace("http://www.w3.org/2000/svg", "");
        for link in ["http://", "https://", "src=", "href=\"", "@import", "<link"] {
            assert!(!own.contains(link), "{link}");
        }
        assert!(page.ends_with("</html>\n"));
    }

    #[test]
    fn what_cannot_be_drawn_is_known_before() {
        assert!(is_known(&json!({ "report": "paper" })));
        for other in [json!({}), json!({ "report": "reconfig" }), json!(null)] {
            assert!(!is_known(&other), "{other}");
        }
    }
}
