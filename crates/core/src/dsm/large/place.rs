//! Names of blocks of uploads.

use super::PREFIX;
use crate::object::{Kind, Name};
use crate::tag::{ClientId, Tag, Writer};

/// The place of a block in the name space of its upload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BlockPlace {
    /// A number of the upload's one writer.
    Own(u32),
    /// A number in a lane: those of one part, as one call has put it.
    Lane {
        /// A writer of the client that puts the part, used for nothing else.
        lane: Writer,
        /// Number of the block in its lane.
        number: u32,
    },
    /// The list of parts of this publication.
    List(Writer),
    /// The seal of a client that ends the upload, under a writer that it uses for nothing else: while it is there no publication is committed.
    /// The cell of that writer says whether the client goes on.
    Seal(Writer),
}

impl From<u32> for BlockPlace {
    fn from(number: u32) -> BlockPlace {
        BlockPlace::Own(number)
    }
}

impl From<&crate::object::Block> for BlockPlace {
    fn from(block: &crate::object::Block) -> BlockPlace {
        let number = block.number;
        match block.lane {
            Some(lane) => BlockPlace::Lane { lane, number },
            None => BlockPlace::Own(number),
        }
    }
}

impl BlockPlace {
    /// True if it holds bytes of a value.
    pub fn is_content(self) -> bool {
        matches!(self, BlockPlace::Own(_) | BlockPlace::Lane { .. })
    }

    /// True if only uploads in parts have such a block.
    pub(in crate::dsm) fn is_of_parts(self) -> bool {
        !matches!(self, BlockPlace::Own(_))
    }
}

const LIST: &str = "list-";
const SEAL: &str = "list-seal-";

/// The name of one block.
pub fn block_name(upload: Writer, place: impl Into<BlockPlace>) -> Name {
    let begin = prefix(upload);
    let key = match place.into() {
        BlockPlace::Own(number) => format!("{begin}{number:08x}"),
        BlockPlace::Lane { lane, number } => format!("{begin}{}{number:08x}", digits(lane)),
        BlockPlace::List(publication) => format!("{begin}{LIST}{}", digits(publication)),
        BlockPlace::Seal(owner) => format!("{begin}{SEAL}{}", digits(owner)),
    };
    let name = Name::new(Kind::Block, &key).expect("a short key");
    assert!(name.is_upload_block(), "it begins as all of them do");
    name
}

/// The beginning of the names of all blocks of an upload.
pub(in crate::dsm) fn prefix(upload: Writer) -> String {
    format!("{PREFIX}{}-", digits(upload))
}

/// The beginning of the names of all lists and seals of an upload.
pub(in crate::dsm) fn prefix_of_lists(upload: Writer) -> String {
    format!("{}{LIST}", prefix(upload))
}

/// A writer as 32 hexadecimal digits.
pub(in crate::dsm) fn digits(writer: Writer) -> String {
    let Writer { client, counter } = writer;
    format!("{:016x}{counter:016x}", client.0)
}

/// The writer with these digits.
pub fn parse_writer(digits: &str) -> Option<Writer> {
    let (client, counter) = digits.split_at_checked(16)?;
    Some(Writer {
        client: ClientId(hexadecimal(client, 16)?),
        counter: hexadecimal(counter, 16)?,
    })
}

fn hexadecimal(digits: &str, count: usize) -> Option<u64> {
    assert!(count <= 16, "so many digits are a number");
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    (digits.len() == count && are_digits)
        .then(|| u64::from_str_radix(digits, 16).ok())
        .flatten()
}

/// Upload and place of the block with this key, if it is that of one.
pub fn parse_key(key: &str) -> Option<(Writer, BlockPlace)> {
    let (upload, place) = key.strip_prefix(PREFIX)?.split_once('-')?;
    Some((parse_writer(upload)?, parse_place(place)?))
}

fn parse_place(place: &str) -> Option<BlockPlace> {
    if let Some(owner) = place.strip_prefix(SEAL) {
        return parse_writer(owner).map(BlockPlace::Seal);
    }
    if let Some(publication) = place.strip_prefix(LIST) {
        return parse_writer(publication).map(BlockPlace::List);
    }
    let (lane, number) = place.split_at_checked(place.len().checked_sub(8)?)?;
    let number = u32::try_from(hexadecimal(number, 8)?).ok()?;
    match lane {
        "" => Some(BlockPlace::Own(number)),
        lane => Some(BlockPlace::Lane {
            lane: parse_writer(lane)?,
            number,
        }),
    }
}

/// The only version of a block that is no tombstone: the same whoever puts it, however often.
pub(in crate::dsm) fn block_tag(upload: Writer) -> Tag {
    Tag::first(upload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(counter: u64) -> Writer {
        let client = ClientId(0xabc);
        Writer { client, counter }
    }

    #[test]
    fn names_of_blocks_say_upload_and_place() {
        let name = block_name(writer(7), 258);
        let key = "upload-0000000000000abc0000000000000007-00000102";
        assert_eq!((name.kind(), name.key()), (Kind::Block, key));
        let places = [
            BlockPlace::Own(258),
            BlockPlace::Lane {
                lane: writer(8),
                number: 9,
            },
            BlockPlace::List(writer(8)),
            BlockPlace::Seal(writer(8)),
        ];
        for place in places {
            let name = block_name(writer(7), place);
            assert_eq!(parse_key(name.key()), Some((writer(7), place)), "{name:?}");
            assert!(name.is_upload_block());
            assert!(name.key().starts_with(&prefix(writer(7))));
            let is_end = name.key().starts_with(&prefix_of_lists(writer(7)));
            assert_eq!(is_end, !place.is_content(), "{name:?}");
        }
        let foreign = [
            "file-1",
            "upload-",
            "upload-1-2",
            "upload-x",
            "upload-0000000000000abc0000000000000007-+0000102",
            "upload-0000000000000abc0000000000000007-list-1",
        ];
        for foreign in foreign {
            assert_eq!(parse_key(foreign), None, "{foreign}");
        }
    }
}
