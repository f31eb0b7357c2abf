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
        fixed: false,
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
    let fixed = Descriptor {
        fixed: true,
        ..descriptor(5, Dap::Abd)
    };
    let made = Configuration::new(fixed.clone()).unwrap();
    let read = Configuration::decode(made.encoded().clone()).unwrap();
    assert_eq!(read.descriptor(), &fixed);
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

/// First versions are numbered by eras (`[W-13 ceasing-to-be-conditional]`), so that a wrong one would let old writes cover new ones.
#[test]
fn an_era_ends_where_a_domain_ceases_to_be_conditional() {
    let of = |index, dap, era| {
        let descriptor = descriptor(3, dap);
        Configuration::new(Descriptor {
            index,
            era,
            ..descriptor
        })
        .unwrap()
    };
    let conditional = Dap::Conditional { k: 1 };
    for (from, to, expected) in [
        (Dap::Abd, Dap::Ec { k: 1 }, 2),
        (Dap::Abd, conditional, 2),
        (conditional, conditional, 2),
        (conditional, Dap::Removed, 2),
        (conditional, Dap::Abd, 3),
    ] {
        let last = of(4, from, 2);
        for era in 1..=4 {
            let wrong = Err(InvalidConfiguration::Era { era, expected });
            let checked = last.check_next(&of(5, to, era));
            assert_eq!(checked, if era == expected { Ok(()) } else { wrong });
        }
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
