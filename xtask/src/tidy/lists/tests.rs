use super::*;

/// The findings of a list over a page and a file.
fn findings(list: &List, page: &str, code: &str) -> Vec<String> {
    let path = if list.code.is_empty() {
        "crates/a/src/lib.rs"
    } else {
        list.code
    };
    let tree = Tree::planted(&[(list.page, page), (path, code)]);
    let found = compare(&tree, list);
    found.iter().map(ToString::to_string).collect()
}

fn list(page: &str, section: &str) -> &'static List {
    let mut lists = LISTS.iter();
    let list = lists.find(|list| list.page == page && list.section == section);
    list.expect("a list of this page and section")
}

/// A list, with the code and the page that agree, and a page that lacks an item and has another one.
#[test]
fn a_list_that_differs_from_the_code_is_found() {
    let enums = "pub(crate) enum DapWord {\n    /// Replicate\n    Abd,\n    #[value(name = \"casgc\")]\n    CasGc,\n}\n";
    let cases = [
        (
            list("docs/tour.md", "Settings and exit codes"),
            "KEYS: &[&str] = &[\n    \"cluster\",\n    \"up.k\",\n];\n",
            "## Settings and exit codes\n\n| - | `cluster` |\n| `up` | `k` |\n| 0 | done |\n",
            "## Settings and exit codes\n\n| - | `cluster`, `k` |\n",
        ),
        (
            list("docs/tour.md", "Exit codes"),
            "pub enum Code {\n    /// A file.\n    Other = 1,\n    Closed = 141,\n}\n",
            "### Exit codes\n\n| code | |\n|---|---|\n| 0 | a |\n| 1 | b |\n| 141 | c |\n",
            "### Exit codes\n\n| 0 | a |\n| 1 | b |\n| 140 | c |\n",
        ),
        (
            list("docs/research.md", "Kinds and reconfiguration"),
            enums,
            "## Kinds and reconfiguration\n\n`--dap abd`, `--dap casgc`\n\n## Other\n\n`--dap ec`\n",
            "## Kinds and reconfiguration\n\n`--dap abd`, `--dap ec`\n\n## Other\n\n`--dap casgc`\n",
        ),
        (
            list("docs/research.md", "Switches of experiments"),
            "match key {\n    \"thrifty\" => 1,\n    _ => 2,\n}\n",
            "## Switches of experiments\n\n| `thrifty` | `on` |\n",
            "## Switches of experiments\n\n| `contact` | `thrifty` |\n",
        ),
        (
            list("docs/metrics.md", ""),
            "let a = gauge(\"areo_store_bytes\", \"Bytes, areo_store_x.\");\n",
            "# A\n\n| `areo_store_bytes` | gauge | as `areo_store_b` |\n",
            "# A\n\n| `areo_store_byte` | gauge | as `areo_store_bytes` |\n",
        ),
        (
            list("docs/operations.md", "Alerts"),
            "groups:\n  - alert: AreoDown\n",
            "## Alerts\n\n| `AreoDown` | down |\n",
            "## Alerts\n\n| `AreoGone` | down |\n",
        ),
        (
            list("docs/nemesis.md", "What happens"),
            "KillAll => \"kill-all\",\nKill => \"of all\",\n",
            "## What happens\n\n| `kill-all` | all |\n",
            "## What happens\n\n| `kill` | all |\n",
        ),
        (
            list("docs/probe.md", "Cases"),
            "Case::Etags => \"etags\",\n",
            "## Cases\n\n| `etags` | one |\n\n| verdict | is |\n| holds | well |\n",
            "## Cases\n\n| `etag` | one |\n",
        ),
        (
            list("docs/security.md", "Grants"),
            "Verb::Read => \"read\",\n",
            "### Grants\n\n| `read` | domains |\n",
            "### Grants\n\n| `reads` | domains |\n",
        ),
    ];
    for (list, code, complete, wrong) in cases {
        assert_eq!(findings(list, complete, code), [""; 0], "{complete}");
        let found = findings(list, wrong, code);
        let lacks = found
            .iter()
            .filter(|finding| finding.contains("the list lacks"));
        assert_eq!((found.len(), lacks.count()), (2, 1), "{wrong}: {found:?}");
        let moved = findings(list, complete, "fn f() {}\n");
        assert!(
            moved.len() == 1 && moved[0].contains("mend the row"),
            "{moved:?}"
        );
    }
}

#[test]
fn a_verb_without_a_page_is_found() {
    let verbs = Verbs::new("a.rs", "Key", "areo key");
    let code = "enum Key {\n    /// Make a key\n    Create(Create),\n    Ls,\n}\n";
    let found = |page: &str, text: &str, code: &str| {
        without_page(&Tree::planted(&[("a.rs", code), (page, text)]), &verbs).len()
    };
    assert_eq!(
        found("docs/a.md", "`areo key create`, `areo key ls`", code),
        0
    );
    assert_eq!(
        found("docs/a.md", "`areo key create`, `areo key lsx`", code),
        1
    );
    assert_eq!(
        found(
            "docs/decisions/0001-a.md",
            "`areo key create`, `areo key ls`",
            code
        ),
        2
    );
    assert_eq!(
        found("docs/a.md", "", "enum Keys {\n    Ls,\n}\n"),
        1,
        "the enum has moved"
    );
}

#[test]
fn an_enum_of_verbs_without_a_row_is_found() {
    let found = |path: &str, name: &str| {
        let code = format!(
            "#[derive(Subcommand, Debug)]\n#[command(about)]\npub(crate) enum {name} {{\n    Ls,\n}}\n"
        );
        without_row(&Tree::planted(&[(path, &code)])).len()
    };
    assert_eq!(found("crates/areo/src/args/trust.rs", "Key"), 0);
    assert_eq!(found("crates/areo/src/args/trust.rs", "Lock"), 1);
}

#[test]
fn variants_are_words_of_the_command_line() {
    let text =
        "enum Word {\n    LRambo,\n    S3(Box<S3>),\n    Add {\n        Name: u8,\n    },\n}\n";
    let words: Vec<String> = variants(text, "Word").into_iter().collect();
    assert_eq!(words, ["add", "l-rambo", "s3"]);
}
