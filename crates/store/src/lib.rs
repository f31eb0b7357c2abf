//! The disk of a server: an append-only segment log behind a small Disk trait.
