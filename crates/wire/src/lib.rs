//! Messages to bytes and back: frames, checksums, message codec, records.
