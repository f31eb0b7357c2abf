use super::*;

/// What a run of `areo bench peers --json` printed, shortened.
const RECORDED: &str = include_str!("recorded/peers.json");

#[test]
fn a_page_is_drawn_from_what_was_recorded() {
    let report: Report = serde_json::from_str(RECORDED).unwrap();
    let html = Page::of_peers(&report, "2026-11-22 11:00:00 UTC").html();
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
    // Nothing is fetched from anywhere.
    for link in ["http://", "https://", "src=", "@import", "<script", "<link"] {
        let own = html.replace("http://www.w3.org/2000/svg", "");
        assert!(!own.contains(link), "{link}");
    }
    // Every figure of every store is there.
    for point in &report.points {
        let throughput = point.spread(|run| run.per_second);
        for figure in [throughput.median, throughput.min, throughput.max] {
            assert!(html.contains(&format!("<td>{figure:.0}</td>")), "{figure}");
        }
        let p99 = point.latency(|times| times.p99_us).median;
        assert!(html.contains(&format!("<td>{p99:.0}</td>")), "{p99}");
    }
    for compared in &report.ratios {
        let median = compared.ratio.throughput.median;
        assert!(html.contains(&format!("<td>{median:.2}</td>")), "{median}");
    }
    assert!(html.contains(&escape(&report.command)) && html.contains(&report.machine.kernel));
    // Four plots for puts and four for gets, with a line for each store.
    assert_eq!(html.matches("<svg").count(), 8);
    let store = |name: &str| html.matches(&format!("\n{name}\n")).count();
    assert_eq!((store("areo"), store("etcd")), (8, 8));
    // Again, from what is written now.
    let written = serde_json::to_string(&report).unwrap();
    let again: Report = serde_json::from_str(&written).unwrap();
    assert_eq!(again, report);
}

#[test]
fn texts_are_nothing_but_texts() {
    let page = Page {
        title: "a <b> & \"c\"".into(),
        made: vec!["<script>".into()],
        sections: vec![Section {
            heading: "<h>".into(),
            table: Some(Table {
                texts: 1,
                head: vec!["<x>".into()],
                rows: vec![vec!["</td>".into()]],
            }),
            ..Section::default()
        }],
    };
    let html = page.html();
    assert!(html.contains("a &lt;b&gt; &amp; &quot;c&quot;"));
    for raw in ["<script>", "<h>", "<x>", "</td></td>"] {
        assert!(!html.contains(raw), "{raw}");
    }
}
