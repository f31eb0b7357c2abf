//! Promises for any bytes that a stranger sends. Each function takes one input, panics if a promise is broken, and returns whether the input was
//! good.

pub mod signed;
pub mod wire;
