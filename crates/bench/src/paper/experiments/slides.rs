//! The slides about fragmented objects and erasure codes (`docs/spec` 7.2).

use crate::paper::claim::{Order, Relation};
use crate::paper::experiment::{Experiment, Procedure, Variants};
use crate::paper::parameters::Parameters;
use crate::paper::variant::{Algorithm, Extras};
use areo_client::DapKind;

const COVERABLE: &[Algorithm] = &[Algorithm::CoAres, Algorithm::CoAresF];
const PLAIN: &[Extras] = &[Extras::Plain];

const COMMON: Experiment = Experiment {
    name: "",
    about: "",
    compares: "",
    variants: &[],
    procedure: Procedure::AtOnce,
    published: Parameters {
        operations: 20,
        ..Parameters::COMMON
    },
    varied: &[],
    figures: None,
    words: &[],
    left_out: &[],
};

pub(super) const ROWS: &[Experiment] = &[
    Experiment {
        name: "P1",
        about: "CoABD and CoABD-F, size of the file (slides)",
        compares: "CoARES and CoARESF with ABD and PB: in one configuration they are CoABD and CoABD-F",
        // In one configuration, and without rounds that ask for the next one.
        variants: &[Variants {
            algorithms: COVERABLE,
            daps: &[DapKind::Abd],
            extras: &[Extras::Piggyback],
            etcd: false,
        }],
        // "CoABD-F has significantly lower write and read operation latency."
        words: &[(Relation::Fragmented, Order::Less, &["read_ms", "write_ms"])],
        ..COMMON
    },
    Experiment {
        name: "P2",
        about: "replication and erasure coding, size of the object (slides); k is E4",
        compares: "ARES with ABD, with EC, and with EC-DAP as published and EC-DAPopt",
        variants: &[Variants {
            algorithms: &[Algorithm::Ares],
            daps: &[
                DapKind::Abd,
                DapKind::Ec,
                DapKind::EcPublished,
                DapKind::EcOptimized,
            ],
            extras: PLAIN,
            etcd: false,
        }],
        // Writes of EC are the fastest, reads of ABD the slowest.
        words: &[(Relation::Coded, Order::Less, &["read_ms", "write_ms"])],
        ..COMMON
    },
    Experiment {
        name: "P4",
        about: "coverable objects and files, size (slides)",
        compares: "CoARES, CoARESF, each with ABD, with EC, and with EC-DAPopt",
        variants: &[Variants {
            algorithms: COVERABLE,
            daps: &[DapKind::Abd, DapKind::Ec, DapKind::EcOptimized],
            extras: PLAIN,
            etcd: false,
        }],
        // "Fragmented algorithms have significantly lower write operation latency."
        words: &[(Relation::Fragmented, Order::Less, &["write_ms"])],
        ..COMMON
    },
];
