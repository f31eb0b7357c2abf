//! Coverable writes through the command line.

use crate::cluster::Cluster;

#[test]
fn a_write_on_the_newest_version_succeeds_and_on_any_other_ends_with_4() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let put = |key: &str, version: &str, value: &str| {
        let arguments = ["put", key, "--if-version", version];
        cluster.run_with(&arguments, value.as_bytes())
    };
    let first = put("note", "none", "one").done().text().to_owned();
    put("note", "none", "again").refused(4, &["'note'", "to be made", "at version", &first]);
    let second = put("note", &first, "two").done().text().to_owned();
    put("note", &first, "three").refused(4, &["expected at version", &first, &second]);
    assert_eq!(cluster.run(&["get", "note"]).done().text(), "two");
    let version = cluster.run(&["get", "note", "--version-only"]).done();
    assert_eq!(version.text(), second);

    // A version of another object, or of one that is gone, covers nothing.
    let other = cluster.run_with(&["put", "other"], b"x").done();
    put("note", other.text(), "three").refused(4, &["note", &second]);
    put("missing", &second, "three").refused(4, &["'missing'", "no such object"]);
    cluster.run(&["rm", "note"]).done();
    put("note", &second, "three").refused(4, &["'note'", "no such object"]);
    put("note", "none", "once more").done();
    assert_eq!(cluster.run(&["get", "note"]).done().text(), "once more");

    put("note", "7", "three").refused(2, &["'7' is not a version", "none"]);
    put("note", "0-00000000000000000", "three").refused(2, &["none"]);
}
