//! The closed list of span names. Spans carry these names and no others; more come with the operations that are traced.

/// Computing parity fragments.
pub const EC_ENCODE: &str = "ec.encode";
/// Computing missing data fragments.
pub const EC_DECODE: &str = "ec.decode";
