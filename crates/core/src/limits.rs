//! Everything that is bounded, in one place.

/// Bytes of a key.
pub const KEY_BYTES: usize = 1024;
/// Bytes by which a record of an upload in progress differs from others of the same key ([`crate::object::Kind::Upload`]).
pub const RECORD_SUFFIX_BYTES: usize = 79;
/// Bytes of the name of an object within its kind: the longest is that of a record, with a byte between key and suffix.
pub const OBJECT_NAME_BYTES: usize = KEY_BYTES + 1 + RECORD_SUFFIX_BYTES;
/// Bytes of user metadata (names and values together) of one object.
pub const USER_METADATA_BYTES: usize = 2048;
/// Bytes of encoded metadata of one object: user pairs, content type and the store's own fields.
pub const METADATA_BYTES: usize = 4096;
/// Bytes of a content type.
pub const CONTENT_TYPE_BYTES: usize = 256;
/// Longest ETag, in characters.
pub const ETAG_BYTES: usize = 64;
/// Parts that a manifest lists at most.
pub const PARTS: usize = 32;
/// Parts that a list of parts has at most.
pub const LISTED_PARTS: usize = 10_000;
/// Bytes of one value, unless the user asks for more.
pub const DEFAULT_VALUE_BYTES: u64 = 64 << 20;
/// Bytes of one value, whatever the user asks for.
pub const VALUE_BYTES: u64 = 1 << 30;
/// Values up to this size are kept as full copies in an erasure-coded configuration, unless its descriptor says otherwise.
pub const DEFAULT_COPY_BYTES: u32 = 16 << 10;
/// Elements up to this size are sent with the answer to a query; larger ones are fetched by a call of their own, which
/// travels beside the small ones, so that those never wait behind it.
pub const INLINE_BYTES: u64 = 256 << 10;
/// Members of one configuration.
pub const MEMBERS: usize = 255;
/// Bytes of the name of a domain or a server.
pub const NAME_BYTES: usize = 63;
/// Entries of one page of a listing.
pub const PAGE_ENTRIES: usize = 1000;
/// Accesses in one request.
pub const ACCESSES: usize = 1024;
/// Requests for many objects that one reader has under way at once.
pub const HEADERS_WINDOW: usize = 4;
/// Bytes of the value of a decided-once cell.
pub const CELL_BYTES: usize = 12 << 10;
/// Bytes of the name of a decided-once cell.
pub const CELL_NAME_BYTES: usize = 256;
/// Elements of one object that no client has confirmed: a put beyond this is answered busy (`[X-3 unconfirmed-cap]`).
pub const UNCONFIRMED_ELEMENTS: usize = 64;
/// Objects whose counters are restarted at once (2.11).
pub const RESTART_OBJECTS: usize = 16;
/// Versions of one of them of which a member speaks: the largest.
pub const RESTART_VERSIONS: usize = 128;
/// Bytes of gossip of a server to each other member in one period ([`crate::timing::GOSSIP`], 2.10).
pub const GOSSIP_BYTES: usize = 64 << 10;
/// Objects that changed, of which a server speaks before others.
pub const GOSSIP_CHANGED: usize = 4096;
/// Versions of a ranked register that a server holds before it takes in a new one only in place of others (`[W-4 cap]`).
pub const RANKED_VERSIONS: usize = 4;
/// The ancestors of a version of a ranked register among which, and itself, the one is that was chosen last (`[W-4 cap]`).
pub const UNSETTLED_ANCESTORS: usize = 2;
/// Buckets into which the names of the registers of a configuration fall, each with a floor of ballots (`[W-16 ballot-floor]`).
pub const NAME_BUCKETS: u64 = 256;
/// Promises that a server folds into floors before it does something else.
pub const FOLDED_PROMISES: usize = 4096;
/// Ancestors that a version of a ranked register names (`[W-6 ancestors]`).
pub const ANCESTORS: usize = 16;
/// Numbers of tags and ballots are below this (`[N-1 bounded-numbers]`): so many writes of one object do not happen, so that
/// a larger number is a mistake or an attack, after which no write could follow.
pub const NUMBER: u64 = 1 << 62;
/// Numbers of ballots from here on decide the last version of a register in a configuration that is closed
/// (`[W-13 ceasing-to-be-conditional]`); others are below it.
pub const CLOSING: u64 = 1 << 61;
/// Numbers of ballots up to this one, which clocks show in 36 000 years, are remembered by a client for all objects. Larger ones
/// are of the object that has them (`[N-1 bounded-numbers]`).
pub const REMEMBERED_BALLOT: u64 = CLOSING / 2;
/// The number of times that a domain may cease to be conditional: an object's first versions are numbered from one of so many places on
/// (`[W-13 ceasing-to-be-conditional]`).
pub const ERAS: u32 = 1 << 14;
/// Indices of configurations are below this (`[N-1 bounded-numbers]`), so that each has one after it.
pub const INDEX: u32 = 1 << 31;
/// Servers that a membership of a lattice names: those that were ever a member of its domain. Its descriptor fits where
/// descriptors go ([`CELL_BYTES`]).
pub const LATTICE_SERVERS: usize = 384;
/// Members that merged changes leave, at least, unless there were fewer before (`[R-3 never-too-few]`).
pub const LATTICE_MEMBERS: usize = 3;
/// Pointers that a configuration has at a time (`[R-25 whole-sets]`).
pub const SUCCESSORS: usize = 32;
/// Later configurations for which a server answers a query at a time (`[R-20 answers-for-later]`).
pub const LATER_ANSWERS: usize = 8;
/// Versions of one object whose fate is being decided at once.
pub const FATE_WINDOW: usize = 16;
/// Tags that the list of one object has in EC-DAP as published, which forgets none: as many as a reply has room for. A put
/// beyond this is refused.
pub const LISTED_TAGS: usize = 32_768;
/// Bytes of the text that says who decides which configuration comes next.
pub const DECIDER_BYTES: usize = 1024;
/// Servers that a cluster's registry holds.
pub const REGISTERED_SERVERS: usize = 4096;
/// Labels that a client gives a server, those that were removed included.
pub const LABELS: usize = 16;
/// Labels that a register keeps of a server: those of clients that each saw fewer, too. A join that is refused would stop a transfer.
pub const JOINED_LABELS: usize = 3 * LABELS;
/// Bytes of the key of a label.
pub const LABEL_KEY_BYTES: usize = 32;
/// Bytes of the text of a label.
pub const LABEL_TEXT_BYTES: usize = 128;
/// `delta` of a configuration unless the user says otherwise (2.2).
pub const DEFAULT_DELTA: u16 = 5;

/// Values longer than this are written in blocks of this length, unless the user says otherwise (10.6).
pub const DEFAULT_BLOCK_BYTES: u32 = 4 << 20;
/// Bytes that a block may be chosen to have, at least.
pub const MIN_BLOCK_BYTES: u32 = 4 << 10;
/// Bytes that a block may be chosen to have, at most.
pub const MAX_BLOCK_BYTES: u32 = 64 << 20;
/// Bytes of blocks that one reader or writer of a value has under way at once; a larger block goes alone.
pub const WINDOW_BYTES: u64 = 32 << 20;
/// Blocks that it has under way at once.
pub const BLOCK_WINDOW: u64 = 64;
/// Blocks of one value.
pub const BLOCKS: u64 = 1 << 32;
/// Blocks that a sweep removes at once.
pub const SWEEP_WINDOW: usize = 64;
/// Objects that are repaired at once.
pub const REPAIR_WINDOW: usize = 4;
/// Domains of which the directory is asked at once.
pub const DIRECTORY_WINDOW: usize = 16;
/// Domains in which a leader makes changes at once.
pub const LEADER_WINDOW: usize = 16;
/// Objects that could not be repaired, of which a server remembers when to try again.
pub const REPAIR_FAILURES: usize = 10_000;
/// Domains of which a server's status speaks.
pub const STANDINGS: usize = 1000;
/// Objects that a transfer reports as lost before it ends; the others are found by the next one.
pub const LOST_OBJECTS: usize = 256;
/// Quorum calls of a transfer that are under way at once.
pub const TRANSFER_WINDOW: usize = 4;
/// Objects that a transfer moves by one quorum call, if they are small together.
pub const TRANSFER_BATCH: usize = 64;
/// Objects that a transfer moves before it takes up the next ones.
pub const TRANSFER_OBJECTS: usize = 512;
/// Bytes of their values; a larger one goes alone.
pub const TRANSFER_BYTES: u64 = 64 << 20;

// What must hold between them after every change of one.

const _: () = assert!(
    LATTICE_SERVERS * (16 + 4) + MEMBERS * 16 + 256 <= CELL_BYTES,
    "each descriptor of a lattice fits"
);
const _: () = assert!(
    UNSETTLED_ANCESTORS < RANKED_VERSIONS,
    "a settled version finds a place"
);
const _: () = assert!(SUCCESSORS <= u8::MAX as usize, "their count is a byte");
const _: () = assert!(
    MEMBERS <= u8::MAX as usize,
    "an index of a fragment is a byte"
);
const _: () = assert!(
    MEMBERS <= REGISTERED_SERVERS,
    "every member can be registered"
);
const _: () = assert!(
    NAME_BYTES <= u8::MAX as usize,
    "a registered name has up to 255 bytes"
);
const _: () = assert!(
    OBJECT_NAME_BYTES < u16::MAX as usize,
    "the length of a name is sent as 16 bits"
);
const _: () = assert!(
    METADATA_BYTES <= u16::MAX as usize,
    "its length is stored as 16 bits"
);
const _: () = assert!(
    PAGE_ENTRIES <= u16::MAX as usize,
    "a page's limit is sent as 16 bits"
);
const _: () = assert!(PAGE_ENTRIES >= 10, "a page of cells is a tenth of it");
const _: () = assert!(DEFAULT_VALUE_BYTES <= VALUE_BYTES, "the default can be had");
const _: () = assert!(INLINE_BYTES <= TRANSFER_BYTES, "a batch fits its group");
const _: () = assert!(
    DEFAULT_COPY_BYTES as u64 <= INLINE_BYTES,
    "a copy comes with the answer"
);
const _: () = assert!(TRANSFER_BATCH <= ACCESSES, "a batch is one request");
const _: () = assert!(TRANSFER_BATCH <= TRANSFER_OBJECTS, "a batch fits its group");
const _: () = assert!(
    FATE_WINDOW <= UNCONFIRMED_ELEMENTS,
    "fates are of unconfirmed versions"
);
const _: () = assert!(
    UNCONFIRMED_ELEMENTS + DEFAULT_DELTA as usize + 2 <= LISTED_TAGS,
    "a reply has room for what an object has unless the user asks for more"
);
const _: () = assert!(
    HEADERS_WINDOW > 0 && FATE_WINDOW > 0 && SWEEP_WINDOW > 0 && TRANSFER_WINDOW > 0,
    "a window lets something through"
);
const _: () = assert!(
    MIN_BLOCK_BYTES <= DEFAULT_BLOCK_BYTES && DEFAULT_BLOCK_BYTES <= MAX_BLOCK_BYTES,
    "the default may be chosen"
);
const _: () = assert!(
    MAX_BLOCK_BYTES as u64 <= DEFAULT_VALUE_BYTES,
    "a server takes any block"
);
const _: () = assert!(
    DEFAULT_BLOCK_BYTES as u64 <= WINDOW_BYTES,
    "a window has room for a block"
);
const _: () = assert!(
    BLOCKS.checked_mul(MAX_BLOCK_BYTES as u64).is_some(),
    "places within a value are 64 bits"
);
