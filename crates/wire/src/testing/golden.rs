//! Golden files: the bytes of every example, pinned for every version that was ever written.

use crate::codec::EncodedMessage;
use std::fmt::Write as _;
use std::path::Path;

/// Set this to write the golden files anew; only for examples that were never released.
const WRITE: &str = "AREO_WRITE_GOLDEN";

/// Compares these examples with the golden file of that name, line by line.
pub(crate) fn check(file: &str, examples: &[(&str, EncodedMessage)]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(file);
    let mut text = String::from("# name, body, segments of the payload\n");
    for (name, encoded) in examples {
        text.push_str(name);
        let segments = encoded.payload.iter().map(|(bytes, _)| bytes);
        for part in std::iter::once(&encoded.body).chain(segments) {
            text.push(' ');
            for byte in part {
                write!(text, "{byte:02x}").expect("text grows");
            }
        }
        text.push('\n');
    }
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &text).expect("the golden file is written");
    }
    let golden = std::fs::read_to_string(&path).expect("there is a golden file");
    for (ours, pinned) in text.lines().zip(golden.lines()) {
        assert_eq!(ours, pinned, "{file}: released bytes never change");
    }
    let count = |text: &str| text.lines().count();
    assert_eq!(count(&text), count(&golden), "{file}: examples come and go");
}
