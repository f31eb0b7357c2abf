use super::*;

#[path = "../../../core/tests/world/mod.rs"]
#[allow(unreachable_pub)] // there it is part of a tree of modules
mod world;

use std::sync::Arc;

use areo_core::config::{Configuration, Dap};
use areo_trust::id::KeyId;
use areo_trust::key::AccessKey;
use areo_trust::protocol::{KeyProof, ProofSite};
use areo_trust::registry::{Actor, Foundation, Origin as Change};
use areo_trust::roots::RootDigest;
use areo_trust::secret::{Secret, system};
use areo_trust::ticket::Holder;
use areo_trust::tls::DefaultTimeProvider;
use world::{World, configuration};

const CLUSTER: u128 = 0xc1;
const NOW: u64 = 1_800_000_000;
const HOST: ServerId = ServerId(1);
const BINDING: Binding = [6; 32];

struct Asked {
    world: World,
    root: Arc<Configuration>,
    trusting: Rc<Trusting>,
    admin: AccessKey,
    /// The time of all requests: allowances do not come back while a test runs.
    now: Instant,
}

impl Asked {
    fn found() -> Asked {
        let root = configuration(3, Dap::Abd, 1, 0);
        let world = World::new(&root, 1);
        let (foundation, admin) = Foundation::create(CLUSTER, NOW).expect("a CA");
        let key = Secret::random(&system).expect("random bytes");
        let registry = Rc::new(Registry::new(CLUSTER, key));
        let tls = Tls::of_digest(RootDigest([7; 32]), Arc::new(DefaultTimeProvider));
        let trusting = Trusting::new(Rc::clone(&registry), HOST, tls, || NOW);
        let handle = world.actor(&root).client().root(&root);
        let founded = async move {
            let origin = Change {
                by: Actor::Founder,
                address: String::new(),
                now_seconds: NOW,
            };
            registry.found(&handle, &foundation, &origin).await
        };
        world.run(founded).expect("a quorum is up");
        Asked {
            world,
            root,
            trusting: Rc::new(trusting),
            admin,
            now: Instant::now(),
        }
    }

    /// The answer to a proof of a key, from this address.
    fn prove(&self, key: &AccessKey, address: &str) -> TrustAnswer {
        self.prove_for(key, None, address)
    }

    /// The answer to a proof of a key, for a ticket on behalf of another one if it is named.
    fn prove_for(&self, key: &AccessKey, behalf: Option<KeyId>, address: &str) -> TrustAnswer {
        let site = ProofSite {
            cluster: CLUSTER,
            server: HOST,
            binding: BINDING,
        };
        let holder = Holder::create().expect("random bytes").public();
        let proof = KeyProof::on_behalf(key, behalf, holder, (&site, &system));
        let ask = Ask::Prove(proof.expect("random bytes"));
        let remote = format!("{address}:4100").parse().expect("an address");
        let root = self.world.actor(&self.root).client().root(&self.root);
        let (trusting, now) = (Rc::clone(&self.trusting), self.now);
        let answer = async move {
            let caller = TrustCaller {
                ticket: None,
                remote,
                now,
                binding: Some(BINDING),
            };
            trusting.answer(&root, &ask, &caller).await
        };
        self.world.run(answer)
    }
}

fn refusal(answer: &TrustAnswer) -> Option<RefusalKind> {
    match answer {
        TrustAnswer::Refused(refusal) => Some(refusal.kind),
        _ => None,
    }
}

#[test]
fn an_address_whose_proofs_fail_is_left_and_no_other_one() {
    let asked = Asked::found();
    let wrong = AccessKey {
        secret: Secret::random(&system).unwrap(),
        ..asked.admin.clone()
    };
    for number in 0..FAILURES.address.burst {
        let answer = asked.prove(&wrong, "10.0.0.1");
        assert_eq!(
            refusal(&answer),
            Some(RefusalKind::Unauthorised),
            "{number}"
        );
    }
    let gathers = asked.world.gathers();
    let answer = asked.prove(&asked.admin, "10.0.0.1");
    assert_eq!(refusal(&answer), Some(RefusalKind::Unavailable));
    let TrustAnswer::Refused(refused) = answer else {
        unreachable!("it was refused")
    };
    assert!(refused.sentence.contains("wait a minute"), "{refused}");
    assert_eq!(asked.world.gathers(), gathers, "no quorum is asked for it");
    // Others are heard, as often as they are right.
    for number in 0..2 * FAILURES.address.burst {
        let answer = asked.prove(&asked.admin, "10.0.0.2");
        assert_eq!(refusal(&answer), None, "{number}");
    }
    let answer = asked.prove(&wrong, "10.0.0.2");
    assert_eq!(refusal(&answer), Some(RefusalKind::Unauthorised));
}

/// While the root domain was away, each proof that could not be judged counted as one that failed: clients were refused when it was back.
#[test]
fn no_proof_counts_as_failed_while_the_root_domain_is_away() {
    let asked = Asked::found();
    let wrong = AccessKey {
        secret: Secret::random(&system).unwrap(),
        ..asked.admin.clone()
    };
    for number in [0, 1] {
        asked.world.crash(number);
    }
    for number in 0..2 * FAILURES.address.burst {
        let answer = asked.prove(&wrong, "10.0.0.1");
        assert_eq!(refusal(&answer), Some(RefusalKind::Unavailable), "{number}");
    }
    for number in [0, 1] {
        asked.world.restart(number, false);
    }
    assert_eq!(refusal(&asked.prove(&asked.admin, "10.0.0.1")), None);
}

/// Users of a gateway whose keys were revoked would have its other users refused.
#[test]
fn a_gateway_pays_nothing_for_keys_that_are_unknown() {
    let asked = Asked::found();
    for number in 0..2 * FAILURES.address.burst {
        let answer = asked.prove_for(&asked.admin, Some(KeyId(9)), "10.0.0.1");
        assert_eq!(refusal(&answer), Some(RefusalKind::NotFound), "{number}");
    }
    let answer = asked.prove_for(&asked.admin, Some(asked.admin.id), "10.0.0.1");
    assert_eq!(refusal(&answer), None);
    let wrong = AccessKey {
        secret: Secret::random(&system).unwrap(),
        ..asked.admin.clone()
    };
    for _ in 0..FAILURES.address.burst {
        let answer = asked.prove_for(&wrong, Some(asked.admin.id), "10.0.0.1");
        assert_eq!(refusal(&answer), Some(RefusalKind::Unauthorised));
    }
    let answer = asked.prove_for(&wrong, Some(asked.admin.id), "10.0.0.1");
    assert_eq!(refusal(&answer), Some(RefusalKind::Unavailable));
}

/// Strangers with many addresses took from clients whose keys had been proven before.
#[test]
fn strangers_that_fail_from_many_addresses_cost_those_nothing_that_have_proven_a_key() {
    let asked = Asked::found();
    assert_eq!(refusal(&asked.prove(&asked.admin, "10.0.0.1")), None);
    for number in 0..FAILURES.strangers.burst {
        let address = std::net::Ipv4Addr::from_bits(0x0a01_0000 + number).into();
        let mut allowances = asked.trusting.allowances.borrow_mut();
        allowances.charge(address, &FAILURES, asked.now);
    }
    let answer = asked.prove(&asked.admin, "10.0.0.2");
    assert_eq!(refusal(&answer), Some(RefusalKind::Unavailable));
    assert_eq!(refusal(&asked.prove(&asked.admin, "10.0.0.1")), None);
}
