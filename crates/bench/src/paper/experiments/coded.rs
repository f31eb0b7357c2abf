//! Coded atomic storage and MW-ABD, as the study of self-stabilizing coded storage measured them (`docs/spec` 7.4), with EC-DAP II and
//! CASGC beside them; and what issue and users ask of them beyond that.

use crate::paper::claim::{Order, Relation};
use crate::paper::experiment::{Experiment, Parameter, Procedure, Variants, Variation};
use crate::paper::parameters::{KIB, MIB, Parameters};
use crate::paper::variant::{Algorithm, Extras};
use areo_client::DapKind;

/// In one configuration, without rounds that ask for the next one.
const fn of(daps: &'static [DapKind]) -> Variants {
    Variants {
        algorithms: &[Algorithm::Ares],
        daps,
        extras: &[Extras::Piggyback],
        etcd: false,
    }
}

const COMMON: Experiment = Experiment {
    name: "",
    about: "",
    compares: "MW-ABD, CAS, CASGC and CASSS, and ABD and EC as they are here, in one configuration",
    variants: &[of(&[
        DapKind::AbdPublished,
        DapKind::Abd,
        DapKind::Ec,
        DapKind::Cas,
        DapKind::CasGc,
        DapKind::CasSs,
    ])],
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
    words: &[
        // Reads of MW-ABD send whole values in two directions: from 512 KiB on they take longer.
        (Relation::CodedPublished, Order::Less, &["read_ms"]),
        (Relation::SelfStabilizing, Order::Same, &["read_ms"]),
        (Relation::SelfStabilizing, Order::More, &["write_ms"]),
    ],
    left_out: &[
        "a round trip takes the time of loopback, not about 50 ms, unless `--round-trip` lets it take longer",
    ],
};

/// The experiment by number of servers.
const SERVERS: Experiment = Experiment {
    compares: "MW-ABD, EC, CAS and CASSS, in one configuration",
    variants: &[of(&[
        DapKind::AbdPublished,
        DapKind::Ec,
        DapKind::Cas,
        DapKind::CasSs,
    ])],
    published: Parameters {
        servers: 30,
        ..COMMON.published
    },
    varied: &[Variation {
        what: Parameter::ServersAlone,
        quick: &[5],
        default: &[5, 15, 30],
        full: &[5, 10, 15, 20, 30],
    }],
    ..COMMON
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
        name: "S2",
        about: "coded atomic storage, number of servers of which two may fail (figure 2)",
        ..SERVERS
    },
    Experiment {
        name: "S2f",
        about: "the same where as many may fail as in the study: 4 of 20, 14 of 30",
        compares: "EC, CAS and CASSS, in one configuration",
        variants: &[of(&[DapKind::Ec, DapKind::Cas, DapKind::CasSs])],
        varied: &[Variation {
            what: Parameter::ServersOfStudy,
            quick: &[5],
            default: &[20, 30],
            full: &[20, 30],
        }],
        ..SERVERS
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
    Experiment {
        name: "large",
        about: "reads of large values beside writers (not published)",
        compares: "MW-ABD, ABD, EC and CAS, in one configuration",
        variants: &[of(&[
            DapKind::AbdPublished,
            DapKind::Abd,
            DapKind::Ec,
            DapKind::Cas,
        ])],
        published: Parameters {
            writers: 5,
            sizes: &[MIB, 16 * MIB],
            operations: 10,
            ..COMMON.published
        },
        varied: &[Variation {
            what: Parameter::Readers,
            quick: &[2],
            default: &[10],
            full: &[10],
        }],
        words: &[],
        ..COMMON
    },
    Experiment {
        name: "S4",
        about: "restart of an object by all members, number of servers (figure 4)",
        compares: "CASSS, of which each operation needs all members",
        variants: &[of(&[DapKind::CasSs])],
        procedure: Procedure::Restart,
        published: Parameters {
            servers: 30,
            parity: 0,
            writers: 1,
            readers: 1,
            sizes: &[256],
            runs: 20,
            ..COMMON.published
        },
        varied: &[Variation {
            what: Parameter::ServersAlone,
            quick: &[5],
            default: &[5, 10, 15, 20, 25, 30],
            full: &[5, 10, 15, 20, 25, 30],
        }],
        words: &[],
        left_out: &[],
        ..COMMON
    },
    Experiment {
        name: "S5",
        about: "CASSS beside CAS, number of servers (figure 5)",
        compares: "CAS and CASSS, in one configuration",
        variants: &[of(&[DapKind::Cas, DapKind::CasSs])],
        published: Parameters {
            servers: 20,
            writers: 1,
            readers: 1,
            ..COMMON.published
        },
        varied: &[Variation {
            what: Parameter::ServersAlone,
            quick: &[5],
            default: &[5, 10, 15, 20],
            full: &[5, 10, 15, 20],
        }],
        ..COMMON
    },
    Experiment {
        name: "stabilization",
        about: "from any state of the members to a register (not published)",
        compares: "CASSS",
        variants: &[of(&[DapKind::CasSs])],
        procedure: Procedure::Stabilization,
        published: Parameters {
            servers: 9,
            parity: 2,
            writers: 1,
            readers: 2,
            sizes: &[256],
            runs: 400,
            ..COMMON.published
        },
        varied: &[Variation {
            what: Parameter::ServersAlone,
            quick: &[5],
            default: &[3, 5, 9],
            full: &[3, 5, 9],
        }],
        words: &[],
        left_out: &[],
        ..COMMON
    },
];
