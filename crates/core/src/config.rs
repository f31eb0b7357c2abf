//! Configurations: who holds a domain, and how (`docs/spec` 3.1; "Formats with room" in ARCHITECTURE.md).

use crate::hash::stable_hash;
use crate::limits;
use crate::object::{DomainId, Kind, Name};
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
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use dap::kinds;

pub use dap::Dap;
pub use decider::{Decider, InvalidDecider};
pub use invalid::InvalidConfiguration;
pub use lattice::Membership;
pub use options::{Collect, Options};

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

/// What a configuration is made from.
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
    /// How values are kept.
    pub dap: Dap,
    /// Slack of erasure-coded lists (2.2).
    pub delta: u16,
    /// Values up to this many bytes are kept as full copies.
    pub copy_bytes: u32,
    /// Which optimisations are made use of.
    pub options: Options,
    /// Who decides which configuration comes next.
    pub decided_by: Decider,
    /// What tells it apart, in a domain whose configurations are a lattice. `None`: they are a sequence.
    pub lattice: Option<Membership>,
    /// How often the domain has ceased to be conditional (`[W-13 ceasing-to-be-conditional]`).
    pub era: u32,
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
        }
    }

    /// What ends the domain.
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
    /// The domain.
    pub domain: DomainId,
    /// The part of the domain.
    pub partition: u32,
    /// The place in the domain's sequence.
    pub index: u32,
    /// [`stable_hash`] of the encoded descriptor.
    pub digest: u64,
}

impl ConfigurationId {
    /// Where every id of this place lies that another configuration of its sequence may have: from the least digest on.
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

    /// A configuration from the encoding that was sent or stored. The bytes are kept as they came, so that fields of a
    /// later version survive and the digest stays what it was.
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
        let configuration = Configuration {
            members: descriptor.members.clone().into(),
            quorums,
            code: Code::new(members as u8, k).expect("1 <= k <= n <= 255 was checked"),
            descriptor,
            encoded,
            id,
        };
        configuration.check_lattice()?;
        Ok(Arc::new(configuration))
    }

    /// Whether a domain may go on with `next` after this one: in a sequence `abd`, `ec` and `conditional` may become each other
    /// (`[W-12 becoming-conditional]`, `[W-13 ceasing-to-be-conditional]`); no other kind and no lattice becomes conditional, or
    /// ceases to be so.
    ///
    /// # Errors
    /// [`InvalidConfiguration::Conditional`].
    pub fn check_next(&self, next: &Configuration) -> Result<(), InvalidConfiguration> {
        let (from, to) = (self.dap(), next.dap());
        let is_sequence = self.descriptor.lattice.is_none() && next.descriptor.lattice.is_none();
        let other = match from.is_conditional() {
            true => to,
            false => from,
        };
        let may_change = is_sequence && matches!(other, Dap::Abd | Dap::Ec { .. });
        match !self.changes_into(next) || may_change {
            true => Ok(()),
            false => Err(InvalidConfiguration::Conditional { from, to }),
        }
    }

    /// Whether users' objects are registers in one of the two, and something else in the other.
    pub fn changes_into(&self, next: &Configuration) -> bool {
        let is_removal = next.dap().is_removal();
        self.dap().is_conditional() != next.dap().is_conditional() && !is_removal
    }

    /// How often the domain has ceased to be conditional ([`Descriptor::era`]).
    pub fn era(&self) -> u32 {
        self.descriptor.era
    }

    /// The era of what comes next and is of this kind.
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

    /// How values are kept.
    pub fn dap(&self) -> Dap {
        self.descriptor.dap
    }

    /// Whether the object of this name is a ranked register here ([`crate::dap::conditional`]): users' objects are, blocks and what
    /// files consist of are written once or coverably.
    pub fn is_ranked(&self, name: &Name) -> bool {
        self.dap().is_conditional() && name.kind() == Kind::User
    }

    /// Which optimisations are made use of.
    pub fn options(&self) -> Options {
        self.descriptor.options
    }

    /// What it was made from.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Its quorum system.
    pub fn quorums(&self) -> Quorums {
        self.quorums
    }

    /// Its `[n, k]` code; of replication, k = 1.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Its id.
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
        let n = self.n() as u64;
        ((position as u64 + placement_hash % n) % n) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlv::{self, MUST_UNDERSTAND};
    use bytes::BytesMut;

    fn descriptor(members: u128, dap: Dap) -> Descriptor {
        Descriptor {
            domain: DomainId(1),
            partition: 0,
            index: 0,
            members: (1..=members).map(ServerId).collect(),
            dap,
            delta: 2,
            copy_bytes: 100,
            options: Options::default(),
            decided_by: Decider::Members,
            lattice: None,
            era: 0,
        }
    }

    #[test]
    fn descriptors_survive_and_keep_their_id() {
        let k = 3;
        let coded = [
            Dap::Ec { k },
            Dap::EcPublished { k },
            Dap::EcOptimized { k },
        ];
        for dap in [Dap::Abd, Dap::AbdPublished, Dap::Removed]
            .into_iter()
            .chain(coded)
        {
            let made = Configuration::new(descriptor(5, dap)).unwrap();
            let read = Configuration::decode(made.encoded().clone()).unwrap();
            assert_eq!(made, read);
            assert_eq!(made.id(), read.id());
        }
        let other = Configuration::new(descriptor(5, Dap::Abd)).unwrap();
        let ec = Configuration::new(descriptor(5, Dap::Ec { k: 3 })).unwrap();
        assert_ne!(other.id(), ec.id());
    }

    #[test]
    fn options_survive_and_the_default_takes_no_room() {
        let plain = Configuration::new(descriptor(3, Dap::Abd)).unwrap();
        for options in Options::all() {
            let with = Descriptor {
                options,
                ..descriptor(3, Dap::Abd)
            };
            let made = Configuration::new(with).unwrap();
            let read = Configuration::decode(made.encoded().clone()).unwrap();
            assert_eq!(read.options(), options);
            let default = options == Options::default();
            assert_eq!(made.id() == plain.id(), default);
        }
        // 8 and 16 once meant what are kinds of their own.
        for bits in [8, 16, 0xff] {
            let mut wrong = BytesMut::from(plain.encoded().as_ref());
            tlv::put_field(&mut wrong, encoding::OPTIONS, &[bits]);
            assert!(Configuration::decode(wrong.freeze()).is_err());
        }
    }

    /// Nothing could come after it: a final pointer that led there ended each process that reconfigured the domain.
    #[test]
    fn each_index_has_one_after_it() {
        let at = |index| Descriptor {
            index,
            ..descriptor(3, Dap::Abd)
        };
        let last = Configuration::new(at(limits::INDEX - 1)).unwrap();
        let beyond = Configuration::new(at(limits::INDEX));
        assert_eq!(beyond, Err(InvalidConfiguration::Index));
        let mut encoded = last.encoded().to_vec();
        let bytes = (limits::INDEX - 1).to_le_bytes();
        let place = encoded.windows(4).position(|window| window == bytes);
        encoded[place.unwrap()..][..4].copy_from_slice(&limits::INDEX.to_le_bytes());
        let beyond = Configuration::decode(encoded.into());
        assert_eq!(beyond, Err(InvalidConfiguration::Index));
    }

    #[test]
    fn who_decides_survives_and_the_members_take_no_room() {
        let plain = Configuration::new(descriptor(3, Dap::Abd)).unwrap();
        let with = |text: &str| Descriptor {
            decided_by: text.parse().unwrap(),
            ..descriptor(3, Dap::Abd)
        };
        for text in ["members", "etcd=a:1", "etcd=a:1,b:2"] {
            let made = Configuration::new(with(text)).unwrap();
            let read = Configuration::decode(made.encoded().clone()).unwrap();
            assert_eq!(read.descriptor().decided_by.to_string(), text);
            assert_eq!(made.id() == plain.id(), text == "members");
        }
        let mut wrong = BytesMut::from(plain.encoded().as_ref());
        tlv::put_field(&mut wrong, encoding::DECIDER, b"somebody");
        assert!(Configuration::decode(wrong.freeze()).is_err());
    }

    #[test]
    fn a_later_option_is_kept_and_a_later_obligation_refused() {
        let made = Configuration::new(descriptor(3, Dap::Abd)).unwrap();
        let mut longer = BytesMut::from(made.encoded().as_ref());
        tlv::put_field(&mut longer, 99, b"new");
        let read = Configuration::decode(longer.clone().freeze()).unwrap();
        assert_eq!(read.descriptor(), made.descriptor());
        assert_ne!(read.id().digest, made.id().digest);
        tlv::put_field(&mut longer, MUST_UNDERSTAND | 99, b"new");
        assert!(Configuration::decode(longer.freeze()).is_err());
    }

    #[test]
    fn impossible_descriptors_are_refused() {
        let refused = |d| Configuration::new(d).unwrap_err();
        assert_eq!(
            refused(descriptor(0, Dap::Abd)),
            InvalidConfiguration::MemberCount { members: 0 }
        );
        assert_eq!(
            refused(descriptor(3, Dap::Ec { k: 4 })),
            InvalidConfiguration::DataFragments { k: 4, members: 3 }
        );
        let mut twice = descriptor(3, Dap::Abd);
        twice.members[2] = ServerId(1);
        assert_eq!(
            refused(twice),
            InvalidConfiguration::MemberTwice {
                member: ServerId(1)
            }
        );
    }

    #[test]
    fn element_indices_are_a_permutation() {
        let configuration = Configuration::new(descriptor(5, Dap::Ec { k: 3 })).unwrap();
        for hash in 0..7 {
            let mut indices: Vec<_> = (0..5)
                .map(|p| configuration.element_index(p, hash))
                .collect();
            indices.sort_unstable();
            assert_eq!(indices, [0, 1, 2, 3, 4]);
        }
    }
}
