//! Pictures of configurations: how they follow each other, and what a change does with the servers.

use crate::html::picture;
use crate::pages::moving::members;
use areo_client::{ConfigurationGraph, ConfigurationInfo};
use maud::{Markup, html};
use std::collections::BTreeSet;

/// The size of the box of one configuration.
const BOX: (u32, u32) = (250, 56);
/// Letters that fit into a box.
const LETTERS: usize = 32;
const GAP: u32 = 46;

/// The configurations of a domain, from the last final one on: one that comes after another one stands right of it.
pub(super) fn sequence(graph: &ConfigurationGraph) -> Markup {
    let count = graph.nodes.len();
    let edges = edges(graph);
    // The longest way to each; a node stands after those before it.
    let mut depth = vec![0_u32; count];
    for node in 0..count {
        for (_, to) in edges.iter().filter(|(from, _)| *from == node) {
            depth[*to] = depth[*to].max(depth[node] + 1);
        }
    }
    let place = |node: usize| {
        let row = (0..node).filter(|it| depth[*it] == depth[node]).count();
        let row = u32::try_from(row).unwrap_or(u32::MAX);
        (10 + depth[node] * (BOX.0 + GAP), 10 + row * (BOX.1 + 16))
    };
    let places: Vec<(u32, u32)> = (0..count).map(place).collect();
    let right = places.iter().map(|it| it.0).max().unwrap_or(0) + BOX.0 + 10;
    let bottom = places.iter().map(|it| it.1).max().unwrap_or(0) + BOX.1 + 10;
    let content = html! {
        @for (from, to) in &edges { (arrow(places[*from], places[*to])) }
        @for (entry, (x, y)) in graph.nodes.iter().zip(&places) {
            @let c = &entry.configuration;
            g {
                title { "Configuration " (c.index) ", " (entry.status()) ", " (c.shape) " on " (members(c)) }
                rect class=(if entry.is_final { "box final" } else { "box pending" }) x=(x) y=(y) width=(BOX.0) height=(BOX.1) rx="8" {}
                text x=(x + 12) y=(y + 23) { (c.index) ": " (c.shape) ", " (entry.status()) }
                text.soft x=(x + 12) y=(y + 43) { (shortened(&members(c), LETTERS)) }
            }
        }
    };
    let title = "The configurations of the domain, from the one in use on";
    picture((right, bottom), title, &content)
}

/// The ways from one configuration to the next, without those that lead there by way of another one. One that no other
/// configuration leads to comes after the first.
fn edges(graph: &ConfigurationGraph) -> Vec<(usize, usize)> {
    let mut all: BTreeSet<(usize, usize)> = graph.edges.iter().map(|it| (it.from, it.to)).collect();
    for node in 1..graph.nodes.len() {
        if all.iter().all(|(_, to)| *to != node) {
            all.insert((0, node));
        }
    }
    let mut reached: BTreeSet<(usize, usize)> = BTreeSet::new();
    // From the last on: of those behind a node it is known what they lead to.
    for node in (0..graph.nodes.len()).rev() {
        let next: Vec<usize> = all
            .iter()
            .filter(|it| it.0 == node)
            .map(|it| it.1)
            .collect();
        for next in next {
            let farther: Vec<usize> = all
                .iter()
                .chain(&reached)
                .filter(|it| it.0 == next)
                .map(|it| it.1)
                .collect();
            reached.extend(farther.into_iter().map(|it| (node, it)));
        }
    }
    all.difference(&reached).copied().collect()
}

fn arrow((x, y): (u32, u32), (to_x, to_y): (u32, u32)) -> Markup {
    let (x, y, to_y) = (x + BOX.0, y + BOX.1 / 2, to_y + BOX.1 / 2);
    let (tip, end) = (to_x, to_x.saturating_sub(8));
    html! {
        path.line fill="none" d=(format!("M{x} {y}L{end} {to_y}")) {}
        path.tip d=(format!("M{tip} {to_y}l-9 -5v10z")) {}
    }
}

fn shortened(text: &str, letters: usize) -> String {
    match text.chars().count() > letters {
        true => text.chars().take(letters - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// The servers before and after a change: one row for each.
pub(super) fn servers(old: &ConfigurationInfo, new: &ConfigurationInfo) -> Markup {
    const ROW: u32 = 34;
    let has = |c: &ConfigurationInfo, id| c.members.iter().any(|it| it.id == id);
    let coming = new.members.iter().filter(|it| !has(old, it.id));
    let rows: Vec<_> = old
        .members
        .iter()
        .chain(coming)
        .map(|it| (it.name.as_str(), has(old, it.id), has(new, it.id)))
        .collect();
    let cell = |x: u32, y: u32, name: &str, class: &str| {
        html! {
            rect class={ "box " (class) } x=(x) y=(y) width="130" height="26" rx="6" {}
            text x=(x + 10) y=(y + 18) { (shortened(name, 16)) }
        }
    };
    let content = html! {
        text x="5" y="20" { "now: " (old.shape) }
        text x="205" y="20" { "then: " (new.shape) }
        @for ((name, is_old, is_new), row) in rows.iter().zip(1_u32..) {
            @let y = row * ROW;
            @let class = match (is_old, is_new) { (true, true) => "final", (true, false) => "gone", _ => "pending" };
            @if *is_old { (cell(5, y, name, class)) }
            @if *is_new { (cell(205, y, name, class)) }
            @if *is_old && *is_new { path.line fill="none" d=(format!("M135 {0}H205", y + 13)) {} }
            @if *is_old && !is_new { text x="145" y=(y + 18) { "leaves" } }
            @if !is_old && *is_new { text x="160" y=(y + 18) { "comes" } }
        }
    };
    let height = (u32::try_from(rows.len()).unwrap_or(u32::MAX) + 1) * ROW;
    picture((340, height), "The servers now and afterwards", &content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::configuration;
    use areo_client::{Edge, SequenceEntry};

    #[test]
    fn configurations_stand_behind_each_other() {
        let node = |place: usize| SequenceEntry {
            is_final: place == 0,
            configuration: configuration(3),
        };
        let edge = |(from, to)| Edge { from, to };
        let graph = ConfigurationGraph {
            nodes: (0..5).map(node).collect(),
            // The members of the first know all of them but the last, of which it is not known what it comes after.
            edges: [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)].map(edge).to_vec(),
        };
        assert_eq!(edges(&graph), [(0, 1), (0, 2), (0, 4), (1, 3), (2, 3)]);
        let drawn = sequence(&graph).into_string();
        assert_eq!(drawn.matches("<rect").count(), 5);
        assert_eq!(drawn.matches("class=\"tip\"").count(), 5);
        assert!(drawn.contains("abd [3,1], pending"), "{drawn}");
    }

    #[test]
    fn a_change_of_servers_is_drawn_with_their_names_escaped() {
        let (old, mut new) = (configuration(3), configuration(3));
        new.members.remove(1);
        let mut coming = old.members[0].clone();
        coming.id = areo_client::ServerId(9);
        coming.name = "<s9>".into();
        new.members.push(coming);
        let drawn = servers(&old, &new).into_string();
        assert_eq!(drawn.matches("<rect").count(), 6);
        assert_eq!(drawn.matches("leaves").count(), 1);
        assert_eq!(drawn.matches("comes").count(), 1);
        assert!(
            drawn.contains("&lt;s9&gt;") && !drawn.contains("<s9>"),
            "{drawn}"
        );
    }
}
