//! What of the published algorithms a configuration makes use of.

/// Which optimisations of Ares II operations and servers make use of (`docs/spec` 3.3, 3.4). The default is Ares II as
/// it should be; [`Options::ARES`] is the protocol that it was derived from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    /// Servers show their pointer on every reply, so that operations need no rounds of their own to learn of it.
    pub piggyback: bool,
    /// What becomes of superseded configurations.
    pub collect: Collect,
    /// Which EC-DAP an erasure-coded configuration has.
    pub ec: EcDap,
}

/// What servers do with a configuration that has a final successor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Collect {
    /// They drop its state, and remember for the whole domain the highest final pointer, for ever (`[X-13 highest-final]`).
    On,
    /// They keep its state and go on to answer.
    Off,
    /// They drop its state and remember the pointer of each configuration apart, as published: clients go from
    /// one to the next (3.5 item 19).
    Paper,
}

/// The data access primitives of erasure coding. All but the first are what the papers compare with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EcDap {
    /// EC-DAP II, corrected (2.6): [`crate::dap::ec`].
    Corrected,
    /// EC-DAP as Ares has it (2.3): [`crate::dap::ec::published`].
    Published,
    /// EC-DAPopt of `CoAres` (2.4): the same, and clients do not fetch or write back what they brought there themselves.
    Optimized,
}

impl Options {
    /// Ares, without the optimisations of Ares II.
    pub const ARES: Options = Options {
        piggyback: false,
        collect: Collect::Off,
        ec: EcDap::Corrected,
    };

    /// Every combination, for tests.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = Options> {
        let ec = [EcDap::Corrected, EcDap::Published, EcDap::Optimized];
        let collect = [Collect::On, Collect::Off, Collect::Paper];
        ec.into_iter().flat_map(move |ec| {
            let with = move |collect| {
                [true, false].map(|piggyback| Options {
                    piggyback,
                    collect,
                    ec,
                })
            };
            collect.into_iter().flat_map(with)
        })
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            piggyback: true,
            collect: Collect::On,
            ec: EcDap::Corrected,
        }
    }
}
