//! The configurations of a domain as `areo domain show` draws them: what comes after a configuration stands below it.

use super::{called, names};
use areo_client::{ConfigurationGraph, SequenceEntry};
use std::collections::BTreeSet;

/// A line for each configuration that comes after the final one. One that comes after several is drawn below the first of them, and
/// mentioned below the others.
pub(super) fn lines(graph: &ConfigurationGraph) -> Vec<String> {
    let mut drawing = Drawing {
        nodes: &graph.nodes,
        nearest: nearest(graph),
        drawn: BTreeSet::new(),
        lines: Vec::new(),
    };
    if let Some(first) = drawing.nearest.first().cloned() {
        drawing.below(&first, "");
    }
    drawing.lines
}

struct Drawing<'a> {
    nodes: &'a [SequenceEntry],
    /// The successors of each node.
    nearest: Vec<Vec<usize>>,
    drawn: BTreeSet<usize>,
    lines: Vec<String>,
}

impl Drawing<'_> {
    fn below(&mut self, nodes: &[usize], indent: &str) {
        for (number, node) in nodes.iter().enumerate() {
            let is_last = number + 1 == nodes.len();
            let (branch, more) = match is_last {
                true => ("└─", "   "),
                false => ("├─", "│  "),
            };
            let entry = &self.nodes[*node];
            let c = &entry.configuration;
            if !self.drawn.insert(*node) {
                let line = format!("{indent}{branch} {} on {}, as above", c.index, names(c));
                self.lines.push(line);
                continue;
            }
            let status = entry.status();
            let line = format!("{indent}{branch} {} on {}", called(c, status), names(c));
            self.lines.push(line);
            let next = self.nearest[*node].clone();
            self.below(&next, &format!("{indent}{more}"));
        }
    }
}

/// For each node its direct successors, without those that another successor leads to. The first node is followed by
/// all nodes without a predecessor.
fn nearest(graph: &ConfigurationGraph) -> Vec<Vec<usize>> {
    let count = graph.nodes.len();
    let mut after: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); count];
    for edge in &graph.edges {
        after[edge.from].insert(edge.to);
    }
    for node in 1..count {
        if !after[..node].iter().any(|after| after.contains(&node)) {
            after[0].insert(node);
        }
    }
    let mut nearest = vec![Vec::new(); count];
    // From the last on: of those behind it is known what can be reached.
    for node in (0..count).rev() {
        let direct = std::mem::take(&mut after[node]);
        let farther: BTreeSet<usize> = direct
            .iter()
            .flat_map(|next| after[*next].clone())
            .collect();
        nearest[node] = direct.difference(&farther).copied().collect();
        after[node] = direct.union(&farther).copied().collect();
    }
    nearest
}

#[cfg(test)]
mod tests {
    use super::super::tests::info;
    use super::*;
    use areo_client::Edge;

    /// Configurations of these indices, and what leads from one to another one.
    fn graph(indices: &[u32], edges: &[(usize, usize)]) -> ConfigurationGraph {
        let node = |(place, index): (usize, &u32)| {
            let mut configuration = info().configuration;
            configuration.index = *index;
            configuration.members.truncate(1);
            configuration.members[0].name = format!("s{place}");
            let is_final = place == 0;
            SequenceEntry {
                is_final,
                configuration,
            }
        };
        let edge = |&(from, to): &(usize, usize)| Edge { from, to };
        ConfigurationGraph {
            nodes: indices.iter().enumerate().map(node).collect(),
            edges: edges.iter().map(edge).collect(),
        }
    }

    fn drawn(indices: &[u32], edges: &[(usize, usize)]) -> String {
        let lines = lines(&graph(indices, edges)).join("\n");
        lines.replace(" pending, ec [2,1]", "")
    }

    #[test]
    fn what_comes_after_a_configuration_stands_below_it() {
        assert_eq!(drawn(&[4], &[]), "");
        assert_eq!(
            drawn(&[4, 5, 6], &[(0, 1), (1, 2)]),
            "└─ 5 on s1\n   └─ 6 on s2"
        );
        // The members of the first know all three.
        let edges = [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)];
        assert_eq!(
            drawn(&[4, 5, 5, 6], &edges),
            "├─ 5 on s1\n│  └─ 6 on s3\n└─ 5 on s2\n   └─ 6 on s3, as above"
        );
        // Of the second it is not known what it comes after.
        assert_eq!(drawn(&[4, 5, 6], &[(0, 2)]), "├─ 5 on s1\n└─ 6 on s2");
    }
}
