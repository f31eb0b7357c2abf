//! What of the published algorithms a configuration makes use of.

/// Which optimisations of Ares II operations and servers make use of (`docs/spec` 3.3, 3.4). The default is Ares II as
/// it should be; [`Options::ARES`] is the protocol that it was derived from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    /// Servers show their pointer on every reply, so that operations need no rounds of their own to learn of it.
    pub piggyback: bool,
    /// What becomes of superseded configurations.
    pub collect: Collect,
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

impl Options {
    /// Ares II.
    pub const ARES_2: Options = Options {
        piggyback: true,
        collect: Collect::On,
    };

    /// Ares, without the optimisations of Ares II.
    pub const ARES: Options = Options {
        piggyback: false,
        collect: Collect::Off,
    };

    /// Every combination, for tests.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = Options> {
        let collect = [Collect::On, Collect::Off, Collect::Paper];
        let with = |collect| [true, false].map(|piggyback| Options { piggyback, collect });
        collect.into_iter().flat_map(with)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::ARES_2
    }
}
