use super::*;
use crate::exit::Code;
use std::fs;

#[test]
fn a_directory_gets_a_file_named_by_the_last_part_of_the_key() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("taken")).unwrap();
    for key in ["value", "a/b/value"] {
        let file = file_for(folder.path(), key).unwrap();
        assert_eq!(file, folder.path().join("value"), "{key}");
    }
    for key in ["a/", "..", "a/..", ".", "a/\0", "a/taken"] {
        let refused = file_for(folder.path(), key).unwrap_err();
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
