//! Measurements or traces as one page that needs nothing else: the JSON that was printed, and the script that draws it.

use crate::SpanRecord;
use serde::Serialize;
use serde_json::{Value, json};

/// Draws a report: pure functions, of which `page`, `html` and `pictures` are for others.
pub const SCRIPT: &str = include_str!("view/view.js");
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

/// The page of traces.
pub fn traces<'a>(spans: impl IntoIterator<Item = &'a SpanRecord>) -> String {
    let spans: Vec<&SpanRecord> = spans.into_iter().collect();
    page(&json!({ "report": "traces", "spans": spans }))
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
        let page = traces(&records);
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
