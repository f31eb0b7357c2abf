//! Documents: a writer, and a reader with limits.
