//! The parts of the published algorithms that a configuration uses.

/// Optimisations of Ares II that operations and servers use (`docs/spec` 3.3, 3.4). The default is Ares II as it
/// should be; [`Options::ARES`] is the protocol that it was derived from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    /// Servers show their pointer on every reply, so that operations need no rounds of their own to learn of it.
    pub piggyback: bool,
    /// The fate of superseded configurations.
    pub collect: Collect,
    /// The calls that ask one quorum first.
    pub thrift: Thrift,
    /// Servers answer a query for later configurations, too, so that an operation asks each of them once.
    pub single_contact: bool,
}

/// Calls that ask only a quorum of members, and the others if that does not decide the call (`docs/spec` 6.8).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Thrift {
    /// None: all members are asked.
    Off,
    /// Calls that write nothing. Writes go to all members.
    Queries,
    /// All, where copies are kept, as published; elsewhere those that write nothing.
    Calls,
}

/// The treatment of a configuration with a final successor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Collect {
    /// Servers drop its state, and remember for the whole domain the highest final pointer, for ever
    /// (`[X-13 highest-final]`).
    On,
    /// Servers keep its state and go on to answer.
    Off,
    /// Servers drop its state and remember the pointer of each configuration by itself, as published: clients go from
    /// one to the next (3.5 item 19).
    Paper,
}

impl Options {
    /// Ares II: piggybacked pointers and garbage collection.
    pub const ARES_2: Options = Options {
        piggyback: true,
        collect: Collect::On,
        thrift: Thrift::Off,
        single_contact: false,
    };

    /// Ares, without the optimisations of Ares II.
    pub const ARES: Options = Options {
        piggyback: false,
        collect: Collect::Off,
        thrift: Thrift::Off,
        single_contact: false,
    };

    /// Every combination, for tests.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = Options> {
        let collect = [Collect::On, Collect::Off, Collect::Paper];
        let thrift = [Thrift::Off, Thrift::Queries, Thrift::Calls];
        let with = move |collect| {
            let each = [true, false].map(|piggyback| {
                let contacts = [true, false].map(|single_contact| {
                    thrift.map(|thrift| Options {
                        piggyback,
                        collect,
                        thrift,
                        single_contact,
                    })
                });
                contacts.into_iter().flatten()
            });
            each.into_iter().flatten()
        };
        collect.into_iter().flat_map(with)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::ARES_2
    }
}
