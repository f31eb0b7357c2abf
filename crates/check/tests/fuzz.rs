//! The fuzz target on a stable toolchain: `areo_check::fuzzing` on mutations of the histories that are kept for it.

use areo_check::fuzzing;
use areo_fuzzing::{Driver, kept};

#[test]
fn histories_of_any_bytes() {
    Driver {
        target: fuzzing::history,
        corpus: &kept("history"),
        words: &[
            "invoke",
            "ok",
            "fail",
            "unknown",
            "read",
            "write",
            "regular_read",
            "cvr_write",
            "conditional_write",
            "delete",
            "reconfig",
            "null",
            "\"x\"",
            "\"y\"",
            "\"1-a1\"",
            "\"2-b1\"",
            "\"a\"",
            "\"b\"",
            "\"k\"",
            "true",
            "18446744073709551615",
        ],
        seed: 1,
        cost: 1,
    }
    .run();
}
