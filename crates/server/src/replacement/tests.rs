use super::*;
use areo_core::starts::Starts;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const OLD: ServerId = ServerId(0x01d);
const NEW: ServerId = ServerId(0x2e3);
const NEWEST: ServerId = ServerId(0x3e3);

fn identity() -> Identity {
    Identity {
        cluster: 7,
        server: OLD,
        name: "s1".into(),
        starts: Starts {
            incarnation: 5,
            unconfirmed: None,
        },
        memory: false,
        extent: 9,
        root: identity::root_configuration(&[OLD, ServerId(2), ServerId(3)], false),
        has_trust: false,
        succession: Succession::default(),
    }
}

fn give_up(directory: &Directory, to: ServerId) {
    let identity = current(directory).unwrap();
    let addresses = vec!["127.0.0.1:7401".into(), "127.0.0.1:7402".into()];
    let next = identity.succeeded_by(to, identity.root.clone(), addresses);
    identity::write(directory, &next).unwrap();
}

/// A directory with a log in it.
fn directory(folder: &Path) -> Directory {
    let directory = Directory::open(folder.join("data")).unwrap();
    identity::write(&directory, &identity()).unwrap();
    write_log(&directory, "of the old one");
    directory
}

fn write_log(directory: &Directory, text: &str) {
    fs::create_dir_all(directory.path().join(LOG)).unwrap();
    fs::write(directory.path().join(LOG).join("segment"), text).unwrap();
}

/// A cluster of which every call may fail, before or after it had its effect.
#[derive(Default)]
struct FakeCluster {
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    leaving: BTreeSet<ServerId>,
    /// Members of each domain.
    domains: BTreeMap<&'static str, Vec<ServerId>>,
    forgotten: Vec<ServerId>,
    /// Domains that cannot be changed.
    stuck: BTreeSet<&'static str>,
    calls: usize,
    fails_at: Option<usize>,
}

impl FakeCluster {
    fn new(fails_at: Option<usize>) -> FakeCluster {
        let members = || vec![OLD, ServerId(2), ServerId(3)];
        let domains = [("@root", members()), ("a", members()), ("b", members())];
        let others = [("other", vec![ServerId(2), ServerId(3)])];
        let state = State {
            domains: domains.into_iter().chain(others).collect(),
            fails_at,
            ..State::default()
        };
        FakeCluster {
            state: RefCell::new(state),
        }
    }

    fn call(&self) -> Result<(), String> {
        let mut state = self.state.borrow_mut();
        state.calls += 1;
        match state.fails_at == Some(state.calls) {
            true => Err("the process ends here".into()),
            false => Ok(()),
        }
    }

    fn named(&self, server: ServerId) -> Vec<&'static str> {
        let state = self.state.borrow();
        let named = state.domains.iter().filter(|(_, it)| it.contains(&server));
        named.map(|(name, _)| *name).collect()
    }
}

impl PlaceTaking for FakeCluster {
    async fn mark(&self, old: ServerId) -> Result<(), String> {
        self.call()?;
        self.state.borrow_mut().leaving.insert(old);
        self.call()
    }

    async fn take(&self, old: ServerId) -> Result<(), String> {
        assert!(
            self.state.borrow().leaving.contains(&old),
            "it was marked before"
        );
        let mut failed = Ok(());
        for domain in self.named(old) {
            self.call()?;
            if self.state.borrow().stuck.contains(domain) {
                failed = Err(format!("{domain} is stuck"));
                continue;
            }
            let mut state = self.state.borrow_mut();
            let members = state.domains.get_mut(domain).unwrap();
            members.retain(|it| *it != old);
            members.push(NEW);
            drop(state);
            self.call()?;
        }
        failed
    }

    async fn forget(&self, old: ServerId) -> Result<(), String> {
        self.call()?;
        assert_eq!(
            self.named(old),
            [""; 0],
            "no domain may name what is forgotten"
        );
        self.state.borrow_mut().forgotten.push(old);
        self.call()
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.build().unwrap().block_on(future)
}

/// A process that ends at any call, before or after its effect: the next one goes on, and at the end nothing is left to do.
#[test]
fn what_is_left_to_do_is_done_through_ends_of_the_process() {
    let all = {
        let folder = tempfile::tempdir().unwrap();
        let (cluster, directory) = (FakeCluster::new(None), directory(folder.path()));
        give_up(&directory, NEW);
        set_log_aside(&directory, current(&directory).unwrap()).unwrap();
        run(take_all(&cluster, &directory)).unwrap();
        cluster.state.into_inner().calls
    };
    assert!(all >= 10, "{all} calls");
    for fails_at in 1..=all {
        let folder = tempfile::tempdir().unwrap();
        let cluster = FakeCluster::new(Some(fails_at));
        let directory = directory(folder.path());
        give_up(&directory, NEW);
        set_log_aside(&directory, current(&directory).unwrap()).unwrap();
        let kept = directory.path().join(aside(OLD)).join(LOG).join("segment");
        assert!(run(take_all(&cluster, &directory)).is_err(), "{fails_at}");
        let left = current(&directory).unwrap();
        assert_eq!(left.succession.replaces, [OLD], "{fails_at}");
        assert!(kept.exists(), "the log goes last: {fails_at}");
        run(take_all(&cluster, &directory)).unwrap();
        let end = current(&directory).unwrap();
        assert_eq!(end.server, NEW);
        let Succession {
            predecessors,
            replaces,
            log_of,
            addresses,
        } = end.succession;
        assert_eq!((predecessors, replaces), (vec![OLD], vec![]));
        assert_eq!((log_of, addresses.len()), (None, 0));
        assert!(!directory.path().join(aside(OLD)).exists());
        assert_eq!(cluster.named(OLD), [""; 0]);
        assert_eq!(cluster.named(NEW), ["@root", "a", "b"]);
        assert_eq!(cluster.state.borrow().forgotten.last(), Some(&OLD));
    }
}

/// A domain that cannot be changed keeps the server from being forgotten, and its log from being removed.
#[test]
fn a_domain_that_cannot_be_changed_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, directory) = (FakeCluster::new(None), directory(folder.path()));
    give_up(&directory, NEW);
    set_log_aside(&directory, current(&directory).unwrap()).unwrap();
    cluster.state.borrow_mut().stuck.insert("a");
    for _ in 0..3 {
        assert!(run(take_all(&cluster, &directory)).is_err());
        assert_eq!(cluster.named(OLD), ["a"], "the others do not wait for it");
        assert!(cluster.state.borrow().forgotten.is_empty());
        assert!(directory.path().join(aside(OLD)).exists());
        let left = current(&directory).unwrap().succession;
        assert_eq!((left.replaces.len(), left.addresses.len()), (1, 2));
    }
    cluster.state.borrow_mut().stuck.clear();
    run(take_all(&cluster, &directory)).unwrap();
    assert_eq!(cluster.state.borrow().forgotten, [OLD]);
}

/// Between the write of the identity and the first use of the log a process may end anywhere.
#[test]
fn the_log_of_the_server_before_is_never_opened_by_the_next() {
    for is_moved in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let directory = directory(folder.path());
        give_up(&directory, NEW);
        let new = current(&directory).unwrap();
        assert_eq!((new.server, new.name.as_str()), (NEW, ""));
        assert_eq!((new.starts, new.extent), (Starts::NONE, 0));
        assert_eq!(new.succession.log_of, Some(OLD));
        if is_moved {
            directory.set_aside(LOG, &aside(OLD)).unwrap();
        }
        let new = set_log_aside(&directory, new).unwrap();
        assert_eq!(new.succession.log_of, None);
        assert_eq!(current(&directory).unwrap(), new);
        assert!(!directory.path().join(LOG).exists());
        // From now on the log is its own.
        write_log(&directory, "of the new one");
        let again = set_log_aside(&directory, new.clone()).unwrap();
        assert_eq!(again, new);
        assert!(directory.path().join(LOG).exists());
    }
}

/// The log of the server that takes the place may lack records, too, before it is done.
#[test]
fn a_server_may_take_the_places_of_several() {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, directory) = (FakeCluster::new(None), directory(folder.path()));
    for next in [NEW, NEWEST] {
        give_up(&directory, next);
        set_log_aside(&directory, current(&directory).unwrap()).unwrap();
        write_log(&directory, "of the next one");
    }
    let both = current(&directory).unwrap();
    assert_eq!(both.server, NEWEST);
    assert_eq!(both.succession.replaces, [OLD, NEW]);
    for before in [OLD, NEW] {
        assert!(directory.path().join(aside(before)).join(LOG).exists());
    }
    cluster.state.borrow_mut().domains.clear();
    run(take_all(&cluster, &directory)).unwrap();
    assert_eq!(cluster.state.borrow().forgotten, [OLD, NEW]);
    let end = current(&directory).unwrap().succession;
    assert_eq!(end.predecessors, [OLD, NEW]);
    assert!(end.replaces.is_empty());
}

#[test]
fn a_directory_remembers_so_many_servers_of_before() {
    let mut identity = identity();
    for number in 0..200 {
        let addresses = vec!["127.0.0.1:7401".to_owned(); 300];
        identity = identity.succeeded_by(ServerId(1000 + number), identity.root.clone(), addresses);
        identity.succession.replaces.clear();
    }
    let succession = identity.succession;
    assert_eq!(succession.predecessors.len(), PREDECESSORS);
    assert_eq!(succession.predecessors.last(), Some(&ServerId(1198)));
    assert_eq!(succession.addresses.len(), ADDRESSES);
}
