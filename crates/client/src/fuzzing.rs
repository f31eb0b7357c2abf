//! Promises for any bytes in the metadata of files: beside each block, and beside a local file. Each function takes one
//! input and panics if a promise is broken: nothing panics on the way, and what can be read survives being written and read
//! again. It says whether the input could be read, so that a driver notices when it only ever meets the first check.
//!
//! The targets in `fuzz/` call these, and so do tests here that need nothing but a stable toolchain.

use crate::file::Base;
use areo_core::fragment::block::{self, Home, Metadata};
use bytes::Bytes;

/// Decodes the bytes beside the data of a block of a file.
pub fn block(input: &[u8]) -> bool {
    let input = Bytes::copy_from_slice(input);
    let home = Home::decode(&input);
    let Ok(metadata) = Metadata::decode(&input) else {
        return false;
    };
    let file = block::genesis("any").expect("a short name");
    let home = home.unwrap_or(Home { file, era: 0 });
    let again = metadata.encode(&home);
    assert_eq!(Metadata::decode(&again), Ok(metadata));
    assert_eq!(Home::decode(&again), Some(home));
    true
}

/// Decodes the base of a local file without its checksum: the rest of it is reached in spite of that.
pub fn base(input: &[u8]) -> bool {
    let Some(base) = Base::decode(&Base::checked(input)) else {
        return false;
    };
    // As commands do.
    assert_eq!(base.chain.digests().len(), base.chain.data().len());
    assert!(base.chain.length() < u64::MAX);
    assert_eq!(Base::decode(&base.encode()), Some(base));
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_core::fragment::Digest;
    use areo_core::tag::{ClientId, Writer};
    use areo_fuzzing::Driver;

    #[test]
    fn metadata_of_blocks_of_any_bytes() {
        let writer = |counter| Writer {
            client: ClientId(7),
            counter,
        };
        let home = |file, era| Home {
            file: block::genesis(file).unwrap(),
            era,
        };
        let full = Metadata {
            next: Some(writer(1)),
            digest: Some(Digest([7; 32])),
            written_at_ms: Some(9),
        };
        let corpus = [
            full.encode(&home("notes", 0)).to_vec(),
            Metadata::default().encode(&home("another", 3)).to_vec(),
        ];
        Driver {
            target: super::block,
            corpus: &corpus,
            words: &[],
            seed: 1,
            cost: 1,
        }
        .run();
    }

    #[test]
    fn bases_of_any_bytes() {
        let corpus = Base::examples().map(|base| base.body());
        Driver {
            target: super::base,
            corpus: &corpus,
            words: &[],
            seed: 2,
            cost: 1,
        }
        .run();
    }
}
