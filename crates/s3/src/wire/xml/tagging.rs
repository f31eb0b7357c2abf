//! Tags of objects and buckets.

use super::tree::read;
use super::writer::document;
use crate::wire::error::S3Error;
use crate::wire::parse::check_tags;

/// Tags of an object.
pub const OF_OBJECT: usize = 10;
/// Tags of a bucket.
pub const OF_BUCKET: usize = 50;

/// Reads `Tagging`: at most this many tags, as names and values in the order of the document.
///
/// # Errors
/// [`Code::MalformedXML`](crate::wire::Code::MalformedXML), or [`Code::InvalidTag`](crate::wire::Code::InvalidTag): a tag is too long, is there twice, or
/// there are too many.
pub fn read_tagging(body: &[u8], most: usize) -> Result<Vec<(String, String)>, S3Error> {
    let mut root = read(body, "Tagging")?;
    let mut tags = Vec::new();
    if let Some(mut set) = root.take("TagSet")? {
        for mut tag in set.take_all("Tag") {
            tags.push((tag.need_text("Key")?, tag.need_text("Value")?));
            tag.finish()?;
        }
        set.finish()?;
    }
    root.finish()?;
    check_tags(&tags, most)?;
    Ok(tags)
}

/// Writes a `Tagging` document.
pub fn tagging(tags: &[(String, String)]) -> String {
    document("Tagging", |writer| {
        writer.within("TagSet", |writer| {
            for (name, value) in tags {
                writer.within("Tag", |writer| {
                    writer.element("Key", name);
                    writer.element("Value", value);
                });
            }
        });
    })
}
