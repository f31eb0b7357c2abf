//! A gateway: signing keys of other keys, and tickets on behalf of them.

use areo_trust::authority::ServerKey;
use areo_trust::host::Hosts;
use areo_trust::key::Prover;
use areo_trust::ticket::{Gateway, Standing, TicketError};

use super::*;

/// The day of `NOW`, in UTC.
const TODAY: u32 = 20_270_115;

fn scope(day: u32) -> SigningScope {
    SigningScope::new(day, "eu-1").expect("a day")
}

fn signing(key: KeyId) -> Ask {
    let scope = scope(TODAY);
    Ask::SigningKeys { key, scope }
}

/// The request for a certificate.
pub(super) fn certificate() -> Ask {
    let host = "gate.example".parse().expect("a name");
    Ask::GatewayCertificate {
        hosts: Hosts::new(vec![host]).expect("one name"),
        key: ServerKey::create().expect("a key").public(),
    }
}

impl Cluster {
    fn prove_on_behalf(&self, gateway: &AccessKey, other: KeyId) -> TrustAnswer {
        let holder = Holder::create().expect("random bytes").public();
        let proof = KeyProof::on_behalf(gateway, Some(other), holder, (&site(), &system));
        self.ask(Ask::Prove(proof.expect("random bytes")), None)
    }

    fn ticket_on_behalf(&self, gateway: &AccessKey, other: KeyId) -> Rc<Ticket> {
        let TrustAnswer::Ticket(answer) = self.prove_on_behalf(gateway, other) else {
            panic!("no ticket")
        };
        let verifier = &self.registry.view().expect("it was read").verifier;
        Rc::new(verifier.verify(&answer.ticket, NOW).expect("it counts"))
    }

    /// Judges a ticket by all changes so far.
    fn judged(&self, ticket: &Ticket) -> Result<(), TicketError> {
        let view = self.registry.view().expect("it was read");
        view.verifier.still_counts(ticket, NOW)
    }

    /// A change by the administrator.
    fn change(&self, ask: Ask) -> TrustAnswer {
        let admin = self.ticket(&self.admin);
        let answer = self.ask(ask, Some(&admin));
        assert!(!matches!(answer, TrustAnswer::Refused(_)), "{answer:?}");
        answer
    }

    fn rotate(&self, name: &str) -> AccessKey {
        let key = name.to_owned();
        match self.change(Ask::RotateKey { key }) {
            TrustAnswer::Key(key) => key,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_gateway_has_a_signing_key_for_each_secret_of_a_key_that_counts() {
    let cluster = Cluster::found();
    let gateway = cluster.ticket(&cluster.key("s3", &["gateway"]));
    let first = cluster.key("reader", &["read:photos"]);
    let derived = |keys: &[&AccessKey]| {
        let derive = |key: &&AccessKey| scope(TODAY).derive(&key.secret);
        TrustAnswer::SigningKeys(keys.iter().map(derive).collect())
    };
    let ask = || cluster.ask(signing(first.id), Some(&gateway));
    assert_eq!(ask(), derived(&[&first]));
    let second = cluster.rotate("reader");
    assert_eq!(ask(), derived(&[&second, &first]), "the newest first");
    let key = || "reader".to_owned();
    cluster.change(Ask::RetireKey { key: key() });
    assert_eq!(ask(), derived(&[&second]));
    let far = Ask::SigningKeys {
        key: first.id,
        scope: scope(20_280_115),
    };
    let (kind, sentence) = cluster.refused(far, Some(&gateway));
    assert_eq!(kind, RefusalKind::Usage);
    assert!(sentence.contains("compare the clocks"), "{sentence}");
    cluster.change(Ask::RevokeKey { key: key() });
    for (key, word) in [(first.id, "was revoked"), (KeyId(1), "has no key")] {
        let (kind, sentence) = cluster.refused(signing(key), Some(&gateway));
        assert_eq!(kind, RefusalKind::NotFound);
        assert!(sentence.contains(word), "{sentence}");
    }
}

/// Without the root domain a gateway goes on with keys that this server has read, and a key that it has not is not refused.
#[test]
fn signing_keys_are_derived_without_the_root_domain() {
    let cluster = Cluster::found();
    let gateway = cluster.ticket(&cluster.key("s3", &["gateway"]));
    let reader = cluster.key("reader", &["read:photos"]);
    cluster.world.crash(0);
    cluster.world.crash(1);
    let expected = vec![scope(TODAY).derive(&reader.secret)];
    let answer = cluster.ask(signing(reader.id), Some(&gateway));
    assert_eq!(answer, TrustAnswer::SigningKeys(expected));
    let (kind, _) = cluster.refused(signing(KeyId(1)), Some(&gateway));
    assert_eq!(kind, RefusalKind::Unavailable);
    let (kind, _) = cluster.refused(signing(reader.id), None);
    assert_eq!(kind, RefusalKind::Unauthorised);
}

#[test]
fn a_ticket_on_behalf_of_a_key_has_its_grants_and_names_both() {
    let cluster = Cluster::found();
    let gateway = cluster.key("s3", &["gateway"]);
    let reader = cluster.key("reader", &["read,list:photos", "status"]);
    let holder = Holder::create().unwrap().public();
    let proof = KeyProof::on_behalf(&gateway, Some(reader.id), holder, (&site(), &system));
    let proof = proof.unwrap();
    let TrustAnswer::Ticket(answer) = cluster.ask(Ask::Prove(proof), None) else {
        panic!("no ticket")
    };
    let exchange = proof.exchange(&site());
    assert!(exchange.is_proven(&gateway.secret, Prover::Server, &answer.answer));
    let verifier = &cluster.registry.view().unwrap().verifier;
    let ticket = verifier.verify(&answer.ticket, NOW).unwrap();
    assert_eq!((ticket.key, ticket.holder), (reader.id, holder));
    let of_gateway = Gateway {
        key: gateway.id,
        standing: Standing::default(),
    };
    assert_eq!(ticket.gateway, Some(of_gateway));
    assert_eq!(ticket.grants, grants(&["read,list:photos", "status"]));
    assert_eq!(cluster.ticket(&reader).gateway, None);
}

/// On behalf of the administrator a gateway has objects and domains, and none of what changes who may do what.
#[test]
fn a_gateway_changes_nothing_of_the_trust_on_behalf_of_any_key() {
    let cluster = Cluster::found();
    let gateway = cluster.key("s3", &["gateway"]);
    let ticket = cluster.ticket_on_behalf(&gateway, cluster.admin.id);
    assert_eq!(
        ticket.grants,
        grants(&["read,write,list,delete,admin:*", "status"])
    );
    let before = cluster.registry.view().unwrap().generation;
    for (ask, _) in table() {
        let (kind, _) = cluster.refused(ask.clone(), Some(&ticket));
        assert_eq!(kind, RefusalKind::Unauthorised, "{ask:?}");
    }
    assert_eq!(cluster.registry.view().unwrap().generation, before);
    // Nor does it become a gateway on behalf of itself.
    let ticket = cluster.ticket_on_behalf(&gateway, gateway.id);
    assert_eq!(ticket.grants, Grants::default());
}

#[test]
fn a_key_that_is_none_of_a_gateway_acts_for_itself_alone() {
    let cluster = Cluster::found();
    let everything = "status,reconfig,keys,join,trace";
    let other = cluster.key("ops", &["read,write,list,delete,admin:*", everything]);
    let reader = cluster.key("reader", &["read:photos"]);
    for on_behalf_of in [reader.id, other.id, KeyId(1)] {
        let (kind, sentence) = refusal(cluster.prove_on_behalf(&other, on_behalf_of));
        assert_eq!(kind, RefusalKind::Unauthorised);
        let lacks = "lacks the grant 'gateway'";
        assert!(sentence.contains(lacks), "{sentence}");
    }
}

#[test]
fn a_gateway_acts_on_behalf_of_no_other_key_than_the_one_that_it_has_proven_to_act_for() {
    let cluster = Cluster::found();
    let gateway = cluster.key("s3", &["gateway"]);
    let [reader, writer] = ["read", "write"].map(|verb| {
        let grant = format!("{verb}:photos");
        cluster.key(verb, &[&grant])
    });
    let holder = Holder::create().unwrap().public();
    let of_reader = KeyProof::on_behalf(&gateway, Some(reader.id), holder, (&site(), &system));
    let of_reader = of_reader.unwrap();
    for behalf in [None, Some(writer.id)] {
        let changed = KeyProof {
            behalf,
            ..of_reader
        };
        let (kind, _) = cluster.refused(Ask::Prove(changed), None);
        assert_eq!(kind, RefusalKind::Unauthorised, "{behalf:?}");
    }
    let own = KeyProof::create(&gateway, holder, &site(), &system).unwrap();
    let changed = KeyProof {
        behalf: Some(writer.id),
        ..own
    };
    let (kind, _) = cluster.refused(Ask::Prove(changed), None);
    assert_eq!(kind, RefusalKind::Unauthorised);
    let wrong = AccessKey {
        secret: reader.secret,
        ..gateway
    };
    let (kind, _) = refusal(cluster.prove_on_behalf(&wrong, reader.id));
    assert_eq!(kind, RefusalKind::Unauthorised);
}

#[test]
fn a_ticket_on_behalf_of_a_key_ends_with_each_change_of_either_key() {
    let cluster = Cluster::found();
    let gateway = cluster.key("s3", &["gateway"]);
    let reader = cluster.key("reader", &["read:photos"]);
    let ticket = || cluster.ticket_on_behalf(&gateway, reader.id);
    let name = |key: &AccessKey| key.id.to_string();
    let first = ticket();
    // A second secret ends nothing: each of the two is good until the older one is retired.
    let newest = cluster.rotate("reader");
    assert_eq!(cluster.judged(&first), Ok(()));
    let meanwhile = ticket();
    cluster.change(Ask::RetireKey { key: name(&reader) });
    let retired = Err(TicketError::Retired { key: reader.id });
    assert_eq!(cluster.judged(&first), retired);
    assert_eq!(cluster.judged(&meanwhile), retired);
    let next = ticket();
    assert_eq!(cluster.judged(&next), Ok(()));
    for (key, texts) in [(&newest, ["list:photos"]), (&gateway, ["gateway,status"])] {
        let ticket = ticket();
        let change = Ask::ChangeGrants {
            key: name(key),
            grants: grants(&texts),
        };
        cluster.change(change);
        let changed = Err(TicketError::GrantsChanged { key: key.id });
        assert_eq!(cluster.judged(&ticket), changed);
    }
    let last = ticket();
    assert_eq!(last.grants, grants(&["list:photos"]));
    cluster.change(Ask::RevokeKey { key: name(&reader) });
    let revoked = Err(TicketError::Revoked { key: reader.id });
    assert_eq!(cluster.judged(&last), revoked);
    let (kind, sentence) = refusal(cluster.prove_on_behalf(&gateway, reader.id));
    assert_eq!(kind, RefusalKind::NotFound);
    assert!(sentence.contains("was revoked"), "{sentence}");
    let (kind, sentence) = refusal(cluster.prove_on_behalf(&gateway, KeyId(1)));
    assert_eq!(kind, RefusalKind::NotFound);
    assert!(sentence.contains("has no key"), "{sentence}");
    let other = cluster.key("other", &["read:photos"]);
    let ticket = cluster.ticket_on_behalf(&gateway, other.id);
    cluster.change(Ask::RevokeKey {
        key: name(&gateway),
    });
    let revoked = Err(TicketError::Revoked { key: gateway.id });
    assert_eq!(cluster.judged(&ticket), revoked);
    let (kind, _) = refusal(cluster.prove_on_behalf(&gateway, other.id));
    assert_eq!(kind, RefusalKind::Unauthorised);
}

/// The caller of a gateway judges by the CAs of the cluster, and no server takes the gateway for a server.
#[test]
fn a_gateway_has_a_certificate_of_the_ca_that_issues() {
    use areo_trust::certificate::{CertificateError, Usage, verify};

    let cluster = Cluster::found();
    let gateway = cluster.ticket(&cluster.key("s3", &["gateway"]));
    let ask = || match cluster.ask(certificate(), Some(&gateway)) {
        TrustAnswer::GatewayCertificate(answer) => answer,
        other => panic!("{other:?}"),
    };
    let judged = |by: &[areo_trust::roots::Root], leaf| verify(by, leaf, &[], Usage::Server, NOW);
    let first = ask();
    assert_eq!(first.roots, cluster.registry.view().unwrap().roots);
    let roots = first.roots.all();
    let found = judged(roots, &first.certificate);
    assert_eq!(
        found,
        Err(CertificateError::NoIdentity),
        "that is all it lacks"
    );

    let TrustAnswer::Authority { digest } = cluster.change(Ask::TrustAuthority { root: None })
    else {
        panic!("a CA")
    };
    cluster.change(Ask::IssueFrom { digest });
    let next = ask();
    assert_eq!(next.roots.issuing().digest(), digest);
    let found = judged(&next.roots.all()[..1], &next.certificate);
    assert_eq!(found, Err(CertificateError::NoIdentity));
    let found = judged(roots, &next.certificate);
    assert_eq!(found, Err(CertificateError::OtherAuthority));
}

/// The key of callers without a key reads and lists, and nothing proves it.
#[test]
fn callers_without_a_key_have_the_grants_of_the_key_that_stands_for_them() {
    let cluster = Cluster::found();
    let gateway = cluster.key("s3", &["gateway"]);
    let none = || refusal(cluster.prove_on_behalf(&gateway, ANONYMOUS));
    let (kind, sentence) = none();
    assert_eq!(kind, RefusalKind::NotFound);
    assert!(sentence.contains("areo key create anonymous"), "{sentence}");
    let admin = cluster.ticket(&cluster.admin);
    let name = || ANONYMOUS_NAME.to_owned();
    for wide in [
        "read,write:photos",
        "delete:*",
        "admin:photos",
        "status",
        "keys",
        "gateway",
    ] {
        let grants = grants(&["read:photos", wide]);
        let create = Ask::CreateKey {
            name: name(),
            grants,
        };
        let (kind, sentence) = cluster.refused(create, Some(&admin));
        assert_eq!(kind, RefusalKind::Usage, "{wide}");
        assert!(sentence.contains(&format!("'{wide}'")), "{sentence}");
    }
    let shown = cluster.key(ANONYMOUS_NAME, &["read,list:photos"]);
    let ticket = cluster.ticket_on_behalf(&gateway, ANONYMOUS);
    assert_eq!(ticket.key, shown.id);
    assert_eq!(ticket.grants, grants(&["read,list:photos"]));
    // The secret that was shown opens nothing, and the id signs nothing.
    let (kind, _) = refusal(cluster.prove(&shown));
    assert_eq!(kind, RefusalKind::Unauthorised);
    let gateways = cluster.ticket(&gateway);
    for id in [shown.id, ANONYMOUS] {
        let (kind, _) = cluster.refused(signing(id), Some(&gateways));
        assert_eq!(kind, RefusalKind::NotFound);
    }
    let bearer = cluster
        .registry
        .judge_bearer(&shown, &Need::domain(Verb::Read, "photos"));
    assert!(bearer.is_err(), "{bearer:?}");
    let wider = Ask::ChangeGrants {
        key: name(),
        grants: grants(&["read,write:photos"]),
    };
    let (kind, _) = cluster.refused(wider, Some(&admin));
    assert_eq!(kind, RefusalKind::Usage);
    let (kind, _) = cluster.refused(Ask::RotateKey { key: name() }, Some(&admin));
    assert_eq!(kind, RefusalKind::Usage);
    cluster.change(Ask::RetireKey { key: name() });
    assert_eq!(cluster.judged(&ticket), Ok(()));

    cluster.change(Ask::RevokeKey { key: name() });
    assert!(cluster.judged(&ticket).is_err());
    assert_eq!(none().0, RefusalKind::NotFound);
    let next = cluster.key(ANONYMOUS_NAME, &["read:films"]);
    assert_ne!(next.id, shown.id);
    assert!(cluster.judged(&ticket).is_err(), "a ticket is of one key");
    assert_eq!(cluster.ticket_on_behalf(&gateway, ANONYMOUS).key, next.id);
}
