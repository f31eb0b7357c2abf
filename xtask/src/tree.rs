//! The files of the repository, in memory: checks are functions over this, so that a test can plant a violation.

use crate::source::Source;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Paths from the root, with `/`, in order; the text of each file that is text.
pub(crate) struct Tree {
    files: BTreeMap<String, Option<Text>>,
}

/// A file that is text.
struct Text {
    text: String,
    /// The text as Rust: most checks read it, and it is made once.
    source: OnceCell<Source>,
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        let source = OnceCell::new();
        Self { text, source }
    }
}

impl Tree {
    /// Reads every file below `root`.
    ///
    /// Walks the directories instead of asking git, which a fresh machine with only a Rust toolchain may lack.
    /// Build output is recognised by the `CACHEDIR.TAG` that cargo puts there, wherever it is.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let mut files = BTreeMap::new();
        read_directory(root, "", &mut files)
            .map_err(|error| format!("cannot read {}: {error}", root.display()))?;
        Ok(Self { files })
    }

    /// Every path, in order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Every text file with its path, in order.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter_map(|(path, text)| Some((path.as_str(), text.as_ref()?.text.as_str())))
    }

    /// Every Rust file with its path, in order.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| has_extension(path, "rs"))
    }

    /// Every Markdown file with its path, in order.
    pub(crate) fn markdown(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| has_extension(path, "md"))
    }

    /// The text of a file, `None` if there is no such text file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        Some(&self.files.get(path)?.as_ref()?.text)
    }

    /// Every Rust file with its path and its grammar, in order.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &str, &Source)> {
        let source = |(path, text)| Some((path, text, self.source(path)?));
        self.rust().filter_map(source)
    }

    /// The grammar of a Rust file, `None` if there is no such text file.
    pub(crate) fn source(&self, path: &str) -> Option<&Source> {
        let file = self.files.get(path)?.as_ref()?;
        Some(file.source.get_or_init(|| Source::new(&file.text)))
    }

    /// True if a file, or a directory with a file in it, has this path.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let below = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self
                .files
                .range(below.clone()..)
                .next()
                .is_some_and(|(name, _)| name.starts_with(&below))
    }

    #[cfg(test)]
    pub(crate) fn planted(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned().into())));
        Self {
            files: files.collect(),
        }
    }
}

/// True if the last component of `path` ends in `.extension`.
pub(crate) fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|found| found == extension)
}

fn read_directory(
    directory: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, Option<Text>>,
) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}/{name}")
        };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let skipped =
                name == ".git" || name == "areo-data" || entry.path().join("CACHEDIR.TAG").exists();
            if !skipped {
                read_directory(&entry.path(), &path, files)?;
            }
        } else if kind.is_file() {
            // Gone between the listing and now: an editor's temporary file, nothing of the repository.
            let Ok(bytes) = fs::read(entry.path()) else {
                continue;
            };
            let text = String::from_utf8(bytes)
                .ok()
                .filter(|text| !text.contains('\0'));
            files.insert(path, text.map(Text::from));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Tree;

    #[test]
    fn reads_text_and_skips_build_output() {
        let root = tempfile::tempdir().expect("a temporary directory");
        for (path, bytes) in [
            ("src/a.rs", b"fn a() {}\n".as_slice()),
            ("golden.bin", b"\0\xff".as_slice()),
            ("out/CACHEDIR.TAG", b"".as_slice()),
            ("out/b.rs", b"".as_slice()),
            (".git/c.rs", b"".as_slice()),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("has a parent")).expect("creates");
            fs::write(path, bytes).expect("writes");
        }
        let tree = Tree::read(root.path()).expect("reads");
        assert_eq!(tree.paths().collect::<Vec<_>>(), ["golden.bin", "src/a.rs"]);
        assert_eq!(tree.text("src/a.rs"), Some("fn a() {}\n"));
        assert_eq!(tree.text("golden.bin"), None);
        assert!(tree.exists("src") && tree.exists("src/") && tree.exists("golden.bin"));
        assert!(!tree.exists("sr") && !tree.exists("out"));
    }
}
