//! The MIME type of a file by its extension: the common ones, nothing clever.

use std::path::Path;

/// Extensions, in lower case, with their types.
const TYPES: &[(&str, &str)] = &[
    ("avif", "image/avif"),
    ("bin", "application/octet-stream"),
    ("bz2", "application/x-bzip2"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ico", "image/x-icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("md", "text/markdown"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("parquet", "application/vnd.apache.parquet"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("toml", "application/toml"),
    ("tsv", "text/tab-separated-values"),
    ("txt", "text/plain"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
    ("zst", "application/zstd"),
];

/// The type of the file; `None` if its extension tells nothing.
pub(in crate::cmd) fn of(file: &Path) -> Option<&'static str> {
    let extension = file.extension()?.to_str()?.to_ascii_lowercase();
    let found = TYPES.binary_search_by_key(&extension.as_str(), |(extension, _)| extension);
    found.ok().map(|position| TYPES[position].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_tell_the_type() {
        assert!(TYPES.is_sorted(), "looked up by halving");
        for (extension, kind) in TYPES {
            let name = format!("a.b.{}", extension.to_uppercase());
            assert_eq!(of(Path::new(&name)), Some(*kind));
        }
        for unknown in ["a", ".png", "a.", "a.unknown", "png", "a.png/b"] {
            assert_eq!(of(Path::new(unknown)), None, "{unknown}");
        }
    }
}
