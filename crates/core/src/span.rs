//! The closed list of span names (`product.md`, Telemetry). Spans carry these names and no others.

/// A read of one object.
pub const READ: &str = "areo.read";
/// A write of one object, a delete included.
pub const WRITE: &str = "areo.write";
/// The first phase of an operation: what is the newest version?
pub const PHASE1: &str = "phase1";
/// The second phase of an operation: a quorum holds the version.
pub const PHASE2: &str = "phase2";
/// One get-tag.
pub const GET_TAG: &str = "dap.get_tag";
/// One get-data.
pub const GET_DATA: &str = "dap.get_data";
/// One put-data.
pub const PUT_DATA: &str = "dap.put_data";
/// Computing parity fragments.
pub const EC_ENCODE: &str = "ec.encode";
/// Computing missing data fragments.
pub const EC_DECODE: &str = "ec.decode";
/// One quorum call.
pub const NET_QUORUM: &str = "net.quorum";
