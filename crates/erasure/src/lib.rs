//! Systematic Reed-Solomon over GF(2^8): the only crate with unsafe code.
