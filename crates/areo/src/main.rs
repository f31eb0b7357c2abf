//! The binary `areo`.
fn main() {}
