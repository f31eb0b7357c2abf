//! Deletion of many objects.

use super::tree::{malformed, read};
use super::writer::document;
use crate::wire::error::{Code, S3Error};
use crate::wire::etag::WriteCondition;
use crate::wire::parse::checked_key;

/// Objects of one request.
pub const KEYS: usize = 1000;

/// The content of a `Delete` document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// True if the response is to name failures alone.
    pub is_quiet: bool,
    /// The objects, 1 to 1000, in the order of the document.
    pub objects: Vec<DeleteEntry>,
}

/// An object that is to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteEntry {
    pub key: String,
    /// The version that is to be deleted.
    pub condition: Option<WriteCondition>,
}

/// An object that was not deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteFailure {
    pub key: String,
    pub error: S3Error,
}

/// Reads `Delete`.
///
/// # Errors
/// [`Code::MalformedXML`], [`Code::KeyTooLongError`], or [`Code::NotImplemented`]: an object has a version other than `null`, or another condition than
/// its `ETag`.
pub fn read_delete(body: &[u8]) -> Result<Delete, S3Error> {
    let mut root = read(body, "Delete")?;
    let is_quiet = match root.take_text("Quiet")?.as_deref().map(str::trim) {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(malformed("Quiet is true or false")),
    };
    let listed = root.take_all("Object");
    root.finish()?;
    if listed.is_empty() || listed.len() > KEYS {
        let sentence = format!("{} objects are listed: send 1 to {KEYS}", listed.len());
        return Err(malformed(sentence));
    }
    let mut objects = Vec::with_capacity(listed.len());
    for mut object in listed {
        let key = checked_key(object.need_text("Key")?)?;
        if key.is_empty() {
            return Err(malformed("an object has an empty key"));
        }
        if let Some(version) = object.take_text("VersionId")?
            && version != "null"
        {
            let sentence = "buckets have no versions: leave VersionId out";
            return Err(S3Error::new(Code::NotImplemented, sentence));
        }
        let etag = object.take_text("ETag")?;
        object.finish()?;
        let condition = WriteCondition::parse(etag.as_deref(), None)?;
        objects.push(DeleteEntry { key, condition });
    }
    Ok(Delete { is_quiet, objects })
}

/// `DeleteResult`. A quiet one names no deleted object: then `deleted` is empty.
pub fn deleted(deleted: &[String], failures: &[DeleteFailure]) -> String {
    document("DeleteResult", |writer| {
        for key in deleted {
            writer.within("Deleted", |writer| writer.key("Key", key));
        }
        for failure in failures {
            writer.within("Error", |writer| {
                writer.key("Key", &failure.key);
                writer.element("Code", failure.error.code.word());
                writer.element("Message", &failure.error.message);
            });
        }
    })
}
