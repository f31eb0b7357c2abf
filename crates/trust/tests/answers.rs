//! Requests about trust over real servers of a root domain in one thread: who may ask what, and what is answered.

mod gateway;

use std::rc::Rc;
use std::sync::Arc;

use crate::world::{World, configuration};
use areo_core::config::{Configuration, Dap, ServerId};
use areo_trust::authority::{Authority, PublicKey, ServerKey};
use areo_trust::certificate::{Usage, verify};
use areo_trust::grant::{CLUSTER_VERBS, Grants, Need, Verb};
use areo_trust::id::{KeyId, TokenId};
use areo_trust::key::{ANONYMOUS, ANONYMOUS_NAME, AccessKey, Prover};
use areo_trust::protocol::{
    Ask, JoinAnswer, KeyProof, PAGE_ROWS, ProofSite, RefusalKind, TicketAnswer, TrustAnswer,
};
use areo_trust::registry::{Actor, AskContext, Foundation, Origin, Registry, What};
use areo_trust::roots::{Root, RootDigest};
use areo_trust::secret::{Secret, system};
use areo_trust::signing::SigningScope;
use areo_trust::ticket::{Holder, Ticket};
use areo_trust::token::JoinToken;

const CLUSTER: u128 = 0xc1;
const NOW: u64 = 1_800_000_000;
const HOST: ServerId = ServerId(1);
const BINDING: [u8; 32] = [6; 32];
const ADDRESS: &str = "10.0.0.9:4100";

/// A cluster that was founded, with one server that is asked.
struct Cluster {
    world: World,
    c: Arc<Configuration>,
    registry: Rc<Registry>,
    sealing_key: Secret,
    admin: AccessKey,
    /// The key of the server that is asked.
    key: PublicKey,
}

/// A request, with what differs between callers.
#[derive(Clone)]
struct Question {
    ask: Ask,
    ticket: Option<Rc<Ticket>>,
    binding: Option<[u8; 32]>,
    now_seconds: u64,
}

impl Question {
    fn of(ask: Ask, ticket: Option<&Rc<Ticket>>) -> Question {
        Question {
            ask,
            ticket: ticket.cloned(),
            binding: Some(BINDING),
            now_seconds: NOW,
        }
    }
}

fn site() -> ProofSite {
    ProofSite {
        cluster: CLUSTER,
        server: HOST,
        binding: BINDING,
    }
}

fn grants(texts: &[&str]) -> Grants {
    let grants = texts.iter().map(|text| text.parse().expect("a grant"));
    Grants::new(grants.collect()).expect("few grants")
}

impl Cluster {
    fn found() -> Cluster {
        let c = configuration(3, Dap::Abd, 1, 0);
        let world = World::new(&c, 1);
        let (foundation, admin) = Foundation::create(CLUSTER, NOW).expect("a CA");
        let sealing_key = Secret::random(&system).expect("random bytes");
        let registry = Rc::new(Registry::new(CLUSTER, sealing_key.clone()));
        let root = world.actor(&c).client().root(&c);
        let founding = Rc::clone(&registry);
        let founded = async move {
            let origin = Origin {
                by: Actor::Founder,
                address: ADDRESS.into(),
                now_seconds: NOW,
            };
            founding.found(&root, &foundation, &origin).await
        };
        world.run(founded).expect("a quorum is up");
        Cluster {
            world,
            c,
            registry,
            sealing_key,
            admin,
            key: ServerKey::create().expect("a key").public(),
        }
    }

    fn put(&self, question: Question) -> TrustAnswer {
        let root = self.world.actor(&self.c).client().root(&self.c);
        let (registry, key) = (Rc::clone(&self.registry), self.key);
        let asked = async move {
            let context = AskContext {
                server: HOST,
                issuer: Some(RootDigest([1; 32])),
                key: Some(key),
                trusted: &[RootDigest([1; 32]), RootDigest([2; 32])],
                ticket: question.ticket.as_deref(),
                address: ADDRESS,
                binding: question.binding,
                now_seconds: question.now_seconds,
            };
            registry.answer(&root, &question.ask, &context).await
        };
        self.world.run(asked)
    }

    fn ask(&self, ask: Ask, ticket: Option<&Rc<Ticket>>) -> TrustAnswer {
        self.put(Question::of(ask, ticket))
    }

    /// The kind and the sentence of a refusal.
    fn refused(&self, ask: Ask, ticket: Option<&Rc<Ticket>>) -> (RefusalKind, String) {
        refusal(self.ask(ask, ticket))
    }

    fn prove(&self, key: &AccessKey) -> TrustAnswer {
        let holder = Holder::create().expect("random bytes");
        let proof = KeyProof::create(key, holder.public(), &site(), &system);
        self.ask(Ask::Prove(proof.expect("random bytes")), None)
    }

    fn ticket(&self, key: &AccessKey) -> Rc<Ticket> {
        let TrustAnswer::Ticket(answer) = self.prove(key) else {
            panic!("no ticket")
        };
        let verifier = &self.registry.view().expect("it was read").verifier;
        Rc::new(verifier.verify(&answer.ticket, NOW).expect("it counts"))
    }

    fn key(&self, name: &str, texts: &[&str]) -> AccessKey {
        let admin = self.ticket(&self.admin);
        let ask = Ask::CreateKey {
            name: name.to_owned(),
            grants: grants(texts),
        };
        match self.ask(ask, Some(&admin)) {
            TrustAnswer::Key(key) => key,
            other => panic!("{other:?}"),
        }
    }

    fn token(&self) -> JoinToken {
        let admin = self.ticket(&self.admin);
        match self.ask(Ask::CreateToken { ttl_seconds: 60 }, Some(&admin)) {
            TrustAnswer::Token(token) => token,
            other => panic!("{other:?}"),
        }
    }
}

fn refusal(answer: TrustAnswer) -> (RefusalKind, String) {
    match answer {
        TrustAnswer::Refused(refusal) => (refusal.kind, refusal.sentence),
        other => panic!("{other:?}"),
    }
}

/// One request of each kind; a new one has to be put here, because `needs` has to name it.
fn table() -> Vec<(Ask, Option<Verb>)> {
    let (key, digest) = (|| "nobody".to_owned(), RootDigest([9; 32]));
    let grants = grants(&["status"]);
    let (keys, join) = (Some(Verb::Keys), Some(Verb::Join));
    vec![
        (Ask::CreateToken { ttl_seconds: 0 }, join),
        (Ask::Tokens { after: None }, join),
        (Ask::RevokeToken { token: TokenId(1) }, join),
        (
            Ask::CreateKey {
                name: String::new(),
                grants: grants.clone(),
            },
            keys,
        ),
        (Ask::Keys { after: None }, keys),
        (Ask::RotateKey { key: key() }, keys),
        (Ask::RetireKey { key: key() }, keys),
        (Ask::ChangeGrants { key: key(), grants }, keys),
        (Ask::RevokeKey { key: key() }, keys),
        (Ask::Authorities, keys),
        (Ask::TrustAuthority { root: None }, keys),
        (Ask::IssueFrom { digest }, keys),
        (Ask::DropRoot { digest }, keys),
        (
            Ask::Audit {
                since_seconds: 0,
                after: None,
            },
            keys,
        ),
        (Ask::Standing, keys),
        (
            Ask::SigningKeys {
                key: KeyId(9),
                scope: SigningScope::new(20_270_115, "eu-1").expect("a day"),
            },
            Some(Verb::Gateway),
        ),
        (gateway::certificate(), Some(Verb::Gateway)),
    ]
}

#[test]
fn each_request_needs_its_verb_and_a_key_with_all_others_does_nothing() {
    let cluster = Cluster::found();
    let all_but = |verb: Verb| {
        let words = CLUSTER_VERBS.map(Verb::word);
        let others: Vec<&str> = words.into_iter().filter(|w| *w != verb.word()).collect();
        let key = cluster.key(
            &format!("all-but-{}", verb.word()),
            &["read,write,list,delete,admin:*", &others.join(",")],
        );
        cluster.ticket(&key)
    };
    let (without_keys, without_join) = (all_but(Verb::Keys), all_but(Verb::Join));
    let without_gateway = all_but(Verb::Gateway);
    let admin = cluster.ticket(&cluster.admin);
    let before = cluster.registry.view().unwrap().generation;
    for (ask, verb) in table() {
        assert_eq!(ask.needs(), verb, "{ask:?}");
        let verb = verb.expect("a verb");
        let (kind, sentence) = cluster.refused(ask.clone(), None);
        assert_eq!(kind, RefusalKind::Unauthorised, "{ask:?}");
        assert!(
            sentence.contains(&format!("with the grant '{}'", verb.word())),
            "{sentence}"
        );
        let lacking = match verb {
            Verb::Keys => &without_keys,
            Verb::Gateway => &without_gateway,
            _ => &without_join,
        };
        let (kind, sentence) = cluster.refused(ask.clone(), Some(lacking));
        assert_eq!(kind, RefusalKind::Unauthorised, "{ask:?}");
        assert!(sentence.contains(verb.word()), "{sentence}");
        let plain = Question {
            binding: None,
            ..Question::of(ask.clone(), Some(&admin))
        };
        let (kind, sentence) = refusal(cluster.put(plain));
        assert_eq!(kind, RefusalKind::Usage);
        assert!(sentence.contains("plain"), "{sentence}");
    }
    assert_eq!(
        cluster.registry.view().unwrap().generation,
        before,
        "nothing was done"
    );
    for (ask, _) in table() {
        if let TrustAnswer::Refused(refusal) = cluster.ask(ask.clone(), Some(&admin)) {
            assert_ne!(refusal.kind, RefusalKind::Unauthorised, "{ask:?}");
        }
    }
}

#[test]
fn a_ticket_that_counts_no_longer_changes_nothing() {
    let cluster = Cluster::found();
    let owned = cluster.key("ops", &["keys"]);
    let ticket = cluster.ticket(&owned);
    let later = Question {
        now_seconds: NOW + 4 * 3600,
        ..Question::of(Ask::Authorities, Some(&ticket))
    };
    let (kind, sentence) = refusal(cluster.put(later));
    assert_eq!(kind, RefusalKind::Unavailable, "its next ticket counts");
    assert!(sentence.contains("expired"), "{sentence}");
    assert!(matches!(
        cluster.ask(Ask::Authorities, Some(&ticket)),
        TrustAnswer::Authorities(_)
    ));
    let admin = cluster.ticket(&cluster.admin);
    let revoke = Ask::RevokeKey {
        key: "ops".to_owned(),
    };
    assert_eq!(cluster.ask(revoke, Some(&admin)), TrustAnswer::Done);
    let create = Ask::CreateKey {
        name: "backdoor".to_owned(),
        grants: grants(&["keys"]),
    };
    let (kind, sentence) = cluster.refused(create, Some(&ticket));
    assert_eq!(kind, RefusalKind::Unauthorised);
    assert!(sentence.contains("was revoked"), "{sentence}");
    assert_eq!(cluster.registry.key_named("backdoor"), None);
    let (kind, _) = refusal(cluster.prove(&owned));
    assert_eq!(kind, RefusalKind::Unauthorised);
}

/// A key that got other grants was refused, although it counts: until its client had another ticket, which it did not ask for.
#[test]
fn a_ticket_of_before_a_change_of_grants_is_no_reason_to_refuse_its_key() {
    let cluster = Cluster::found();
    let owned = cluster.key("ops", &["keys"]);
    let (ticket, admin) = (cluster.ticket(&owned), cluster.ticket(&cluster.admin));
    let change = Ask::ChangeGrants {
        key: "ops".to_owned(),
        grants: grants(&["keys", "status"]),
    };
    assert_eq!(cluster.ask(change, Some(&admin)), TrustAnswer::Done);
    let create = || Ask::CreateKey {
        name: "other".to_owned(),
        grants: grants(&["status"]),
    };
    let (kind, sentence) = cluster.refused(create(), Some(&ticket));
    assert_eq!(kind, RefusalKind::Unavailable);
    assert!(sentence.contains("grants"), "{sentence}");
    assert_eq!(
        cluster.registry.key_named("other"),
        None,
        "nothing was done"
    );
    let next = cluster.ticket(&owned);
    let created = cluster.ask(create(), Some(&next));
    assert!(matches!(created, TrustAnswer::Key(_)), "{created:?}");
}

#[test]
fn a_proof_has_a_ticket_the_roots_and_a_proof_in_return() {
    let cluster = Cluster::found();
    let holder = Holder::create().unwrap();
    let proof = KeyProof::create(&cluster.admin, holder.public(), &site(), &system).unwrap();
    let TrustAnswer::Ticket(answer) = cluster.ask(Ask::Prove(proof), None) else {
        panic!("no ticket")
    };
    let TicketAnswer {
        ticket,
        answer,
        roots,
        other_certificates: also,
    } = answer;
    // The certificate of this server is of none of the CAs.
    let [also] = &also[..] else {
        panic!("one for each: {also:?}")
    };
    let named = verify(roots.all(), also, &[], Usage::Server, NOW).expect("of the cluster's CA");
    assert_eq!(named.server, HOST);
    let view = cluster.registry.view().unwrap();
    assert_eq!(roots, view.roots);
    let ticket = view.verifier.verify(&ticket, NOW).unwrap();
    assert_eq!(
        (ticket.key, ticket.holder),
        (cluster.admin.id, holder.public())
    );
    let exchange = proof.exchange(&site());
    assert!(exchange.is_proven(&cluster.admin.secret, Prover::Server, &answer));
    let elsewhere = Question {
        binding: Some([7; 32]),
        ..Question::of(Ask::Prove(proof), None)
    };
    let (kind, sentence) = refusal(cluster.put(elsewhere));
    assert_eq!(kind, RefusalKind::Unauthorised);
    assert!(sentence.contains("does not know the key"), "{sentence}");
}

/// Each proof cost a signature for each CA of the cluster.
#[test]
fn certificates_by_other_cas_are_made_once_a_day_and_a_ticket_does_without() {
    let cluster = Cluster::found();
    let also = |now_seconds| {
        let holder = Holder::create().unwrap().public();
        let proof = KeyProof::create(&cluster.admin, holder, &site(), &system).unwrap();
        let question = Question {
            now_seconds,
            ..Question::of(Ask::Prove(proof), None)
        };
        match cluster.put(question) {
            TrustAnswer::Ticket(answer) => answer.other_certificates,
            other => panic!("no ticket: {other:?}"),
        }
    };
    let first = also(NOW);
    assert_eq!((first.len(), also(NOW + 3600)), (1, first.clone()));
    let next = also(NOW + 24 * 3600);
    assert_ne!(next, first);
    assert_ne!(also(NOW), next, "a clock that was set back");
    let admin = cluster.ticket(&cluster.admin);
    let another = Ask::TrustAuthority { root: None };
    let trusted = cluster.ask(another, Some(&admin));
    assert!(matches!(trusted, TrustAnswer::Authority { .. }));
    assert_eq!(also(NOW).len(), 2);
    // No certificate can name this time.
    assert!(also(u64::MAX / 2).is_empty());
}

#[test]
fn a_token_makes_one_server_which_gets_the_cluster_key() {
    let cluster = Cluster::found();
    let token = cluster.token();
    let key = ServerKey::create().unwrap().public();
    let join = |secret: &Secret, server| Ask::Join {
        token: token.id,
        secret: secret.clone(),
        server: ServerId(server),
        key,
    };
    let (kind, _) = cluster.refused(join(&Secret::random(&system).unwrap(), 101), None);
    assert_eq!(kind, RefusalKind::Unauthorised);
    let TrustAnswer::Joined(joined) = cluster.ask(join(&token.secret, 101), None) else {
        panic!("not let in")
    };
    let JoinAnswer {
        cluster_key, roots, ..
    } = joined;
    assert_eq!(cluster_key, cluster.sealing_key);
    assert_eq!(roots.issuing().digest(), token.root);
    let (kind, sentence) = cluster.refused(join(&token.secret, 102), None);
    assert_eq!(kind, RefusalKind::Unauthorised);
    assert!(sentence.contains("was used by server"), "{sentence}");
    let admin = cluster.ticket(&cluster.admin);
    let TrustAnswer::Tokens(page) = cluster.ask(Ask::Tokens { after: None }, Some(&admin)) else {
        panic!("no list")
    };
    let used: Vec<_> = page.rows.iter().map(|row| (row.id, row.used_by)).collect();
    assert_eq!(used, [(token.id, Some(ServerId(101)))]);
}

#[test]
fn keys_are_found_by_name_and_id_and_listed_by_pages() {
    let cluster = Cluster::found();
    let admin = cluster.ticket(&cluster.admin);
    for number in 0..PAGE_ROWS {
        cluster.key(&format!("k{number}"), &["status"]);
    }
    let first = match cluster.ask(Ask::Keys { after: None }, Some(&admin)) {
        TrustAnswer::Keys(page) => page,
        other => panic!("{other:?}"),
    };
    assert!(first.has_more && first.rows.len() == PAGE_ROWS);
    let after = first.rows.last().map(|row| row.id);
    let last = match cluster.ask(Ask::Keys { after }, Some(&admin)) {
        TrustAnswer::Keys(page) => page,
        other => panic!("{other:?}"),
    };
    assert!(
        !last.has_more && last.rows.len() == 1,
        "the administrator's is one of them"
    );
    let retire = |key: String| cluster.ask(Ask::RetireKey { key }, Some(&admin));
    assert_eq!(retire("k7".to_owned()), TrustAnswer::Done);
    let id = cluster.registry.key_named("k8").unwrap();
    assert_eq!(retire(id.to_string()), TrustAnswer::Done);
    for (key, named) in [
        ("k-none", "'k-none'"),
        ("00000000000000ff", "00000000000000ff"),
    ] {
        let (kind, sentence) = refusal(retire(key.to_owned()));
        assert_eq!(kind, RefusalKind::NotFound);
        assert!(
            sentence.contains(named) && sentence.contains("areo key ls"),
            "{sentence}"
        );
    }
    let taken = Ask::CreateKey {
        name: "k7".to_owned(),
        grants: grants(&["status"]),
    };
    let (kind, _) = cluster.refused(taken, Some(&admin));
    assert_eq!(kind, RefusalKind::Lost);
}

#[test]
fn a_rotation_leads_from_one_ca_to_the_next_and_the_audit_tells_it() {
    let cluster = Cluster::found();
    let admin = cluster.ticket(&cluster.admin);
    let ask = |ask: Ask| cluster.ask(ask, Some(&admin));
    let list = || match ask(Ask::Authorities) {
        TrustAnswer::Authorities(rows) => rows,
        other => panic!("{other:?}"),
    };
    let old = list()[0].digest;
    let first = cluster.registry.view().unwrap().roots.issuing().clone();
    let TrustAnswer::Authority { digest: new } = ask(Ask::TrustAuthority { root: None }) else {
        panic!("no CA")
    };
    let operators = Authority::create(CLUSTER, NOW).unwrap().root().clone();
    let own = operators.digest();
    let trusted = Ask::TrustAuthority {
        root: Some(operators),
    };
    assert_eq!(ask(trusted), TrustAnswer::Authority { digest: own });
    let (kind, _) = refusal(ask(Ask::DropRoot { digest: old }));
    assert_eq!(kind, RefusalKind::Lost, "it issues");
    assert_eq!(ask(Ask::IssueFrom { digest: new }), TrustAnswer::Done);
    let rows: Vec<_> = list()
        .iter()
        .map(|row| (row.digest, row.is_issuing, row.is_own, row.since_seconds))
        .collect();
    let rest = [(old, false, true, NOW), (own, false, false, NOW)];
    assert_eq!(rows, [&[(new, true, true, NOW)], &rest[..]].concat());
    assert_eq!(ask(Ask::DropRoot { digest: old }), TrustAnswer::Done);
    // A client that has slept over all of this still knows the servers.
    let TrustAnswer::Ticket(answer) = cluster.prove(&cluster.admin) else {
        panic!("no ticket")
    };
    let known = |root: &Root| {
        let roots = std::slice::from_ref(root);
        let counts = |also| verify(roots, also, &[], Usage::Server, NOW).is_ok();
        let others = answer.other_certificates.iter();
        others.filter(|also| counts(also)).count()
    };
    let roots = answer.roots.all().iter().chain([&first]);
    let roots = roots.map(|root| (root.digest(), known(root)));
    assert_eq!(roots.collect::<Vec<_>>(), [(new, 1), (own, 0), (old, 1)]);
    let (kind, _) = refusal(ask(Ask::DropRoot { digest: old }));
    assert_eq!(kind, RefusalKind::NotFound);
    let standing = ask(Ask::Standing);
    assert!(
        matches!(standing, TrustAnswer::Standing { generation: 4, .. }),
        "{standing:?}"
    );
    let audit = Ask::Audit {
        since_seconds: NOW,
        after: Some(0),
    };
    let TrustAnswer::Audit { rows, next: None } = ask(audit) else {
        panic!("no audit")
    };
    let whats: Vec<What> = rows.iter().map(|row| row.what).collect();
    let expected = [
        What::RootTrusted,
        What::RootTrusted,
        What::RootIssues,
        What::RootDropped,
    ];
    assert_eq!(whats, expected);
    let by = Actor::Key(cluster.admin.id);
    assert!(
        rows.iter()
            .all(|row| row.origin.by == by && row.origin.address == ADDRESS)
    );
    assert_ne!(cluster.admin.id, KeyId(0));
}
