//! Blocks of files in the history: what was written and read of each, with the link, as the judge of files has it
//! (`[B-1 never-unlinked]`, `[B-3 create-first]`, oracle O5).

use super::{History, Kind, Object, Operation};
use areo_core::instant::Instant;
use areo_core::tag::Tag;

/// The content of a version of a block.
pub(crate) struct BlockVersion {
    /// A hash of it, unique per write.
    pub(crate) value: u64,
    /// The key of the next block.
    pub(crate) next: Option<String>,
}

/// The fields of a block of `file` that leads to `next`.
fn link(file: &str, next: Option<&str>) -> String {
    let next = next.map_or("null".to_owned(), |next| format!("\"{next}\""));
    format!(",\"file\":\"{file}\",\"next\":{next}")
}

impl History {
    /// A block is being written, on `base`.
    pub(crate) fn begin_block(
        &mut self,
        began: Instant,
        (client, base): (usize, Tag),
        object: Object,
        (file, written): (&str, &BlockVersion),
    ) -> Operation {
        let (kind, value) = (Kind::CvrWrite(base), Some(written.value));
        let operation = self.block(client, kind, object, value);
        let link = link(file, written.next.as_deref());
        self.write_line(&began.into(), &operation, "invoke", (value, None), &link);
        operation
    }

    /// A block of `file` is being removed.
    pub(crate) fn begin_removal(
        &mut self,
        began: Instant,
        client: usize,
        object: Object,
        file: &str,
    ) -> Operation {
        let operation = self.block(client, Kind::Delete, object, None);
        let link = link(file, None);
        self.write_line(&began.into(), &operation, "invoke", (None, None), &link);
        operation
    }

    /// The block is at a quorum, as this version.
    pub(crate) fn end_block(&mut self, now: Instant, operation: &Operation, version: Tag) {
        self.write(&now.into(), operation, "ok", operation.value, Some(version));
    }

    /// A block was read, since `began`.
    pub(crate) fn read_block(
        &mut self,
        (began, now): (Instant, Instant),
        client: usize,
        object: Object,
        (version, file, written): (Tag, &str, &BlockVersion),
    ) {
        let operation = self.block(client, Kind::Read, object, None);
        let link = link(file, written.next.as_deref());
        self.write_line(&began.into(), &operation, "invoke", (None, None), &link);
        let found = (Some(written.value), Some(version));
        self.write_line(&now.into(), &operation, "ok", found, &link);
    }

    fn block(
        &mut self,
        client: usize,
        kind: Kind,
        object: Object,
        value: Option<u64>,
    ) -> Operation {
        self.operations += 1;
        Operation {
            id: self.operations,
            client,
            kind,
            object,
            value,
            floor: Tag::INITIAL,
        }
    }
}
