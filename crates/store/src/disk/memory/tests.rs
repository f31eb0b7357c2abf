use super::*;
use crate::disk::write_all_at;

fn write(file: &MemoryFile, offset: u64, bytes: &[u8]) {
    write_all_at(file, &mut [IoSlice::new(bytes)], offset).unwrap();
}

fn synced_file(disk: &MemoryDisk) -> MemoryFile {
    let file = disk.create("a", 8).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir().unwrap();
    file
}

#[test]
fn synced_writes_survive_and_unsynced_ones_as_told() {
    for (fate, expected) in [
        (Survive::Nothing, *b"abcd\0\0\0\0"),
        (Survive::All, *b"abXYZW\0\0"),
        (Survive::Prefix(1), *b"abXd\0\0\0\0"),
        (
            Survive::Sectors {
                size: 2,
                mask: 0b10,
            },
            *b"abcdZW\0\0",
        ),
    ] {
        let disk = MemoryDisk::new();
        let file = synced_file(&disk);
        write(&file, 0, b"abcd");
        file.sync_data().unwrap();
        write(&file, 2, b"XYZW");
        assert_eq!(disk.content("a").unwrap(), b"abXYZW\0\0");
        disk.crash(|_| fate);
        assert_eq!(disk.content("a").unwrap(), expected);
        assert!(file.length().is_err(), "a file of the dead process");
    }
}

#[test]
fn an_older_overlapping_write_can_survive_alone() {
    let disk = MemoryDisk::new();
    let file = synced_file(&disk);
    write(&file, 0, b"1111");
    write(&file, 2, b"2222");
    let mut fates = [Survive::All, Survive::Nothing].into_iter();
    disk.crash(|_| fates.next().unwrap());
    assert_eq!(disk.content("a").unwrap(), b"1111\0\0\0\0");
}

#[test]
fn unsynced_names_and_lengths_can_vanish() {
    let disk = MemoryDisk::new();
    let file = disk.create("a", 8).unwrap();
    disk.sync_dir().unwrap();
    write(&file, 0, b"x");
    disk.rename("a", "b").unwrap();
    disk.create("c", 1).unwrap();
    let mut seen = Vec::new();
    disk.crash(|unsynced| {
        seen.push(format!("{unsynced:?}"));
        match unsynced {
            UnsyncedChange::Names { changes: 2 } => Survive::Prefix(1),
            _ => Survive::Nothing,
        }
    });
    assert_eq!(disk.list().unwrap(), vec!["b".to_owned()]);
    assert_eq!(disk.content("b").unwrap(), b"");
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_failed_sync_loses_the_writes_for_good_unless_written_again() {
    for again in [false, true] {
        let disk = MemoryDisk::new();
        let file = synced_file(&disk);
        disk.fail_sync(0);
        write(&file, 0, b"abcd");
        assert!(file.sync_data().is_err());
        if again {
            write(&file, 0, b"ab");
        }
        file.sync_data().unwrap();
        assert_eq!(&disk.content("a").unwrap()[..4], b"abcd");
        disk.crash(|_| Survive::All);
        let expected: &[u8] = if again { b"ab\0\0" } else { b"\0\0\0\0" };
        assert_eq!(&disk.content("a").unwrap()[..4], expected);
    }
}

#[test]
fn the_power_goes_during_the_chosen_operation() {
    let disk = MemoryDisk::new();
    let file = synced_file(&disk);
    disk.power_off_at(disk.operations() + 1);
    write(&file, 0, b"a");
    assert!(file.write_vectored_at(&[IoSlice::new(b"b")], 1).is_err());
    assert!(disk.list().is_err());
    assert!(file.sync_data().is_err());
    disk.crash(|_| Survive::All);
    assert_eq!(&disk.content("a").unwrap()[..2], b"ab");
}

#[test]
fn a_full_disk_refuses_files_and_growth_but_not_overwriting() {
    let disk = MemoryDisk::with_capacity(10);
    let file = disk.create("a", 8).unwrap();
    assert_eq!(disk.free_space().unwrap(), 2);
    assert!(crate::disk::is_full(&disk.create("b", 3).err().unwrap()));
    assert!(file.write_vectored_at(&[IoSlice::new(b"abc")], 8).is_err());
    write(&file, 0, b"12345678");
    file.truncate(2).unwrap();
    disk.create("b", 8).unwrap();
}

#[test]
fn rot_stays_and_copies_are_independent() {
    let disk = MemoryDisk::new();
    let file = synced_file(&disk);
    write(&file, 0, b"a");
    disk.flip("a", 0, 1);
    let copy = disk.duplicate();
    disk.crash(|_| Survive::Nothing);
    assert_eq!(disk.content("a").unwrap()[0], 1);
    assert_eq!(copy.content("a").unwrap()[0], b'a' ^ 1);
    copy.lose("a");
    assert!(copy.content("a").is_none());
    copy.put("z", vec![7]);
    assert_eq!(copy.open("z").unwrap().length().unwrap(), 1);
}

#[test]
fn reads_and_writes_fail_once_when_they_are_told_to() {
    let disk = MemoryDisk::new();
    let file = disk.create("a", 0).unwrap();
    let write = |text: &[u8]| file.write_vectored_at(&[IoSlice::new(text)], 0);
    disk.fail_write(1);
    assert_eq!(write(b"one").unwrap(), 3);
    assert!(!disk.has_failed());
    assert!(write(b"two").is_err() && disk.has_failed());
    assert_eq!(
        disk.content("a").unwrap(),
        b"one",
        "nothing of it is written"
    );
    assert_eq!(write(b"six").unwrap(), 3);
    disk.fail_read(0);
    let mut buffer = [0; 3];
    assert!(file.read_at(&mut buffer, 0).is_err());
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 3);
    assert_eq!(&buffer, b"six");
    disk.fail_read(0);
    disk.crash(|_| Survive::All);
    assert!(!disk.has_failed(), "another life");
    assert!(disk.open("a").unwrap().read_at(&mut buffer, 0).is_ok());
}
