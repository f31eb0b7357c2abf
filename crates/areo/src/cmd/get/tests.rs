use super::*;
use crate::exit::Code;
use bytes::Bytes;
use std::os::unix::fs::symlink;

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

fn write(path: &Path, pieces: &[Bytes]) -> io::Result<()> {
    let mut place = Place::open(path)?;
    let bar = progress::hidden();
    pieces
        .iter()
        .try_for_each(|piece| fill(&bar, &mut place, piece))?;
    place.keep()
}

#[test]
fn files_are_written_and_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("value");
    write(&path, &pieces()).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"one two");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_ne!(mode(&path) & 0o044, 0, "as readable as the umask allows");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("link");
    symlink(&path, &link).unwrap();
    write(&link, &[]).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"", "the link's target");
    assert!(link.is_symlink());
    assert_eq!(mode(&path), 0o640, "kept");
    assert_eq!(names(folder.path()), ["link", "value"]);
}

#[test]
fn what_is_not_complete_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("value");
    let mut place = Place::open(&path).unwrap();
    fill(&progress::hidden(), &mut place, b"half").unwrap();
    assert_eq!(names(folder.path()).len(), 1, "beside it");
    drop(place);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn devices_are_written_to() {
    write(Path::new("/dev/null"), &pieces()).unwrap();
    let full = write(Path::new("/dev/full"), &pieces()).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_place_that_cannot_be_is_found_out_first() {
    let folder = tempfile::tempdir().unwrap();
    let of = |path: &Path| place(path, "key");
    assert_eq!(
        of(&folder.path().join("new")),
        Ok(folder.path().join("new"))
    );
    assert_eq!(of(Path::new("new")), Ok("new".into()));
    let refused = of(&folder.path().join("no/file")).unwrap_err();
    assert_eq!(refused.code, Code::Other);
    assert!(refused.message.contains("no such directory"), "{refused}");
}

#[test]
fn a_directory_gets_a_file_named_by_the_last_part_of_the_key() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("taken")).unwrap();
    for key in ["value", "a/b/value"] {
        let file = place(folder.path(), key).unwrap();
        assert_eq!(file, folder.path().join("value"), "{key}");
    }
    for key in ["a/", "..", "a/..", ".", "a/\0", "a/taken"] {
        let refused = place(folder.path(), key).unwrap_err();
        assert_eq!(refused.code, Code::Other);
        assert!(refused.message.starts_with("cannot write"), "{refused}");
    }
}

#[test]
fn terminals_are_spared_binary_values() {
    assert_eq!(check_text("ä\tb\r\n".as_bytes(), 6), Ok(()));
    assert!(check_text(b"\x1b[2J", 4).is_err());
    assert!(check_text(b"\0", 1).is_err());
}
