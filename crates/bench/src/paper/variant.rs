//! The papers' variants, as options of a domain.

use areo_client::experimental::{Collect, Experimental};
use areo_client::{DapKind, DomainOptions, limits};

/// The algorithm of reads and writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Algorithm {
    /// Reads and writes of a whole object.
    Ares,
    /// An object that is written coverably.
    CoAres,
    /// A file: a list of coverable blocks.
    CoAresF,
}

/// The parts of Ares II that it has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Extras {
    /// None: plain Ares.
    Plain,
    /// Pointers on replies: PB.
    Piggyback,
    /// Piggybacked pointers and garbage collection: PB+GC.
    Collecting,
}

/// One of the algorithms that the papers compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Variant {
    pub(super) algorithm: Algorithm,
    /// The kind by which the first configuration keeps values.
    pub(super) dap: DapKind,
    pub(super) extras: Extras,
    /// etcd decides which configuration comes next, as the external service of Ares II; otherwise its members do.
    pub(super) etcd: bool,
}

impl Algorithm {
    pub(super) const ALL: [Algorithm; 3] = [Algorithm::Ares, Algorithm::CoAres, Algorithm::CoAresF];

    /// The name in the papers.
    pub(super) fn name(self) -> &'static str {
        match self {
            Algorithm::Ares => "ARES",
            Algorithm::CoAres => "CoARES",
            Algorithm::CoAresF => "CoARESF",
        }
    }
}

impl Extras {
    pub(super) const ALL: [Extras; 3] = [Extras::Plain, Extras::Piggyback, Extras::Collecting];

    fn experimental(self) -> Experimental {
        match self {
            Extras::Plain => Experimental::ARES,
            Extras::Piggyback => Experimental {
                collect: Some(Collect::Off),
                ..Experimental::default()
            },
            Extras::Collecting => Experimental::default(),
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Extras::Plain => "",
            Extras::Piggyback => " PB",
            Extras::Collecting => " PB+GC",
        }
    }
}

impl Variant {
    /// The name in the papers.
    pub(super) fn name(self) -> String {
        let (co, f) = match self.algorithm {
            Algorithm::Ares => ("", ""),
            Algorithm::CoAres => ("Co", ""),
            Algorithm::CoAresF => ("Co", "F"),
        };
        let (dap, ec) = match self.dap {
            DapKind::Abd => ("ABD", ""),
            // Without a word it is the one that is here: EC-DAP II, corrected.
            DapKind::Ec => ("EC", ""),
            DapKind::Conditional => ("EC", " (conditional)"),
            DapKind::AbdPublished => ("ABD", " (MW-ABD)"),
            DapKind::EcPublished => ("EC", " (EC-DAP)"),
            DapKind::EcOptimized => ("EC", " (EC-DAPopt)"),
            DapKind::Cas => ("CAS", ""),
            DapKind::CasGc => ("CASGC", ""),
            DapKind::CasSs => ("CASSS", ""),
        };
        let etcd = if self.etcd { " (etcd)" } else { "" };
        format!("{co}ARES{dap}{f}{ec}{}{etcd}", self.extras.suffix())
    }

    /// The name where only the kinds differ.
    pub(super) fn name_of_kind(self) -> String {
        let name = Variant {
            extras: Extras::Plain,
            ..self
        }
        .name();
        match self.dap {
            DapKind::AbdPublished => "MW-ABD".into(),
            _ => name.replacen(self.algorithm.name(), "", 1),
        }
    }

    /// The name in the papers where a domain changes between replication and coding.
    pub(super) fn name_of_both(self) -> String {
        self.name().replacen("ABD", "", 1).replacen("EC", "", 1)
    }

    /// A domain of it on these servers.
    pub(super) fn domain(self, servers: &[String], k: u8, delta: usize) -> DomainOptions {
        DomainOptions {
            dap: self.dap.with(k),
            servers: servers.to_vec(),
            delta: Some(delta as u16),
            // As published: every value with a length is coded.
            copy_bytes: Some(0),
            experimental: self.extras.experimental(),
            allow_f0: true,
            ..DomainOptions::default()
        }
    }

    /// True if a round says which versions readers may find.
    pub(super) fn finalizes(self) -> bool {
        matches!(self.dap, DapKind::Cas | DapKind::CasGc | DapKind::CasSs)
    }

    /// True if a quiet read has no call for its write-back when all members have shown the version, so that it takes a round less.
    pub(super) fn writes_back_where_it_lacks(self) -> bool {
        let is_plain = self.extras == Extras::Plain;
        is_plain && (self.finalizes() || matches!(self.dap, DapKind::Abd | DapKind::Ec))
    }

    /// Rounds of a write, and the most of a read of what the reader wrote, when no other client is at work (`docs/spec` 7.5). `element`:
    /// bytes of one.
    pub(super) fn quiet_rounds(self, element: usize) -> (u64, u64) {
        match (self.extras, self.dap) {
            // What it brought to a quorum it does not write back.
            (Extras::Plain, DapKind::EcOptimized) => (4, 3),
            (Extras::Plain, DapKind::Cas | DapKind::CasGc) => (5, 5),
            (Extras::Plain, DapKind::CasSs) => (6, 6),
            (Extras::Plain, _) => (4, 4),
            // Every version that is found is written back.
            (
                Extras::Piggyback | Extras::Collecting,
                DapKind::AbdPublished | DapKind::EcPublished,
            ) => (2, 2),
            // A larger element does not come with the reply to QUERY: read-FIN brings it.
            (
                Extras::Piggyback | Extras::Collecting,
                DapKind::Cas | DapKind::CasGc | DapKind::CasSs,
            ) => (
                3 + u64::from(self.dap == DapKind::CasSs),
                1 + u64::from(element as u64 > limits::INLINE_BYTES),
            ),
            (Extras::Piggyback | Extras::Collecting, _) => (2, 1),
        }
    }
}

/// The ends at which reconfigurations are left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SequenceEnds {
    /// All but the last one are pending.
    Pending,
    /// All configurations are final.
    Finalized,
}

impl SequenceEnds {
    pub(super) const ALL: [SequenceEnds; 2] = [SequenceEnds::Pending, SequenceEnds::Finalized];

    /// The name in the specification.
    pub(super) fn name(self) -> &'static str {
        match self {
            SequenceEnds::Pending => "a",
            SequenceEnds::Finalized => "b",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::Dap;

    #[test]
    fn variants_have_the_names_of_the_papers() {
        let name = |algorithm, dap, extras| {
            let variant = Variant {
                algorithm,
                dap,
                extras,
                etcd: false,
            };
            (variant.name(), variant.name_of_both())
        };
        let (plain, piggyback) = (Extras::Plain, Extras::Piggyback);
        assert_eq!(
            name(Algorithm::Ares, DapKind::Abd, plain),
            ("ARESABD".into(), "ARES".into())
        );
        assert_eq!(
            name(Algorithm::CoAres, DapKind::Ec, Extras::Collecting),
            ("CoARESEC PB+GC".into(), "CoARES PB+GC".into())
        );
        assert_eq!(
            name(Algorithm::CoAresF, DapKind::Ec, piggyback),
            ("CoARESECF PB".into(), "CoARESF PB".into())
        );
    }

    #[test]
    fn a_variant_is_a_domain_with_options() {
        let variant = Variant {
            algorithm: Algorithm::Ares,
            dap: DapKind::Ec,
            extras: Extras::Piggyback,
            etcd: false,
        };
        let published = Variant {
            dap: DapKind::EcPublished,
            ..variant
        };
        assert_eq!(published.name(), "ARESEC (EC-DAP) PB");
        let made = variant.domain(&["s1".into()], 6, 5);
        let compared = published.domain(&["s1".into()], 6, 5);
        assert_eq!(compared.dap, Dap::EcPublished { k: 6 });
        assert_eq!(compared.experimental, made.experimental);
        assert_eq!(published.quiet_rounds(1 << 20), (2, 2));
        let cas = Variant {
            dap: DapKind::Cas,
            ..variant
        };
        let rounds = [1 << 10, 1 << 20].map(|element| cas.quiet_rounds(element));
        assert_eq!(rounds, [(3, 1), (3, 2)]);
        let decided = Variant {
            etcd: true,
            ..variant
        };
        assert_eq!(decided.name_of_both(), "ARES PB (etcd)");
        assert_eq!((made.dap, made.delta), (Dap::Ec { k: 6 }, Some(5)));
        assert_eq!(made.experimental.settings(), ["collect=off"]);
    }
}
