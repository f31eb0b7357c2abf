//! The library as programs use it: listings and values as streams, the deletion of many keys.

use crate::cluster::Cluster;
use areo_client::blocking::{Local, wait};
use areo_client::{Client, Domain, Entry, Error, PutOptions};
use futures_util::TryStreamExt;
use std::io::ErrorKind;
use std::time::Duration;

fn connect(cluster: &Cluster) -> (Client, Domain) {
    let client = wait(Client::connect(cluster.options())).expect("it is up");
    let domain = wait(client.domain("default")).expect("there is one");
    (client, domain)
}

fn keys(domain: &Domain, prefix: &str) -> Vec<String> {
    let listed = wait(domain.list_all(prefix).try_collect::<Vec<Entry>>());
    let listed = listed.expect("a quorum is there");
    listed.into_iter().map(|entry| entry.key).collect()
}

#[test]
fn a_listing_goes_on_to_its_last_page() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let (_client, domain) = connect(&cluster);
    // More than two pages of 1 000, and others on both sides.
    let many: Vec<String> = (0..2_100).map(|at| format!("many/{at:04}")).collect();
    for key in many.iter().map(String::as_str).chain(["a", "many", "z"]) {
        wait(domain.put(key, "x")).expect("a quorum is there");
    }
    assert_eq!(keys(&domain, "many/"), many);
    assert_eq!(keys(&domain, "many/2"), many[2_000..]);
    assert_eq!(keys(&domain, "none"), [""; 0]);

    let absent = "many/none".to_owned();
    let mut wanted = many[..2_050].to_vec();
    wanted.insert(3, absent.clone());
    let deleted = wait(domain.delete_many(wanted.clone()));
    let (named, ends): (Vec<String>, Vec<_>) = deleted.into_iter().unzip();
    assert_eq!(named, wanted);
    for (key, end) in named.iter().zip(ends) {
        let is_absent = matches!(end, Err(Error::NotFound { .. }));
        assert_eq!((is_absent, end.is_ok()), (*key == absent, *key != absent));
    }
    assert_eq!(
        keys(&domain, "many"),
        [&["many".to_owned()], &many[2_050..]].concat()
    );
}

#[test]
fn a_value_is_a_stream_and_a_source_of_bytes() {
    let mut cluster = Cluster::start(&["--durability", "memory"]);
    let (client, domain) = connect(&cluster);
    // Longer than all that a client with a window of 128 KiB has on its way.
    let value: Vec<u8> = (0..3_000_000_u32).map(|at| (at * 31) as u8).collect();
    let options = PutOptions {
        block_bytes: 64 << 10,
        ..PutOptions::default()
    };
    wait(domain.put_with("film", value.clone(), options)).expect("a quorum is there");

    let stream = wait(domain.get_stream("film")).expect("it is there");
    let pieces = wait(stream.into_stream().try_collect::<Vec<_>>());
    assert_eq!(pieces.expect("it is whole").concat(), value);

    let part = wait(domain.get_range("film", 65_000..200_000)).expect("it is there");
    let mut copy = Local(Vec::new());
    let copied = wait(tokio::io::copy_buf(&mut part.into_reader(), &mut copy));
    assert_eq!(copied.expect("it is whole"), 135_000);
    assert_eq!(copy.0, value[65_000..200_000]);

    // A reader that gets no more ends with the error of the store, which is inside.
    let narrow = wait(client.with_window(128 << 10).domain("default"));
    let narrow = narrow
        .expect("there is one")
        .with_timeout(Duration::from_secs(2));
    let stream = wait(narrow.get_stream("film")).expect("it is there");
    let mut reader = stream.into_reader();
    for server in ["s1", "s2", "s3", "s4", "s5"] {
        cluster.kill(server);
    }
    let failed = wait(tokio::io::copy_buf(&mut reader, &mut Local(Vec::new())));
    let failed = failed.expect_err("blocks are lacking");
    assert_eq!(failed.kind(), ErrorKind::Other);
    let inside = failed.into_inner().expect("the error of the store");
    assert!(inside.is::<Error>(), "{inside}");
}
