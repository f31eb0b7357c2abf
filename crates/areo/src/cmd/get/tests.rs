use super::*;
use crate::exit::Code;
use areo_client::{Metadata, Version};
use std::os::unix::fs::symlink;

const OUT: Output = Output {
    json: false,
    terminal: false,
    progress: false,
    colour: false,
    quiet: true,
    verbose: 0,
};

fn pieces() -> Vec<Bytes> {
    vec![Bytes::from_static(b"one "), Bytes::from_static(b"two")]
}

/// Names in a folder, hidden ones too.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

#[test]
fn files_are_written_and_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("value");
    write(OUT, &path, &pieces(), 7).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"one two");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_ne!(mode(&path) & 0o044, 0, "as readable as the umask allows");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("link");
    symlink(&path, &link).unwrap();
    write(OUT, &link, &[], 0).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"", "the link's target");
    assert!(link.is_symlink());
    assert_eq!(mode(&path), 0o640, "kept");
    assert_eq!(names(folder.path()), ["link", "value"]);
}

#[test]
fn devices_are_written_to() {
    write(OUT, Path::new("/dev/null"), &pieces(), 7).unwrap();
    let full = write(OUT, Path::new("/dev/full"), &pieces(), 7).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_place_that_cannot_be_is_found_out_first() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(check_place(&folder.path().join("new")), Ok(()));
    assert_eq!(check_place(Path::new("new")), Ok(()));
    for wrong in [folder.path().to_owned(), folder.path().join("no/file")] {
        let refused = check_place(&wrong).unwrap_err();
        assert_eq!(refused.code, Code::Other);
        assert!(refused.message.contains("directory"), "{refused}");
    }
}

#[test]
fn terminals_are_spared_binary_values() {
    let object = |content: &'static [u8]| Object {
        version: Version::INITIAL,
        metadata: Metadata::default(),
        length: content.len() as u64,
        content: vec![Bytes::from_static(content)],
    };
    assert_eq!(check_text(&object("ä\tb\r\n".as_bytes())), Ok(()));
    assert!(check_text(&object(b"\x1b[2J")).is_err());
    assert!(check_text(&object(b"\0")).is_err());
}
