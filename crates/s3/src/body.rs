//! Bodies of requests: their framing taken off, their checksums verified on the way, in bounded memory.
//!
//! | `x-amz-content-sha256` | framing | verified |
//! |---|---|---|
//! | 64 hexadecimal digits | none | SHA-256 of the body, at its end |
//! | `UNSIGNED-PAYLOAD` | none | checksums in headers |
//! | `STREAMING-UNSIGNED-PAYLOAD-TRAILER` | `aws-chunked` | the checksum in the trailer |
//! | `STREAMING-AWS4-HMAC-SHA256-PAYLOAD` | `aws-chunked` | the signature of each chunk, before its bytes are believed |
//! | `STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER` | `aws-chunked` | and that of the trailer, and the checksum in it |

pub mod checksum;
