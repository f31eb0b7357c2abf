//! What values of arguments are, and what is said about those that are none.

use areo_client::units::parse_size;
use areo_client::{InvalidKey, Version, limits};
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use std::ffi::OsStr;

/// Keys that can name an object; says what is wrong with others in the words of the library.
#[derive(Clone)]
pub(super) struct KeyParser;

impl TypedValueParser for KeyParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        check_key(value).map_err(|invalid| {
            clap::Error::raw(ErrorKind::ValueValidation, format!("{invalid}\n")).with_cmd(command)
        })
    }
}

fn check_key(value: &OsStr) -> Result<String, InvalidKey> {
    let key = value.to_str().ok_or(InvalidKey::NotUtf8)?;
    match key.len() {
        0 => Err(InvalidKey::Empty),
        bytes if bytes > limits::KEY_BYTES => Err(InvalidKey::TooLong { bytes }),
        _ => Ok(key.to_owned()),
    }
}

pub(super) fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("metadata is written NAME=VALUE".into()),
    }
}

/// A limit of values that servers and clients accept.
pub(crate) fn parse_max_object(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err("0 leaves no room for a value".into()),
        size if size > limits::VALUE_BYTES => Err(format!("'{text}' is more than 1GiB")),
        size => Ok(size),
    }
}

/// Bytes of a block of a file.
pub(crate) fn parse_block_size(text: &str) -> Result<usize, String> {
    let size = parse_size(text)?;
    match usize::try_from(size) {
        Ok(size) if (4 << 10..=64 << 20).contains(&size) => Ok(size),
        _ => Err(format!("blocks have 4KiB to 64MiB, not '{text}'")),
    }
}

pub(super) fn parse_copy_limit(text: &str) -> Result<u32, String> {
    let size = parse_size(text)?;
    u32::try_from(size).map_err(|_| format!("'{text}' is more than 4GiB"))
}

/// The basis of a coverable write: a version, or the absence of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Basis(pub(crate) Option<Version>);

pub(super) fn parse_basis(text: &str) -> Result<Basis, String> {
    match text {
        "none" => Ok(Basis(None)),
        text => match text.parse::<Version>() {
            Ok(version) if !version.is_initial() => Ok(Basis(Some(version))),
            Ok(_) => Err(format!("'{text}' is the version of no object: say `none`")),
            Err(error) => Err(format!("{error}; or `none`: there must be no object")),
        },
    }
}
