//! Ares II: figures 2 to 14, tables 2 and 3 (`docs/spec` 7.1).

use crate::paper::experiment::{Experiment, Parameter, Procedure, Variants, Variation};
use crate::paper::parameters::{KIB, MIB, Parameters};
use crate::paper::published::Table;
use crate::paper::variant::{Algorithm, Extras};
use areo_client::DapKind;

const EACH: &str = "ARES, CoARES, CoARESF, each with ABD and EC";
const BOTH: &[DapKind] = &[DapKind::Abd, DapKind::Ec];
const CODED: &[DapKind] = &[DapKind::Ec];
const PLAIN: &[Extras] = &[Extras::Plain];

/// Every algorithm with these.
const fn each(daps: &'static [DapKind], extras: &'static [Extras]) -> Variants {
    Variants {
        algorithms: &Algorithm::ALL,
        daps,
        extras,
        etcd: false,
    }
}

const COMMON: Experiment = Experiment {
    name: "",
    about: "",
    compares: EACH,
    variants: &[each(BOTH, PLAIN)],
    procedure: Procedure::AtOnce,
    published: Parameters::COMMON,
    varied: &[],
    figures: None,
    words: &[],
    left_out: &[],
};

pub(super) const ROWS: &[Experiment] = &[
    Experiment {
        name: "E1",
        about: "size of the file (Ares II, figure 2)",
        figures: Some(Table::Piggyback),
        ..COMMON
    },
    Experiment {
        name: "E2",
        about: "participation (figures 3, 4)",
        published: Parameters {
            sizes: &[4 * MIB],
            ..Parameters::COMMON
        },
        varied: &[
            Variation {
                what: Parameter::Servers,
                quick: &[3, 5],
                default: &[3, 11],
                full: &[3, 5, 7, 9, 11],
            },
            Variation {
                what: Parameter::Readers,
                quick: &[1, 2],
                default: &[5, 15],
                full: &[5, 15, 50],
            },
            Variation {
                what: Parameter::Writers,
                quick: &[1],
                default: &[5, 10],
                full: &[5, 10, 15, 20],
            },
        ],
        ..COMMON
    },
    Experiment {
        name: "E3",
        about: "size of blocks (figures 5 to 7)",
        compares: "CoARESF with ABD and EC",
        variants: &[Variants {
            algorithms: &[Algorithm::CoAresF],
            ..each(BOTH, PLAIN)
        }],
        published: Parameters {
            sizes: &[512 * MIB],
            ..Parameters::COMMON
        },
        varied: &[Variation {
            what: Parameter::BlockBytes,
            quick: &[8 * KIB, 16 * KIB],
            default: &[512 * KIB, MIB, 2 * MIB],
            full: &[2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB],
        }],
        left_out: &[
            "blocks of 64 MiB and at most 128 MiB are left out: a block has at most 64 MiB",
        ],
        ..COMMON
    },
    Experiment {
        name: "E4",
        about: "k of erasure coding (figures 8 to 11)",
        compares: "ARES, CoARES, CoARESF with EC",
        variants: &[each(CODED, PLAIN)],
        published: Parameters {
            readers: 15,
            sizes: &[4 * MIB],
            ..Parameters::COMMON
        },
        varied: &[Variation {
            what: Parameter::K,
            quick: &[2, 4],
            default: &[2, 6, 10],
            full: &[2, 3, 4, 5, 6, 7, 8, 9, 10],
        }],
        ..COMMON
    },
    Experiment {
        name: "E5",
        about: "longevity: reconfigurers beside readers and writers (figures 12 to 14)",
        compares: "ARES, CoARES, CoARESF, each without, and with PB and GC, from EC to ABD and back on changing servers; ARES also with etcd deciding which configuration comes next",
        variants: &[
            each(CODED, &[Extras::Plain, Extras::Collecting]),
            // As published: an external service decides which configuration comes next.
            Variants {
                algorithms: &[Algorithm::Ares],
                etcd: true,
                ..each(CODED, &[Extras::Plain, Extras::Collecting])
            },
        ],
        published: Parameters {
            readers: 15,
            reconfigurers: 1,
            changes: 15,
            change_ms: 15_000,
            sizes: &[4 * MIB],
            ..Parameters::COMMON
        },
        varied: &[Variation {
            what: Parameter::Reconfigurers,
            quick: &[1, 2],
            default: &[1, 5],
            full: &[1, 2, 3, 4, 5],
        }],
        ..COMMON
    },
    Experiment {
        name: "E6",
        about: "piggybacking (Ares II, table 2)",
        compares: "ARES, CoARES, CoARESF, each with ABD and EC, without and with PB",
        variants: &[each(BOTH, &[Extras::Plain, Extras::Piggyback])],
        published: Parameters {
            sizes: &[MIB, 256 * MIB, 512 * MIB],
            ..Parameters::COMMON
        },
        figures: Some(Table::Piggyback),
        ..COMMON
    },
    Experiment {
        name: "E7",
        about: "garbage collection (Ares II, table 3)",
        compares: "ARES, CoARES, CoARESF, each without, with PB, with PB and GC, from ABD to EC and back",
        variants: &[each(&[DapKind::Abd], &Extras::ALL)],
        procedure: Procedure::AfterReconfigurations,
        published: Parameters {
            writers: 1,
            readers: 10,
            sizes: &[MIB, 64 * MIB],
            ..Parameters::COMMON
        },
        figures: Some(Table::Collected),
        ..COMMON
    },
];
