//! `areo file blocks`: the list of blocks, as a table and as a picture.

use super::{file_failure, open};
use crate::exit::Outcome;
use crate::output::Column;
use crate::progress;
use crate::session::Session;
use areo_client::file::BlockInfo;
use areo_client::units::show_size;

pub(super) async fn run(session: &Session, name: &str) -> Outcome {
    let out = session.out;
    let (client, _, file) = open(session, name).await?;
    let blocks = progress::late(out, &client, file.blocks()).await;
    let blocks = blocks.map_err(file_failure)?;
    if out.json {
        for block in &blocks {
            out.object(block)?;
        }
    } else {
        let columns = [
            Column::Text("block"),
            Column::Text("version"),
            Column::Number("bytes"),
            Column::Text("writer"),
        ];
        let row = |block: &BlockInfo| {
            let version = block.version.to_string();
            let bytes = if out.terminal {
                show_size(block.length)
            } else {
                block.length.to_string()
            };
            vec![block.id.clone(), version, bytes, block.writer.clone()]
        };
        let rows: Vec<Vec<String>> = blocks.iter().map(row).collect();
        out.table(&columns, &rows)?;
        if out.terminal {
            out.line(&picture(&blocks))?;
        }
    }
    client.close().await;
    Ok(())
}

/// Columns that the longest block has.
const WIDEST: u64 = 12;

/// The list drawn, each block as long as its data, beside who wrote it.
fn picture(blocks: &[BlockInfo]) -> String {
    let longest = blocks.iter().map(|block| block.length).max().unwrap_or(0);
    let mut writers: Vec<&str> = Vec::new();
    let mut drawn = String::from("genesis");
    for block in blocks.iter().filter(|block| block.id != "genesis") {
        let known = writers.iter().position(|known| *known == block.writer);
        let number = known.unwrap_or_else(|| {
            writers.push(&block.writer);
            writers.len() - 1
        });
        // A letter for each writer, as far as letters go.
        let letter = char::from(b'a' + u8::try_from(number % 26).expect("a letter"));
        let width = (block.length * WIDEST).div_ceil(longest.max(1)) as usize;
        drawn.push_str(" → [");
        drawn.extend(std::iter::repeat_n(letter, width));
        drawn.push(']');
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::Version;

    #[test]
    fn a_picture_shows_lengths_and_writers() {
        let block = |id: &str, version: &str, length| BlockInfo {
            id: id.into(),
            version: version.parse::<Version>().unwrap(),
            writer: version[2..18].into(),
            length,
            digest: None,
            next: None,
            written_at_ms: None,
        };
        let blocks = [
            block("genesis", "1-00c0ffee00c0ffee1", 0),
            block("file-1", "1-00c0ffee00c0ffee2", 1200),
            block("file-2", "2-00c0ffee00c0ffff1", 0),
            block("file-3", "7-00c0ffee00c0ffff2", 100),
        ];
        assert_eq!(picture(&blocks), "genesis → [aaaaaaaaaaaa] → [] → [b]");
    }
}
