use std::sync::Arc;

use areo_core::config::Configuration;
use areo_core::dsm::completion::Completion;
use areo_core::message::Body;
use areo_core::object::Kind;
use areo_core::pointer::{Pointer, Successors};
use areo_trust::grant::{CLUSTER_VERBS, DOMAIN_VERBS};

use super::super::need::tests::{
    Message, OWN, PHOTOS, ROOT, Row, access, cell, configuration, prepare, put, rows,
};
use super::*;

/// The name of the one domain that is known.
struct World {
    is_named: bool,
    has_heard: bool,
}

impl Knowledge for World {
    fn name_of(&self, domain: DomainId) -> Option<&str> {
        (self.is_named && domain == PHOTOS).then_some("photos")
    }

    fn has_heard(&self, _passed_on: &Hearsay<'_>) -> bool {
        self.has_heard
    }
}

fn judge(is_named: bool, has_heard: bool) -> Judge<World> {
    Judge {
        table: Table { root: ROOT },
        knowledge: World {
            is_named,
            has_heard,
        },
    }
}

fn verdict(message: &Message, standing: Standing<'_>) -> Verdict {
    let judge = judge(true, true);
    match message {
        Message::Request(request) => judge.request(request, standing),
        Message::Note(note) => judge.note(note, standing),
    }
}

fn grants(texts: &[&str]) -> Grants {
    let parse = |text: &&str| text.parse().expect("it is a grant");
    Grants::new(texts.iter().map(parse).collect()).expect("they are few")
}

fn may(message: &Message, standing: Standing<'_>) -> bool {
    verdict(message, standing) == Verdict::Allowed
}

/// The grants of which each is enough for the need, the one that a refusal names first.
fn enough(need: &Need<'_>) -> Vec<String> {
    let reconfig = || Verb::Reconfig.word().to_owned();
    match need {
        Need::Cluster(verb) => vec![verb.word().to_owned()],
        Need::Domain { verbs, .. } => {
            let grant = |verb: &Verb| format!("{}:photos", verb.word());
            verbs.iter().map(grant).collect()
        }
        Need::Named(name) => vec![format!("admin:{name}"), reconfig()],
        Need::Newcomer
        | Need::Server {
            or_reconfig: true, ..
        } => vec![reconfig()],
        Need::Nothing | Need::AnyKey | Need::NoCaller | Need::Server { .. } => Vec::new(),
    }
}

fn is_of_documents(message: &Message) -> bool {
    let Message::Request(request) = message else {
        return false;
    };
    let accesses = accesses_of(request);
    !accesses.is_empty() && accesses.iter().all(|(name, _)| name.is_document())
}

#[test]
fn each_row_is_judged_with_each_grant_alone() {
    let of_domain = DOMAIN_VERBS.map(|verb| format!("{}:photos", verb.word()));
    let of_cluster = CLUSTER_VERBS.map(|verb| verb.word().to_owned());
    let near = DOMAIN_VERBS.map(|verb| format!("{}:photo", verb.word()));
    let all: Vec<String> = of_domain
        .into_iter()
        .chain(of_cluster)
        .chain(near)
        .collect();
    for Row { message, needs } in &rows() {
        let [need] = needs.as_slice() else {
            continue;
        };
        let enough = enough(need);
        for grant in &all {
            let key = grants(&[grant.as_str()]);
            let is_enough = matches!(need, Need::Nothing | Need::AnyKey) || enough.contains(grant);
            let found = verdict(message, Standing::Key(&key));
            let completion = match message {
                Message::Request(request) => Completion::of(request),
                Message::Note(_) => None,
            };
            let completes = match completion {
                Some(Completion::Decision) => matches!(need, Need::Named(_)),
                // Any key may read documents.
                Some(_) => grant == "read:photos" || is_of_documents(message),
                None => false,
            };
            match (need, is_enough) {
                (_, false) if completes => {
                    assert_eq!(found, Verdict::Completed, "{message:?}");
                }
                (_, true) => assert_eq!(found, Verdict::Allowed, "{grant}: {message:?}"),
                (Need::Server { .. }, false) if enough.is_empty() => {
                    assert_eq!(found, Verdict::Lacking(Lacking::Certificate), "{message:?}");
                }
                (Need::NoCaller, false) => {
                    assert_eq!(found, Verdict::Lacking(Lacking::Certificate), "{message:?}");
                }
                (_, false) => {
                    let lacking = Lacking::Grant(enough[0].clone());
                    assert_eq!(found, Verdict::Lacking(lacking), "{grant}: {message:?}");
                }
            }
        }
        let everything_else: Vec<&str> = all
            .iter()
            .filter(|grant| !enough.contains(*grant))
            .map(String::as_str)
            .collect();
        let is_any = matches!(need, Need::Nothing | Need::AnyKey);
        let all_but = grants(&everything_else);
        assert_eq!(may(message, Standing::Key(&all_but)), is_any, "{message:?}");
        let none = Grants::default();
        assert_eq!(may(message, Standing::Key(&none)), is_any, "{message:?}");
    }
}

#[test]
fn each_row_is_judged_for_callers_without_a_key() {
    for Row { message, needs } in &rows() {
        let stranger = needs.iter().all(|need| *need == Need::Nothing);
        assert_eq!(may(message, Standing::Stranger), stranger, "{message:?}");
        let plain = !needs.contains(&Need::NoCaller);
        assert_eq!(may(message, Standing::Plain), plain, "{message:?}");
        let of = |server: ServerId| {
            needs.iter().all(|need| match need {
                Need::NoCaller => false,
                Need::Server { id, or_reconfig } => {
                    *or_reconfig || id.is_none_or(|id| id == server)
                }
                _ => true,
            })
        };
        for server in [OWN, ServerId(8)] {
            let found = may(message, Standing::Server(server));
            assert_eq!(found, of(server), "{server:?}: {message:?}");
        }
        let is_own = |need: &Need<'_>| match need {
            Need::Nothing => true,
            Need::Server { id, .. } => *id == Some(OWN),
            _ => false,
        };
        let is_request = matches!(message, Message::Request(_));
        let forgotten = is_request && needs.iter().all(is_own);
        assert_eq!(
            may(message, Standing::Forgotten(OWN)),
            forgotten,
            "{message:?}"
        );
        let newcomer = is_request
            && needs
                .iter()
                .all(|need| is_own(need) || matches!(need, Need::AnyKey | Need::Newcomer));
        let found = verdict(message, Standing::Unregistered(OWN));
        match newcomer {
            true => assert_eq!(found, Verdict::Allowed, "{message:?}"),
            false if needs.contains(&Need::NoCaller) => {
                assert_ne!(found, Verdict::Allowed, "{message:?}");
            }
            false => assert_eq!(found, Verdict::Unregistered, "{message:?}"),
        }
        let another = may(message, Standing::Forgotten(ServerId(8)));
        assert_eq!(another, stranger, "{message:?}");
    }
}

/// A server is let through without a look at [`Grants::of_server`].
#[test]
fn the_grants_of_servers_are_enough_for_what_servers_may_do() {
    let servers = Grants::of_server();
    for Row { message, needs } in &rows() {
        let by_certificate = |need: &Need<'_>| match need {
            Need::NoCaller => true,
            Need::Server { or_reconfig, .. } => !or_reconfig,
            _ => false,
        };
        if !needs.iter().any(by_certificate) {
            assert!(may(message, Standing::Key(&servers)), "{message:?}");
        }
    }
}

#[test]
fn one_part_of_a_batch_that_is_refused_refuses_it() {
    let parts = [put(false, false), put(true, false)];
    let batch = Message::Request(access(Kind::User, &parts));
    for (texts, lacking) in [
        (&["write:photos"][..], Some("delete:photos")),
        (&["delete:photos"][..], Some("write:photos")),
        (&["delete:photos", "write:ph*"][..], None),
    ] {
        let expected = match lacking {
            Some(grant) => Verdict::Lacking(Lacking::Grant(grant.into())),
            None => Verdict::Allowed,
        };
        let found = verdict(&batch, Standing::Key(&grants(texts)));
        assert_eq!(found, expected, "{texts:?}");
    }
}

#[test]
fn a_domain_without_a_name_here_is_looked_up_first() {
    let all = Grants::of_administrator();
    let request = access(Kind::User, &[put(false, false)]);
    let found = judge(false, true).request(&request, Standing::Key(&all));
    assert_eq!(found, Verdict::Unnamed);
    // No name is needed for those.
    for standing in [Standing::Plain, Standing::Server(OWN)] {
        let found = judge(false, true).request(&request, standing);
        assert_eq!(found, Verdict::Allowed, "{standing:?}");
    }
}

fn passing_on(descriptor: Option<Arc<Configuration>>, successors: Successors) -> Request {
    Request::Configured {
        configuration: configuration(PHOTOS, 0).id(),
        descriptor,
        successors,
        body: Body::ReadConfig,
    }
}

#[test]
fn what_a_caller_passes_on_is_believed_where_it_may_decide_it_or_the_server_knows_it() {
    let pointer = Pointer::pending(&configuration(PHOTOS, 1));
    let latest = Request::Latest {
        domain: PHOTOS,
        partition: 0,
        known: Some(configuration(PHOTOS, 0)),
    };
    let described = passing_on(Some(configuration(PHOTOS, 0)), Successors::default());
    for request in [passing_on(None, (&pointer).into()), described, latest] {
        let (admin, writer) = (grants(&["admin:photos"]), grants(&["write:*"]));
        for (grants, has_heard, expected) in [
            (&admin, false, Verdict::Allowed),
            (&writer, true, Verdict::Allowed),
            (&writer, false, Verdict::Unheard),
        ] {
            let judge = judge(true, has_heard);
            let found = judge.request(&request, Standing::Key(grants));
            assert_eq!(found, expected, "{request:?}");
        }
        for standing in [Standing::Plain, Standing::Server(OWN)] {
            let found = judge(false, false).request(&request, standing);
            assert_eq!(found, Verdict::Allowed, "{request:?}");
        }
        let stranger = judge(true, true).request(&request, Standing::Stranger);
        assert_eq!(stranger, Verdict::Lacking(Lacking::Key), "{request:?}");
    }
}

#[test]
fn a_reader_has_the_server_complete_what_it_read() {
    let write_back = access(Kind::User, &[put(false, true), put(true, true)]);
    let new = access(Kind::User, &[put(false, false)]);
    let block = access(Kind::Block, &[put(false, true)]);
    let lacking = |grant: &str| Verdict::Lacking(Lacking::Grant(grant.into()));
    for (request, texts, expected) in [
        (&write_back, &["read:photos"][..], Verdict::Completed),
        (
            &write_back,
            &["read:photos", "write:photos"],
            Verdict::Completed,
        ),
        (
            &write_back,
            &["write:photos", "delete:photos"],
            Verdict::Allowed,
        ),
        (&write_back, &["list:photos"], lacking("write:photos")),
        (&write_back, &["read:photos/2024/"], Verdict::Completed),
        (&write_back, &["read:photos/2025/"], lacking("write:photos")),
        (&block, &["read:photos"], Verdict::Completed),
        (&block, &["read:photos/2024/"], lacking("write:photos")),
        (&new, &["read:photos"], lacking("write:photos")),
    ] {
        let key = grants(texts);
        let found = judge(true, true).request(request, Standing::Key(&key));
        assert_eq!(found, expected, "{texts:?}: {request:?}");
    }
    let stranger = judge(true, true).request(&write_back, Standing::Stranger);
    assert_eq!(stranger, Verdict::Lacking(Lacking::Key));
}

#[test]
fn any_key_has_the_server_decide_the_name_of_a_domain() {
    let name = cell(ROOT, "domain/photos/00000000", prepare());
    let (none, admin) = (Grants::default(), grants(&["admin:photos"]));
    let lacking = |grant: &str| Verdict::Lacking(Lacking::Grant(grant.into()));
    for (request, expected) in [
        (&name, Verdict::Completed),
        (
            &cell(PHOTOS, "domain/photos/00000000", prepare()),
            lacking("admin:photos"),
        ),
        (
            &cell(PHOTOS, "upload-1", prepare()),
            lacking("write:photos"),
        ),
        (&cell(ROOT, "chain/trust/1", prepare()), lacking("reconfig")),
        (&cell(ROOT, "domain", prepare()), lacking("reconfig")),
    ] {
        let found = judge(true, true).request(request, Standing::Key(&none));
        assert_eq!(found, expected, "{request:?}");
    }
    let judge = judge(true, true);
    let owner = judge.request(&name, Standing::Key(&admin));
    assert_eq!(owner, Verdict::Allowed);
    let stranger = judge.request(&name, Standing::Stranger);
    assert_eq!(stranger, Verdict::Lacking(Lacking::Key));
    // Where nothing was accepted the refusal names this.
    let found = judge.lacking(&name, Standing::Key(&none));
    assert_eq!(found, Some(Lacking::Grant("admin:photos".into())));
    assert_eq!(judge.lacking(&name, Standing::Key(&admin)), None);
}

/// Judges by the grant that is the last one, and prints the time that it takes: `cargo test --release -p areo-server --lib by_one_of_many -- --nocapture`.
#[test]
#[allow(clippy::print_stdout, reason = "a measurement prints")]
fn requests_are_judged_by_one_of_many_grants() {
    const TIMES: u32 = 200_000;
    struct Domains(std::collections::HashMap<DomainId, String>);
    impl Knowledge for Domains {
        fn name_of(&self, domain: DomainId) -> Option<&str> {
            self.0.get(&domain).map(String::as_str)
        }

        fn has_heard(&self, _passed_on: &Hearsay<'_>) -> bool {
            true
        }
    }
    let others = (0..100_u8).map(|i| (DomainId(u128::from(i)), format!("domain-{i}")));
    let judge = Judge {
        table: Table { root: ROOT },
        knowledge: Domains(others.chain([(PHOTOS, "photos".to_owned())]).collect()),
    };
    let few = grants(&["write:photos"]);
    let fifteen = (0..15).map(|i| format!("read:other-{i}"));
    let texts: Vec<String> = fifteen.chain(["write:photos".to_owned()]).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let request = access(Kind::User, &[put(false, false)]);
    for (count, grants) in [(1, few), (16, grants(&texts))] {
        let begun = std::time::Instant::now();
        for _ in 0..TIMES {
            let standing = Standing::Key(std::hint::black_box(&grants));
            let verdict = judge.request(std::hint::black_box(&request), standing);
            assert_eq!(verdict, Verdict::Allowed);
        }
        let ns = begun.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES);
        println!("a put, by a key with {count} grants: {ns:.0} ns");
    }
}
