//! `areo sweep`: removes blocks that are not needed, and the lines of `areo status` that say how many there are.

use crate::args;
use crate::exit::Outcome;
use crate::output::{Column, Output};
use crate::progress;
use crate::session::{self, Session, failure};
use areo_client::units::{show_count, show_size};
use areo_client::{Client, Count, SweepOptions, SweepReport};
use serde::Serialize;

/// The output with `--json`.
#[derive(Serialize)]
struct Line<'a> {
    blocks_of: &'a str,
    #[serde(flatten)]
    swept: &'a SweepReport,
}

pub(super) fn run(session: &Session, args: &args::Sweep) -> Outcome {
    session::run(sweep(session, args), "")
}

async fn sweep(session: &Session, args: &args::Sweep) -> Outcome {
    let (client, domain) = session.domain().await?;
    let age = |default| args.older_than.unwrap_or(default);
    let defaults = SweepOptions::default();
    let options = SweepOptions {
        unfinished: age(defaults.unfinished),
        replaced: age(defaults.replaced),
        aside: false,
    };
    let out = session.out;
    let swept = progress::late(out, &client, domain.sweep(options)).await;
    let swept = swept.map_err(failure)?;
    let removed = swept.removed.unwrap_or_default();
    match (out.json, out.terminal) {
        (true, _) => out.object(&Line {
            blocks_of: domain.name(),
            swept: &swept,
        })?,
        (false, true) if out.quiet => {}
        (false, true) => out.line(&sentence(&swept))?,
        (false, false) => out.line(&format!(
            "{}\t{}\t{}",
            removed.uploads, removed.blocks, removed.bytes
        ))?,
    }
    client.close().await;
    Ok(())
}

/// The result, for people.
fn sentence(swept: &SweepReport) -> String {
    let show = |count: Count| {
        let blocks = show_count(count.blocks, "block");
        format!("{blocks} ({})", show_size(count.bytes))
    };
    let (removed, orphans) = (swept.removed.unwrap_or_default(), swept.orphans());
    let kept = Count {
        uploads: orphans.uploads - removed.uploads,
        blocks: orphans.blocks - removed.blocks,
        bytes: orphans.bytes - removed.bytes,
    };
    match kept.blocks {
        0 => format!("removed {}", show(removed)),
        _ => format!(
            "removed {}, kept {} that may still be needed: --older-than says for how long",
            show(removed),
            show(kept)
        ),
    }
}

/// Prints the blocks of each of these domains, in use and left over; domains without any, and those that cannot be
/// asked, are left out.
pub(super) async fn print_blocks(out: Output, client: &Client, domains: &[String]) -> Outcome {
    let mut rows = Vec::new();
    for name in domains {
        let Ok(domain) = client.domain(name).await else {
            continue;
        };
        let Ok(swept) = domain.orphans().await else {
            continue;
        };
        let (live, orphans) = (swept.live(), swept.orphans());
        if live.blocks + orphans.blocks == 0 {
            continue;
        }
        if out.json {
            let (blocks_of, swept) = (&**name, &swept);
            out.object(&Line { blocks_of, swept })?;
            continue;
        }
        let size = |bytes: u64| {
            if out.terminal {
                show_size(bytes)
            } else {
                bytes.to_string()
            }
        };
        rows.push(vec![
            name.clone(),
            live.uploads.to_string(),
            live.blocks.to_string(),
            size(live.bytes),
            orphans.uploads.to_string(),
            orphans.blocks.to_string(),
            size(orphans.bytes),
        ]);
    }
    if rows.is_empty() {
        return Ok(());
    }
    if out.terminal {
        out.line("")?;
    }
    let columns = [
        Column::Text("blocks of"),
        Column::Number("objects"),
        Column::Number("blocks"),
        Column::Number("bytes"),
        Column::Number("left over"),
        Column::Number("blocks"),
        Column::Number("bytes"),
    ];
    out.table(&columns, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::FileCount;

    #[test]
    fn people_are_told_what_is_kept() {
        let count = |blocks| Count {
            uploads: 1,
            blocks,
            bytes: blocks << 20,
        };
        let mut swept = SweepReport {
            removed: Some(count(3)),
            ..SweepReport::default()
        };
        swept.values.replaced = count(2);
        swept.files.removed = FileCount {
            files: 1,
            blocks: 1,
            bytes: 1 << 20,
        };
        assert_eq!(sentence(&swept), "removed 3 blocks (3.0 MiB)");
        swept.values.unfinished = count(1);
        assert_eq!(
            sentence(&swept),
            "removed 3 blocks (3.0 MiB), kept 1 block (1.0 MiB) that may still be needed: --older-than says for how long"
        );
    }
}
