//! Keys as names of files.

use areo_client::Entry;
use std::collections::HashSet;
use std::path::PathBuf;

/// The longest part of a path that file systems take, in bytes.
const NAME_BYTES: usize = 255;

/// The path below a folder that a key stands for.
///
/// # Errors
/// A sentence that says why no file can have this name.
pub(super) fn path_of(key: &str) -> Result<PathBuf, String> {
    for part in key.split('/') {
        match part {
            "" if key.is_empty() || key.ends_with('/') => {
                return Err("it ends with '/', and a file does not".into());
            }
            "" => return Err("a part of it is empty, and no file has such a name".into()),
            "." | ".." => return Err(format!("'{part}' in it is not the name of a file")),
            part if part.contains('\0') => {
                return Err("it has a byte 0, and no file has such a name".into());
            }
            part if part.len() > NAME_BYTES => {
                return Err(format!("a part of it is longer than {NAME_BYTES} bytes"));
            }
            _ => {}
        }
    }
    Ok(key.into())
}

/// All folders that these keys need: every part of a key up to a `/`.
pub(super) fn folders<'a>(entries: &'a [Entry]) -> HashSet<&'a str> {
    let ends = |key: &'a str| key.match_indices('/').map(move |(end, _)| &key[..end]);
    entries.iter().flat_map(|entry| ends(&entry.key)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::Version;

    #[test]
    fn keys_that_no_file_can_have_are_refused() {
        for good in ["a", "a/b", "...", "a b/.c", "ä", "-r", "a\nb"] {
            assert_eq!(path_of(good), Ok(PathBuf::from(good)));
        }
        let long = format!("a/{}", "b".repeat(256));
        for (bad, why) in [
            ("", "ends with"),
            ("a/", "ends with"),
            ("/", "ends with"),
            ("/a", "is empty"),
            ("a//b", "is empty"),
            (".", "'.'"),
            ("..", "'..'"),
            ("a/../b", "'..'"),
            ("../../etc/passwd", "'..'"),
            ("a\0", "byte 0"),
            (&long, "longer than 255"),
        ] {
            let error = path_of(bad).unwrap_err();
            assert!(error.contains(why), "{bad:?}: {error}");
        }
    }

    #[test]
    fn folders_are_the_beginnings_of_keys() {
        let entry = |key: &str| Entry {
            key: key.into(),
            version: Version::INITIAL,
            length: 0,
            etag: None,
            written_at_ms: None,
            damaged: false,
        };
        let entries = ["a", "a/b", "c/d/e", "c/d/f"].map(entry);
        let found = folders(&entries);
        assert_eq!(found, HashSet::from(["a", "c", "c/d"]));
    }
}
