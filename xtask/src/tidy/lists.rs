//! The lists of documents that claim to be complete have the items of the code, no more and no fewer.
//!
//! A row of [`LISTS`] names a section of a page, and the file and the reader that say what there is. [`MANUAL`] names the commands: each
//! verb stands in some page for users.

use std::collections::BTreeSet;

use crate::findings::Finding;
use crate::source::find_word;
use crate::tree::Tree;

type Items = BTreeSet<String>;

/// A list that claims to be complete.
struct List {
    page: &'static str,
    /// The heading of the section with the list; empty: the whole page.
    section: &'static str,
    shown: Shown,
    /// The file with the items; empty: all files of crates.
    code: &'static str,
    read: fn(&str) -> Items,
}

/// The place of the items in the text of a section.
enum Shown {
    /// The first cell of each row of tables.
    Column,
    /// The words after this one.
    After(&'static str),
    /// Rows `table | keys`; `-` is no table.
    Keys,
}

const LISTS: &[List] = &[
    List {
        page: "docs/tour.md",
        section: "Settings and exit codes",
        shown: Shown::Keys,
        code: "crates/areo/src/config.rs",
        read: settings,
    },
    List {
        page: "docs/tour.md",
        section: "Exit codes",
        shown: Shown::Column,
        code: "crates/areo/src/exit.rs",
        read: exit_codes,
    },
    List {
        page: "docs/research.md",
        section: "Kinds and reconfiguration",
        shown: Shown::After("--dap "),
        code: "crates/areo/src/args.rs",
        read: |text| variants(text, "DapWord"),
    },
    List {
        page: "docs/research.md",
        section: "Kinds and reconfiguration",
        shown: Shown::After("--reconfig "),
        code: "crates/areo/src/args.rs",
        read: |text| variants(text, "ReconfigWord"),
    },
    List {
        page: "docs/research.md",
        section: "Switches of experiments",
        shown: Shown::Column,
        code: "crates/client/src/experimental.rs",
        read: |text| words_before(text, " => "),
    },
    List {
        page: "docs/metrics.md",
        section: "",
        shown: Shown::Column,
        code: "",
        read: metrics,
    },
    List {
        page: "docs/operations.md",
        section: "Alerts",
        shown: Shown::Column,
        code: "deploy/prometheus/alerts.yml",
        read: |text| words_after(text, "- alert: "),
    },
    List {
        page: "docs/nemesis.md",
        section: "What happens",
        shown: Shown::Column,
        code: "crates/bench/src/trouble.rs",
        read: arms,
    },
    List {
        page: "docs/probe.md",
        section: "Cases",
        shown: Shown::Column,
        code: "crates/lab/src/probe/cases.rs",
        read: arms,
    },
    List {
        page: "docs/security.md",
        section: "Grants",
        shown: Shown::Column,
        code: "crates/trust/src/grant.rs",
        read: arms,
    },
];

/// The verbs of a program, or of a verb of it: an enum, and the words before each.
struct Verbs {
    path: &'static str,
    name: &'static str,
    program: &'static str,
}

impl Verbs {
    const fn new(path: &'static str, name: &'static str, program: &'static str) -> Verbs {
        Verbs {
            path,
            name,
            program,
        }
    }
}

const MANUAL: &[Verbs] = &[
    Verbs::new("crates/areo/src/args.rs", "Command", "areo"),
    Verbs::new("crates/areo/src/args.rs", "Domain", "areo domain"),
    Verbs::new(
        "crates/areo/src/args/autopilot.rs",
        "AutopilotVerb",
        "areo autopilot",
    ),
    Verbs::new("crates/areo/src/args/cluster.rs", "Cluster", "areo cluster"),
    Verbs::new("crates/areo/src/args/file.rs", "File", "areo file"),
    Verbs::new("crates/areo/src/args/large.rs", "Repair", "areo repair"),
    Verbs::new(
        "crates/areo/src/args/reconfig.rs",
        "Reconfig",
        "areo reconfig",
    ),
    Verbs::new(
        "crates/areo/src/args/server.rs",
        "ServerVerb",
        "areo server",
    ),
    Verbs::new("crates/areo/src/args/trust.rs", "Token", "areo token"),
    Verbs::new("crates/areo/src/args/trust.rs", "Key", "areo key"),
    Verbs::new("crates/areo/src/args/trust.rs", "Ca", "areo ca"),
    Verbs::new("crates/areo/src/args/trust.rs", "Audit", "areo audit"),
    Verbs::new("crates/lab/src/args.rs", "Command", "areo-lab"),
    Verbs::new("crates/lab/src/args/bench.rs", "Bench", "areo-lab bench"),
    Verbs::new("crates/lab/src/args/probe.rs", "Probe", "areo-lab probe"),
    Verbs::new("crates/lab/src/args/sim.rs", "Sim", "areo-lab sim"),
];

/// A file that only the workspace has: without it the tree is one that a test planted.
const ROOT: &str = "xtask/src/tidy/lists.rs";

/// Items that a list lacks, items of a list that the code lacks, and verbs without a page.
pub(crate) fn incomplete(tree: &Tree) -> Vec<Finding> {
    if tree.text(ROOT).is_none() {
        return Vec::new();
    }
    let mut findings: Vec<Finding> = LISTS.iter().flat_map(|list| compare(tree, list)).collect();
    findings.extend(MANUAL.iter().flat_map(|verbs| without_page(tree, verbs)));
    findings.extend(without_row(tree));
    findings
}

fn compare(tree: &Tree, list: &List) -> Vec<Finding> {
    let page = tree.text(list.page).unwrap_or_default();
    let before = page
        .lines()
        .take_while(|line| !is_heading(line, list.section));
    let line = if list.section.is_empty() {
        0
    } else {
        before.count() + 1
    };
    let finding = |message: String| Finding::new(list.page, line, message);
    let real = real(tree, list);
    let code = if list.code.is_empty() {
        "the code"
    } else {
        list.code
    };
    if real.is_empty() {
        return vec![finding(format!(
            "{code} has no such items: mend the row of LISTS"
        ))];
    }
    let shown = shown(&section_of(page, list.section), &list.shown);
    let missing = real.difference(&shown);
    let missing = missing.map(|item| finding(format!("the list lacks `{item}`, which {code} has")));
    let invented = shown.difference(&real);
    let invented =
        invented.map(|item| finding(format!("the list has `{item}`, which {code} lacks")));
    missing.chain(invented).collect()
}

/// Verbs of an enum that no page for users shows.
fn without_page(tree: &Tree, verbs: &Verbs) -> Vec<Finding> {
    let Verbs {
        path,
        name,
        program,
    } = verbs;
    let words = variants(tree.text(path).unwrap_or_default(), name);
    if words.is_empty() {
        let message = format!("`{name}` has no verbs here: mend the row of MANUAL");
        return vec![Finding::new(path, 0, message)];
    }
    let is_manual = |path: &str| !path.contains("/decisions/") && !path.contains("track-record");
    let is_shown = |command: &str| {
        let mut pages = tree.markdown().filter(|(path, _)| is_manual(path));
        pages.any(|(_, text)| !find_word(text, command).is_empty())
    };
    let commands = words.iter().map(|verb| format!("{program} {verb}"));
    let missing = commands.filter(|command| !is_shown(command));
    missing
        .map(|command| {
            Finding::new(
                path,
                0,
                format!("no page shows `{command}`: add it where users look for it"),
            )
        })
        .collect()
}

/// Enums of verbs that no row of [`MANUAL`] names.
fn without_row(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| path.contains("/src/args")) {
        let lines: Vec<&str> = text.lines().collect();
        for (at, _) in lines.iter().enumerate().filter(|(_, line)| {
            line.starts_with("#[derive(") && !find_word(line, "Subcommand").is_empty()
        }) {
            let declared = lines[at..].iter().find_map(|line| line.split_once("enum "));
            let name = declared.map_or("", |(_, name)| name.trim_end_matches(" {"));
            if MANUAL
                .iter()
                .all(|row| (row.path, row.name) != (path, name))
            {
                let message = format!("no row of MANUAL names `{name}`: add one");
                findings.push(Finding::new(path, at + 1, message));
            }
        }
    }
    findings
}

fn real(tree: &Tree, list: &List) -> Items {
    if !list.code.is_empty() {
        return (list.read)(tree.text(list.code).unwrap_or_default());
    }
    let is_shipped = |path: &str| {
        path.starts_with("crates/") && path.contains("/src/") && !path.contains("/tests")
    };
    let files = tree.rust().filter(|(path, _)| is_shipped(path));
    files.flat_map(|(_, text)| (list.read)(text)).collect()
}

fn is_heading(line: &str, title: &str) -> bool {
    line.starts_with('#') && line.trim_start_matches('#').trim() == title
}

/// The text below a heading, to the next heading of its level or above.
fn section_of(page: &str, title: &str) -> String {
    if title.is_empty() {
        return page.to_owned();
    }
    let level = |line: &str| line.chars().take_while(|letter| *letter == '#').count();
    let mut lines = page.lines().skip_while(|line| !is_heading(line, title));
    let depth = lines.next().map_or(0, level);
    let body = lines.take_while(|line| level(line) == 0 || level(line) > depth);
    body.flat_map(|line| [line, "\n"]).collect()
}

fn shown(section: &str, shown: &Shown) -> Items {
    let rows = || {
        let lines = section.lines().filter(|line| line.starts_with('|'));
        lines.map(|line| line.split('|').skip(1).map(str::trim).collect::<Vec<_>>())
    };
    let codes = |cell: &str| -> Vec<String> {
        let codes = cell.split('`').skip(1).step_by(2);
        codes.map(str::to_owned).collect()
    };
    let is_number = |cell: &str| !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit());
    match shown {
        Shown::Column => rows()
            .flat_map(|cells| match is_number(cells[0]) {
                true => vec![cells[0].to_owned()],
                false => codes(cells[0]),
            })
            .collect(),
        Shown::After(word) => words_after(section, word),
        Shown::Keys => rows()
            .filter(|cells| cells.len() > 1 && (cells[0] == "-" || cells[0].starts_with('`')))
            .flat_map(|cells| {
                let table = cells[0]
                    .trim_matches('`')
                    .trim_start_matches('-')
                    .to_owned();
                let dot = if table.is_empty() { "" } else { "." };
                let keys = codes(cells[1]).into_iter();
                keys.map(move |key| format!("{table}{dot}{key}"))
            })
            .collect(),
    }
}

/// The words, of small letters, digits and hyphens, that follow `before`.
fn words_after(text: &str, before: &str) -> Items {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '-';
    let rests = text
        .match_indices(before)
        .map(|(at, _)| &text[at + before.len()..]);
    let words = rests.map(|rest| {
        rest.split(|letter| !is_part(letter))
            .next()
            .unwrap_or_default()
    });
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The words that arms of a `match` result in; a sentence is none.
fn arms(text: &str) -> Items {
    let is_part =
        |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    let literals = text.split(" => \"").skip(1);
    let words = literals.filter_map(|rest| rest.split('"').next());
    let words = words.filter(|word| !word.is_empty() && word.bytes().all(is_part));
    words.map(str::to_owned).collect()
}

/// The string literals that begin a line and are followed by `after`.
fn words_before(text: &str, after: &str) -> Items {
    let arms = text.lines().filter_map(|line| {
        let (word, rest) = line.trim_start().strip_prefix('"')?.split_once('"')?;
        rest.starts_with(after).then(|| word.to_owned())
    });
    arms.collect()
}

/// The strings of the array `KEYS`.
fn settings(text: &str) -> Items {
    let array = text
        .split_once("KEYS: &[&str] = &[")
        .map_or("", |(_, rest)| rest);
    let array = array.split_once("];").map_or("", |(array, _)| array);
    array
        .split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// The discriminants of the enum `Code`, and 0, which is no failure.
fn exit_codes(text: &str) -> Items {
    let lines = body_of_enum(text, "Code").lines();
    let numbers =
        lines.filter_map(|line| Some(line.trim().strip_suffix(',')?.split_once(" = ")?.1));
    let mut numbers: Items = numbers.map(str::to_owned).collect();
    if !numbers.is_empty() {
        numbers.insert("0".to_owned());
    }
    numbers
}

/// The names of metrics that stand in string literals: `areo_` and two words, or `process_` and one.
fn metrics(text: &str) -> Items {
    let is_part =
        |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'_';
    let is_name = |word: &&str| {
        let mut words = word.split('_');
        let program = words.next();
        let rest = words.filter(|word| !word.is_empty()).count();
        let is_metric =
            (program == Some("areo") && rest > 1) || (program == Some("process") && rest > 0);
        is_metric && word.bytes().all(is_part)
    };
    text.split('"').filter(is_name).map(str::to_owned).collect()
}

/// The words of the command line for the variants of an enum: those of `clap`, or of `#[value(name = ...)]`.
fn variants(text: &str, name: &str) -> Items {
    let mut given = None;
    let mut words = Items::new();
    for line in body_of_enum(text, name).lines() {
        let Some(line) = line.strip_prefix("    ") else {
            continue;
        };
        if let Some((_, rest)) = line.split_once("(name = \"") {
            given = rest.split('"').next().map(str::to_owned);
        }
        if line.starts_with(char::is_uppercase) {
            let variant = line.split(|letter: char| !letter.is_alphanumeric()).next();
            words.insert(
                given
                    .take()
                    .unwrap_or_else(|| kebab(variant.unwrap_or_default())),
            );
        }
    }
    words
}

fn body_of_enum<'a>(text: &'a str, name: &str) -> &'a str {
    let head = format!("enum {name} {{\n");
    let body = text.split_once(&head).map_or("", |(_, rest)| rest);
    body.split_once("\n}").map_or("", |(body, _)| body)
}

/// `LRambo` is `l-rambo`, and `S3` is `s3`.
fn kebab(variant: &str) -> String {
    let mut word = String::new();
    for letter in variant.chars() {
        if letter.is_uppercase() && !word.is_empty() {
            word.push('-');
        }
        word.extend(letter.to_lowercase());
    }
    word
}

#[cfg(test)]
mod tests;
