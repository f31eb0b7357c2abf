//! Writes the golden examples into `corpus/`, where `cargo fuzz` looks for inputs to begin with. Targets that take text have
//! theirs there already.

use areo_wire::checksum::crc32c;
use areo_wire::frame::{self, BodyPlace, Header, Kind, SegmentRow};
use areo_wire::fuzzing::Golden;
use areo_wire::hello::{self, Channel, Hello, Role};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let requests = Golden::parse(include_str!("../crates/wire/tests/golden/request-v2.txt"));
    let replies = Golden::parse(include_str!("../crates/wire/tests/golden/reply-v2.txt"));
    let notes = Golden::parse(include_str!("../crates/wire/tests/golden/note-v2.txt"));
    let records = Golden::parse(include_str!("../crates/wire/tests/golden/record-v2.txt"));
    let inputs = |golden: &[Golden]| golden.iter().map(Golden::input).collect::<Vec<_>>();
    write("request", &inputs(&requests))?;
    write("reply", &inputs(&replies))?;
    write("note", &inputs(&notes))?;
    let headers: Vec<_> = records.into_iter().map(|golden| golden.body).collect();
    write("record_header", &headers)?;
    write("frame", &requests.iter().map(framed).collect::<Vec<_>>())?;
    let hello = Hello::new(Role::Client, Channel::Calls, 7);
    write("hello", &[hello::encode_hello(&hello)])?;
    write("admission", &areo_net::fuzzing::good_hellos())?;
    write("s3_authorization", &areo_s3::fuzzing::signed::good_heads())?;
    write("s3_chunks", &areo_s3::fuzzing::signed::good_chunks())?;
    let files = data_files()?;
    write("identity", &[files["IDENTITY"].clone()])?;
    write("recovery", &[areo_store::fuzzing::join(&files)])
}

/// The golden data files, by name.
fn data_files() -> io::Result<BTreeMap<String, Vec<u8>>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/store/tests/golden/format-1");
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.insert(name, std::fs::read(entry.path())?);
    }
    Ok(files)
}

fn framed(golden: &Golden) -> Vec<u8> {
    let row = |segment: &Vec<u8>| SegmentRow {
        bytes: segment.len() as u32,
        crc32c: crc32c(segment),
    };
    let rows: Vec<SegmentRow> = golden.segments.iter().map(row).collect();
    let (header, rows) = (Header::new(Kind::Request, 1), rows.iter().copied());
    let mut out = Vec::new();
    frame::encode(&mut out, &header, rows, &golden.body, BodyPlace::Inline)
        .expect("an example is small");
    out
}

fn write(target: &str, inputs: &[Vec<u8>]) -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    std::fs::create_dir_all(&folder)?;
    for (number, input) in inputs.iter().enumerate() {
        std::fs::write(folder.join(format!("golden-{number}")), input)?;
    }
    println!("{target}: {} inputs", inputs.len());
    Ok(())
}
