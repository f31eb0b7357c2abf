//! The kinds: how a configuration keeps objects. A kind is one row here, and one file in `dap` with the type that its row
//! names, which decides for it (`dap::kind`).

use crate::quorums::Quorums;
use crate::tlv::{self, TlvError};
use std::fmt;

/// THE TABLE, a row for each kind: documentation; variant, with `k` if its elements are fragments; quorums of `n`
/// members; field in a descriptor; name for people; the type that decides for it, in `dap`. Hands all rows to the
/// macro that is named, after the arguments of that macro.
macro_rules! kinds {
    ($take:ident!($($given:tt)*)) => {
        $take! {
            ($($given)*)

            "Replication: every member holds the value."
            Abd, |n, _| Quorums::majority(n), 0x8005, "abd", abd::Abd;

            "Erasure coding: every member holds one fragment, any `k` make the value. EC-DAP II, corrected."
            Ec { k }, Quorums::erasure_coded, 0x8006, "ec", ec::Ec;

            "Ranked registers: conditional writes have one winner. Replication if `k` is 1, otherwise erasure coding."
            Conditional { k }, Quorums::erasure_coded, 0x8011, "conditional", conditional::Conditional;

            "The domain was removed: servers keep nothing and refuse everything, and nothing comes after this."
            Removed, |n, _| Quorums::majority(n), 0x800a, "removed", abd::Abd;

            "EC-DAP as Ares has it, which the papers compare with."
            EcPublished { k }, Quorums::erasure_coded, 0x800e, "ec-published", ec::published::EcPublished;

            "EC-DAPopt of `CoAres`, which the papers compare with."
            EcOptimized { k }, Quorums::erasure_coded, 0x800f, "ec-optimized", ec::optimized::EcOptimized;

            "Coded atomic storage: a version is there for readers when a round has said so. Every version stays, as published."
            Cas { k }, Quorums::erasure_coded, 0x8010, "cas", cas::Cas;

            "The same, and versions go: of those that readers may find the `delta + 1` largest stay."
            CasGc { k }, Quorums::erasure_coded, 0x8012, "casgc", cas::CasGc;

            "The same, and it recovers by itself from what no execution produces: servers gossip, and versions are bounded."
            CasSs { k }, Quorums::erasure_coded, 0x8016, "casss", casss::CasSs;

            "MW-ABD, whose reads always write back, which the papers compare with."
            AbdPublished, |n, _| Quorums::majority(n), 0x8014, "abd-published", abd::published::AbdPublished;

            #[cfg(test)]
            "The toy of `dap::kind::toy`, which no release has: quorums of all members."
            All, |n, _| Quorums::erasure_coded(n, n), 0x80ff, "all", kind::toy::All;
        }
    };
}
pub(crate) use kinds;

macro_rules! declare {
    (() $(
        $(#[$only:meta])? $doc:literal
        $kind:ident $({ $k:ident })?, $quorums:expr, $field:literal, $word:literal, $($file:ident)::+;
    )*) => {
        /// The kind of a configuration: its data access primitives, and with them the form in which members keep objects.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Dap {
            $(
                $(#[$only])?
                #[doc = $doc]
                $kind $({
                    /// Number of data fragments: any k elements restore the value.
                    $k: u8,
                })?,
            )*
        }

        impl Dap {
            /// The name of the kind in descriptors, options and reports.
            pub fn word(self) -> &'static str {
                match self { $($(#[$only])? Dap::$kind $({ $k: _ })? => $word,)* }
            }

            /// Data fragments of a value; `None` of a kind that keeps copies.
            fn fragments(self) -> Option<u8> {
                match self { $($(#[$only])? Dap::$kind $({ $k })? => <[u8]>::first(&[$($k)?]).copied(),)* }
            }

            /// Quorums of `n` members, at least [`Dap::k`].
            pub fn quorums(self, n: usize) -> Quorums {
                let of: fn(usize, usize) -> Quorums =
                    match self { $($(#[$only])? Dap::$kind $({ $k: _ })? => $quorums,)* };
                of(n, self.k().into())
            }

            /// Its field of a descriptor, and the value of the field.
            pub(super) fn field(self) -> (u16, Option<u8>) {
                let field = match self { $($(#[$only])? Dap::$kind $({ $k: _ })? => $field,)* };
                (field, self.fragments())
            }

            /// The kind that this field says; `None` if it says something else.
            ///
            /// # Errors
            /// The field of a kind without the number of data fragments that belongs there.
            pub(super) fn of_field(field: u16, value: &[u8]) -> Result<Option<Dap>, TlvError> {
                let number = || tlv::number(field, value).map(u8::from_le_bytes);
                let dap = match field {
                    $($(#[$only])? $field => Dap::$kind $({ $k: number()? })?,)*
                    _ => return Ok(None),
                };
                Ok(Some(dap))
            }
        }
    };
}

kinds!(declare!());

impl Dap {
    /// Elements needed for a value.
    pub fn k(self) -> u8 {
        self.fragments().unwrap_or(1)
    }

    /// True if its elements of large values are fragments; otherwise they are copies.
    pub fn is_coded(self) -> bool {
        self.fragments().is_some() && self != Dap::Conditional { k: 1 }
    }

    /// True if writes of users' objects are decided, each by a ballot, so that of conditional ones one wins.
    pub fn is_conditional(self) -> bool {
        matches!(self, Dap::Conditional { .. })
    }

    /// True if every member holds the whole value, and may store it whenever it comes.
    pub fn is_replicated(self) -> bool {
        matches!(self, Dap::Abd | Dap::AbdPublished)
    }

    /// True if it ends a domain.
    pub fn is_removal(self) -> bool {
        self == Dap::Removed
    }
}

impl fmt::Display for Dap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
