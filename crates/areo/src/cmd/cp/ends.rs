//! The two ends of a copy, as the command line names them.

use crate::exit::{Failure, Outcome};
use std::ffi::OsStr;
use std::path::PathBuf;

/// One end of a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// A local file or folder.
    Files(PathBuf),
    /// Objects of a domain.
    Objects(Objects),
}

/// Objects of a domain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Objects {
    pub(super) domain: String,
    /// A key, or the beginning of keys.
    pub(super) key: String,
}

impl End {
    /// # Errors
    /// It names neither.
    pub(super) fn parse(which: &str, text: &OsStr) -> Outcome<End> {
        let Some(known) = text.to_str() else {
            return Ok(End::Files(text.into()));
        };
        if known.starts_with("s3://") {
            return Err(Failure::usage(
                "`areo cp` knows no s3://: copy through a folder, or let a client of S3 such as rclone copy through `areo s3` (docs/backup.md)",
            ));
        }
        let Some(named) = known.strip_prefix("areo://") else {
            return match known {
                "" => Err(Failure::usage(format!("the {which} is empty"))),
                "-" => Err(Failure::usage(
                    "`areo cp` copies files: `areo put KEY` reads standard input, `areo get KEY` prints a value",
                )),
                _ => Ok(End::Files(text.into())),
            };
        };
        let (domain, key) = named.split_once('/').unwrap_or((named, ""));
        match domain {
            "" => Err(Failure::usage(format!(
                "'{known}' names no domain: objects are areo://DOMAIN/KEY"
            ))),
            domain => Ok(End::Objects(Objects {
                domain: domain.into(),
                key: key.into(),
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn an_end_is_a_path_or_a_domain_with_a_key() {
        let parse = |text: &str| End::parse("source", OsStr::new(text));
        let objects = |domain: &str, key: &str| {
            Ok(End::Objects(Objects {
                domain: domain.into(),
                key: key.into(),
            }))
        };
        assert_eq!(parse("areo://photos"), objects("photos", ""));
        assert_eq!(parse("areo://photos/"), objects("photos", ""));
        assert_eq!(parse("areo://photos/a%20/b/"), objects("photos", "a%20/b/"));
        assert_eq!(parse("areo://photos//a"), objects("photos", "/a"));
        assert_eq!(parse("a/areo:"), Ok(End::Files("a/areo:".into())));
        let strange = OsStr::from_bytes(b"\xff");
        assert_eq!(
            End::parse("source", strange),
            Ok(End::Files(strange.into()))
        );
        for wrong in ["", "-", "areo://", "areo:///a", "s3://bucket/a"] {
            assert_eq!(parse(wrong).unwrap_err().code, Code::Usage, "{wrong}");
        }
    }
}
