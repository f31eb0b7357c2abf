//! Checksums of S3, all of them computed in one pass.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, Digest};
use md5::{Digest as _, Md5};
use ring::digest;

use crate::wire::{Code, S3Error};

/// The checksums that a caller can ask for, beside the MD5 that is the `ETag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// CRC-32 of Ethernet and gzip.
    Crc32,
    /// CRC-32C, the CRC of iSCSI.
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

impl Algorithm {
    pub const ALL: [Algorithm; 5] = [
        Algorithm::Crc32,
        Algorithm::Crc32c,
        Algorithm::Crc64Nvme,
        Algorithm::Sha1,
        Algorithm::Sha256,
    ];

    /// The word in headers and documents: `CRC32`.
    pub fn word(self) -> &'static str {
        match self {
            Algorithm::Crc32 => "CRC32",
            Algorithm::Crc32c => "CRC32C",
            Algorithm::Crc64Nvme => "CRC64NVME",
            Algorithm::Sha1 => "SHA1",
            Algorithm::Sha256 => "SHA256",
        }
    }

    /// The algorithm of a word.
    pub fn of_word(word: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|one| one.word() == word)
    }

    /// The name of the header with the checksum, in small letters: `x-amz-checksum-crc32`.
    pub fn header(self) -> &'static str {
        match self {
            Algorithm::Crc32 => "x-amz-checksum-crc32",
            Algorithm::Crc32c => "x-amz-checksum-crc32c",
            Algorithm::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Algorithm::Sha1 => "x-amz-checksum-sha1",
            Algorithm::Sha256 => "x-amz-checksum-sha256",
        }
    }

    /// The algorithm of a header's name, in letters of any size.
    pub fn of_header(name: &str) -> Option<Algorithm> {
        let is_named = |one: &Algorithm| one.header().eq_ignore_ascii_case(name);
        Algorithm::ALL.into_iter().find(is_named)
    }

    /// The length of a checksum in bytes.
    pub fn length(self) -> usize {
        match self {
            Algorithm::Crc32 | Algorithm::Crc32c => 4,
            Algorithm::Crc64Nvme => 8,
            Algorithm::Sha1 => 20,
            Algorithm::Sha256 => 32,
        }
    }

    /// The checksum of bytes at hand.
    pub fn checksum(self, bytes: &[u8]) -> Checksum {
        let mut hasher = Hasher::new(self);
        hasher.update(bytes);
        hasher.finish()
    }

    fn crc(self) -> Option<CrcAlgorithm> {
        match self {
            Algorithm::Crc32 => Some(CrcAlgorithm::Crc32IsoHdlc),
            Algorithm::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
            Algorithm::Crc64Nvme => Some(CrcAlgorithm::Crc64Nvme),
            Algorithm::Sha1 | Algorithm::Sha256 => None,
        }
    }

    /// The last bytes of a CRC, as a checksum.
    fn of_crc(self, crc: u64) -> Checksum {
        let bytes = crc.to_be_bytes()[8 - self.length()..].to_vec();
        Checksum {
            algorithm: self,
            bytes,
        }
    }
}

/// The checksum of some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// The algorithm that computed it.
    pub algorithm: Algorithm,
    /// The value, most significant byte first: 4, 8, 20 or 32 bytes.
    pub bytes: Vec<u8>,
}

impl Checksum {
    /// Reads the text of a header or a document.
    ///
    /// # Errors
    /// [`Code::InvalidDigest`]: it is not Base64, or has another length.
    pub fn parse(algorithm: Algorithm, text: &str) -> Result<Checksum, S3Error> {
        let bytes = STANDARD.decode(text).ok();
        let bytes = bytes.filter(|bytes| bytes.len() == algorithm.length());
        let bytes = bytes.ok_or_else(|| {
            let (header, length) = (algorithm.header(), algorithm.length());
            let sentence = format!("the value of {header} must be {length} bytes in Base64");
            S3Error::new(Code::InvalidDigest, sentence)
        })?;
        Ok(Checksum { algorithm, bytes })
    }

    /// The text in headers and documents.
    pub fn text(&self) -> String {
        STANDARD.encode(&self.bytes)
    }

    /// The value as a number, if it is a CRC.
    fn crc(&self) -> Option<u64> {
        self.algorithm.crc()?;
        let number = self.bytes.iter();
        Some(number.fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }
}

/// Computes a checksum over bytes that come in pieces.
#[derive(Clone)]
pub struct Hasher {
    algorithm: Algorithm,
    state: State,
}

#[derive(Clone)]
enum State {
    Crc(Box<Digest>),
    Sha(Box<digest::Context>),
}

impl Hasher {
    /// A hasher that has no bytes yet.
    pub fn new(algorithm: Algorithm) -> Hasher {
        let sha = |kind| State::Sha(Box::new(digest::Context::new(kind)));
        let state = match (algorithm, algorithm.crc()) {
            (_, Some(crc)) => State::Crc(Box::new(Digest::new(crc))),
            (Algorithm::Sha1, None) => sha(&digest::SHA1_FOR_LEGACY_USE_ONLY),
            (_, None) => sha(&digest::SHA256),
        };
        Hasher { algorithm, state }
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Crc(state) => state.update(bytes),
            State::Sha(state) => state.update(bytes),
        }
    }

    /// The checksum of all bytes.
    pub fn finish(self) -> Checksum {
        let algorithm = self.algorithm;
        match self.state {
            State::Crc(state) => algorithm.of_crc(state.finalize()),
            State::Sha(state) => Checksum {
                algorithm,
                bytes: state.finish().as_ref().to_vec(),
            },
        }
    }
}

/// A part of a multipart upload, as combinations of checksums need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartChecksum {
    /// The length of the part in bytes.
    pub length: u64,
    pub checksum: Checksum,
}

/// The composite checksum of an object in parts, as text: the checksum of the parts' checksums, `-`, and the number of parts. `None`: the algorithm
/// has none ([`Algorithm::Crc64Nvme`]), a part has another algorithm, or there are no parts.
pub fn composite(algorithm: Algorithm, parts: &[PartChecksum]) -> Option<String> {
    if algorithm == Algorithm::Crc64Nvme || parts.is_empty() {
        return None;
    }
    let mut hasher = Hasher::new(algorithm);
    for part in parts {
        if part.checksum.algorithm != algorithm {
            return None;
        }
        hasher.update(&part.checksum.bytes);
    }
    Some(format!("{}-{}", hasher.finish().text(), parts.len()))
}

/// The checksum of all bytes of an object in parts. `None`: the algorithm cannot be combined (SHA), a part has another algorithm, or there are no
/// parts.
pub fn full_object(algorithm: Algorithm, parts: &[PartChecksum]) -> Option<Checksum> {
    let (crc, (first, others)) = (algorithm.crc()?, parts.split_first()?);
    let of_part = |part: &PartChecksum| {
        let is_same = part.checksum.algorithm == algorithm;
        part.checksum.crc().filter(|_| is_same)
    };
    let combined = others.iter().try_fold(of_part(first)?, |sum, part| {
        let next = of_part(part)?;
        Some(crc_fast::checksum_combine(crc, sum, next, part.length))
    });
    Some(algorithm.of_crc(combined?))
}

/// The `ETag` of an object in parts, without quotation marks: the MD5 of the parts' MD5s in hexadecimal digits, `-`, and the number of parts.
pub fn multipart_etag(parts: &[[u8; 16]]) -> String {
    let mut md5 = Md5::new();
    for part in parts {
        md5.update(part);
    }
    let digest: [u8; 16] = md5.finalize().into();
    format!("{}-{}", crate::auth::hex(&digest), parts.len())
}

/// The checksums that a caller says a body has.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Expected {
    /// The MD5 in the header `Content-MD5`.
    pub md5: Option<[u8; 16]>,
    /// `x-amz-checksum-*` in the head of the request.
    pub checksum: Option<Checksum>,
    /// The algorithm of the checksum in the trailer (`x-amz-trailer`).
    pub trailer: Option<Algorithm>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn published_check_values() {
        for (algorithm, known) in [
            (Algorithm::Crc32, vec![0xcb, 0xf4, 0x39, 0x26]),
            (Algorithm::Crc32c, vec![0xe3, 0x06, 0x92, 0x83]),
            (
                Algorithm::Crc64Nvme,
                vec![0xae, 0x8b, 0x14, 0x86, 0x0a, 0x79, 0x98, 0x88],
            ),
        ] {
            assert_eq!(
                algorithm.checksum(b"123456789").bytes,
                known,
                "{algorithm:?}"
            );
        }
        let text = |algorithm: Algorithm| algorithm.checksum(b"").text();
        assert_eq!(text(Algorithm::Crc32), "AAAAAA==");
        assert_eq!(text(Algorithm::Sha1), "2jmj7l5rSw0yVb/vlWAYkK/YBwk=");
        assert_eq!(
            text(Algorithm::Sha256),
            "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
        );
    }

    #[test]
    fn words_headers_and_texts_are_read_as_they_are_written() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::of_word(algorithm.word()), Some(algorithm));
            let header = algorithm.header();
            assert_eq!(Algorithm::of_header(header), Some(algorithm));
            let capitals = header.to_ascii_uppercase();
            assert_eq!(Algorithm::of_header(&capitals), Some(algorithm));
            let checksum = algorithm.checksum(b"areo");
            assert_eq!(checksum.bytes.len(), algorithm.length());
            let again = Checksum::parse(algorithm, &checksum.text());
            assert_eq!(again, Ok(checksum));
            for text in ["", "AA==", "not base64", "AAAAAA", "AAAAAAAAAAAAAAAAAAAA"] {
                let refused = Checksum::parse(algorithm, text).unwrap_err();
                assert_eq!(refused.code, Code::InvalidDigest, "{text}");
            }
        }
        assert_eq!(Algorithm::of_word("MD5"), None);
        assert_eq!(Algorithm::of_header("x-amz-checksum-md5"), None);
    }

    #[test]
    fn etags_and_composites_of_parts() {
        // Computed with coreutils: the MD5 of "areo" twice, in binary.
        let digest: [u8; 16] = Md5::digest(b"areo").into();
        let expected: [u8; 16] = Md5::digest([digest, digest].concat()).into();
        let expected = format!("{}-2", crate::auth::hex(&expected));
        assert_eq!(multipart_etag(&[digest, digest]), expected);
        let part = |algorithm: Algorithm| PartChecksum {
            length: 4,
            checksum: algorithm.checksum(b"areo"),
        };
        for algorithm in Algorithm::ALL {
            let parts = [part(algorithm), part(algorithm)];
            let twice = [&parts[0].checksum.bytes[..], &parts[1].checksum.bytes].concat();
            let expected = format!("{}-2", algorithm.checksum(&twice).text());
            let has_composite = algorithm != Algorithm::Crc64Nvme;
            let composite_text = composite(algorithm, &parts);
            assert_eq!(composite_text, has_composite.then_some(expected));
            let other = Algorithm::ALL.into_iter().find(|other| *other != algorithm);
            let mixed = [part(algorithm), part(other.unwrap())];
            assert_eq!(composite(algorithm, &mixed), None);
            assert_eq!(full_object(algorithm, &mixed), None);
            assert_eq!(composite(algorithm, &[]), None);
            assert_eq!(full_object(algorithm, &[]), None);
        }
        assert_eq!(full_object(Algorithm::Sha1, &[part(Algorithm::Sha1)]), None);
    }

    proptest! {
        #[test]
        fn a_combined_checksum_is_that_of_all_bytes(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..6)) {
            for algorithm in [Algorithm::Crc32, Algorithm::Crc32c, Algorithm::Crc64Nvme] {
                let of_part = |part: &Vec<u8>| PartChecksum { length: part.len() as u64, checksum: algorithm.checksum(part) };
                let sums: Vec<PartChecksum> = parts.iter().map(of_part).collect();
                prop_assert_eq!(full_object(algorithm, &sums), Some(algorithm.checksum(&parts.concat())));
            }
        }
    }
}
