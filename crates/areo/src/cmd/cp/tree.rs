//! The files of a local folder.

use super::{cannot_copy, cannot_read};
use crate::exit::{Failure, Outcome};
use std::fs;
use std::path::{Path, PathBuf};

/// The files below a folder.
#[derive(Default, Debug)]
pub(super) struct Tree {
    pub(super) files: Vec<LocalFile>,
    /// The entries of which no object can be made, with the reasons.
    pub(super) refused: Vec<Failure>,
}

/// A file below a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LocalFile {
    /// Its name below the folder, with `/` between its parts.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

impl Tree {
    /// Files are in the order of their names. A link to a file is that file; a link to a folder may lead in a circle, and is refused.
    ///
    /// # Errors
    /// The folder itself cannot be read.
    pub(super) fn read(folder: &Path) -> Outcome<Tree> {
        let mut tree = Tree::default();
        tree.read_folder(folder, "")
            .map_err(|error| cannot_read(folder, &error))?;
        tree.files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(tree)
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let shown = path.display().to_string();
            let Ok(name) = entry.file_name().into_string() else {
                let why = "its name is not UTF-8, and keys are";
                self.refused.push(cannot_copy(&shown, why));
                continue;
            };
            let name = format!("{prefix}{name}");
            let is_link = entry.file_type()?.is_symlink();
            match fs::metadata(&path) {
                Ok(about) if about.is_file() => self.files.push(LocalFile {
                    name,
                    path,
                    bytes: about.len(),
                }),
                Ok(about) if about.is_dir() && is_link => {
                    let why = "it is a symbolic link to a folder: copy that folder by its own name";
                    self.refused.push(cannot_copy(&shown, why));
                }
                Ok(about) if about.is_dir() => {
                    if let Err(error) = self.read_folder(&path, &format!("{name}/")) {
                        self.refused.push(cannot_read(&path, &error));
                    }
                }
                Ok(_) => {
                    let why = "it is neither a file nor a folder";
                    self.refused.push(cannot_copy(&shown, why));
                }
                Err(_) if is_link => {
                    let why = "it is a symbolic link that leads to no file";
                    self.refused.push(cannot_copy(&shown, why));
                }
                Err(error) => self.refused.push(cannot_read(&path, &error)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_tree_has_files_and_links_to_files() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::create_dir(at("empty")).unwrap();
        fs::write(at("a/b/c"), "four").unwrap();
        fs::write(at("a.txt"), "").unwrap();
        symlink("a/b/c", at("link")).unwrap();
        symlink("a", at("circle")).unwrap();
        symlink("missing", at("dangling")).unwrap();
        fs::write(folder.path().join(OsStr::from_bytes(b"\xff")), "").unwrap();
        let tree = Tree::read(folder.path()).unwrap();
        let found: Vec<_> = tree.files.iter().map(|f| (&*f.name, f.bytes)).collect();
        assert_eq!(found, [("a.txt", 0), ("a/b/c", 4), ("link", 4)]);
        let mut why: Vec<_> = tree.refused.iter().map(|it| &*it.message).collect();
        why.sort_unstable();
        assert_eq!(why.len(), 3, "{why:?}");
        for (word, sentence) in ["link to a folder", "leads to no file", "not UTF-8"]
            .iter()
            .zip(&why)
        {
            assert!(sentence.contains(word), "{sentence}");
        }
        assert!(Tree::read(&at("missing")).is_err());
    }
}
