use super::*;
use crate::cmd::up::plan::tests::plan;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU16, Ordering};

const OUT: Output = Output::QUIET;

/// A plan for servers on ports that were free a moment ago.
fn planned(folder: &tempfile::TempDir) -> Plan {
    Plan {
        port: Some(free_port()),
        servers: Some(3),
        ..plan(folder.path().join("data"))
    }
}

/// A port that was free a moment ago, like the 100 after it as far as one can tell; below those that systems give to
/// outgoing connections, which come and go.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let place = NEXT.fetch_add(1, Ordering::Relaxed) % 20;
        let block = (std::process::id() % 10) as u16 * 20 + place;
        let port = 10_000 + block * 110;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn made(plan: &Plan) -> Outcome<Cluster> {
    Data::take(plan)?.cluster(plan, OUT)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn again(plan: &Plan) -> Plan {
    Plan {
        servers: None,
        port: None,
        ..plan.clone()
    }
}

#[test]
fn a_cluster_is_made_once_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(&folder);
    let first = made(&plan).unwrap();
    assert!(first.new && first.absent.is_empty());
    assert_eq!(
        names(&plan.data),
        ["cluster.toml", "s1", "s2", "s3", "up.lock"]
    );
    let port = plan.port.unwrap();
    let server = &first.file.servers[2];
    assert_eq!(server.name, "s3");
    assert_eq!(server.address, format!("127.0.0.1:{}", port + 2));
    assert_eq!(server.admin, format!("127.0.0.1:{}", port + 92));
    let second = made(&again(&plan)).unwrap();
    assert!(!second.new);
    assert_eq!(second.file, first.file);
    let moved = Plan {
        port: Some(free_port()),
        max_object: Some(7),
        ..again(&plan)
    };
    let third = made(&moved).unwrap();
    assert_eq!(
        third.file.servers[0].id, first.file.servers[0].id,
        "ids stay"
    );
    assert_eq!(third.file.servers[0].address, loopback(moved.port.unwrap()));
    assert_eq!(third.file.max_object, 7);
    assert_eq!(
        made(&again(&plan)).unwrap().file,
        third.file,
        "written down"
    );
}

/// A cluster of an earlier version has no keys, and stays as it is.
#[test]
fn a_cluster_has_keys_from_its_beginning_or_never() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(&folder);
    let first = made(&plan).unwrap();
    let key = first.file.key.clone();
    assert!(key.is_some(), "the administrator has one");
    assert_eq!(made(&again(&plan)).unwrap().file.key, key);
    for server in &first.file.servers {
        assert!(first.directory(server).join("TRUST").exists());
    }
    let older = tempfile::tempdir().unwrap();
    let plan = planned(&older);
    let first = made(&plan).unwrap();
    first.file.with_key(None).write(&first.path).unwrap();
    let servers = ["s1", "s2", "s3"].map(|name| NewServer {
        data: plan.data.join(name),
        name: name.to_owned(),
    });
    for server in &servers {
        fs::remove_dir_all(&server.data).unwrap();
    }
    let plain = initialise_cluster(&servers, NewCluster::default()).unwrap();
    let mut file = ClusterFile::read(&first.path).unwrap().unwrap();
    file.cluster = plain.cluster;
    for (server, (id, _)) in file.servers.iter_mut().zip(&plain.servers) {
        server.id = id.0;
    }
    file.write(&first.path).unwrap();
    let found = made(&again(&plan)).unwrap();
    assert!(found.absent.is_empty() && found.file.key.is_none());
}

#[test]
fn what_contradicts_the_directory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(&folder);
    let first = made(&plan).unwrap();
    let refused = |changed: Plan, why: &str| {
        let failure = made(&changed).unwrap_err();
        assert!(failure.message.contains(why), "{why}: {failure}");
        assert_eq!(
            ClusterFile::read(&first.path),
            Ok(Some(first.file.clone())),
            "untouched"
        );
    };
    let same = again(&plan);
    refused(
        Plan {
            servers: Some(5),
            ..same.clone()
        },
        "holds a cluster of 3 servers",
    );
    refused(
        Plan {
            memory: Some(true),
            ..same.clone()
        },
        "keeps its data on disk",
    );
    let lock = Data::take(&same).unwrap();
    refused(same.clone(), "another `areo up` runs on");
    drop(lock);
    let directory = |name: &str| plan.data.join(name);
    let swap = |a: &str, b: &str| fs::rename(directory(a), directory(b)).unwrap();
    let absent = |name: &str, why: &str| {
        let cluster = made(&same).unwrap();
        let absent = cluster.absent(name).expect("it stays down");
        assert!(absent.why.contains(why), "{why}: {absent:?}");
        cluster.absent.len()
    };
    swap("s1", "x");
    swap("s2", "s1");
    assert_eq!(absent("s1", "s1 belongs to another server than"), 2);
    assert_eq!(absent("s2", "s2 is gone"), 2);
    swap("s1", "s2");
    let other = tempfile::tempdir().unwrap();
    let elsewhere = planned(&other);
    made(&elsewhere).unwrap();
    fs::rename(elsewhere.data.join("s1"), directory("s1")).unwrap();
    assert_eq!(absent("s1", "s1 belongs to another cluster than"), 1);
    fs::remove_dir_all(directory("s1")).unwrap();
    assert_eq!(absent("s1", "s1 is gone"), 1);
    for damage in ["IDENTITY", "FORMAT"] {
        for content in ["", "areo data directory\nformat 99\n"] {
            let file = directory("x").join(damage);
            let sound = fs::read(&file).unwrap();
            fs::write(&file, content).unwrap();
            swap("x", "s1");
            assert_eq!(absent("s1", ""), 1, "{damage} {content:?}");
            swap("s1", "x");
            fs::write(&file, sound).unwrap();
        }
    }
    fs::write(directory("s1"), "a file in its place").unwrap();
    assert_eq!(absent("s1", "cannot be used as a data directory"), 1);
    fs::remove_dir_all(directory("s2")).unwrap();
    fs::remove_dir_all(directory("s3")).unwrap();
    refused(same, "no server in");
}

#[test]
fn odd_files_keep_one_server_down_alone() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(&folder);
    let (first, same) = (made(&plan).unwrap(), again(&plan));
    let directory = |name: &str| plan.data.join(name);
    let absent = || {
        let absent = made(&same).unwrap().absent.into_iter();
        absent.map(|it| it.name).collect::<Vec<_>>()
    };
    let aside = directory("aside");
    for file in ["FORMAT", "LOCK", "IDENTITY"] {
        let file = directory("s1").join(file);
        fs::rename(&file, &aside).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(absent(), ["s1"], "a directory for {}", file.display());
        fs::remove_dir(&file).unwrap();
        fs::rename(&aside, &file).unwrap();
    }
    fs::rename(directory("s1"), &aside).unwrap();
    symlink("nowhere", directory("s1")).unwrap();
    assert_eq!(absent(), ["s1"], "a link that leads nowhere");
    // The time for which another process may drain is over.
    let lock = File::open(directory("s2/LOCK")).unwrap();
    lock.lock().unwrap();
    let (data, s2) = (Data::take(&same).unwrap(), &first.file.servers[1]);
    let held = data.check_directory(first.file.cluster, s2, Instant::now());
    let why = held.unwrap_err();
    assert!(why.contains("another process holds"), "{why}");
}

#[test]
fn a_directory_in_use_is_waited_for_as_long_as_its_server_drains() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(&folder);
    let first = made(&plan).unwrap();
    let lock = File::open(plan.data.join("s2/LOCK")).unwrap();
    lock.lock().unwrap();
    let draining = std::thread::spawn(move || {
        sleep(PAUSE * 2);
        drop(lock);
    });
    let again = made(&again(&plan)).unwrap();
    assert_eq!((again.absent, again.file), (vec![], first.file));
    draining.join().unwrap();
}

#[test]
fn a_busy_port_is_found_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(&folder);
    for above in [2, ADMIN] {
        let port = plan.port.unwrap() + above;
        let _busy = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let failure = made(&plan).unwrap_err();
        let address = format!("127.0.0.1:{port}");
        assert!(failure.message.contains(&address), "{failure}");
        assert!(failure.message.contains("--port"), "{failure}");
        assert!(!plan.data.exists(), "nothing is left behind");
    }
}

const ADMIN: u16 = 91;

#[test]
fn directories_of_others_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(&folder);
    fs::create_dir(&plan.data).unwrap();
    fs::write(plan.data.join("thesis.tex"), "\\begin").unwrap();
    let failure = made(&plan).unwrap_err();
    assert!(
        failure
            .message
            .contains("holds 'thesis.tex' and no cluster"),
        "{failure}"
    );
    assert_eq!(names(&plan.data), ["thesis.tex"]);
    let file = Plan {
        data: plan.data.join("thesis.tex"),
        ..plan.clone()
    };
    let failure = made(&file).unwrap_err();
    assert!(failure.message.contains("is not a directory"), "{failure}");
    let below = Plan {
        data: file.data.join("data"),
        ..plan
    };
    let failure = made(&below).unwrap_err();
    assert!(failure.message.contains("not a directory"), "{failure}");
}

#[test]
fn a_shape_without_tolerance_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan {
        servers: Some(2),
        ..planned(&folder)
    };
    let failure = made(&plan).unwrap_err();
    assert!(failure.message.contains("--allow-f0"), "{failure}");
    assert!(!plan.data.exists());
    assert!(
        made(&Plan {
            allow_f0: true,
            ..plan
        })
        .is_ok()
    );
}

#[test]
fn what_a_crash_left_half_made_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(&folder);
    fs::create_dir_all(plan.data.join("s1")).unwrap();
    fs::write(plan.data.join("s1/junk"), "").unwrap();
    fs::write(plan.data.join(MAKING), "s1\ns2\n../s3\n").unwrap();
    let outside = folder.path().join("s3");
    fs::create_dir(&outside).unwrap();
    assert!(made(&plan).unwrap().new);
    assert!(!plan.data.join("s1/junk").exists());
    assert!(outside.exists(), "only names of servers are removed");
    assert_eq!(
        names(&plan.data),
        ["cluster.toml", "s1", "s2", "s3", "up.lock"]
    );
}

#[test]
fn a_cluster_in_memory_is_new_at_every_start() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Plan {
        memory: Some(true),
        ..planned(&folder)
    };
    let first = made(&memory).unwrap();
    assert!(first.file.memory());
    let second = made(&Plan {
        servers: None,
        memory: None,
        ..memory.clone()
    })
    .unwrap();
    assert!(second.new && second.file.memory());
    assert_eq!(second.file.servers.len(), 3, "as many as before");
    assert_ne!(second.file.cluster, first.file.cluster);
    let failure = made(&Plan {
        restart: true,
        ..memory.clone()
    })
    .unwrap_err();
    assert_eq!(failure, no_restart());
    // A directory that keeps something is never removed.
    let other = tempfile::tempdir().unwrap();
    let durable = planned(&other);
    made(&durable).unwrap();
    fs::remove_dir_all(memory.data.join("s2")).unwrap();
    fs::rename(durable.data.join("s2"), memory.data.join("s2")).unwrap();
    let failure = made(&memory).unwrap_err();
    assert!(
        failure
            .message
            .contains("s2 belongs to another cluster than"),
        "{failure}"
    );
    assert!(memory.data.join("s2").exists());
}
