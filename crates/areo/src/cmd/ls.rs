//! `areo ls`: lists objects, in order of their keys, page by page.

use crate::args;
use crate::exit::Outcome;
use crate::output::Output;
use crate::progress;
use crate::session::{self, Session, failure};
use areo_client::units::{show_size, show_time};
use areo_client::{Client, Domain, Entry, ListOptions, Page, limits};
use serde_json::json;

pub(super) fn run(session: &Session, args: &args::Ls) -> Outcome {
    session::run(ls(session, args), "")
}

async fn ls(session: &Session, args: &args::Ls) -> Outcome {
    let (client, domain) = session.domain().await?;
    pages(session.out, &client, &domain, args).await?;
    client.close().await;
    Ok(())
}

async fn pages(out: Output, client: &Client, domain: &Domain, args: &args::Ls) -> Outcome {
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut after = args.after.clone();
    while left > 0 {
        let wanted = limits::PAGE_ENTRIES.min(usize::try_from(left).unwrap_or(usize::MAX));
        let options = ListOptions {
            prefix: args.prefix.clone(),
            after: after.clone(),
            delimiter: args.delimiter.clone(),
            limit: wanted,
        };
        let page = progress::late(out, client, domain.list_with(options)).await;
        let page = page.map_err(failure)?;
        left -= print_page(out, args.long, &page)?;
        match page.next {
            Some(next) => {
                assert!(next > after, "pages go forward");
                after = next;
            }
            None => break,
        }
    }
    Ok(())
}

/// Objects and common prefixes in their order. Returns how many there were.
fn print_page(out: Output, long: bool, page: &Page) -> Outcome<u64> {
    let mut prefixes = page.prefixes.iter().peekable();
    for entry in &page.entries {
        while let Some(prefix) = prefixes.next_if(|prefix| **prefix < entry.key) {
            print_prefix(out, long, prefix)?;
        }
        print(out, long, entry)?;
    }
    for prefix in prefixes {
        print_prefix(out, long, prefix)?;
    }
    Ok((page.entries.len() + page.prefixes.len()) as u64)
}

fn print_prefix(out: Output, long: bool, prefix: &str) -> Outcome {
    if out.json {
        return out.object(&json!({ "prefix": prefix }));
    }
    let prefix = out.foreign(prefix);
    match (long, out.terminal) {
        (false, _) => out.line(&prefix),
        (true, true) => out.line(&long_line(["", "", "", &prefix])),
        (true, false) => out.line(&format!("\t\t\t{prefix}")),
    }
}

fn print(out: Output, long: bool, entry: &Entry) -> Outcome {
    if out.json {
        return out.object(entry);
    }
    let key = out.foreign(&entry.key);
    if entry.damaged {
        out.note(&format!("'{key}' is damaged, and cannot be read"));
    }
    match (long, out.terminal) {
        (false, _) => out.line(&key),
        (true, true) => {
            let written = entry.written_at_ms.map(show_time).unwrap_or_default();
            let version = entry.version.to_string();
            out.line(&long_line([
                &show_size(entry.length),
                &written,
                &version,
                &key,
            ]))
        }
        (true, false) => {
            let written = entry.written_at_ms.unwrap_or(0);
            out.line(&format!(
                "{}\t{written}\t{}\t{key}",
                entry.length, entry.version
            ))
        }
    }
}

/// Size, time, version and key. The key comes last: it may hold anything.
fn long_line([size, written, version, key]: [&str; 4]) -> String {
    format!("{size:>10}  {written:<23}  {version:<22}  {key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stand_in_one_column() {
        let time = show_time(1_700_000_000_000);
        let object = long_line(["16.0 KiB", &time, "1-2", "a b"]);
        let prefix = long_line(["", "", "", "a/"]);
        assert_eq!(object.find("a b"), prefix.find("a/"), "{object}");
    }
}
