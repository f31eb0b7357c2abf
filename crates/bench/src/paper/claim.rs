//! What a publication claims in words: the order of two variants that differ in one part.

use super::variant::{Algorithm, Extras, SequenceEnds, Variant};
use areo_client::DapKind;

/// The order of two values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// The first one is less.
    Less,
    /// The values are equal, within the tolerance.
    Same,
    /// The first one is more.
    More,
}

/// The part that one variant has and another has not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Relation {
    Piggyback,
    Collecting,
    Coded,
    CodedPublished,
    Corrected,
    Optimized,
    Coverable,
    Fragmented,
    Outside,
    SelfStabilizing,
}

impl Relation {
    pub(super) const ALL: [Relation; 10] = [
        Relation::Piggyback,
        Relation::Collecting,
        Relation::Coded,
        Relation::CodedPublished,
        Relation::Corrected,
        Relation::Optimized,
        Relation::Coverable,
        Relation::Fragmented,
        Relation::Outside,
        Relation::SelfStabilizing,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Relation::Piggyback => "PB against no PB",
            Relation::Collecting => "GC against no GC",
            Relation::Coded => "EC against ABD",
            Relation::CodedPublished => "a code against MW-ABD",
            Relation::Corrected => "EC-DAP II, corrected, against EC-DAP",
            Relation::Optimized => "EC-DAPopt against EC-DAP",
            Relation::Coverable => "coverable against not",
            Relation::Fragmented => "fragmented against not",
            Relation::Outside => "etcd against the members deciding",
            Relation::SelfStabilizing => "CASSS against CAS",
        }
    }

    /// The variant without it.
    pub(super) fn without(self, variant: Variant) -> Option<Variant> {
        let Variant {
            algorithm,
            dap,
            extras,
            etcd,
        } = variant;
        Some(match self {
            Relation::Piggyback if extras == Extras::Piggyback => Variant {
                extras: Extras::Plain,
                ..variant
            },
            Relation::Collecting if extras == Extras::Collecting => Variant {
                extras: Extras::Piggyback,
                ..variant
            },
            Relation::Coded if dap.is_coded() => Variant {
                dap: DapKind::Abd,
                ..variant
            },
            Relation::CodedPublished if dap.is_coded() => Variant {
                dap: DapKind::AbdPublished,
                ..variant
            },
            Relation::Corrected if dap == DapKind::Ec => Variant {
                dap: DapKind::EcPublished,
                ..variant
            },
            Relation::Optimized if dap == DapKind::EcOptimized => Variant {
                dap: DapKind::EcPublished,
                ..variant
            },
            Relation::SelfStabilizing if dap == DapKind::CasSs => Variant {
                dap: DapKind::Cas,
                ..variant
            },
            Relation::Coverable if algorithm == Algorithm::CoAres => Variant {
                algorithm: Algorithm::Ares,
                ..variant
            },
            Relation::Fragmented if algorithm == Algorithm::CoAresF => Variant {
                algorithm: Algorithm::CoAres,
                ..variant
            },
            Relation::Outside if etcd => Variant {
                etcd: false,
                ..variant
            },
            _ => return None,
        })
    }

    /// Why the published order need not be the one here.
    pub(super) fn reason(self, left: Option<SequenceEnds>) -> &'static str {
        match (self, left) {
            (Relation::Piggyback, None) => {
                "PB leaves 1 of 3 or 4 rounds here, not 2 of 4: what is known to be at a quorum is not written back, without PB where all members have shown it; and of a read that takes milliseconds rounds are a larger part than of one that takes tenths of a second"
            }
            (Relation::Piggyback, Some(_)) => {
                "without PB an operation asks every configuration on the way for its value as well as for its pointer here (decision 0007), where the publication goes to the end first; and without GC superseded configurations go on giving what they hold, where the publication's withhold it: PB only saves rounds"
            }
            (Relation::Collecting, _) => {
                "what GC saves is the way over 12 configurations; files go it once, before the first block"
            }
            (Relation::Coded, _) => {
                "with ABD, too, a read takes the value from one server here and versions from the others: both carry it once, and ABD does not decode. The publication's carries it from every server"
            }
            (Relation::CodedPublished, _) => {
                "on loopback a copy more costs little, and a read of MW-ABD takes the value from one server here"
            }
            (Relation::Corrected | Relation::Optimized, _) => {
                "servers send the elements of one version here, whichever the EC-DAP is: what differs is whether a read writes back, and whether a reader is sent what it has"
            }
            (Relation::Coverable, _) => {
                "a read of CoARES is a read of ARES here, with the same EC-DAP; the publication's CoARES has a better one than its ARES"
            }
            (Relation::Outside, _) => {
                "nothing is published of it: Ares II has an external service, and no other"
            }
            (Relation::SelfStabilizing, _) => {
                "a round more is little where a write takes long for its bytes"
            }
            (Relation::Fragmented, _) => {
                "every block is hashed, and read from and written to a local file, which costs as much as loopback; without PB every block takes its own 3 or 4 rounds. It pays where blocks are many and few of them change"
            }
        }
    }
}
