//! The trust of a cluster over real servers of a root domain in one thread: who wins, and what every later reader sees.

use std::future::Future;
use std::rc::Rc;

use crate::world::{Chaos, World, WorldEnv, configuration, server};
use areo_core::config::{Configuration, Dap, ServerId};
use areo_core::manager::Root;
use areo_core::message::{Enrolment, ServerRecord};
use areo_trust::authority::{PublicKey, ServerKey};
use areo_trust::grant::{Grants, Need, PrefixedGrant, Verb};
use areo_trust::id::KeyId;
use areo_trust::key::{AccessKey, Exchange, NONCE_BYTES, ProofError, Prover};
use areo_trust::registry::{
    Actor, AuthorityRecord, ChangeKeyError, CreateKeyError, DropRootError, FoundError, Foundation,
    IssueError, IssueTicketError, IssuedTicket, LogError, Origin, RedeemTokenError, Redemption,
    Registry, RevokeTokenError, TrustRootError, What,
};
use areo_trust::roots::RootsError;
use areo_trust::secret::{Secret, system};
use areo_trust::ticket::TicketError;
use areo_trust::token::{JoinToken, REPETITION_SECONDS, RedeemError};
use std::sync::Arc;

const CLUSTER: u128 = 0xc1;
const NOW: u64 = 1_800_000_000;

/// A cluster that was founded, whose root domain has three members.
struct Cluster {
    world: World,
    c: Arc<Configuration>,
    key: Secret,
    admin: AccessKey,
}

/// A server with a registry of its own.
#[derive(Clone)]
struct Node {
    root: Root<WorldEnv>,
    registry: Rc<Registry>,
}

fn origin(now_seconds: u64) -> Origin {
    Origin {
        by: Actor::Founder,
        address: "127.0.0.1:4100".into(),
        now_seconds,
    }
}

impl Cluster {
    fn found(seed: u64) -> Cluster {
        let c = configuration(3, Dap::Abd, 1, 0);
        let world = World::new(&c, seed);
        let (foundation, admin) = Foundation::create(CLUSTER, NOW).expect("a CA");
        let cluster = Cluster {
            world,
            c,
            key: Secret::random(&system).expect("random bytes"),
            admin,
        };
        let node = cluster.node();
        let founded = async move {
            let at = origin(NOW);
            node.registry.found(&node.root, &foundation, &at).await
        };
        cluster.world.run(founded).expect("a quorum is up");
        cluster
    }

    fn node(&self) -> Node {
        Node {
            root: self.world.actor(&self.c).client().root(&self.c),
            registry: Rc::new(Registry::new(CLUSTER, self.key.clone())),
        }
    }

    fn token(&self, ttl_seconds: u64) -> JoinToken {
        let node = self.node();
        let created = async move {
            let at = origin(NOW);
            node.registry
                .create_token(&node.root, ttl_seconds, &at)
                .await
        };
        self.world.run(created).expect("a quorum is up")
    }

    fn run<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> T {
        self.world.run(future)
    }

    /// The outcomes of what began at once, in an order of messages that the seed draws.
    fn at_once<T: 'static>(&self, futures: Vec<impl Future<Output = T> + 'static>) -> Vec<T> {
        self.world.random(Chaos {
            lose: 0,
            duplicate: 50,
            pass_time: 50,
        });
        let begun: Vec<_> = futures
            .into_iter()
            .map(|one| self.world.spawn(one))
            .collect();
        begun.iter().map(|one| self.world.finish(one)).collect()
    }
}

impl Node {
    /// Shows a token as this server, at this time.
    async fn redeem(
        self,
        token: JoinToken,
        (server, key): (ServerId, PublicKey),
        now_seconds: u64,
    ) -> Result<(), RedeemTokenError> {
        let shown = Redemption {
            id: token.id,
            secret: &token.secret,
            server,
            key: &key,
        };
        let at = origin(now_seconds);
        self.registry.redeem_token(&self.root, &shown, &at).await
    }

    async fn revoke_token(self, token: JoinToken) -> Result<(), RevokeTokenError> {
        let at = origin(NOW);
        self.registry.revoke_token(&self.root, token.id, &at).await
    }

    async fn create_key(
        self,
        name: &'static str,
        grants: Grants,
    ) -> Result<AccessKey, CreateKeyError> {
        let at = origin(NOW);
        self.registry
            .create_key(&self.root, name, &grants, &at)
            .await
    }

    async fn revoke_key(self, id: KeyId) -> Result<(), ChangeKeyError> {
        let at = origin(NOW);
        self.registry.revoke_key(&self.root, id, &at).await
    }

    async fn rotate_key(self, id: KeyId) -> Result<AccessKey, ChangeKeyError> {
        self.registry.rotate_key(&self.root, id, &origin(NOW)).await
    }

    async fn ticket(self, key: AccessKey) -> Result<IssuedTicket, IssueTicketError> {
        let exchange = exchange(CLUSTER, key.id);
        let proof = exchange.prove(&key.secret, Prover::Client);
        let registry = &self.registry;
        registry
            .issue_ticket(&self.root, &exchange, &proof, NOW)
            .await
    }
}

fn exchange(cluster: u128, key: KeyId) -> Exchange {
    Exchange {
        cluster,
        server: ServerId(1),
        key,
        client_nonce: [3; NONCE_BYTES],
        holder: [5; 32],
        binding: [0; 32],
        behalf: None,
    }
}

fn public() -> PublicKey {
    ServerKey::create().expect("a key").public()
}

fn joining(number: usize) -> ServerId {
    server(100 + number)
}

#[test]
fn of_servers_that_show_one_token_at_once_one_is_let_in() {
    let mut winners = [0; 3];
    for seed in 0..60 {
        let cluster = Cluster::found(seed);
        let token = cluster.token(60);
        let shown = (0..3).map(|number| {
            let own = (joining(number), public());
            cluster.node().redeem(token.clone(), own, NOW)
        });
        let ended = cluster.at_once(shown.collect());
        let won: Vec<usize> = (0..3).filter(|number| ended[*number].is_ok()).collect();
        let [winner] = won[..] else {
            panic!("seed {seed}: {ended:?}")
        };
        winners[winner] += 1;
        let (id, by) = (token.id, joining(winner));
        let used = RedeemTokenError::Token(RedeemError::Used { id, by });
        let others = (0..3).filter(|number| *number != winner);
        for number in others {
            assert_eq!(ended[number].as_ref(), Err(&used), "seed {seed}");
        }
        let node = cluster.node();
        let tokens = cluster.run(async move { node.registry.tokens(&node.root).await });
        assert_eq!(tokens.unwrap()[0].used.map(|used| used.by), Some(by));
    }
    assert!(winners.iter().all(|wins| *wins > 5), "{winners:?}");
}

#[test]
fn a_token_that_is_used_and_revoked_at_once_is_one_or_the_other_first() {
    let mut used_first = 0;
    for seed in 0..60 {
        let cluster = Cluster::found(seed);
        let token = cluster.token(60);
        let own = (joining(0), public());
        let (user, revoker) = (cluster.node(), cluster.node());
        let used = user.redeem(token.clone(), own, NOW);
        cluster.world.random(Chaos {
            lose: 0,
            duplicate: 50,
            pass_time: 50,
        });
        let revoked = cluster.world.spawn(revoker.revoke_token(token.clone()));
        let used = cluster.world.spawn(used);
        assert_eq!(cluster.world.finish(&revoked), Ok(()), "seed {seed}");
        let (used, id) = (cluster.world.finish(&used), token.id);
        let refused = Err(RedeemTokenError::Token(RedeemError::Revoked { id }));
        assert!(used == Ok(()) || used == refused, "seed {seed}: {used:?}");
        used_first += usize::from(used.is_ok());
        // Once the revocation was acknowledged, not even the use is repeated.
        let again = cluster.run(cluster.node().redeem(token, own, NOW));
        assert_eq!(again, refused, "seed {seed}");
    }
    assert!((2..58).contains(&used_first), "{used_first} of 60");
}

#[test]
fn a_token_outlives_its_maker_and_its_use_is_repeated_for_a_while() {
    let cluster = Cluster::found(1);
    let token = cluster.token(60);
    // One member of the root domain is gone, and with it the server that made the token.
    cluster.world.crash(0);
    let own = (joining(0), public());
    let redeem = |own, now| cluster.run(cluster.node().redeem(token.clone(), own, now));
    let expires_seconds = NOW + 60;
    let id = token.id;
    let expired = |now_seconds| {
        Err(RedeemTokenError::Token(RedeemError::Expired {
            id,
            expires_seconds,
            now_seconds,
        }))
    };
    assert_eq!(redeem(own, NOW + 60), expired(NOW + 60));
    assert_eq!(redeem(own, NOW + 59), Ok(()));
    let end = NOW + 60 + REPETITION_SECONDS;
    assert_eq!(redeem(own, end - 1), Ok(()), "its answer was lost");
    assert_eq!(redeem(own, end), expired(end));
    let by = own.0;
    let other_key = RedeemTokenError::Token(RedeemError::OtherKey { id, by });
    assert_eq!(redeem((by, public()), NOW), Err(other_key));
    let forged = JoinToken {
        secret: Secret::random(&system).unwrap(),
        ..token.clone()
    };
    let unknown = Err(RedeemTokenError::Token(RedeemError::Unknown { id }));
    assert_eq!(
        cluster.run(cluster.node().redeem(forged, own, NOW)),
        unknown
    );
}

#[test]
fn without_a_quorum_a_key_is_judged_by_what_was_read_last() {
    let cluster = Cluster::found(1);
    let node = cluster.node();
    let registry = Rc::clone(&node.registry);
    let key = cluster
        .run(node.clone().create_key("app", Grants::of_administrator()))
        .unwrap();
    let revoked = cluster
        .run(node.clone().create_key("old", Grants::of_administrator()))
        .unwrap();
    cluster.run(node.clone().revoke_key(revoked.id)).unwrap();
    // A look at all that was acknowledged.
    cluster.run(node.clone().ticket(key.clone())).unwrap();
    let kept = registry.keep().expect("it has read everything");
    // A server that starts again, and one whose disk had nothing.
    let (started, new) = (cluster.node(), cluster.node());
    started.registry.recall(&kept).unwrap();
    let view = started.registry.view();
    assert_eq!(view, registry.view());
    cluster.world.crash(0);
    cluster.world.crash(1);
    for node in [&node, &started] {
        cluster.run(node.clone().ticket(key.clone())).unwrap();
        // Its proof may be that of a key which this server has not heard of.
        let refused = cluster.run(node.clone().ticket(revoked.clone()));
        assert!(matches!(
            refused,
            Err(IssueTicketError::Log(LogError::Unavailable(_)))
        ));
    }
    let refused = cluster.run(new.ticket(key));
    assert!(matches!(refused, Err(IssueTicketError::Log(_))));
}

#[test]
fn a_token_makes_no_second_server_of_one_that_is_registered() {
    let cluster = Cluster::found(1);
    let token = cluster.token(60);
    let record = ServerRecord::at_address(joining(0), "127.0.0.1:1".into());
    let root = cluster.node().root;
    let registered = async move { root.register(Enrolment::Register, &record).await };
    cluster.run(registered).unwrap();
    let server = joining(0);
    let thief = cluster
        .node()
        .redeem(token.clone(), (server, public()), NOW);
    let refused = Err(RedeemTokenError::Registered { server });
    assert_eq!(cluster.run(thief), refused);
    let other = cluster.node().redeem(token, (joining(1), public()), NOW);
    assert_eq!(cluster.run(other), Ok(()), "it was not used");
}

#[test]
fn a_key_has_a_name_of_its_own_until_it_is_revoked() {
    for seed in 0..40 {
        let cluster = Cluster::found(seed);
        let create = |name| cluster.node().create_key(name, Grants::default());
        let made = cluster.at_once((0..3).map(|_| create("camera")).collect());
        let won: Vec<&AccessKey> = made.iter().flatten().collect();
        let [key] = won[..] else {
            panic!("seed {seed}: {made:?}")
        };
        let (name, id) = ("camera".to_owned(), key.id);
        let taken = CreateKeyError::NameTaken { name, id };
        assert!(
            made.iter()
                .filter_map(|made| made.as_ref().err())
                .all(|it| *it == taken)
        );
        assert_eq!(cluster.run(cluster.node().revoke_key(key.id)), Ok(()));
        let second = cluster.run(create("camera")).unwrap();
        assert_ne!(second.id, key.id);
        let old = cluster.run(cluster.node().ticket(key.clone()));
        let revoked = ProofError::Revoked { key: key.id };
        assert_eq!(old, Err(revoked.into()));
        assert!(cluster.run(cluster.node().ticket(second)).is_ok());
    }
}

#[test]
fn no_key_is_given_a_grant_with_a_prefix() {
    let cluster = Cluster::found(1);
    let node = cluster.node();
    let grants = |text: &str| Grants::new(vec![text.parse().unwrap()]).unwrap();
    let prefixed = grants("read:photos/2024/");
    let refused = PrefixedGrant {
        grant: "read:photos/2024/".into(),
    };
    let made = cluster.run(node.clone().create_key("camera", prefixed.clone()));
    assert_eq!(made.err(), Some(refused.clone().into()));
    assert_eq!(node.registry.key_named("camera"), None);
    let whole = cluster.run(node.clone().create_key("camera", grants("read:photos")));
    let key = whole.unwrap().id;
    let at = origin(NOW);
    let changed = async move {
        let registry = &node.registry;
        registry
            .change_grants(&node.root, key, &prefixed, &at)
            .await
    };
    assert_eq!(cluster.run(changed), Err(refused.into()));
}

#[test]
fn tickets_end_with_their_secret_their_grants_and_their_key() {
    let cluster = Cluster::found(1);
    let node = cluster.node();
    let issue = |key: &AccessKey| cluster.run(node.clone().ticket(key.clone()));
    let view = || {
        let node = node.clone();
        cluster.run(async move { node.registry.refresh(&node.root).await.unwrap() })
    };
    let judge = |issued: &IssuedTicket| view().verifier.verify(&issued.ticket, NOW);
    let grants = Grants::new(vec!["read:photos".parse().unwrap()]).unwrap();
    let made = node.clone().create_key("camera", grants.clone());
    let first = cluster.run(made).unwrap();
    let key = first.id;
    let old = issue(&first).unwrap();
    let exchange = exchange(CLUSTER, key);
    assert!(exchange.is_proven(&first.secret, Prover::Server, &old.answer));
    assert_eq!(judge(&old).unwrap().grants, grants);

    let second = cluster.run(node.clone().rotate_key(key)).unwrap();
    let again = cluster.run(node.clone().rotate_key(key));
    assert_eq!(again.err(), Some(ChangeKeyError::Rotating { id: key }));
    let new = issue(&second).unwrap();
    assert!(issue(&first).is_ok() && judge(&old).is_ok(), "both count");
    let retire = || {
        let node = node.clone();
        let at = origin(NOW);
        cluster.run(async move { node.registry.retire_key(&node.root, key, &at).await })
    };
    assert_eq!((retire(), retire()), (Ok(()), Ok(())));
    assert_eq!(issue(&first), Err(ProofError::Unknown { key }.into()));
    assert_eq!(judge(&old), Err(TicketError::Retired { key }));
    assert!(judge(&new).is_ok());

    let none = Grants::default();
    let narrowed = {
        let node = node.clone();
        let at = origin(NOW);
        async move {
            node.registry
                .change_grants(&node.root, key, &none, &at)
                .await
        }
    };
    assert_eq!(cluster.run(narrowed), Ok(()));
    assert_eq!(judge(&new), Err(TicketError::GrantsChanged { key }));
    let narrow = issue(&second).unwrap();
    assert_eq!(judge(&narrow).unwrap().grants, Grants::default());

    assert_eq!(cluster.run(node.clone().revoke_key(key)), Ok(()));
    assert_eq!(cluster.run(node.clone().revoke_key(key)), Ok(()), "twice");
    assert_eq!(judge(&narrow), Err(TicketError::Revoked { key }));
    assert_eq!(issue(&second), Err(ProofError::Revoked { key }.into()));
    let rotated = cluster.run(node.clone().rotate_key(key));
    assert_eq!(rotated.err(), Some(ChangeKeyError::Revoked { id: key }));
}

#[test]
fn one_key_that_makes_keys_stays() {
    for seed in 0..40 {
        let cluster = Cluster::found(seed);
        let admin = cluster.admin.id;
        let alone = cluster.run(cluster.node().revoke_key(admin));
        assert_eq!(alone, Err(ChangeKeyError::LastOfKeys { id: admin }));
        let made = cluster
            .node()
            .create_key("second", Grants::of_administrator());
        let second = cluster.run(made).unwrap().id;
        // Each revokes the other's.
        let ended = cluster.at_once(vec![
            cluster.node().revoke_key(admin),
            cluster.node().revoke_key(second),
        ]);
        let won = ended.iter().filter(|ended| ended.is_ok()).count();
        assert_eq!(won, 1, "seed {seed}: {ended:?}");
        let node = cluster.node();
        let keys = cluster.run(async move { node.registry.keys(&node.root).await });
        let keys = keys.unwrap();
        let need = Need::cluster(Verb::Keys);
        let able = keys
            .iter()
            .filter(|key| key.revoked_seconds.is_none() && key.grants.allow(&need));
        assert_eq!(able.count(), 1);
    }
}

#[test]
fn a_rotation_of_the_ca_is_a_sequence_of_steps_of_which_each_is_made_once() {
    let cluster = Cluster::found(1);
    let node = cluster.node();
    let (key, server) = (public(), server(1));
    assert_eq!(
        node.registry.issue_certificate(server, &key, NOW),
        Err(IssueError::NotRead)
    );
    let next = AuthorityRecord::create(CLUSTER, NOW).unwrap();
    let new = next.root().digest();
    let old_ticket = cluster
        .run(node.clone().ticket(cluster.admin.clone()))
        .unwrap();
    let old = node.registry.view().unwrap().roots.issuing().digest();
    let trust = |record: AuthorityRecord| {
        let node = cluster.node();
        async move {
            let at = origin(NOW);
            node.registry.trust_root(&node.root, &record, &at).await
        }
    };
    let drop_root = |digest| {
        let node = cluster.node();
        let at = origin(NOW);
        cluster.run(async move { node.registry.drop_root(&node.root, digest, &at).await })
    };
    let refresh = || {
        let node = node.clone();
        cluster.run(async move { node.registry.refresh(&node.root).await.unwrap() })
    };
    // Two operators at once: it is trusted once.
    let ended = cluster.at_once(vec![trust(next.clone()), trust(next)]);
    assert_eq!(ended, [Ok(()), Ok(())]);
    let trusted = refresh();
    assert_eq!(trusted.generation, 1);
    let signers = trusted.verifier.signers.len();
    assert_eq!((trusted.roots.all().len(), signers), (2, 2));
    let issuing = Err(DropRootError::Roots(RootsError::Issuing { digest: old }));
    assert_eq!(drop_root(old), issuing);
    let issue = {
        let node = node.clone();
        let at = origin(NOW);
        async move { node.registry.issue_from(&node.root, new, &at).await }
    };
    assert_eq!(cluster.run(issue), Ok(()));
    assert_eq!(refresh().roots.issuing().digest(), new);
    assert!(node.registry.issue_certificate(server, &key, NOW).is_ok());
    let new_ticket = cluster
        .run(node.clone().ticket(cluster.admin.clone()))
        .unwrap();
    let verifier = || refresh().verifier.clone();
    assert!(verifier().verify(&old_ticket.ticket, NOW).is_ok());
    assert_eq!(drop_root(old), Ok(()));
    let refused = verifier().verify(&old_ticket.ticket, NOW);
    assert_eq!(refused, Err(TicketError::Signature));
    assert!(verifier().verify(&new_ticket.ticket, NOW).is_ok());
    for _ in 1..4 {
        let one = AuthorityRecord::create(CLUSTER, NOW).unwrap();
        assert_eq!(cluster.run(trust(one)), Ok(()));
    }
    let one = AuthorityRecord::create(CLUSTER, NOW).unwrap();
    let full = TrustRootError::Roots(RootsError::Full);
    assert_eq!(cluster.run(trust(one)), Err(full));
}

#[test]
fn a_cluster_is_founded_once_and_read_with_its_key_alone() {
    let cluster = Cluster::found(1);
    let (other, _) = Foundation::create(CLUSTER, NOW).unwrap();
    let node = cluster.node();
    let founded = {
        let node = node.clone();
        async move { node.registry.found(&node.root, &other, &origin(NOW)).await }
    };
    let founded = cluster.run(founded);
    assert!(
        matches!(founded, Err(FoundError::Other { .. })),
        "{founded:?}"
    );
    let stranger = Node {
        registry: Rc::new(Registry::new(CLUSTER, Secret::random(&system).unwrap())),
        ..node
    };
    let refused = cluster.run(stranger.clone().ticket(cluster.admin.clone()));
    let is_sealed = |error: &IssueTicketError| {
        matches!(
            error,
            IssueTicketError::Log(LogError::Sealed { generation: 0, .. })
        )
    };
    assert!(refused.as_ref().is_err_and(is_sealed), "{refused:?}");
    assert!(stranger.registry.view().is_none());

    let c = configuration(3, Dap::Abd, 1, 0);
    let empty = World::new(&c, 1);
    let root = empty.actor(&c).client().root(&c);
    let registry = Rc::new(Registry::new(CLUSTER, cluster.key.clone()));
    let node = Node { root, registry };
    let (foundation, admin) = Foundation::create(CLUSTER, NOW).unwrap();
    let not_founded = empty.run(node.clone().ticket(admin));
    assert_eq!(not_founded, Err(LogError::NotFounded.into()));
    for _ in 0..2 {
        let (node, foundation) = (node.clone(), foundation.clone());
        let founded = async move {
            node.registry
                .found(&node.root, &foundation, &origin(NOW))
                .await
        };
        assert_eq!(empty.run(founded), Ok(()), "a repetition changes nothing");
    }
}

#[test]
fn the_usual_look_is_one_round_and_all_changes_are_audited() {
    let cluster = Cluster::found(1);
    let node = cluster.node();
    let token = cluster.token(60);
    let key = cluster.run(cluster.node().create_key("camera", Grants::default()));
    for _ in 0..120 {
        cluster.token(60);
    }
    let own = (joining(0), public());
    assert_eq!(
        cluster.run(cluster.node().redeem(token.clone(), own, NOW + 7)),
        Ok(())
    );
    let refresh = || {
        let node = node.clone();
        let before = cluster.world.gathers();
        let view = cluster.run(async move { node.registry.refresh(&node.root).await.unwrap() });
        (view.generation, cluster.world.gathers() - before)
    };
    assert_eq!(refresh(), (123, 5), "two pages");
    assert_eq!(refresh(), (123, 1), "nothing has changed");
    let audit = |since| {
        let node = node.clone();
        cluster.run(async move { node.registry.audit(&node.root, since).await.unwrap() })
    };
    let all = audit(0);
    let words: Vec<&str> = all[..3].iter().map(|record| record.what.word()).collect();
    assert_eq!(words, ["founded", "token-created", "key-created"]);
    assert_eq!(all[2].about, format!("{} camera", key.unwrap().id));
    assert_eq!((all.len(), all[1].origin.clone()), (124, origin(NOW)));
    let late = audit(NOW + 1);
    let used = format!("{} by server {}", token.id, own.0);
    let late: Vec<_> = late
        .iter()
        .map(|record| (record.what, &record.about))
        .collect();
    assert_eq!(late, [(What::TokenUsed, &used)]);
}
