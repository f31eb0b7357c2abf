//! The fuzz targets on a stable toolchain: every entry point of `areo::fuzzing` on mutations of the inputs that are kept
//! for it.

use areo::fuzzing;
use areo_fuzzing::{Driver, kept};

#[test]
fn configurations_of_any_bytes() {
    Driver {
        target: fuzzing::configuration,
        corpus: &kept("configuration"),
        words: &"[up]|[server]|servers|up.|server.|timeout|= |\"|'|true|false|5s|64MiB|ec|abd|fsync|memory|json|text|{|}|\
             [[|\\u0000|1e400|nan|2026-11-21T00:00:00Z|\0AREO_JSON=|\n"
            .split('|')
            .collect::<Vec<_>>(),
        seed: 1,
        cost: 1,
    }
    .run();
}

#[test]
fn cluster_files_of_any_bytes() {
    Driver {
        target: fuzzing::cluster_file,
        corpus: &kept("cluster_file"),
        words: &"[[servers]]|version = 1\n|name|id|address|admin|durability|fsync|memory|max-object|block-size|64MiB|\
             1.5GiB|18446744073709551615|= |\"|\"\"|'|\\n|00000000000000000000000000000001|\n"
            .split('|')
            .collect::<Vec<_>>(),
        seed: 2,
        cost: 1,
    }
    .run();
}

#[test]
fn arguments_of_any_bytes() {
    Driver {
        target: fuzzing::arguments,
        corpus: &kept("arguments"),
        words: &"--timeout\n|5s\n|--json\n|--cluster\n|--config=\n|--|-|=|\n|up\n|put\n|get\n|domain\n|create\n|--k\n|\
             --servers\n|3\n|--dap=ec\n|--help\n|64MiB\n|a=b\n|,|18446744073709551615"
            .split('|')
            .collect::<Vec<_>>(),
        seed: 3,
        cost: 2,
    }
    .run();
}
