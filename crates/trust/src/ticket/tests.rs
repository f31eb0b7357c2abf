use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::SKEW_SECONDS;
use crate::grant::{Need, Verb};
use proptest::prelude::*;

const NOW: u64 = 1_800_000_000;
const HERE: u128 = 0xc1;

struct World {
    signer: Signer,
    holder: Holder,
    verifier: Verifier,
}

fn world() -> World {
    let signer = Signer::create().unwrap();
    let verifier = Verifier {
        cluster: HERE,
        signers: vec![signer.public()],
        revoked: BTreeSet::new(),
        least: BTreeMap::new(),
    };
    World {
        signer,
        holder: Holder::create().unwrap(),
        verifier,
    }
}

impl World {
    fn ticket(&self) -> Ticket {
        let grants = vec![
            "read:photos/2024/".parse().unwrap(),
            "status".parse().unwrap(),
        ];
        let grants = Grants::new(grants).unwrap();
        Ticket::new(HERE, KeyId(7), grants, self.holder.public(), NOW)
    }
}

#[test]
fn a_ticket_is_verified_with_the_public_key_alone() {
    let world = world();
    let ticket = world.ticket();
    let bytes = world.signer.sign(&ticket);
    let verified = world.verifier.verify(&bytes, NOW).unwrap();
    assert_eq!(verified, ticket);
    assert!(
        verified
            .grants
            .allow(&Need::keys(Verb::Read, "photos", "2024/a"))
    );

    let seed = world.signer.private();
    assert_eq!(seed.expose().len(), SECRET_BYTES, "no other form is made");
    let again = Signer::load(seed).unwrap();
    assert_eq!(again.sign(&ticket), bytes);
    assert_eq!(
        Signer::load(&Secret::new(vec![0; 48])).err(),
        Some(NoSigningKey)
    );
    let shown = format!("{again:?} {:?}", world.holder);
    assert_eq!(shown, "Signer Holder");
}

#[test]
fn every_changed_bit_and_every_cut_is_refused() {
    let world = world();
    let bytes = world.signer.sign(&world.ticket());
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        let refused = world.verifier.verify(&changed, NOW);
        assert_eq!(refused, Err(TicketError::Signature), "bit {bit}");
    }
    for length in 0..bytes.len() {
        assert!(
            world.verifier.verify(&bytes[..length], NOW).is_err(),
            "{length} bytes"
        );
    }
    let longer = [&bytes[..], b"x"].concat();
    assert_eq!(
        world.verifier.verify(&longer, NOW),
        Err(TicketError::Signature)
    );
    let long = vec![0; MAX_TICKET_BYTES + 1];
    let bytes = long.len();
    assert_eq!(
        world.verifier.verify(&long, NOW),
        Err(TicketError::Length { bytes })
    );
}

#[test]
fn a_ticket_of_another_cluster_is_refused() {
    let (here, there) = (world(), world());
    let foreign = there.signer.sign(&there.ticket());
    assert_eq!(
        here.verifier.verify(&foreign, NOW),
        Err(TicketError::Signature)
    );
    // Two clusters that were made from one copy of a directory, and so have one signing key.
    let mut ticket = here.ticket();
    ticket.cluster = 0xc2;
    let (expected, found) = (HERE, 0xc2);
    let refused = here.verifier.verify(&here.signer.sign(&ticket), NOW);
    assert_eq!(refused, Err(TicketError::OtherCluster { expected, found }));
    let mut both = here.verifier.clone();
    both.signers.push(there.signer.public());
    assert!(
        both.verify(&foreign, NOW).is_ok(),
        "two signing keys while one is changed"
    );
    both.signers.clear();
    assert!(both.verify(&foreign, NOW).is_err());
}

#[test]
fn a_ticket_counts_for_its_hour_give_or_take_two() {
    let world = world();
    let bytes = world.signer.sign(&world.ticket());
    let at = |now| world.verifier.verify(&bytes, now).map(|_| ());
    let (first, last) = (NOW - SKEW_SECONDS, NOW + TICKET_SECONDS + SKEW_SECONDS - 1);
    for now in [first, NOW, last] {
        assert_eq!(at(now), Ok(()), "{now}");
    }
    let seconds = SKEW_SECONDS;
    assert_eq!(at(last + 1), Err(TicketError::Expired { seconds }));
    let seconds = SKEW_SECONDS + 1;
    assert_eq!(at(first - 1), Err(TicketError::NotYet { seconds }));
    assert!(at(u64::MAX).is_err() && at(0).is_err());
    assert_eq!(Ticket::issued_at(&bytes), Some(NOW));
    assert_eq!(Ticket::issued_at(&bytes[..SIGNATURE_BYTES]), None);
}

#[test]
fn a_revoked_key_is_refused_at_once_and_on_a_connection_that_exists() {
    let mut world = world();
    let bytes = world.signer.sign(&world.ticket());
    let ticket = world.verifier.verify(&bytes, NOW).unwrap();
    world.verifier.revoked.insert(KeyId(8));
    assert!(world.verifier.still_counts(&ticket, NOW).is_ok());
    world.verifier.revoked.insert(KeyId(7));
    let revoked = Err(TicketError::Revoked { key: KeyId(7) });
    assert_eq!(world.verifier.verify(&bytes, NOW).map(|_| ()), revoked);
    assert_eq!(world.verifier.still_counts(&ticket, NOW), revoked);
}

#[test]
fn a_ticket_of_a_retired_secret_or_of_earlier_grants_is_refused() {
    let mut world = world();
    let key = KeyId(7);
    let standing = |secret, grants| Standing { secret, grants };
    let ticket = |standing| Ticket {
        standing,
        ..world.ticket()
    };
    let tickets = [standing(0, 0), standing(1, 0), standing(1, 1)].map(ticket);
    let bytes = tickets.clone().map(|ticket| world.signer.sign(&ticket));
    for (bytes, ticket) in bytes.iter().zip(&tickets) {
        assert_eq!(world.verifier.verify(bytes, NOW).as_ref(), Ok(ticket));
    }
    world.verifier.least.insert(KeyId(8), standing(9, 9));
    let judge = |verifier: &Verifier| {
        let judged = bytes
            .each_ref()
            .map(|bytes| verifier.verify(bytes, NOW).err());
        let again = tickets
            .each_ref()
            .map(|ticket| verifier.still_counts(ticket, NOW).err());
        assert_eq!(judged, again);
        judged
    };
    assert_eq!(judge(&world.verifier), [None, None, None], "another key");
    let (retired, changed) = (
        Some(TicketError::Retired { key }),
        Some(TicketError::GrantsChanged { key }),
    );
    world.verifier.least.insert(key, standing(1, 0));
    assert_eq!(judge(&world.verifier), [retired.clone(), None, None]);
    world.verifier.least.insert(key, standing(1, 1));
    assert_eq!(judge(&world.verifier), [retired, changed, None]);
}

/// A gateway has it: it ends with its own key, and with the key on whose behalf it is.
#[test]
fn a_ticket_on_behalf_of_a_key_ends_with_either_key() {
    let world = world();
    let standing = |secret, grants| Standing { secret, grants };
    let (key, gateway) = (KeyId(7), KeyId(8));
    let ticket = Ticket {
        standing: standing(1, 2),
        gateway: Some(Gateway {
            key: gateway,
            standing: standing(3, 4),
        }),
        ..world.ticket()
    };
    let bytes = world.signer.sign(&ticket);
    assert_eq!(world.verifier.verify(&bytes, NOW), Ok(ticket.clone()));
    let judge = |change: &dyn Fn(&mut Verifier)| {
        let mut verifier = world.verifier.clone();
        change(&mut verifier);
        let judged = verifier.verify(&bytes, NOW).err();
        assert_eq!(judged, verifier.still_counts(&ticket, NOW).err());
        judged
    };
    for (id, secret, grants) in [(key, 1, 2), (gateway, 3, 4)] {
        let revoke = |verifier: &mut Verifier| assert!(verifier.revoked.insert(id));
        let revoked = judge(&revoke);
        assert_eq!(revoked, Some(TicketError::Revoked { key: id }));
        let raise = |least| {
            move |verifier: &mut Verifier| assert_eq!(verifier.least.insert(id, least), None)
        };
        let least = |least: Standing| judge(&raise(least));
        assert_eq!(least(standing(secret, grants)), None);
        let retired = Some(TicketError::Retired { key: id });
        assert_eq!(least(standing(secret + 1, grants)), retired);
        let changed = Some(TicketError::GrantsChanged { key: id });
        assert_eq!(least(standing(secret, grants + 1)), changed);
    }
    let other = |verifier: &mut Verifier| assert!(verifier.revoked.insert(KeyId(9)));
    assert_eq!(judge(&other), None);
}

#[test]
fn a_proof_of_possession_serves_one_holder_one_server_and_one_connection() {
    let world = world();
    let ticket = world.ticket();
    let meant = Possession {
        cluster: HERE,
        server: ServerId(1),
        binding: [6; 32],
    };
    let proof = world.holder.prove(&meant);
    assert_eq!(ticket.is_held(&meant, &proof), Ok(()));
    let message = meant.message();
    assert_eq!(message.len(), 18 + 16 + 16 + 32);
    assert_eq!(message[..18], *b"areo possession 1\0");
    assert!(message.ends_with(&meant.binding));
    let refused = Err(TicketError::Possession { key: KeyId(7) });
    let others = [
        Possession {
            cluster: 0xc2,
            ..meant
        },
        Possession {
            server: ServerId(2),
            ..meant
        },
        Possession {
            binding: [7; 32],
            ..meant
        },
    ];
    for other in others {
        assert_eq!(ticket.is_held(&other, &proof), refused, "{other:?}");
    }
    let thief = Holder::create().unwrap();
    assert_eq!(ticket.is_held(&meant, &thief.prove(&meant)), refused);
    assert_eq!(ticket.is_held(&meant, &proof[..63]), refused);
}

#[test]
fn fields_of_a_later_version_are_refused_and_missing_ones_too() {
    let world = world();
    let fields = world.ticket().encode();
    let mut later = BytesMut::from(&fields[..]);
    tlv::put_field(&mut later, MUST_UNDERSTAND | 99, b"");
    let refused = world
        .verifier
        .verify(&world.signer.sign_anything(&later), NOW);
    let kind = MUST_UNDERSTAND | 99;
    assert_eq!(
        refused,
        Err(TicketError::Fields(TlvError::Unknown { kind }))
    );
    let mut optional = BytesMut::from(&fields[..]);
    tlv::put_field(&mut optional, 99, b"");
    assert!(
        world
            .verifier
            .verify(&world.signer.sign_anything(&optional), NOW)
            .is_ok()
    );
    let refused = world.verifier.verify(&world.signer.sign_anything(b""), NOW);
    let kind = CLUSTER;
    assert_eq!(
        refused,
        Err(TicketError::Fields(TlvError::Missing { kind }))
    );
    let mut rubbish = BytesMut::from(&fields[..]);
    tlv::put_field(&mut rubbish, GRANT, b"read");
    let refused = world
        .verifier
        .verify(&world.signer.sign_anything(&rubbish), NOW);
    assert!(matches!(refused, Err(TicketError::Grant(_))), "{refused:?}");
}

#[test]
fn a_ticket_with_all_grants_that_a_key_may_have_fits() {
    let world = world();
    let text = format!("read:d/{}", "a".repeat(MAX_GRANT_BYTES / MAX_GRANTS - 7));
    let grants = Grants::new(vec![text.parse().unwrap(); MAX_GRANTS]).unwrap();
    let standing = Standing {
        secret: 1,
        grants: 2,
    };
    let gateway = Some(Gateway {
        key: KeyId(8),
        standing,
    });
    let ticket = Ticket {
        standing,
        gateway,
        grants,
        ..world.ticket()
    };
    let bytes = world.signer.sign(&ticket);
    assert_eq!(bytes.len(), MAX_TICKET_BYTES);
    assert_eq!(world.verifier.verify(&bytes, NOW), Ok(ticket));
}

/// Verifies a golden ticket, and checks that the golden signer signs it so again: Ed25519 signs without randomness.
fn verify_golden(ticket: &str) -> Ticket {
    let private = Secret::new(hexadecimal(include_str!("../../tests/golden/signer-1.txt")));
    let signer = Signer::load(&private).unwrap();
    let verifier = Verifier {
        cluster: HERE,
        signers: vec![signer.public()],
        revoked: BTreeSet::new(),
        least: BTreeMap::new(),
    };
    let bytes = hexadecimal(ticket);
    let ticket = verifier.verify(&bytes, NOW).unwrap();
    assert_eq!(signer.sign(&ticket), bytes);
    ticket
}

#[test]
fn a_ticket_of_the_first_version_stays_readable() {
    let ticket = verify_golden(include_str!("../../tests/golden/ticket-1.txt"));
    let grants: Vec<String> = ticket
        .grants
        .all()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(grants, ["read:photos/2024/", "status"]);
    assert_eq!((ticket.key, ticket.issued_seconds), (KeyId(7), NOW));
}

#[test]
fn a_ticket_with_a_standing_stays_readable() {
    let ticket = verify_golden(include_str!("../../tests/golden/ticket-2.txt"));
    let standing = Standing {
        secret: 3,
        grants: 5,
    };
    assert_eq!((ticket.key, ticket.standing), (KeyId(7), standing));
}

#[test]
fn a_ticket_on_behalf_of_a_key_stays_readable() {
    let ticket = verify_golden(include_str!("../../tests/golden/ticket-3.txt"));
    let gateway = Gateway {
        key: KeyId(8),
        standing: Standing {
            secret: 1,
            grants: 2,
        },
    };
    assert_eq!((ticket.key, ticket.gateway), (KeyId(7), Some(gateway)));
}

fn hexadecimal(text: &str) -> Vec<u8> {
    let text = text.trim();
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_ticket_comes_back(
        key: u64,
        holder: [u8; 32],
        numbers: (u32, u32),
        gateway: Option<(u64, u32, u32)>,
        start in "[a-z0-9]{0,8}",
        prefix in "\\PC{0,20}",
        verbs in proptest::sample::subsequence(vec!["read", "write", "list", "delete", "admin"], 1..5),
    ) {
        let world = world();
        let grant = format!("{}:{start}*/{prefix}", verbs.join(","));
        let grants = Grants::new(vec![grant.parse().unwrap()]).unwrap();
        let ticket = Ticket {
            standing: Standing { secret: numbers.0, grants: numbers.1 },
            gateway: gateway.map(|(key, secret, grants)| Gateway {
                key: KeyId(key),
                standing: Standing { secret, grants },
            }),
            ..Ticket::new(HERE, KeyId(key), grants, holder, NOW)
        };
        let bytes = world.signer.sign(&ticket);
        prop_assert_eq!(world.verifier.verify(&bytes, NOW), Ok(ticket));
    }

    #[test]
    fn any_fields_that_are_signed_are_read_or_refused(fields in proptest::collection::vec(any::<u8>(), 0..200)) {
        let world = world();
        let refused = world.verifier.verify(&world.signer.sign_anything(&fields), NOW);
        prop_assert!(refused.is_err());
    }
}
