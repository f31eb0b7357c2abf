//! The fuzz target on a stable toolchain: `areo_net::fuzzing` on mutations of good hellos.

use areo_fuzzing::Driver;
use areo_net::fuzzing;

#[test]
fn callers_of_any_bytes() {
    Driver {
        target: fuzzing::admission,
        corpus: &fuzzing::good_hellos(),
        words: &[],
        seed: 1,
        cost: 10,
    }
    .run();
}
