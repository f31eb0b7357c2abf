//! Kinds of objects, and the shape of a configuration: how many servers, how many of them an operation needs, what a value costs.

use areo_core::config::{Configuration, Dap, InvalidConfiguration};
use areo_core::limits;
use areo_core::quorums::Quorums;
use serde::{Serialize, Serializer};
use std::fmt;

/// An algorithm, without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DapKind {
    /// Replication: every server holds a copy.
    Abd,
    /// Erasure coding: every server holds a fragment of a large value, and a copy of a small one.
    Ec,
    /// Ranked registers: conditional writes have one winner.
    Conditional,
    /// MW-ABD, to compare with.
    AbdPublished,
    /// EC-DAP as Ares has it, to compare with.
    EcPublished,
    /// EC-DAPopt of `CoAres`, to compare with.
    EcOptimized,
    /// Coded atomic storage, without garbage collection.
    Cas,
    /// CAS whose superseded versions are dropped.
    CasGc,
    /// CASGC with gossip of servers, so that it recovers by itself from what no execution produces.
    CasSs,
}

impl DapKind {
    /// The algorithm with `k` data fragments, which replication has no use for.
    pub fn with(self, k: u8) -> Dap {
        match self {
            DapKind::Abd => Dap::Abd,
            DapKind::AbdPublished => Dap::AbdPublished,
            DapKind::Ec => Dap::Ec { k },
            DapKind::Conditional => Dap::Conditional { k },
            DapKind::EcPublished => Dap::EcPublished { k },
            DapKind::EcOptimized => Dap::EcOptimized { k },
            DapKind::Cas => Dap::Cas { k },
            DapKind::CasGc => Dap::CasGc { k },
            DapKind::CasSs => Dap::CasSs { k },
        }
    }

    /// True if it keeps fragments, or may.
    pub fn is_coded(self) -> bool {
        self == DapKind::Conditional || self.with(1).is_coded()
    }

    /// Data fragments by default: as many as `n` servers allow with one crash; of a conditional domain one, which is
    /// replication, because objects with one winner are mostly small and must survive.
    pub fn default_k(self, n: usize) -> u8 {
        match self {
            DapKind::Conditional => 1,
            _ => Shape::default_k(n),
        }
    }
}

impl From<Dap> for DapKind {
    fn from(dap: Dap) -> DapKind {
        match dap {
            // What comes after a removal is a domain of its own.
            Dap::Abd | Dap::Removed => DapKind::Abd,
            Dap::AbdPublished => DapKind::AbdPublished,
            Dap::Ec { .. } => DapKind::Ec,
            Dap::Conditional { .. } => DapKind::Conditional,
            Dap::EcPublished { .. } => DapKind::EcPublished,
            Dap::EcOptimized { .. } => DapKind::EcOptimized,
            Dap::Cas { .. } => DapKind::Cas,
            Dap::CasGc { .. } => DapKind::CasGc,
            Dap::CasSs { .. } => DapKind::CasSs,
        }
    }
}

/// Algorithm, `n` and `k` of a configuration; everything that follows from them is computed here and nowhere else.
///
/// ```
/// use areo_client::{Dap, Shape};
///
/// let shape = Shape::new(Dap::Ec { k: 3 }, 5)?;
/// assert_eq!(shape.to_string(), "ec [5,3]");
/// assert_eq!((shape.quorum(), shape.f(), shape.fragments_spare()), (4, 1, 2));
/// # Ok::<(), areo_client::InvalidConfiguration>(())
/// ```
///
/// Serialised with everything that follows: `dap`, `n`, `k`, `quorum`, `f`, `fragments_spare`, `stored_per_byte`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    dap: Dap,
    n: usize,
}

impl Shape {
    /// The shape of `n` servers that keep values by `dap`.
    ///
    /// # Errors
    /// [`InvalidConfiguration`]: no servers, more than 255, or `k` not between 1 and `n`.
    pub fn new(dap: Dap, n: usize) -> Result<Shape, InvalidConfiguration> {
        if n == 0 || n > limits::MEMBERS {
            return Err(InvalidConfiguration::MemberCount { members: n });
        }
        let k = dap.k();
        if 0 < k && usize::from(k) <= n {
            Ok(Shape { dap, n })
        } else {
            Err(InvalidConfiguration::DataFragments { k, members: n })
        }
    }

    pub(crate) fn of(configuration: &Configuration) -> Shape {
        let shape = Shape::new(configuration.dap(), configuration.n());
        let shape = shape.expect("configurations are checked when they are made");
        assert_eq!(
            shape.quorum(),
            configuration.quorums().quorum(),
            "one arithmetic of quorums"
        );
        shape
    }

    /// The `k` of erasure coding over `n` servers unless another is given: as large as one crash allows, `n - 2`, so that
    /// f = 1 from three servers on.
    pub fn default_k(n: usize) -> u8 {
        u8::try_from(n.saturating_sub(2)).unwrap_or(u8::MAX).max(1)
    }

    /// The kind by which values are kept.
    pub fn dap(self) -> Dap {
        self.dap
    }

    /// Number of servers.
    pub fn n(self) -> usize {
        self.n
    }

    /// Elements that make a value; 1 with replication.
    pub fn k(self) -> usize {
        self.dap.k().into()
    }

    /// Servers whose answers every phase of an operation needs: ⌊n/2⌋ + 1 with replication, ⌈(n+k)/2⌉ with erasure
    /// coding.
    pub fn quorum(self) -> usize {
        self.quorums().quorum()
    }

    /// Crashes under which operations go on: `n - quorum`.
    pub fn f(self) -> usize {
        self.quorums().f()
    }

    /// Elements of a value that may be lost, once every server has its own, before the value is: `n - k`. Reading with
    /// more than [`Shape::f`] servers missing has to wait until enough of them are back.
    pub fn fragments_spare(self) -> usize {
        self.n - self.k()
    }

    /// Bytes that all servers together store per byte written, at rest: `n / k`. Values up to the configuration's
    /// `copy_bytes` are full copies and cost `n`.
    pub fn stored_per_byte(self) -> f64 {
        self.n as f64 / self.k() as f64
    }

    fn quorums(self) -> Quorums {
        self.dap.quorums(self.n)
    }
}

/// `ec [5,3]`, `abd [3,1]`: the algorithm and `[n,k]`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{},{}]", self.dap, self.n, self.k())
    }
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Parts {
            dap: String,
            n: usize,
            k: usize,
            quorum: usize,
            f: usize,
            fragments_spare: usize,
            stored_per_byte: f64,
        }
        let parts = Parts {
            dap: self.dap.to_string(),
            n: self.n(),
            k: self.k(),
            quorum: self.quorum(),
            f: self.f(),
            fragments_spare: self.fragments_spare(),
            stored_per_byte: self.stored_per_byte(),
        };
        parts.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_n_and_k() {
        // (dap, n) -> (quorum, f, spare): f is (n-1)/2 and (n-k)/2, both rounded down.
        for (dap, n, quorum, f, spare) in [
            (Dap::Abd, 1, 1, 0, 0),
            (Dap::Abd, 2, 2, 0, 1),
            (Dap::Abd, 5, 3, 2, 4),
            (Dap::Ec { k: 3 }, 5, 4, 1, 2),
            (Dap::Ec { k: 4 }, 5, 5, 0, 1),
            (Dap::Ec { k: 10 }, 14, 12, 2, 4),
        ] {
            let shape = Shape::new(dap, n).unwrap();
            let derived = (shape.quorum(), shape.f(), shape.fragments_spare());
            assert_eq!(derived, (quorum, f, spare), "{shape}");
        }
        let shape = Shape::new(Dap::Ec { k: 3 }, 6).unwrap();
        assert!((shape.stored_per_byte() - 2.0).abs() < f64::EPSILON);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        assert!(Shape::new(Dap::Abd, 0).is_err());
        assert!(Shape::new(Dap::Abd, 256).is_err());
        assert!(Shape::new(Dap::Ec { k: 0 }, 3).is_err());
        assert!(Shape::new(Dap::Ec { k: 4 }, 3).is_err());
        assert!(Shape::new(Dap::Ec { k: 3 }, 3).is_ok());
    }
}
