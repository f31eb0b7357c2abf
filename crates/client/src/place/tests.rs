use super::*;
use crate::blocking::wait;
use std::io::Write;

fn write(path: &Path, value: &'static [u8]) -> io::Result<()> {
    check(path)?;
    let mut place = Place::open(path)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        place.write(Bytes::from_static(value)).await?;
        place.keep().await
    })
}

fn names(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_file_keeps_its_mode_its_other_names_and_the_links_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write(&at("file"), b"first").unwrap();
    fs::set_permissions(at("file"), Permissions::from_mode(0o620)).unwrap();
    write(&at("file"), b"second").unwrap();
    let mode = fs::metadata(at("file")).unwrap().mode() & 0o777;
    assert_eq!(mode, 0o620);
    fs::hard_link(at("file"), at("other name")).unwrap();
    std::os::unix::fs::symlink("file", at("link")).unwrap();
    write(&at("link"), b"third").unwrap();
    assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    for name in ["file", "other name"] {
        assert_eq!(fs::read(at(name)).unwrap(), b"third", "{name}");
    }
    std::os::unix::fs::symlink("new", at("dangling")).unwrap();
    write(&at("dangling"), b"fourth").unwrap();
    assert_eq!(fs::read(at("new")).unwrap(), b"fourth");
    assert_eq!(names(folder.path()), 5, "nothing else is left");
}

#[test]
fn a_value_that_is_not_complete_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("file");
    fs::write(&target, b"before").unwrap();
    let mut place = Place::open(&target).unwrap();
    place.write_here(b"a part").unwrap();
    assert_eq!(names(folder.path()), 2);
    drop(place);
    assert_eq!(names(folder.path()), 1);
    assert_eq!(fs::read(&target).unwrap(), b"before");
}

#[test]
fn what_is_meant_to_stay_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("kept"), b"kept").unwrap();
    fs::set_permissions(at("kept"), Permissions::from_mode(0o444)).unwrap();
    std::os::unix::fs::symlink("circle", at("circle")).unwrap();
    for (path, why) in [
        (at("kept"), "read-only"),
        (folder.path().into(), "is a directory"),
        (at("no/such"), "no such directory"),
        (at("circle"), "symbolic links"),
    ] {
        let refused = write(&path, b"other").unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
    }
    assert_eq!(fs::read(at("kept")).unwrap(), b"kept");
}

#[test]
fn streams_are_told_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    assert!(!is_stream(&file).unwrap() && !is_stream(folder.path()).unwrap());
    fs::write(&file, b"").unwrap();
    assert!(!is_stream(&file).unwrap());
    for stream in ["/dev/null", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/2"] {
        assert!(is_stream(Path::new(stream)).unwrap(), "{stream}");
    }
    wait(async { write(Path::new("/dev/full"), b"x") }).unwrap_err();
}

#[test]
fn devices_are_written_to() {
    write(Path::new("/dev/null"), b"value").unwrap();
    let full = write(Path::new("/dev/full"), b"value").unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
}

#[test]
fn a_descriptor_is_written_where_others_are_in_it() {
    use std::os::fd::AsRawFd;
    let mut file = tempfile::tempfile().unwrap();
    let own = format!("/dev/fd/{}", file.as_raw_fd());
    let refused = write(Path::new(&own), b"value").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::BADF.raw_os_error()));
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    file.write_all(b"header ").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::os::unix::fs::symlink(descriptor, &link).unwrap();
    write(&link, b"value").unwrap();
    file.write_all(b" footer").unwrap();
    io::Seek::rewind(&mut file).unwrap();
    assert_eq!(io::read_to_string(&file).unwrap(), "header value footer");
    assert!(write(Path::new("/dev/fd/987654"), b"x").is_err());
}

#[test]
fn a_link_leads_to_a_folder_before_it_is_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let (link, target) = (folder.path().join("link"), folder.path().join("d/value"));
    std::os::unix::fs::symlink("d/value", &link).unwrap();
    assert!(check(&link).unwrap_err().to_string().contains("directory"));
    fs::create_dir(folder.path().join("d")).unwrap();
    write(&link, b"x").unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read(target).unwrap(), b"x");
}
