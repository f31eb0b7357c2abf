use super::CHECKS;
use crate::tree::Tree;

/// For each check, trees that each violate it once: the path and the text of a file, and where it must be found.
const PLANTED: &[(&str, &str, &str, &str)] = &[
    (
        "unwrap",
        "crates/a/src/lib.rs",
        "fn f() {\n    g().unwrap();\n}\n",
        "crates/a/src/lib.rs:2",
    ),
    (
        "unwrap",
        "crates/a/src/lib.rs",
        "/// ```\n/// f().unwrap();\n/// ```\nfn f() {}\n",
        "crates/a/src/lib.rs:2",
    ),
    (
        "unwrap",
        "examples/a.rs",
        "fn main() { f() . unwrap () }\n",
        "examples/a.rs:1",
    ),
    (
        "assertions",
        "crates/core/src/a.rs",
        "fn f() {}\n/// assert!(true)\n#[cfg(test)]\nmod tests {\n    fn g() { assert!(true) }\n}\n",
        "crates/core/src",
    ),
    ("unfinished", "a.rs", "fn f() {\n    todo!()\n}\n", "a.rs:2"),
    (
        "unfinished",
        "tests/a.rs",
        "fn f() { unimplemented!(\"later\") }\n",
        "tests/a.rs:1",
    ),
    ("unfinished", "a.rs", "fn f() { dbg!(1); }\n", "a.rs:1"),
    (
        "printing",
        "crates/a/src/lib.rs",
        "fn f() {\n    eprintln!(\"died\");\n}\n",
        "crates/a/src/lib.rs:2",
    ),
    (
        "printing",
        "crates/areo/src/cmd/get.rs",
        "fn f() {\n    let out = io::stdout();\n}\n",
        "crates/areo/src/cmd/get.rs:2",
    ),
    (
        "ignored-test",
        "tests/a.rs",
        "#[test]\n#[ignore]\nfn f() {}\n",
        "tests/a.rs:2",
    ),
    (
        "ignored-test",
        "tests/a.rs",
        "#[test]\n#[ignore = \"slow\"]\nfn f() {}\n",
        "tests/a.rs:2",
    ),
    (
        "ignored-test",
        "tests/a.rs",
        "#[cfg_attr(unix, ignore)]\nfn f() {}\n",
        "tests/a.rs:1",
    ),
    (
        "word",
        "a.md",
        "for the sake of it\n",
        "xtask/src/tidy/words.rs:1",
    ),
    (
        "comment",
        "a.rs",
        "fn f() {}\n/// What is kept by it here.\nfn g() {}\n",
        "a.rs:2",
    ),
    (
        "comment",
        "a.rs",
        "/// The same with a name of its own.\nfn g() {}\n",
        "a.rs:1",
    ),
    ("marker", "a.rs", concat!("// FIX", "ME: later\n"), "a.rs:1"),
    ("marker", "a.md", concat!("# A\n\nXX", "X\n"), "a.md:3"),
    (
        "machine-path",
        "a.md",
        concat!("# A\n\nIn `/ho", "me/me/a`.\n"),
        "a.md:3",
    ),
    (
        "machine-path",
        "a.rs",
        concat!("const A: &str = \"/tm", "p/a\";\n"),
        "a.rs:1",
    ),
    (
        "table",
        "a.md",
        "| a | b |\n|---|---|\n| `c | d` \\| e | f |\n| g | h | i |\n\n| j |\n",
        "a.md:4",
    ),
    ("whitespace", "a.rs", "fn f() {} \n", "a.rs:1"),
    ("whitespace", "a.md", "# A\n\n\tb\n", "a.md:3"),
    ("whitespace", "a.toml", "[a]\r\nb = 1\n", "a.toml:1"),
    ("whitespace", "a.rs", "fn f() {}", "a.rs:1"),
    ("link", "a.md", "# A\n\n[b](b.md)\n", "a.md:3"),
    (
        "link",
        "docs/a.md",
        "# A\n\n[b](../../b.md)\n",
        "docs/a.md:3",
    ),
    (
        "link",
        "a.md",
        "# A\n\nSee [b].\n\n[b]: docs/b.md\n",
        "a.md:5",
    ),
    ("link", "a.md", "# A\n\n[b](#no-such-heading)\n", "a.md:3"),
    ("link", "a.md", "# A\n\n![b](b.svg)\n", "a.md:3"),
    (
        "decision",
        "docs/decisions/0002-b.md",
        "# 0002: B\n",
        "docs/decisions/0002-b.md",
    ),
    (
        "decision",
        "docs/decisions/b.md",
        "# B\n",
        "docs/decisions/b.md",
    ),
    (
        "decision",
        "docs/decisions/0000-b.md",
        "# B\n",
        "docs/decisions/0000-b.md",
    ),
    (
        "claim",
        "docs/paper-map.md",
        "| get-tag | `crates/core/src/dap/abd.rs::get_tag` |\n",
        "docs/paper-map.md:1",
    ),
    (
        "claim",
        "docs/paper-map.md",
        "# A\n\n`dap::abd::get_tag`\n",
        "docs/paper-map.md:3",
    ),
    (
        "claim",
        "docs/paper-map.md",
        "# A\n\n`core/src/dap/abd.rs`\n",
        "docs/paper-map.md:3",
    ),
    (
        "claim",
        "docs/track-record.md",
        "| A bug | reading | `core/src/dap/abd.rs::no_such_test` |\n",
        "docs/track-record.md:1",
    ),
    (
        "path",
        "docs/a.md",
        "# A\n\n`core/src/gone.rs::f`, `NAME/tests.rs`, `a.rs`\n",
        "docs/a.md:3",
    ),
    (
        "list",
        "xtask/src/tidy/lists.rs",
        "enum Command {\n    Put(Put),\n}\n",
        "crates/areo/src/args.rs",
    ),
    (
        "rule",
        "a.rs",
        concat!("fn f() {}\n// As `[Z", "-1 gone]` says.\n"),
        "a.rs:2",
    ),
    (
        "rule",
        "docs/spec/a.md",
        concat!("# A\n\n### [Z", "-1 cited-nowhere]\n"),
        "docs/spec/a.md:3",
    ),
];

fn findings(name: &str, tree: &Tree) -> Vec<String> {
    let check = CHECKS
        .iter()
        .find(|check| check.name == name)
        .expect("a check of this name");
    (check.find)(tree).iter().map(ToString::to_string).collect()
}

/// The check finds one thing in these files, at this place.
fn finds_one(name: &str, files: &[(&str, &str)], place: &str) {
    let found = findings(name, &Tree::planted(files));
    let is_it = found.len() == 1 && found[0].starts_with(&format!("{place}: "));
    assert!(is_it, "{place}: {found:?}");
}

#[test]
fn every_planted_violation_is_caught_where_it_is() {
    for (name, path, text, place) in PLANTED {
        let found = findings(name, &Tree::planted(&[(path, text)]));
        assert!(
            found
                .iter()
                .any(|finding| finding.starts_with(&format!("{place}: "))),
            "{name} must find something at {place} in {text:?}, found {found:?}"
        );
    }
}

#[test]
fn every_check_has_a_planted_violation() {
    for check in CHECKS {
        let planted = PLANTED.iter().any(|(name, ..)| *name == check.name);
        assert!(
            planted || check.name == "length",
            "plant a violation of '{}'",
            check.name
        );
    }
}

#[test]
fn a_file_of_tests_that_no_program_has_is_caught() {
    let tree = |manifest| {
        [
            ("crates/a/Cargo.toml", manifest),
            ("crates/a/tests/main.rs", "mod b;\nmod cd;\n"),
            ("crates/a/tests/b.rs", "mod e;\n"),
            ("crates/a/tests/b/e.rs", ""),
            ("crates/a/tests/c.rs", ""),
        ]
    };
    let listed = "autotests = false\npath = \"tests/main.rs\"\n";
    finds_one("ignored-test", &tree(listed), "crates/a/tests/c.rs");
    assert_eq!(
        findings("ignored-test", &Tree::planted(&tree("[package]\n"))),
        [""; 0]
    );
}

#[test]
fn a_planted_long_file_is_caught() {
    let lines = |count: usize| "fn f() {}\n".repeat(count);
    for (path, count, caught) in [
        ("crates/a/src/lib.rs", 499, false),
        ("crates/a/src/lib.rs", 500, true),
        ("crates/a/src/b/tests.rs", 799, false),
        ("crates/a/src/b/tests.rs", 800, true),
        ("crates/a/tests/b.rs", 500, false),
        ("crates/a/tests/b.rs", 800, true),
        ("docs/long.md", 5_000, false),
    ] {
        let found = findings("length", &Tree::planted(&[(path, &lines(count))]));
        assert_eq!(
            found.len(),
            usize::from(caught),
            "{path} with {count} lines: {found:?}"
        );
    }
}

#[test]
fn a_clean_tree_has_no_findings() {
    let tree = Tree::planted(&[
        (
            "README.md",
            "# A title: `code`, done\n\n[a](docs/wire.md#frames) [b](#a-title-code-done) [c](crates/core)\n\
             [d](https://example.org/x) `[e](f.md)`\n\n```\n[g](h.md)\n```\n",
        ),
        (
            "docs/wire.md",
            "# Wire\n\n## Frames\n\n## Frames\n\n[a](wire.md#frames-1)\n",
        ),
        (
            "docs/decisions/README.md",
            "# Decisions\n\n- [0000](0000-a.md)\n- [0001](0001-b.md)\n",
        ),
        ("docs/decisions/0000-a.md", "# 0000: A\n"),
        ("docs/decisions/0001-b.md", "# 0001: B\n"),
        (
            "docs/paper-map.md",
            "`crates/core/src/dap/abd.rs::get_tag` `dap/abd.rs::MaxTag::add` `core::dap::abd::get_tag()` \
             `tests/paper.rs::lemma_1` `dap.rs` `std` `Env` `crate::dap::abd::MaxTag`\n",
        ),
        ("crates/core/src/dap.rs", "pub mod abd;\n"),
        (
            "crates/core/src/dap/abd.rs",
            "fn get_tag() { f(b).expect(\"why\"); assert!(c); }\nstruct MaxTag;\nimpl MaxTag { fn add(&self) {} }\n\
             #[cfg(test)]\nmod tests { fn f() { g().unwrap() } }\n",
        ),
        (
            "crates/core/tests/paper.rs",
            "#[test]\nfn lemma_1() { f().unwrap(); }\n",
        ),
        (
            "docs/spec/a.md",
            concat!(
                "# A\n\n### [Z",
                "-1 a-name]\n\nSee [Z",
                "-1 a-name](#z-1-a-name), [UTF-8x].\n"
            ),
        ),
        ("b.rs", concat!("//! As `[Z", "-1 a-name]` says.\n")),
        (
            "a.rs",
            "// Not todo!() and not .unwrap() in comments, nor `$HOME/a`, `crates/tmp/a`.\nfn f() {}\n",
        ),
    ]);
    for check in CHECKS {
        assert_eq!(findings(check.name, &tree), [""; 0], "{}", check.name);
    }
}

#[test]
fn a_decision_missing_from_the_index_is_caught() {
    let index = "# Decisions\n\n[0000](0000-a.md)\n";
    let files = [
        ("docs/decisions/README.md", index),
        ("docs/decisions/0000-a.md", "# 0000: A\n"),
        ("docs/decisions/0001-b.md", "# 0001: B\n"),
    ];
    finds_one("decision", &files, "docs/decisions/0001-b.md");
}

#[test]
fn two_decisions_with_one_number_are_caught() {
    let index = "[0000](0000-a.md) [0001](0001-b.md) [0001](0001-c.md)\n";
    let files = [
        ("docs/decisions/README.md", index),
        ("docs/decisions/0000-a.md", "# 0000: A\n"),
        ("docs/decisions/0001-b.md", "# 0001: B\n"),
        ("docs/decisions/0001-c.md", "# 0001: C\n"),
    ];
    finds_one("decision", &files, "docs/decisions/0001-c.md");
}

#[test]
fn a_rule_that_is_cited_under_another_name_is_caught() {
    let page = concat!("# A\n\n### [Z", "-1 a-name]\n");
    let code = concat!("// `[Z", "-1 a-name]`\n");
    let found = |path: &str, text: &str| {
        let files = [("docs/spec/a.md", page), ("a.rs", code), (path, text)];
        findings("rule", &Tree::planted(&files))
    };
    assert_eq!(found("b.md", code), [""; 0]);
    for wrong in [
        concat!("`[Z", "-1]`"),
        concat!("[Z", "-1]."),
        concat!("`[Z", "-1 another-name]`"),
        concat!("`[Z", "-1 a-name, so]`"),
        concat!("`[Z", "-1\n// a-name]`"),
        concat!("`[Z", "-1  a-name]`"),
        concat!("`[Z", "-2 a-name]`"),
        concat!("`[ZZ", "-1 a-name]`"),
    ] {
        for path in ["b.rs", "b.md", "b.patch", "b.toml"] {
            let text = format!("\n// {wrong}\n");
            let files = [("docs/spec/a.md", page), ("a.rs", code), (path, &*text)];
            finds_one("rule", &files, &format!("{path}:2"));
        }
    }
    for twice in [
        concat!("### [Z", "-1 other-name]\n"),
        concat!("### [Z", "-2 a-name]\n"),
    ] {
        let found = found("docs/spec/b.md", twice);
        let says = |found: &String| found.contains("defined twice");
        assert!(found.iter().any(says), "{twice}: {found:?}");
    }
}

#[test]
fn a_rule_that_only_documents_cite_is_caught() {
    let page = concat!("# A\n\n### [Z", "-1 a-name]\n");
    let document = concat!("As [Z", "-1 a-name] says.\n");
    let files = [("docs/spec/a.md", page), ("docs/b.md", document)];
    finds_one("rule", &files, "docs/spec/a.md:3");
}
