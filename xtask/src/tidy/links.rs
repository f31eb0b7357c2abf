//! Links in Markdown lead somewhere: to a file of the repository, or to a heading of one.
//!
//! Links to other hosts are not followed: a check must not depend on the network.

use std::collections::BTreeMap;

use crate::findings::Finding;
use crate::tree::Tree;

/// Links to files or headings that do not exist.
pub(crate) fn broken(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.markdown() {
        for (line, target) in links_in(text) {
            if let Some(message) = what_is_wrong(tree, path, &target) {
                findings.push(Finding::new(path, line, message));
            }
        }
    }
    findings
}

/// The lines of a Markdown text outside fenced blocks, with their numbers from 1 and inline code blanked out.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut in_block = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
            return None;
        }
        (!in_block).then(|| (index + 1, without_code(line)))
    })
}

/// Targets of `[text](target)`, `![text](target)` and `[label]: target`, each with its line.
fn links_in(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            let inside = &rest[..rest.find(')').unwrap_or(rest.len())];
            // What follows a space is a title.
            let target = inside.split_whitespace().next().unwrap_or_default();
            found.push((number, target.trim_matches(['<', '>']).to_owned()));
        }
        if let Some((label, target)) = line.trim_start().split_once("]: ")
            && label.starts_with('[')
            && !label.starts_with("[^")
        {
            found.push((number, target.trim().to_owned()));
        }
    }
    found
}

fn what_is_wrong(tree: &Tree, from: &str, target: &str) -> Option<String> {
    if ["http://", "https://", "mailto:"]
        .iter()
        .any(|scheme| target.starts_with(scheme))
    {
        return None;
    }
    let (file, heading) = target
        .split_once('#')
        .map_or((target, None), |(file, heading)| (file, Some(heading)));
    let Some(path) = (if file.is_empty() {
        Some(from.to_owned())
    } else {
        join(from, file)
    }) else {
        return Some(format!("link to '{target}' leads out of the repository"));
    };
    if !tree.exists(&path) {
        return Some(format!("link to '{target}': there is no {path}"));
    }
    let text = tree
        .text(&path)
        .filter(|_| crate::tree::has_extension(&path, "md"))?;
    let heading = heading?;
    (!slugs(text).contains(&heading.to_owned()))
        .then(|| format!("link to '{target}': {path} has no such heading"))
}

/// `file`, which is relative to the directory of `from`, from the root; `None` if it leads out of it.
fn join(from: &str, file: &str) -> Option<String> {
    let mut components: Vec<&str> = from.split('/').collect();
    components.pop();
    for component in file.split('/') {
        match component {
            "" | "." => {}
            ".." => {
                components.pop()?;
            }
            name => components.push(name),
        }
    }
    Some(components.join("/"))
}

/// The anchors that a forge gives to the headings of a text; a repeated heading gets `-1`, `-2`, ...
fn slugs(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut in_block = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        let title = line.trim_start_matches('#');
        if in_block || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().to_lowercase();
        let kept: String = kept
            .chars()
            .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
            .map(|letter| if letter == ' ' { '-' } else { letter })
            .collect();
        let count = seen.entry(kept.clone()).or_default();
        found.push(if *count == 0 {
            kept
        } else {
            format!("{kept}-{count}")
        });
        *count += 1;
    }
    found
}

fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    let kept = parts.iter().enumerate().map(|(index, part)| {
        // The last part of an unclosed span is prose.
        let is_code = index % 2 == 1 && index + 1 < parts.len();
        if is_code {
            " ".repeat(part.len())
        } else {
            (*part).to_owned()
        }
    });
    kept.collect::<Vec<_>>().join("`")
}
