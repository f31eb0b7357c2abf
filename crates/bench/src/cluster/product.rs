//! The path of the product that clusters run: a program of its own.

use std::path::{Path, PathBuf};

/// File name of the program.
const NAME: &str = "areo";

/// The product's program: the named one, or the one beside this program.
///
/// # Errors
/// There is none: a sentence with what to do.
pub fn product(named: Option<&Path>) -> Result<PathBuf, String> {
    let own = std::env::current_exe().unwrap_or_default();
    find(named, own.parent().unwrap_or(Path::new("")))
}

fn find(named: Option<&Path>, folder: &Path) -> Result<PathBuf, String> {
    if let Some(path) = named {
        // A word without a folder would be looked for on the PATH.
        let found = path.canonicalize().ok().filter(|path| path.is_file());
        let path = path.display();
        return found
            .ok_or_else(|| format!("--areo {path} is no program: name the binary `{NAME}`"));
    }
    // Cargo puts tests and benchmarks below the programs.
    let folder = match folder.parent() {
        Some(programs) if folder.ends_with("deps") => programs,
        _ => folder,
    };
    let path = folder.join(NAME);
    match path.is_file() {
        true => Ok(path),
        false => Err(format!(
            "there is no `{NAME}` in {}, beside this program: `cargo build --release -p areo` makes one, and --areo PATH names another",
            folder.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_is_beside_this_program_or_where_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (below, program) = (folder.join("deps"), folder.join("areo"));
        let missing = find(None, &below).unwrap_err();
        assert!(missing.contains(folder.to_str().unwrap()), "{missing}");
        std::fs::write(&program, "").unwrap();
        for (named, own) in [(None, &folder), (None, &below), (Some(&*program), &below)] {
            assert_eq!(find(named, own).as_ref(), Ok(&program));
        }
        assert!(
            find(Some(&folder), &folder).is_err(),
            "a folder is no program"
        );
    }
}
