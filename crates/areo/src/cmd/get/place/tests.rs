use super::*;
use crate::exit::Code;
use crate::session;
use std::io::Write as _;
use std::os::unix::fs::symlink;

/// Names in a folder, hidden ones too.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

fn write(path: &Path, pieces: &[&'static str]) -> io::Result<()> {
    let write = async {
        let mut place = Place::open(path)?;
        for piece in pieces {
            place.write((*piece).into()).await?;
        }
        place.keep()
    };
    session::run(async { Ok(write.await) }, "").unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn files_are_written_and_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("value");
    write(&path, &["one ", "two"]).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"one two");
    assert_ne!(mode(&path) & 0o044, 0, "as readable as the umask allows");
    for kept in [0o640, 0o666] {
        set_mode(&path, kept);
        let link = folder.path().join("link");
        symlink("value", &link).unwrap();
        write(&link, &["new"]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new", "the link's target");
        assert!(link.is_symlink());
        assert_eq!(mode(&path), kept);
        fs::remove_file(&link).unwrap();
    }
    assert_eq!(names(folder.path()), ["value"]);
}

#[test]
fn a_link_that_leads_nowhere_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (link, target) = (folder.path().join("link"), folder.path().join("d/value"));
    symlink("d/value", &link).unwrap();
    assert!(check(&link).unwrap_err().message.contains("directory"));
    fs::create_dir(folder.path().join("d")).unwrap();
    check(&link).unwrap();
    write(&link, &["x"]).unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read(target).unwrap(), b"x");
    symlink("circle", folder.path().join("circle")).unwrap();
    assert!(check(&folder.path().join("circle")).is_err());
}

#[test]
fn other_names_of_a_file_stay_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("value"), folder.path().join("other"));
    fs::write(&path, "an older and longer value").unwrap();
    fs::hard_link(&path, &other).unwrap();
    write(&path, &["new"]).unwrap();
    assert_eq!(fs::read(&other).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["other", "value"]);
}

#[test]
fn a_file_that_no_user_may_write_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("value");
    fs::write(&path, "old").unwrap();
    set_mode(&path, 0o400);
    let refused = check(&path).unwrap_err();
    assert_eq!(refused.code, Code::Other);
    assert!(refused.message.contains("read-only"), "{refused}");
    assert!(write(&path, &["new"]).is_err());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["value"]);
}

#[test]
fn what_is_not_complete_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("value");
    for present in [false, true] {
        let Place::File(mut beside) = Place::open(&path).unwrap() else {
            panic!("a file is to be made");
        };
        beside.file.write_all(b"half").unwrap();
        assert_eq!(names(folder.path()).len(), 1 + usize::from(present));
        drop(beside);
        assert_eq!(names(folder.path()).len(), usize::from(present));
        fs::write(&path, "old").unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), b"old");
}

#[test]
fn devices_are_written_to() {
    write(Path::new("/dev/null"), &["one", "two"]).unwrap();
    let full = write(Path::new("/dev/full"), &["one", "two"]).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
}

#[test]
fn a_descriptor_is_written_where_others_are_in_it() {
    use std::os::fd::AsRawFd;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"header ").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    symlink(format!("/proc/self/fd/{}", file.as_raw_fd()), &link).unwrap();
    check(&link).unwrap();
    write(&link, &["value"]).unwrap();
    file.write_all(b" footer").unwrap();
    file.rewind().unwrap();
    assert_eq!(io::read_to_string(&file).unwrap(), "header value footer");
    assert!(write(Path::new("/dev/fd/987654"), &["x"]).is_err());
}

#[test]
fn a_place_that_cannot_be_is_found_out_first() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(check(&folder.path().join("new")), Ok(()));
    assert_eq!(check(Path::new("new")), Ok(()));
    for wrong in [folder.path().to_owned(), folder.path().join("no/file")] {
        let refused = check(&wrong).unwrap_err();
        assert_eq!(refused.code, Code::Other);
        assert!(refused.message.contains("directory"), "{refused}");
    }
}
