//! Decision records are numbered from 0000 without gaps, and the index names each.

use crate::findings::Finding;
use crate::tree::Tree;

const DIRECTORY: &str = "docs/decisions/";

/// Records with a wrong name, a wrong number or no line in the index.
pub(crate) fn disorder(tree: &Tree) -> Vec<Finding> {
    let index = tree.text("docs/decisions/README.md").unwrap_or_default();
    let mut findings = Vec::new();
    let mut expected = 0;
    for path in tree.paths() {
        let Some(name) = path
            .strip_prefix(DIRECTORY)
            .filter(|name| *name != "README.md")
        else {
            continue;
        };
        let Some(number) = number_of(name) else {
            findings.push(Finding::new(
                path,
                0,
                "a decision record is named `NNNN-title.md`",
            ));
            continue;
        };
        if number == expected {
            expected += 1;
        } else {
            let message =
                format!("number {number:04}, expected {expected:04}: number records without gaps");
            findings.push(Finding::new(path, 0, message));
            expected = expected.max(number + 1);
        }
        if !index.contains(&format!("({name})")) {
            let message =
                format!("not in the index: add a line with a link to {DIRECTORY}README.md");
            findings.push(Finding::new(path, 0, message));
        }
    }
    findings
}

fn number_of(name: &str) -> Option<u32> {
    let (number, title) = name.strip_suffix(".md")?.split_once('-')?;
    let plain =
        number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit()) && !title.is_empty();
    number.parse().ok().filter(|_| plain)
}
