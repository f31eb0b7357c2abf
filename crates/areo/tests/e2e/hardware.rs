//! Versions that name the hardware on which they were written.

use crate::cluster::Cluster;

#[test]
fn versions_name_the_hardware_and_its_starts() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let put = |hardware: &str| {
        let arguments = ["--hardware-id", hardware, "put", "note"];
        let version = cluster.run_with(&arguments, b"x").done().text().to_owned();
        let (_, writer) = version.split_once('-').expect("a number and a writer");
        writer[..16].to_owned()
    };
    for (hardware, name) in [
        ("7", "0000000700000001"),
        ("7", "0000000700000002"),
        ("8", "0000000800000001"),
        ("7", "0000000700000003"),
    ] {
        assert_eq!(put(hardware), name);
    }
    assert_eq!(cluster.run(&["get", "note"]).done().text(), "x");
    let refused = cluster.run(&["--hardware-id", "x", "get", "note"]);
    refused.refused(2, &["--hardware-id"]);
}
