use super::*;
use crate::disk::{MemoryDisk, Survive, UnsyncedChange};

fn temporary_path() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("data");
    (parent, path)
}

#[test]
fn is_made_once_and_opened_again() {
    let (_parent, path) = temporary_path();
    for _ in 0..2 {
        let directory = Directory::open(&path).unwrap();
        assert_eq!(directory.path(), path);
        assert!(directory.disk("shard-0").unwrap().path().is_dir());
    }
}

#[test]
fn a_second_opener_is_told_about_the_lock() {
    let (_parent, path) = temporary_path();
    let first = Directory::open(&path).unwrap();
    let second = Directory::open(&path);
    assert!(matches!(second, Err(DirectoryError::Locked { .. })));
    assert!(second.unwrap_err().to_string().contains("another process"));
    drop(first);
    Directory::open(&path).unwrap();
}

#[test]
fn how_far_verification_is_survives_and_rot_of_it_is_not_believed() {
    let (_parent, path) = temporary_path();
    let directory = Directory::open(&path).unwrap();
    assert_eq!(directory.read_scrub(), None);
    for progress in [&b"half"[..], b"more than half"] {
        directory.write_scrub(progress).unwrap();
        assert_eq!(directory.read_scrub().as_deref(), Some(progress));
    }
    drop(directory);
    let directory = Directory::open(&path).unwrap();
    assert!(directory.read_scrub().is_some());
    for length in [0, 3, 4, 7] {
        let mut bytes = fs::read(path.join(SCRUB)).unwrap();
        bytes.truncate(length);
        fs::write(path.join(SCRUB), bytes).unwrap();
        assert_eq!(directory.read_scrub(), None, "{length}");
        directory.write_scrub(b"again").unwrap();
    }
}

#[test]
fn a_foreign_directory_is_refused_and_left_as_it_was() {
    let (parent, _) = temporary_path();
    fs::write(parent.path().join("thesis.tex"), "all of it").unwrap();
    let error = Directory::open(parent.path()).unwrap_err();
    assert!(matches!(&error, DirectoryError::Foreign { entry, .. } if entry == "thesis.tex"));
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
}

#[test]
fn what_a_cut_short_first_start_leaves_is_not_foreign() {
    let (_parent, path) = temporary_path();
    fs::create_dir(&path).unwrap();
    fs::create_dir(path.join(LOST_AND_FOUND)).unwrap();
    fs::write(path.join(LOCK), "").unwrap();
    fs::write(path.join("FORMAT.new"), "areo").unwrap();
    Directory::open(&path).unwrap();
}

#[test]
fn a_path_that_is_no_directory_is_refused_clearly() {
    let (parent, path) = temporary_path();
    fs::write(&path, "a file").unwrap();
    for place in [path.clone(), path.join("below")] {
        let error = Directory::open(&place).unwrap_err();
        assert!(
            matches!(error, DirectoryError::NotWritable { .. }),
            "{error}"
        );
    }
    let missing = Directory::open(parent.path().join("no/such/parent"));
    assert!(matches!(missing, Err(DirectoryError::Io { .. })));
}

#[test]
fn errors_of_permission_say_so() {
    let error = refused(Path::new("x"), ErrorKind::ReadOnlyFilesystem.into());
    assert!(matches!(error, DirectoryError::NotWritable { .. }));
    let (_parent, path) = temporary_path();
    fs::create_dir(&path).unwrap();
    let owner = fs::metadata(&path).unwrap().uid();
    let error = refused(&path, ErrorKind::PermissionDenied.into()).to_string();
    assert!(
        error.contains(&format!("not yours: it belongs to user {owner}")),
        "{error}"
    );
}

#[test]
fn a_directory_with_the_server_of_another_user_is_refused() {
    use std::os::unix::fs::chown;

    const FILES: [&str; 8] = [
        "LOCK",
        "FORMAT",
        "EXTENT",
        "IDENTITY",
        "IDENTITY.spare",
        "TRUST",
        "JOIN",
        "SCRUB",
    ];

    if !rustix::process::geteuid().is_root() {
        areo_fuzzing::not_run("files are given to another user by root alone");
        return;
    }
    let (_parent, path) = temporary_path();
    let directory = Directory::open(&path).unwrap();
    for _ in 0..2 {
        directory.write_identity(b"identity").unwrap();
    }
    directory.write_trust(b"trust").unwrap();
    directory.write_join(b"join").unwrap();
    directory.write_scrub(b"scrub").unwrap();
    drop(directory.disk("log").unwrap());
    for file in ["EXTENT", "log/segment"] {
        fs::write(path.join(file), b"records").unwrap();
    }
    drop(directory);
    // A volume of another user is no server of another user.
    fs::create_dir(path.join("log/lost+found")).unwrap();
    for name in ["", "log", "log/lost+found"] {
        chown(path.join(name), Some(4321), None).unwrap();
    }
    drop(Directory::open(&path).unwrap());
    let entries = || fs::read_dir(&path).unwrap().count();
    let before = entries();
    assert_eq!(before, FILES.len() + 1, "these files, and the log");
    for name in FILES.iter().chain(&["log/segment"]) {
        chown(path.join(name), Some(1234), None).unwrap();
        let error = Directory::open(&path).unwrap_err().to_string();
        let file = path.join(name);
        let begin = format!("{}: not yours: it belongs to user 1234", file.display());
        assert!(error.starts_with(&begin), "{error}");
        let hint = format!("`chown -R 0 {}`", path.display());
        assert!(error.contains(&hint), "{error}");
        assert_eq!(entries(), before);
        chown(path.join(name), Some(0), None).unwrap();
    }
    fs::rename(path.join("log"), path.join("../elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", path.join("log")).unwrap();
    drop(Directory::open(&path).unwrap());
    chown(path.join("log/segment"), Some(1234), None).unwrap();
    Directory::open(&path).unwrap_err();
}

#[test]
fn another_format_is_refused_politely_and_damage_is_called_damage() {
    let (_parent, path) = temporary_path();
    drop(Directory::open(&path).unwrap());
    for (format, what_to_do) in [(1, "wrote it"), (7, "wrote it, or a newer one")] {
        let text = format!("areo data directory\nformat {format}\n");
        fs::write(path.join(FORMAT), text).unwrap();
        let error = Directory::open(&path).unwrap_err();
        assert!(
            matches!(error, DirectoryError::UnsupportedVersion { found, .. } if found == format)
        );
        assert!(error.to_string().ends_with(what_to_do), "{error}");
    }
    for text in ["", "areo data directory\nformat 2", "\u{fffd}"] {
        fs::write(path.join(FORMAT), text).unwrap();
        let error = Directory::open(&path).unwrap_err();
        assert!(matches!(error, DirectoryError::Damaged { .. }));
    }
    fs::write(path.join(FORMAT), [0xff]).unwrap();
    let error = Directory::open(&path).unwrap_err();
    assert!(matches!(error, DirectoryError::Damaged { .. }));
}

#[test]
fn the_identity_comes_back_and_every_flipped_byte_is_noticed() {
    let (_parent, path) = temporary_path();
    let directory = Directory::open(&path).unwrap();
    assert_eq!(directory.read_identity().unwrap(), None);
    for identity in [&b"first"[..], b"", &[7; 4000]] {
        directory.write_identity(identity).unwrap();
        assert_eq!(directory.read_identity().unwrap().unwrap(), identity);
    }
    let too_long = directory.write_identity(&vec![0; MAX_IDENTITY_BYTES + 1]);
    assert!(matches!(too_long, Err(IdentityError::TooLong { .. })));

    directory.write_identity(b"server 7").unwrap();
    let file = path.join(IDENTITY);
    let good = fs::read(&file).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        fs::write(&file, &bad).unwrap();
        let read = directory.read_identity();
        assert!(matches!(read, Err(IdentityError::Damaged { .. })), "{at}");
        fs::write(&file, &good[..at]).unwrap();
        assert!(directory.read_identity().is_err(), "cut at {at}");
    }
}

#[test]
fn an_interrupted_replacement_leaves_the_old_identity() {
    let (_parent, path) = temporary_path();
    let directory = Directory::open(&path).unwrap();
    directory.write_identity(b"old").unwrap();
    fs::write(path.join("IDENTITY.new"), b"half of a new o").unwrap();
    assert_eq!(directory.read_identity().unwrap().unwrap(), &b"old"[..]);
    directory.write_identity(b"new").unwrap();
    assert_eq!(directory.read_identity().unwrap().unwrap(), &b"new"[..]);
}

/// The power goes at every operation of a replacement, and any part of the unsynced writes survives.
#[test]
fn a_crash_leaves_the_old_file_or_the_new_one_and_the_new_one_once_that_was_said() {
    let (old, new) = (encode_identity(b"old"), encode_identity(&[7; 3000]));
    let mut seen = [0, 0];
    for cut in 0..=9 {
        for fate in 0..64_u64 {
            let disk = MemoryDisk::new();
            replace(&disk, IDENTITY, &old).unwrap();
            if cut == 9 {
                // The remainder of an earlier attempt does no harm.
                disk.put("IDENTITY.new", vec![1; 77]);
            }
            disk.power_off_at(disk.operations() + cut);
            let replaced = replace(&disk, IDENTITY, &new);
            let mut changes = 0;
            disk.crash(|unsynced| {
                changes += 1;
                let mask = fate >> (2 * (changes - 1));
                match unsynced {
                    UnsyncedChange::Names { .. } => Survive::Sectors { size: 1, mask },
                    _ if mask & 3 == 3 => Survive::Prefix(500),
                    _ if mask & 1 == 1 => Survive::All,
                    _ => Survive::Nothing,
                }
            });
            let content = disk.content(IDENTITY).expect("one of them is there");
            assert!(content == old || content == new, "cut {cut}, fate {fate:b}");
            assert!(
                replaced.is_err() || content == new,
                "cut {cut}, fate {fate:b}"
            );
            seen[usize::from(content == new)] += 1;
            // And the next attempt succeeds.
            replace(&disk, IDENTITY, &new).unwrap();
            disk.crash(|_| Survive::Nothing);
            assert_eq!(disk.content(IDENTITY).unwrap(), new);
        }
    }
    assert!(seen[0] > 100 && seen[1] > 100, "{seen:?}");
}

#[test]
fn a_directory_that_others_may_enter_is_closed_to_them() {
    let (_parent, path) = temporary_path();
    let modes = || {
        let entries = fs::read_dir(&path).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let all = paths.chain([path.clone(), path.join("log/file")]);
        let mode = |path: PathBuf| {
            let it = fs::metadata(path).unwrap();
            (it.is_dir(), it.permissions().mode() & 0o777)
        };
        all.map(mode).collect::<Vec<_>>()
    };
    for _ in 0..2 {
        let directory = Directory::open(&path).unwrap();
        directory.write_identity(b"one").unwrap();
        directory.write_scrub(b"half").unwrap();
        let disk = directory.disk("log").unwrap();
        let _ = disk.create("file", 10);
        for (is_directory, mode) in modes() {
            assert_eq!(mode, if is_directory { 0o700 } else { 0o600 });
        }
        // As an earlier program made them.
        for open in [&path, &path.join("log")] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}
