//! Configurations: who holds a domain, and how (`docs/spec` 3.1; "Formats with room" in ARCHITECTURE.md).

use crate::hash::stable_hash;
use crate::limits;
use crate::object::{DomainId, Name};
use crate::quorums::Quorums;
use areo_erasure::Code;
use bytes::Bytes;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

mod dap;
mod decider;
mod encoding;
mod invalid;
mod lattice;
mod options;
mod slots;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use dap::kinds;

pub use dap::Dap;
pub use decider::{Decider, InvalidDecider};
pub use invalid::InvalidConfiguration;
pub use lattice::Membership;
pub use options::{Collect, Options, Thrift};
use slots::Slots;

/// A server: random, written into its data directory when that is created. Addresses may change, ids do not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u128);

impl fmt::Debug for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// An ordered member list. Positions in it are what tallies speak of.
pub type Members = Arc<[ServerId]>;

/// The description that a configuration is made from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// The domain that it belongs to.
    pub domain: DomainId,
    /// The part of the domain; 0 until domains have several.
    pub partition: u32,
    /// Its place in the domain's sequence, from 0; in a lattice the size of its membership.
    pub index: u32,
    /// Its members, in order; distinct.
    pub members: Vec<ServerId>,
    /// The kind by which values are kept.
    pub dap: Dap,
    /// Slack of erasure-coded lists (2.2).
    pub delta: u16,
    /// Values up to this many bytes are kept as full copies.
    pub copy_bytes: u32,
    /// The optimisations that are in use.
    pub options: Options,
    /// The decider of the next configuration.
    pub decided_by: Decider,
    /// The membership that tells it apart, in a domain whose configurations are a lattice. `None`: they are a sequence.
    pub lattice: Option<Membership>,
    /// The number of times that the domain has ceased to be conditional (`[W-13 ceasing-to-be-conditional]`).
    pub era: u32,
    /// True if people alone change the members of this root domain ([`crate::manager::growth`]).
    pub fixed: bool,
}

impl Descriptor {
    /// The first configuration of a domain, with the usual limits and options.
    pub fn new(domain: DomainId, members: Vec<ServerId>, dap: Dap) -> Descriptor {
        Descriptor {
            domain,
            partition: 0,
            index: 0,
            members,
            dap,
            delta: limits::DEFAULT_DELTA,
            copy_bytes: limits::DEFAULT_COPY_BYTES,
            options: Options::default(),
            decided_by: Decider::Members,
            lattice: None,
            era: 0,
            fixed: false,
        }
    }

    /// The descriptor that ends the domain.
    #[must_use]
    pub fn removal(&self) -> Descriptor {
        Descriptor {
            dap: Dap::Removed,
            ..self.clone()
        }
    }
}

/// A configuration: an immutable descriptor, its encoding and the id made from it.
#[derive(Clone)]
pub struct Configuration {
    descriptor: Descriptor,
    members: Members,
    encoded: Bytes,
    id: ConfigurationId,
    quorums: Quorums,
    code: Code,
    slots: Option<Slots>,
}

/// Two configurations are the same if their descriptors are, byte for byte.
impl PartialEq for Configuration {
    fn eq(&self, other: &Self) -> bool {
        self.encoded == other.encoded
    }
}

impl Eq for Configuration {}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.descriptor.fmt(f)
    }
}

/// Names a configuration in requests and records. The digest tells two descriptors of one index apart
/// (`[X-13 highest-final]`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConfigurationId {
    pub domain: DomainId,
    /// The part of the domain.
    pub partition: u32,
    /// The place in the domain's sequence.
    pub index: u32,
    /// [`stable_hash`] of the encoded descriptor.
    pub digest: u64,
}

impl ConfigurationId {
    /// A bound below every id that another configuration of its sequence may have in this place: from the least digest on.
    fn least(&self, index: u32) -> ConfigurationId {
        let digest = 0;
        ConfigurationId {
            index,
            digest,
            ..*self
        }
    }

    /// All ids of earlier places of its sequence, in their order.
    pub fn earlier(&self) -> Range<ConfigurationId> {
        self.least(0)..self.least(self.index)
    }

    /// All ids of its place: two configurations of one place are a fork ([`crate::pointer::Fork`]).
    pub fn of_its_place(&self) -> RangeInclusive<ConfigurationId> {
        let digest = u64::MAX;
        self.least(self.index)..=ConfigurationId { digest, ..*self }
    }
}

impl Configuration {
    /// Checks the descriptor and fixes its encoding and id.
    ///
    /// # Errors
    /// [`InvalidConfiguration`].
    pub fn new(descriptor: Descriptor) -> Result<Arc<Configuration>, InvalidConfiguration> {
        let encoded = encoding::encode(&descriptor);
        let configuration = Configuration::build(descriptor, encoded)?;
        assert!(
            encoding::decode(configuration.encoded()).as_ref() == Ok(configuration.descriptor()),
            "a server reads the descriptor that a client made"
        );
        Ok(configuration)
    }

    /// Decodes a configuration that was sent or stored. The bytes are kept as they are, so that fields of a later
    /// version survive and the digest does not change.
    ///
    /// # Errors
    /// [`InvalidConfiguration`].
    pub fn decode(encoded: Bytes) -> Result<Arc<Configuration>, InvalidConfiguration> {
        let descriptor = encoding::decode(&encoded).map_err(InvalidConfiguration::Encoding)?;
        Configuration::build(descriptor, encoded)
    }

    fn build(
        descriptor: Descriptor,
        encoded: Bytes,
    ) -> Result<Arc<Configuration>, InvalidConfiguration> {
        let members = descriptor.members.len();
        if members == 0 || members > limits::MEMBERS {
            return Err(InvalidConfiguration::MemberCount { members });
        }
        let mut sorted = descriptor.members.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(InvalidConfiguration::MemberTwice { member: pair[0] });
        }
        if descriptor.era >= limits::ERAS {
            return Err(InvalidConfiguration::Eras);
        }
        if descriptor.index >= limits::INDEX {
            return Err(InvalidConfiguration::Index);
        }
        let k = descriptor.dap.k();
        if k == 0 || usize::from(k) > members {
            return Err(InvalidConfiguration::DataFragments { k, members });
        }
        let id = ConfigurationId {
            domain: descriptor.domain,
            partition: descriptor.partition,
            index: descriptor.index,
            digest: stable_hash(&encoded),
        };
        let quorums = descriptor.dap.quorums(members);
        assert!(quorums.quorum() <= members, "a quorum is of the members");
        let slots = Slots::of(&descriptor);
        let width = slots.as_ref().map_or(members as u8, Slots::width);
        let configuration = Configuration {
            members: descriptor.members.clone().into(),
            quorums,
            code: Code::new(width, k).expect("1 <= k <= n <= 255 was checked"),
            slots,
            descriptor,
            encoded,
            id,
        };
        configuration.check_lattice()?;
        Ok(Arc::new(configuration))
    }

    /// Checks that a domain may go on with `next` after this one: in a sequence `abd`, `ec` and `conditional` may become each other
    /// (`[W-12 becoming-conditional]`, `[W-13 ceasing-to-be-conditional]`); no other kind and no lattice becomes conditional, or ceases to be so.
    ///
    /// # Errors
    /// [`InvalidConfiguration::Conditional`], [`InvalidConfiguration::Era`].
    pub fn check_next(&self, next: &Configuration) -> Result<(), InvalidConfiguration> {
        let (from, to) = (self.dap(), next.dap());
        let is_sequence = self.descriptor.lattice.is_none() && next.descriptor.lattice.is_none();
        let other = match from.is_conditional() {
            true => to,
            false => from,
        };
        let may_change = is_sequence && matches!(other, Dap::Abd | Dap::Ec { .. });
        if self.changes_into(next) && !may_change {
            return Err(InvalidConfiguration::Conditional { from, to });
        }
        let (era, expected) = (next.era(), self.era_of_next(to));
        match era == expected {
            true => Ok(()),
            false => Err(InvalidConfiguration::Era { era, expected }),
        }
    }

    /// True if users' objects are registers in one of the two, and something else in the other.
    pub fn changes_into(&self, next: &Configuration) -> bool {
        let is_removal = next.dap().is_removal();
        self.dap().is_conditional() != next.dap().is_conditional() && !is_removal
    }

    /// The number of times that the domain has ceased to be conditional ([`Descriptor::era`]).
    pub fn era(&self) -> u32 {
        self.descriptor.era
    }

    /// The era of a successor of this kind.
    pub fn era_of_next(&self, kind: Dap) -> u32 {
        let ceases = self.dap().is_conditional() && !kind.is_conditional() && !kind.is_removal();
        self.era() + u32::from(ceases)
    }

    /// The members, in order.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// The number of members, `n`.
    pub fn n(&self) -> usize {
        self.members.len()
    }

    /// The kind by which values are kept.
    pub fn dap(&self) -> Dap {
        self.descriptor.dap
    }

    /// True if the object of this name is a ranked register here ([`crate::dap::conditional`], [`crate::object::Kind::is_register`]).
    pub fn is_ranked(&self, name: &Name) -> bool {
        self.dap().is_conditional() && name.kind().is_register()
    }

    /// The optimisations that are in use.
    pub fn options(&self) -> Options {
        self.descriptor.options
    }

    /// The descriptor that it was made from.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    pub fn quorums(&self) -> Quorums {
        self.quorums
    }

    /// Its `[n, k]` code; of replication, k = 1. In a lattice slots may be free, so that it has more fragments than there are members.
    pub fn code(&self) -> &Code {
        &self.code
    }

    pub fn id(&self) -> ConfigurationId {
        self.id
    }

    /// Its descriptor as it is sent and stored ([`crate::tlv`] fields).
    pub fn encoded(&self) -> &Bytes {
        &self.encoded
    }

    /// The position of a server in the member list.
    pub fn position(&self, server: ServerId) -> Option<usize> {
        self.members.iter().position(|member| *member == server)
    }

    /// The index of the element that the member at `position` holds of an object: rotates over the objects, so that the
    /// `k` data positions and the load do too (`[X-6 rotating-index]`, amending `[EC-1 element-index]`).
    pub fn element_index(&self, position: usize, placement_hash: u64) -> u8 {
        assert!(position < self.n(), "positions are of this configuration");
        if let Some(slots) = &self.slots {
            return slots.element_index(position, placement_hash);
        }
        let n = self.n() as u64;
        ((position as u64 + placement_hash % n) % n) as u8
    }
}

#[cfg(test)]
mod tests;
