//! `areo ls`: lists objects, in order of their keys, page by page.

use crate::args;
use crate::exit::Outcome;
use crate::output::Output;
use crate::session::{self, Session, failure};
use crate::units::show_size;
use areo_client::{Domain, Entry, limits};

pub(super) fn run(session: &Session, args: &args::Ls) -> Outcome {
    session::run(ls(session, args), "")
}

async fn ls(session: &Session, args: &args::Ls) -> Outcome {
    let (client, domain) = session.domain().await?;
    pages(session.out, &domain, args).await?;
    client.close().await;
    Ok(())
}

async fn pages(out: Output, domain: &Domain, args: &args::Ls) -> Outcome {
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut after = args.after.clone();
    while left > 0 {
        let wanted = limits::PAGE_ENTRIES.min(usize::try_from(left).unwrap_or(usize::MAX));
        let page = domain
            .list(&args.prefix, &after, wanted)
            .await
            .map_err(failure)?;
        for entry in page.entries.iter().take(wanted) {
            print(out, args.long, entry)?;
            left -= 1;
        }
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

fn print(out: Output, long: bool, entry: &Entry) -> Outcome {
    if out.json {
        return out.object(entry);
    }
    let (key, bytes) = (out.foreign(&entry.key), entry.length);
    if long {
        let version = entry.version.to_string();
        out.line(&long_line(out.terminal, bytes, &version, &key))
    } else {
        out.line(&key)
    }
}

/// The key comes last: it may hold anything.
fn long_line(terminal: bool, bytes: u64, version: &str, key: &str) -> String {
    match terminal {
        true => format!("{:>10}  {version:<22}  {key}", show_size(bytes)),
        false => format!("{bytes}\t{version}\t{key}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_for_people_or_for_programs() {
        assert_eq!(long_line(false, 16_385, "1-2", "a b"), "16385\t1-2\ta b");
        let line = long_line(true, 16_385, "1-2", "a b");
        assert_eq!(line, "  16.0 KiB  1-2                     a b");
    }
}
