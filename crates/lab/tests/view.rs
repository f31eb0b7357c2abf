//! A report as a browser shows it, drawn by the same script. `AREO_WRITE_PICTURES=1` writes those of the documents anew.

#![allow(clippy::unwrap_used, reason = "a test")]

use areo_telemetry::view;
use rquickjs::{Context, Ctx, FromJs, Runtime};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Runs the script on a report, then an expression about `page(report)`.
fn draw<T: for<'js> FromJs<'js>>(report: &Value, expression: &str) -> T {
    let run = |ctx: Ctx<'_>| -> rquickjs::Result<T> {
        ctx.eval::<(), _>(view::SCRIPT)?;
        ctx.globals().set("input", report.to_string())?;
        ctx.eval(expression)
    };
    let context = Context::full(&Runtime::new().unwrap()).unwrap();
    context.with(|ctx| run(ctx.clone()).unwrap_or_else(|_| panic!("{:?}", ctx.catch())))
}

fn html(report: &Value) -> String {
    let html: String = draw(report, "html(page(JSON.parse(input)))");
    for wrong in ["NaN", "undefined", "Infinity", "[object"] {
        assert!(!html.contains(wrong), "{wrong}");
    }
    html
}

/// Names and SVGs of the pictures on a page.
fn pictures(report: &Value) -> Vec<(String, String)> {
    let all: Vec<Vec<String>> = draw(report, "pictures(page(JSON.parse(input)))");
    let pair = |mut one: Vec<String>| (one.remove(0), one.remove(0));
    all.into_iter().map(pair).collect()
}

/// The recorded output of a command with `--json`, shortened.
fn recorded(name: &str) -> Value {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// The figure in the middle: of an even number, between the two.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() % 2 {
        0 => f64::midpoint(figures[middle - 1], figures[middle]),
        _ => figures[middle],
    }
}

/// There is a cell with the figure, alone or before the least and the most of several runs.
#[track_caller]
fn has_cell(html: &str, cell: &str) {
    let ways = ["</td>", " ("].map(|end| format!("<td>{cell}{end}"));
    assert!(ways.iter().any(|way| html.contains(way)), "no cell {cell}");
}

#[test]
fn a_comparison_of_stores_is_drawn_with_every_figure() {
    let report = recorded("peers.json");
    let html = html(&report);
    for point in list(&report, "points") {
        let runs = list(point, "runs");
        let of = |name: &str| median(runs.iter().map(|run| number(&run[name])).collect());
        has_cell(&html, &format!("{:.0}", of("per_second")));
        let operation = point["operation"].as_str().unwrap();
        let p99 = runs.iter().map(|run| number(&run[operation]["p99_us"]));
        has_cell(&html, &format!("{:.0}", median(p99.collect())));
    }
    for one in list(&report, "ratios") {
        let ratio = number(&one["ratio"]["throughput"]["median"]);
        has_cell(&html, &format!("{ratio:.2}"));
    }
    for one in list(&report, "killed") {
        has_cell(&html, &format!("{:.1}", number(&one["longest_gap_ms"])));
    }
    for one in list(&report, "limits") {
        has_cell(&html, &format!("{:.3}", number(&one["takes"]["median"])));
    }
    assert!(html.contains("There is no breakdown of etcd."));
    assert!(html.contains(report["machine"]["kernel"].as_str().unwrap()));
    // Four plots for puts and four for gets, a timeline for each store, and of puts and gets two pictures of where their time
    // went, and a sample with a bar for each of its spans.
    let pictures = pictures(&report);
    assert_eq!(pictures.len(), 8 + 2 + 2 * (2 + 1));
    let bars = |svg: &str| svg.matches("rx=\"2\"").count();
    let spans: Vec<usize> = list(&report, "breakdowns")
        .iter()
        .filter(|one| one["clients"] == 16)
        .map(|one| list(one, "sample").len())
        .collect();
    let drawn: Vec<usize> = pictures.iter().map(|(_, svg)| bars(svg)).collect();
    let drawn: Vec<usize> = drawn.into_iter().filter(|bars| *bars > 0).collect();
    assert_eq!(drawn, spans);
    let throughput = &pictures[0];
    assert_eq!(throughput.0, "put-of-1024-bytes-throughput");
    assert_eq!(
        throughput.1.matches("<polyline").count(),
        list(&report, "targets").len()
    );
}

#[test]
fn parts_of_a_bar_stand_one_above_the_other() {
    let svg: String = draw(
        &Value::Null,
        "stack({title: 'time', y: 'µs', parts: ['network', 'disk'],
          bars: [{name: '1', parts: [3, 1]}, {name: '16', parts: [6, 4]}]})",
    );
    let rects = |fill: &str| -> Vec<[f64; 2]> {
        let of = svg
            .lines()
            .filter(|line| line.starts_with("<rect") && line.contains(fill));
        let value = |line: &str, name: &str| -> f64 {
            let text = line.split(&format!(" {name}=\"")).nth(1).unwrap();
            text.split('"').next().unwrap().parse().unwrap()
        };
        of.map(|line| [value(line, "y"), value(line, "height")])
            .collect()
    };
    let (network, disk) = (rects("#0072b2"), rects("#e69f00"));
    assert_eq!((network.len(), disk.len()), (2, 2), "{svg}");
    for (below, above) in network.iter().zip(&disk) {
        assert!((above[0] + above[1] - below[0]).abs() < 0.2, "{svg}");
    }
    assert!((network[1][1] / network[0][1] - 2.0).abs() < 0.02);
    for name in ["time", "µs", "network", "disk"] {
        assert!(svg.contains(&format!(">{name}</text>")), "{name}");
    }
}

#[test]
fn nothing_and_zeros_are_drawn_too() {
    let svg: String = draw(
        &Value::Null,
        "lines({title: '', x: '', y: '', lines: []}) +
         lines({title: '', x: '', y: '', lines: [{name: 'zero', places: [{x: 0, median: 0, min: 0, max: 0}]}]}) +
         stack({title: '', y: '', parts: [], bars: []}) +
         timeline({title: '', x: '', y: '', places: [], moment: {at: 0, name: 'killed'}, row: 9})",
    );
    assert!(svg.contains("zero") && svg.contains("killed"));
    assert!(!svg.contains("NaN") && !svg.contains("Infinity"), "{svg}");
}

#[test]
fn servers_far_apart_are_drawn_with_every_figure() {
    let report = recorded("wide_area.json");
    let drawn = html(&report);
    let points = list(&report, "points");
    let by: Vec<&Value> = points
        .iter()
        .flat_map(|point| list(point, "by_rounds"))
        .collect();
    for by in &by {
        has_cell(
            &drawn,
            &format!("{:.1}", number(&by["times"]["p50_us"]) / 1e3),
        );
        has_cell(&drawn, &format!("{:.2}", number(&by["round_trips"])));
    }
    // A row for each, of a table whose first five columns are texts.
    let texts = drawn.matches("<td class=\"text\">").count();
    assert_eq!(texts, list(&report, "sites").len() + 5 * by.len());
    assert!(drawn.contains("All counts of rounds"));
    let mut broken = report.clone();
    broken["broken"] = vec!["three rounds"].into();
    let drawn = html(&broken);
    assert!(drawn.contains("three rounds") && !drawn.contains("All counts"));
}

#[test]
fn an_experiment_is_drawn_with_every_figure() {
    let report = recorded("paper.json");
    let html = html(&report);
    let short = |figure: f64| match figure.abs() {
        small if small < 10.0 => format!("{figure:.2}"),
        middle if middle < 100.0 => format!("{figure:.1}"),
        _ => format!("{figure:.0}"),
    };
    let points = list(&report, "points");
    for point in points {
        for spread in point["values"].as_object().unwrap().values() {
            has_cell(&html, &short(number(&spread["median"])));
        }
    }
    for one in list(&report, "comparisons") {
        has_cell(&html, &short(number(&one["ratio"]["median"])));
    }
    // One size alone is no axis: a bar for each variant, in a picture of reads and in one of writes.
    let names = |report: &Value| -> Vec<String> {
        let all = pictures(report).into_iter();
        all.map(|(name, _)| name).collect()
    };
    assert_eq!(
        names(&report),
        [
            "by-variant-latency-of-a-read",
            "by-variant-latency-of-a-write"
        ]
    );
    for (_, svg) in &pictures(&report) {
        assert_eq!(svg.matches("<rect").count(), 1 + points.len());
    }
    // With a second size there is a line for each variant.
    let mut two = report.clone();
    let larger = points.iter().cloned().map(|mut point| {
        point["setting"]["size"] = (8 << 20).into();
        point["values"]["read_ms"] = json!({ "median": 90, "min": 80, "max": 100 });
        point
    });
    two["points"] = [points, &larger.collect::<Vec<_>>()].concat().into();
    assert_eq!(names(&two)[0], "by-size-latency-of-a-read");
    let (_, svg) = &pictures(&two)[0];
    assert_eq!(svg.matches("<polyline").count(), points.len());
    for size in ["64 KiB", "8 MiB"] {
        assert!(svg.contains(&format!(">{size}</text>")), "{size}");
    }
}

#[test]
fn what_differs_from_the_publication_is_a_table_and_runs_are_one_cell() {
    let mut report = recorded("paper.json");
    report["points"][0]["values"]["read_ms"] = json!({ "median": 687.4, "min": 673, "max": 701 });
    let html = html(&report);
    has_cell(&html, "687 (673 to 701)");
    let row = |cells: [&str; 3]| {
        let cells = cells.map(|cell| format!("<td class=\"text\">{cell}</td>"));
        assert!(html.contains(&cells.concat()), "{cells:?}");
    };
    row(["servers", "5", "11"]);
    row(["", "one machine and loopback", "39 machines and a LAN"]);
    row(["", "servers keep everything in memory", ""]);
    row([
        "sizes",
        "64 KiB",
        "1 MiB, 2 MiB, 4 MiB, 8 MiB, 16 MiB, 32 MiB, 64 MiB, 128 MiB, 256 MiB, 512 MiB",
    ]);
}

#[test]
fn marks_of_axes_are_round() {
    let marks: Vec<String> = draw(
        &Value::Null,
        "[steps(0, 46.5, 8), steps(0, 1, 5), steps(9.1, 11.9, 8), steps(3, 3, 5), marksOfPowers(10, 14), marksOfPowers(1, 2000)]
           .map((all) => all.map(mark).join(' '))
           .concat([1, 1536, 65536, 2 ** 20, 2 ** 33].map(bytes).join(', '))",
    );
    assert_eq!(
        marks,
        [
            "0 10 20 30 40",
            "0 0.2 0.4 0.6 0.8 1",
            "9.5 10 10.5 11 11.5",
            "3",
            "10 10.5 11 11.5 12 12.5 13 13.5 14",
            "1 10 100 1k",
            "1 B, 1.5 KiB, 64 KiB, 1 MiB, 8 GiB"
        ]
    );
}

/// Spans of a put and of a get of the recorded comparison, and the ids of their traces.
fn samples() -> ([Vec<Value>; 2], [String; 2]) {
    let report = recorded("peers.json");
    let all = list(&report, "breakdowns");
    let samples = ["areo.write", "areo.read"].map(|name| {
        let samples = all.iter().map(|one| list(one, "sample"));
        let mut of_name = samples.filter(|spans| spans.iter().any(|span| span["name"] == name));
        of_name.next().unwrap().to_vec()
    });
    let id = |spans: &Vec<Value>| spans[0]["trace"].as_str().unwrap().to_owned();
    let ids = [id(&samples[0]), id(&samples[1])];
    (samples, ids)
}

#[test]
fn a_trace_says_what_it_was_and_when_and_what_its_colours_mean() {
    let ([put, _], [id, _]) = samples();
    let domain = put
        .iter()
        .find_map(|span| span["attributes"]["domain"].as_str());
    let mut report = json!({ "report": "traces", "spans": put, "domains": BTreeMap::from([(domain.unwrap(), "photos")]) });
    let drawn = html(&report);
    let rounds = put
        .iter()
        .filter(|span| span["name"] == "net.quorum")
        .count();
    for part in [
        "areo.write · ",
        " UTC",
        "domain photos",
        "abd [3,1]",
        "configuration 0",
        "version ",
        &format!("{rounds} rounds"),
        &format!("trace {id}"),
        ">waiting for a quorum</text>",
        ">work of a server</text>",
        ">process</text>",
        ">s1</text>",
    ] {
        assert!(drawn.contains(part), "no {part} in {drawn}");
    }
    assert!(!drawn.contains(">coding</text>"), "nothing was coded");
    // Each millisecond of the axis is round.
    let ticks: Vec<&str> = drawn
        .split("text-anchor=\"middle\" font-size=\"10\">")
        .skip(1)
        .filter_map(|rest| rest.split("</text>").next())
        .collect();
    assert!(ticks.len() >= 4 && ticks[0] == "0", "{ticks:?}");
    let step = |tick: &str| -> f64 { tick.split(' ').next().unwrap().parse().unwrap() };
    for (place, tick) in ticks.iter().enumerate() {
        let expected = step(ticks[1]) * place as f64;
        assert!((step(tick) - expected).abs() < 1e-9, "{ticks:?}");
    }
    report["domains"] = json!({});
    assert!(html(&report).contains(&format!("domain {}", domain.unwrap())));
}

#[test]
fn two_traces_are_drawn_on_one_axis_with_their_difference() {
    let ([put, get], ids) = samples();
    let compared = |traces: [&str; 2]| {
        json!({
            "traces": traces,
            "rows": [{ "depth": 1, "span": "dap.get_tag", "first": { "count": 1, "ns": 3_000_000 }, "second": null },
                { "depth": 0, "span": "both", "first": { "count": 1, "ns": 3_000_000 }, "second": { "count": 1, "ns": 1_000_000 } }],
            "went": [{ "share": "communication", "first_ns": 2_000, "second_ns": 5_000 },
                { "share": null, "first_ns": 5, "second_ns": 5 }],
            "rounds": [2, 1],
        })
    };
    let spans = [&put[..], &get[..]].concat();
    let of_both = compared([&ids[0], &ids[1]]);
    let mut report =
        json!({ "report": "traces", "spans": spans, "domains": {}, "compared": of_both });
    let drawn = html(&report);
    assert_eq!(drawn.matches("<svg").count(), 1, "one picture of both");
    assert_eq!(drawn.matches("rx=\"2\"").count(), put.len() + get.len());
    let titled = drawn.matches("<g><title>").count();
    assert_eq!(titled, put.len() + get.len(), "each bar has its attributes");
    for part in [
        "A: areo.write · ",
        "B: areo.read · ",
        ">A, areo.write</text>",
        "areo.write | areo.read",
        ">B − A</text>",
    ] {
        assert!(drawn.contains(part), "no {part}");
    }
    for cell in ["−2.00 ms", "+3.00 µs", "0"] {
        has_cell(&drawn, cell);
    }
    // What both servers did is one row, and what one of the traces lacks has no partner.
    let rows: String = draw(
        &report,
        "pairs(assemble(JSON.parse(input).spans)).map(({ pair }) => pair.map((span) => span ? span.name + span.process : '')).join(';')",
    );
    assert!(rows.contains("dap.get_tagclient,;"), "{rows}");
    let is_pair = |row: &str| {
        row.split_once(',')
            .is_some_and(|(a, b)| a == b || a.is_empty() || b.is_empty())
    };
    assert!(rows.split(';').skip(1).all(is_pair), "{rows}");
    report["spans"] = put.into();
    report["compared"] = compared([&ids[0], &ids[0]]);
    assert!(html(&report).contains("areo.write beside areo.write"));
}

#[test]
fn texts_are_nothing_but_texts() {
    let mut report = recorded("paper.json");
    report["command"] = "<script>\"&".into();
    report["points"][0]["variant"] = "</td><b>".into();
    let html = html(&report);
    assert!(html.contains("&lt;script&gt;&quot;&amp;") && html.contains("&lt;/td&gt;&lt;b&gt;"));
    assert!(!html.contains("<script>") && !html.contains("<b>"));
}

// ---- pictures of the documents ----

fn documents() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/paper")
}

fn files(end: &str) -> impl Iterator<Item = PathBuf> {
    let all = fs::read_dir(documents())
        .unwrap()
        .map(|file| file.unwrap().path());
    all.filter(move |path| path.extension().is_some_and(|of| of == end))
}

fn in_documents(experiment: &str) -> Value {
    let path = documents().join(format!("{experiment}.json"));
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn pictures_of_the_documents_are_those_that_are_drawn() {
    let mut drawn = BTreeMap::new();
    for path in files("json") {
        let experiment = path.file_stem().unwrap().to_str().unwrap().to_owned();
        for (name, svg) in pictures(&in_documents(&experiment)) {
            drawn.insert(format!("{experiment}-{name}.svg"), svg);
        }
    }
    let writes = std::env::var_os("AREO_WRITE_PICTURES").is_some();
    let mut shown = 0;
    for path in files("svg") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let again = drawn
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not drawn"));
        if writes {
            fs::write(&path, again).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap();
        assert!(*again == kept, "{name} is drawn differently");
        shown += 1;
    }
    assert!(shown > 20, "{shown}");
}

#[test]
fn only_what_is_along_the_axis_differs_between_places_of_a_line() {
    let sections: Vec<String> = draw(
        &in_documents("E2"),
        "page(JSON.parse(input)).sections.filter((of) => of.pictures.length).map((of) =>
           of.heading + unique(of.pictures.map(([_, svg]) => svg.match(/<circle/g).length / svg.match(/<polyline/g).length)))",
    );
    // Each line has a place for either number of what is varied, and none for what is varied beside it.
    assert_eq!(sections, ["By servers2", "By readers2", "By writers2"]);
    // What most points have is usual, also where there is less of it elsewhere.
    let places = |name: &str| {
        let (_, svg) = pictures(&in_documents("S1"))
            .into_iter()
            .find(|(drawn, _)| drawn == name)
            .unwrap();
        svg.matches("<circle").count() / svg.matches("<polyline").count()
    };
    assert_eq!(places("by-readers-latency-of-a-read"), 6);
    assert_eq!(places("by-writers-latency-of-a-read"), 6);
    let titles: Vec<String> = pictures(&in_documents("E6"))
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    // Twelve variants are more than there are colours.
    assert!(
        titles.contains(&"by-size-latency-of-a-read-coaresf".to_owned()),
        "{titles:?}"
    );
}
