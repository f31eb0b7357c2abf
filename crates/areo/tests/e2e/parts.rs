//! Values in parts: put by several clients at once, published by another, read as one.

use crate::cluster::Cluster;
use areo_client::blocking::wait;
use areo_client::{Client, Condition, Domain, Error, Invalid, PutOptions, StoredPart, UploadId};

const BLOCK_BYTES: u32 = 64 << 10;

fn content(part: usize) -> Vec<u8> {
    let length = 150_000 + 1000 * part;
    (0..length).map(|at| (at * 31 + part * 7) as u8).collect()
}

/// Puts parts by two clients at once; what comes back is the text of each.
fn put_by_two(cluster: &Cluster, name: &str, upload: &str, parts: usize) -> Vec<String> {
    let put = |first: usize| {
        let client = wait(Client::connect(cluster.options())).expect("it is up");
        let domain = wait(client.domain(name)).expect("there is one");
        let upload: UploadId = upload.parse().expect("its text");
        let put = |part| {
            let content = content(part);
            let put = wait(domain.put_part(upload, &content[..], BLOCK_BYTES));
            (part, put.expect("a quorum is there").to_string())
        };
        (first..parts).step_by(2).map(put).collect::<Vec<_>>()
    };
    let mut all = std::thread::scope(|scope| {
        let put = &put;
        let both = [0, 1].map(|first| scope.spawn(move || put(first)));
        both.map(|it| it.join().expect("it does not panic"))
            .concat()
    });
    all.sort();
    all.into_iter().map(|(_, text)| text).collect()
}

fn publish(
    domain: &Domain,
    upload: &str,
    parts: &[String],
    condition: Condition,
) -> Result<areo_client::Version, Error> {
    let parts: Vec<StoredPart> = parts
        .iter()
        .map(|text| text.parse().expect("its text"))
        .collect();
    let upload = upload.parse().expect("its text");
    let options = PutOptions {
        content_type: Some("text/plain".into()),
        ..PutOptions::default()
    };
    wait(domain.publish_parts("big", upload, &parts, options, condition))
}

#[test]
fn a_value_in_parts_is_read_as_one() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let create = ["domain", "create", "one", "--dap", "conditional"];
    cluster.run(&create).done();
    for name in ["default", "one"] {
        let areo = |arguments: &[&str]| cluster.run(&[&["--domain", name], arguments].concat());
        let client = wait(Client::connect(cluster.options())).unwrap();
        let domain = wait(client.domain(name)).unwrap();
        let upload = wait(domain.begin_parts()).unwrap().to_string();
        let parts = put_by_two(&cluster, name, &upload, 40);
        let whole: Vec<u8> = (0..40).flat_map(content).collect();
        let version = publish(&domain, &upload, &parts, Condition::Always).unwrap();
        let again = publish(&domain, &upload, &parts, Condition::Always);
        assert_eq!(again.unwrap(), version, "{name}: it is found again");
        let differs = publish(&domain, &upload, &parts[..3], Condition::Always).unwrap_err();
        let is_other = matches!(
            &differs,
            Error::Invalid {
                reason: Invalid::OtherParts { .. }
            }
        );
        assert!(is_other, "{differs}");

        assert_eq!(areo(&["get", "big"]).done().stdout, whole);
        let object = wait(domain.get("big")).unwrap();
        assert_eq!(object.version, version);
        assert_eq!(object.metadata.content_type.as_deref(), Some("text/plain"));
        assert!(
            object.into_bytes() == whole,
            "{name}: the bytes of the parts"
        );
        let stream = wait(domain.get_range("big", 149_990..150_010));
        let mut stream = stream.unwrap();
        let mut read = Vec::new();
        while let Some(piece) = wait(stream.next()).unwrap() {
            read.extend_from_slice(&piece);
        }
        assert_eq!(read, whole[149_990..150_010]);
        let about = wait(domain.stat("big")).unwrap();
        let blocks = about.metadata.blocks.expect("it is in blocks");
        assert_eq!((blocks.count(), blocks.block_bytes()), (120, BLOCK_BYTES));

        areo(&["rm", "big"]).done();
        let swept = wait(domain.orphans()).unwrap();
        assert_eq!(swept.values.orphans().blocks, 0, "{name}: nothing is left");
        let late = publish(&domain, &upload, &parts, Condition::Always).unwrap_err();
        assert!(matches!(late, Error::Swept { .. }), "{late}");
    }
}

#[test]
fn a_condition_is_judged_when_the_parts_are_published() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let create = ["domain", "create", "one", "--dap", "conditional"];
    cluster.run(&create).done();
    let client = wait(Client::connect(cluster.options())).unwrap();
    let domain = wait(client.domain("one")).unwrap();
    let upload = wait(domain.begin_parts()).unwrap();
    let parts = put_by_two(&cluster, "one", &upload.to_string(), 3);
    let before = wait(domain.put("big", "x")).unwrap();
    let text = upload.to_string();
    let conflict = publish(&domain, &text, &parts, Condition::Absent).unwrap_err();
    assert!(
        matches!(conflict, Error::VersionConflict { .. }),
        "{conflict}"
    );
    let version = publish(&domain, &text, &parts, Condition::Version(before)).unwrap();
    assert_eq!(wait(domain.stat("big")).unwrap().version, version);

    let upload = wait(domain.begin_parts()).unwrap();
    let parts = put_by_two(&cluster, "one", &upload.to_string(), 3);
    wait(domain.abort_parts(upload)).unwrap();
    let swept = wait(domain.orphans()).unwrap();
    assert_eq!(swept.values.orphans().blocks, 0);
    let late = publish(&domain, &upload.to_string(), &parts, Condition::Always).unwrap_err();
    assert!(matches!(late, Error::Swept { .. }), "{late}");
    let weak = wait(client.domain("default")).unwrap();
    let refused = publish(&weak, &text, &parts, Condition::Absent).unwrap_err();
    assert!(refused.to_string().contains("not conditional"), "{refused}");
}
