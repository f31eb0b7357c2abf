//! Coded atomic storage and MW-ABD, as the study of self-stabilizing coded storage measured them (`docs/spec` 7.4). Its CASSS is not
//! measured yet: CAS, with a round less to write, stands in its place, and EC-DAP II and CASGC stand beside it.

use crate::paper::compare::Relation;
use crate::paper::experiment::{Experiment, Parameter, Procedure, Variants, Variation};
use crate::paper::scale::{KIB, MIB, Parameters};
use crate::paper::variant::{Algorithm, Extras};
use areo_client::DapKind;

const COMMON: Experiment = Experiment {
    name: "",
    about: "",
    compares: "MW-ABD, CAS and CASGC, and ABD and EC as they are here, in one configuration",
    // Without rounds that ask for the next configuration.
    variants: &[Variants {
        algorithms: &[Algorithm::Ares],
        daps: &[
            DapKind::AbdPublished,
            DapKind::Abd,
            DapKind::Ec,
            DapKind::Cas,
            DapKind::CasGc,
        ],
        extras: &[Extras::Piggyback],
        etcd: false,
    }],
    procedure: Procedure::AtOnce,
    published: Parameters {
        servers: 10,
        // Two servers may fail: k = n - 2 f.
        parity: 4,
        writers: 10,
        readers: 10,
        sizes: &[512 * KIB],
        // The study draws waits, and says no more of them.
        wait_ms: (0, 1_000),
        ..Parameters::COMMON
    },
    varied: &[],
    figures: None,
    // Reads of MW-ABD send whole values in two directions: from 512 KiB on they take longer.
    less: &[(Relation::CodedPublished, &["read_ms"])],
    left_out: &[
        "a round trip takes the time of loopback, not about 50 ms",
        "CAS stands in the place of CASSS, which is not measured yet",
    ],
};

pub(super) const ROWS: &[Experiment] = &[
    Experiment {
        name: "S1",
        about: "coded atomic storage, readers and writers at once (study of CASSS, figure 1)",
        varied: &[
            Variation {
                what: Parameter::Readers,
                quick: &[2, 1],
                default: &[10, 5],
                full: &[10, 5, 15, 20, 30, 40],
            },
            Variation {
                what: Parameter::Writers,
                quick: &[1, 2],
                default: &[10, 5],
                full: &[10, 5, 15, 20, 30, 40],
            },
        ],
        ..COMMON
    },
    Experiment {
        name: "S3",
        about: "coded atomic storage, size of the object (figure 3)",
        published: Parameters {
            writers: 1,
            readers: 1,
            sizes: &[KIB, 32 * KIB, 128 * KIB, 512 * KIB, MIB, 2 * MIB, 4 * MIB],
            ..COMMON.published
        },
        ..COMMON
    },
];
