//! Where the product is, of which clusters are made: a program of its own.

use std::fmt;
use std::path::{Path, PathBuf};

/// What the program is called.
const NAME: &str = "areo";
/// Where cargo puts tests and benchmarks: below the programs.
const DEPENDENCIES: &str = "deps";

/// There is no product to start servers of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MissingProduct {
    /// Not where it was said to be.
    Named {
        /// Where that is.
        path: PathBuf,
    },
    /// Not beside this program.
    Beside {
        /// The folder of this program.
        folder: PathBuf,
    },
}

impl fmt::Display for MissingProduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MissingProduct::Named { path } => {
                let path = path.display();
                write!(f, "--areo {path} is no program: name the binary `{NAME}`")
            }
            MissingProduct::Beside { folder } => {
                let folder = folder.display();
                write!(
                    f,
                    "there is no `{NAME}` in {folder}, beside this program: `cargo build --release -p areo` makes one, and \
                     --areo PATH names another"
                )
            }
        }
    }
}

/// The product's program: the named one, or the one beside this program.
///
/// # Errors
/// There is none.
pub fn product(named: Option<&Path>) -> Result<PathBuf, MissingProduct> {
    let own = std::env::current_exe().unwrap_or_default();
    find(named, own.parent().unwrap_or(Path::new("")))
}

fn find(named: Option<&Path>, folder: &Path) -> Result<PathBuf, MissingProduct> {
    if let Some(path) = named {
        // A word without a folder would be looked for on the PATH.
        let found = path.canonicalize().ok().filter(|path| path.is_file());
        return found.ok_or_else(|| MissingProduct::Named { path: path.into() });
    }
    let folder = match folder.parent() {
        Some(parent) if folder.ends_with(DEPENDENCIES) => parent,
        _ => folder,
    };
    let path = folder.join(NAME);
    match path.is_file() {
        true => Ok(path),
        false => Err(MissingProduct::Beside {
            folder: folder.into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_is_beside_this_program_or_where_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let dependencies = folder.join("deps");
        std::fs::create_dir(&dependencies).unwrap();
        for of in [&folder, &dependencies] {
            let missing = find(None, of).unwrap_err().to_string();
            assert!(
                missing.contains("cargo build --release -p areo"),
                "{missing}"
            );
            assert!(missing.contains("--areo PATH"), "{missing}");
        }
        let program = folder.join("areo");
        std::fs::write(&program, "").unwrap();
        assert_eq!(find(None, &folder).as_ref(), Ok(&program));
        assert_eq!(find(None, &dependencies).as_ref(), Ok(&program));
        assert_eq!(find(Some(&program), &dependencies).as_ref(), Ok(&program));
        let named = find(Some(&folder), &folder).unwrap_err().to_string();
        assert!(named.contains("is no program"), "{named}");
    }
}
