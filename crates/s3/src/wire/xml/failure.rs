//! The document of an error.

use super::writer::bare_document;
use crate::wire::error::S3Error;

/// `Error`. `more` are elements that some errors have besides, such as `Key` or `BucketName`.
pub fn error(error: &S3Error, resource: &str, request_id: &str, more: &[(&str, &str)]) -> String {
    bare_document("Error", |writer| {
        writer.element("Code", error.code.word());
        writer.element("Message", &error.message);
        for (name, text) in more {
            writer.element(name, text);
        }
        writer.element("Resource", resource);
        writer.element("RequestId", request_id);
    })
}
