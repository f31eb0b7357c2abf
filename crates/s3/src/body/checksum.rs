//! Checksums of S3, all of them computed in one pass.

/// The checksums that a caller can ask for, beside the MD5 that is the `ETag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// CRC-32 of Ethernet and gzip.
    Crc32,
    /// CRC-32C of iSCSI.
    Crc32c,
    /// CRC-64/NVME.
    Crc64Nvme,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
}

/// The checksum of some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// How it is computed.
    pub algorithm: Algorithm,
    /// It, with the byte of most weight first: 4, 8, 20 or 32 bytes.
    pub bytes: Vec<u8>,
}

/// The checksums that a caller says a body has.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Expected {
    /// `Content-MD5`.
    pub md5: Option<[u8; 16]>,
    /// `x-amz-checksum-*` in the head of the request.
    pub checksum: Option<Checksum>,
    /// The algorithm of the checksum in the trailer (`x-amz-trailer`).
    pub trailer: Option<Algorithm>,
}
