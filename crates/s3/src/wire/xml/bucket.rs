//! Documents of a bucket.

use super::Owner;
use super::tree::read;
use super::writer::document;
use crate::wire::error::S3Error;

/// `LocationConstraint`. The region `us-east-1` is written as none, as clients expect it.
pub fn location(region: &str) -> String {
    let region = if region == "us-east-1" { "" } else { region };
    document("LocationConstraint", |writer| writer.text(region))
}

/// `VersioningConfiguration` of a bucket that has never had versions.
pub fn versioning() -> String {
    document("VersioningConfiguration", |_| {})
}

/// `AccessControlPolicy`: the owner has all rights, and no other grant exists.
pub fn access_control(owner: &Owner) -> String {
    document("AccessControlPolicy", |writer| {
        writer.owner("Owner", owner);
        writer.within("AccessControlList", |writer| {
            writer.within("Grant", |writer| {
                let start = "Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"CanonicalUser\"";
                writer.nest(start, "Grantee", |writer| {
                    writer.element("ID", &owner.id);
                    writer.element("DisplayName", &owner.display_name);
                });
                writer.element("Permission", "FULL_CONTROL");
            });
        });
    })
}

/// Reads `CreateBucketConfiguration`: the location that is asked for, if there is one. The body may be empty.
///
/// # Errors
/// [`Code::MalformedXML`](crate::wire::Code::MalformedXML), or [`Code::NotImplemented`](crate::wire::Code::NotImplemented): it asks for something else
/// besides.
pub fn read_create(body: &[u8]) -> Result<Option<String>, S3Error> {
    if body.is_empty() {
        return Ok(None);
    }
    let mut root = read(body, "CreateBucketConfiguration")?;
    let location = root.take_text("LocationConstraint")?;
    root.finish()?;
    Ok(location.filter(|text| !text.is_empty()))
}
