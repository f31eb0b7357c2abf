use super::*;
use crate::peers::{Point, Report};

/// What a run of `areo-lab bench peers --json` printed, shortened.
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
    // Four plots for puts and four for gets, with a line for each store; what was noticed of a killed member of each; and
    // where the time of puts and of gets went: bars in microseconds and in shares, and a sample.
    assert_eq!(html.matches("<svg").count(), 8 + 2 + 2 * (2 + 1));
    for of in &report.breakdowns {
        let bar = format!("\n{}, {}\n", of.target, of.clients);
        assert_eq!(html.matches(&bar).count(), 4, "{bar}");
        for figure in of.parts.iter().map(|part| part.us).chain([of.mean_us]) {
            assert!(html.contains(&format!("<td>{figure:.1}</td>")), "{figure}");
        }
        let is_drawn = of.clients == 16;
        let id = of.sample[0].trace.to_string();
        assert_eq!(html.contains(&id), is_drawn, "with the most clients");
        if is_drawn {
            let of_sample = html.split(&id).nth(1).unwrap();
            let rows = of_sample.split("</svg>").next().unwrap().matches("<title>");
            assert_eq!(rows.count(), of.sample.len());
        }
    }
    assert_eq!(report.breakdowns.len(), 4);
    assert!(html.contains("Of etcd it is not known."));
    let store = |name: &str| html.matches(&format!("\n{name}\n")).count();
    assert_eq!((store("areo"), store("etcd")), (9, 9));
    assert_eq!(html.matches("\n killed\n").count(), report.killed.len());
    for seen in &report.killed {
        let gap = seen.longest_gap_ms;
        assert!(html.contains(&format!("<td>{gap:.1}</td>")), "{gap}");
        let ratio = seen.ratio.unwrap();
        assert!(html.contains(&format!("<td>{ratio:.2}</td>")), "{ratio}");
        assert!(html.contains(&escape(&seen.victim)));
    }
    for limit in &report.limits {
        let (takes, cpu) = (limit.takes.median, limit.cpu.median);
        assert!(html.contains(&format!("<td>{takes:.3}</td>")), "{takes}");
        assert!(html.contains(&format!("<td>{cpu:.3}</td>")), "{cpu}");
    }
    assert_eq!(report.limits.len(), 6);
    let of_areo = |of: &&Point| of.target == report.targets[0].target && of.clients == 16;
    for point in report.points.iter().filter(of_areo) {
        let per_byte = point.cpu_ns_per_byte().median / report.limits[1].cpu.median;
        assert!(
            html.contains(&format!("<td>{per_byte:.1}</td>")),
            "{per_byte}"
        );
        let rounds = per_byte * report.limits[1].cpu.median * point.size as f64
            / 1e3
            / report.limits[2].cpu.median;
        assert!(html.contains(&format!("<td>{rounds:.1}</td>")), "{rounds}");
    }
    // Again, from what is written now.
    let written = serde_json::to_string(&report).unwrap();
    let again: Report = serde_json::from_str(&written).unwrap();
    assert_eq!(again, report);
}

/// What a run of `areo-lab bench wide-area --json` printed, shortened.
const RECORDED_WIDE_AREA: &str = include_str!("recorded/wide_area.json");

#[test]
fn a_page_of_servers_far_apart_is_drawn_from_what_was_recorded() {
    let report: of_wide_area::Report = serde_json::from_str(RECORDED_WIDE_AREA).unwrap();
    let html = Page::of_wide_area(&report, "2026-11-22 14:00:00 UTC").html();
    let all = report.points.iter().flat_map(|point| &point.by_rounds);
    for by in all.clone() {
        let (ms, trips) = (by.times.p50_us / 1e3, by.round_trips);
        assert!(html.contains(&format!("<td>{ms:.1}</td>")), "{ms}");
        assert!(html.contains(&format!("<td>{trips:.2}</td>")), "{trips}");
    }
    // A row for each, of a table whose first five columns are texts.
    let cells = html.matches("<td class=\"text\">").count();
    assert_eq!(cells, report.sites.len() + 5 * all.count());
    for line in ["put", "get of one round", "get of two rounds"] {
        assert!(html.contains(&format!("\n{line}\n")), "{line}");
    }
    assert!(html.contains("All counts of rounds") && html.contains(&report.command));
    let broken = of_wide_area::Report {
        broken: vec!["three rounds".into()],
        ..report.clone()
    };
    let html = Page::of_wide_area(&broken, "").html();
    assert!(html.contains("three rounds") && !html.contains("All counts"));
    let written = serde_json::to_string(&report).unwrap();
    let again: of_wide_area::Report = serde_json::from_str(&written).unwrap();
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

/// What a run of `areo-lab paper P2 --scale quick --json` printed.
const RECORDED_PAPER: &str = include_str!("recorded/paper.json");

#[test]
fn a_page_of_an_experiment_is_drawn_from_what_was_recorded() {
    let report: of_paper::Report = serde_json::from_str(RECORDED_PAPER).unwrap();
    let page = Page::of_paper(&report, "2026-11-22 17:00:00 UTC");
    let html = page.html();
    // A line for each variant, in a plot of reads and in one of writes.
    assert_eq!(html.matches("<svg").count(), 2);
    let files: Vec<String> = page.plots().map(|(name, _)| name).collect();
    let by_size = |what| format!("by-size-mib-latency-of-a-{what}");
    assert_eq!(files, [by_size("read"), by_size("write")]);
    for point in &report.points {
        assert_eq!(html.matches(&format!("\n{}\n", point.variant)).count(), 2);
        for spread in point.values.values() {
            let median = of_paper::short(spread.median);
            assert!(html.contains(&format!("<td>{median}</td>")), "{median}");
        }
    }
    for compared in &report.comparisons {
        let ratio = of_paper::short(compared.ratio.median);
        assert!(html.contains(&format!("<td>{ratio}</td>")), "{ratio}");
        assert!(html.contains(&escape(&compared.reason)));
    }
    for law in &report.laws {
        assert!(html.contains(&escape(&law.what)));
    }
    assert!(html.contains(&report.command) && html.contains("No operation failed"));
    let written = serde_json::to_string(&report).unwrap();
    assert_eq!(
        serde_json::from_str::<of_paper::Report>(&written).unwrap(),
        report
    );
}

/// `docs/paper/NAME`.
fn in_docs(name: &str) -> std::path::PathBuf {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/paper");
    docs.join(name)
}

fn page_in_docs(experiment: &str) -> Page {
    let text = std::fs::read_to_string(in_docs(&format!("{experiment}.json"))).unwrap();
    Page::of_paper(&serde_json::from_str(&text).unwrap(), "")
}

#[test]
fn plots_of_the_documents_are_those_that_are_drawn() {
    let mut drawn = std::collections::BTreeMap::new();
    for experiment in of_paper::Experiment::ALL {
        let experiment = experiment.name();
        for (name, svg) in page_in_docs(experiment).plots() {
            drawn.insert(format!("{experiment}-{name}.svg"), svg);
        }
    }
    let mut shown = 0;
    for file in std::fs::read_dir(in_docs("")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|end| end == "svg") {
            let again = drawn
                .get(name)
                .unwrap_or_else(|| panic!("{name} is not drawn"));
            let kept = std::fs::read_to_string(&path).unwrap();
            assert!(*again == kept, "{name} is drawn differently");
            shown += 1;
        }
    }
    assert!(shown > 20, "{shown}");
}

#[test]
fn only_what_is_along_the_axis_differs_between_places_of_a_line() {
    let page = page_in_docs("E2");
    let plots = |heading: &str| {
        let section = page
            .sections
            .iter()
            .find(|section| section.heading == heading);
        section.unwrap().plots.clone()
    };
    for (heading, expected) in [
        ("By servers", [3.0, 11.0]),
        ("By readers", [5.0, 15.0]),
        ("By writers", [5.0, 10.0]),
    ] {
        for line in plots(heading).iter().flat_map(|plot| &plot.lines) {
            let at: Vec<f64> = line.places.iter().map(|place| place.x).collect();
            assert_eq!(at, expected, "{heading}: {}", line.name);
        }
    }
    // Twelve variants are more than there are colours.
    let titles: Vec<String> = page_in_docs("E6").sections[1]
        .plots
        .iter()
        .map(|plot| plot.title.clone())
        .collect();
    assert!(
        titles.contains(&"Latency of a read, CoARESF".to_owned()),
        "{titles:?}"
    );
}
