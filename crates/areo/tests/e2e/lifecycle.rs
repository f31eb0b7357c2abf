//! `areo up` and `areo server`: starting, stopping, coming back.

use crate::cluster::{Cluster, areo, free_ports, lives, signal, spawn, wait_until};
use crate::command::{command, ended};
use crate::keyed::key_in;
use areo_fuzzing::not_run;
use rustix::process::Signal;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

#[test]
fn a_cluster_stops_cleanly_and_comes_back_with_its_data() {
    let mut cluster = Cluster::start(&[]);
    cluster.run_with(&["put", "key"], b"value").done();
    let version = cluster.run(&["get", "key", "--version-only"]).done();
    let data = cluster.data().to_str().unwrap().to_owned();
    let second = areo(&["up", "--data", &data], b"");
    second.refused(1, &["another `areo up` runs on", "--data"]);
    let pids: Vec<i32> = (1..=5).map(|i| cluster.pid(&format!("s{i}"))).collect();
    let ended = cluster.stop();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        pids.iter().all(|pid| !lives(*pid)),
        "no server is left behind"
    );
    let more = areo(&["up", "--data", &data, "--servers", "7"], b"");
    more.refused(2, &["holds a cluster of 5 servers"]);
    let busy = TcpListener::bind(("127.0.0.1", cluster.port() + 1)).unwrap();
    let port = format!("127.0.0.1:{}", cluster.port() + 1);
    areo(&["up", "--data", &data], b"").refused(1, &[&port, "--port"]);
    drop(busy);
    let cluster = cluster.start_again(&[]);
    assert_eq!(cluster.run(&["get", "key"]).done().text(), "value");
    let same = cluster.run(&["get", "key", "--version-only"]).done();
    assert_eq!(same.text(), version.text());
    let status = cluster.run(&["status", "--json"]).done().objects();
    let starts: Vec<_> = status
        .iter()
        .filter_map(|line| line["incarnation"].as_u64())
        .collect();
    assert_eq!(starts, [2; 5]);
}

#[test]
fn a_cluster_moves_to_other_ports() {
    let mut cluster = Cluster::start(&[]);
    cluster.run_with(&["put", "key"], b"value").done();
    assert_eq!(cluster.stop().code, 0);
    let port = free_ports();
    let cluster = cluster.start_at(port, &[]);
    assert_eq!(cluster.run(&["get", "key"]).done().text(), "value");
    // One address is enough, with a key.
    let one = format!("127.0.0.1:{port}");
    let get = ["--cluster", &one, "get", "key"];
    areo(&get, b"").refused(6, &["this cluster has keys", "AREO_KEY", "cluster file"]);
    let key = ("AREO_KEY", key_in(Path::new(&cluster.file())));
    let mut with_key = command();
    with_key.args(get).envs([key]);
    assert_eq!(ended(&mut with_key, b"").done().text(), "value");
}

/// The user of another account has the addresses, and no key.
#[test]
fn another_user_of_the_machine_gets_nothing() {
    const ANOTHER: u32 = 65_534;
    let cluster = Cluster::start(&["--servers", "3", "--durability", "memory"]);
    let first = format!("127.0.0.1:{}", cluster.port());
    let is_root = rustix::process::geteuid().is_root();
    let folder = tempfile::tempdir().unwrap();
    match is_root {
        true => std::os::unix::fs::chown(folder.path(), Some(ANOTHER), Some(ANOTHER)).unwrap(),
        false => not_run("only root runs commands as another user: this user gives no key instead"),
    }
    let as_another = |arguments: &[&str]| {
        let mut command = command();
        command.args(arguments).env_remove("HOME");
        // Commands remember their operations there.
        command.env("XDG_STATE_HOME", folder.path());
        command.env("XDG_CACHE_HOME", folder.path());
        if is_root {
            command.uid(ANOTHER).gid(ANOTHER);
        }
        ended(&mut command, b"value")
    };
    for words in [
        &["put", "key"][..],
        &["ls"],
        &["status"],
        &["domain", "rm", "default", "--yes"],
        &["key", "create", "mine", "--grant", "read:*"],
        &["token", "create"],
    ] {
        let refused = as_another(&[&["--cluster", &first], words].concat());
        refused.refused(6, &["this cluster has keys", "AREO_KEY"]);
    }
    if is_root {
        let refused = as_another(&["--cluster", &cluster.file(), "ls"]);
        refused.refused(2, &["cannot read the cluster file", "permission denied"]);
    }
    let data = folder.path().join("mine");
    let (data, listen) = (
        data.to_str().unwrap(),
        format!("127.0.0.1:{}", cluster.port() + 9),
    );
    let join = [
        "server", "--data", data, "--listen", &listen, "--join", &first,
    ];
    as_another(&join).refused(6, &["areo token create"]);
    let lines = cluster.run(&["status", "--json"]).done().objects();
    let servers = lines.iter().filter(|line| line["server"].is_string());
    assert_eq!(servers.count(), 3);
}

#[test]
fn servers_stop_when_their_supervisor_is_killed() {
    let mut cluster = Cluster::start(&[]);
    cluster.run_with(&["put", "key"], b"value").done();
    let pids: Vec<i32> = (1..=5).map(|i| cluster.pid(&format!("s{i}"))).collect();
    signal(cluster.up_pid(), Signal::KILL);
    assert_eq!(cluster.wait().code, -1);
    wait_until(|| pids.iter().all(|pid| !lives(*pid)));
    let cluster = cluster.start_again(&[]);
    assert_eq!(cluster.run(&["get", "key"]).done().text(), "value");
}

#[test]
fn a_cluster_in_memory_says_so_and_forgets() {
    let mut cluster = Cluster::start(&["--durability", "memory"]);
    cluster.run_with(&["put", "key"], b"value").done();
    let status = cluster.run(&["status", "--json"]).done().objects();
    let durable: Vec<_> = status
        .iter()
        .filter_map(|line| line["durable"].as_bool())
        .collect();
    assert_eq!(durable, [false; 5]);
    assert_eq!(cluster.stop().code, 0);
    let cluster = cluster.start_again(&[]);
    cluster.run(&["get", "key"]).refused(3, &["key"]);
}

/// `[X-28 memory-replaced]`: the register has the last one, under the name of the first. What a domain still needs of an earlier
/// one is shown.
#[test]
fn a_server_in_memory_takes_the_place_of_the_one_before_it() {
    let mut cluster = Cluster::start(&[]);
    cluster.join_in_memory("s6", 6);
    let create = "domain create files --dap abd --servers s1,s2,s6";
    cluster.run(&create.split(' ').collect::<Vec<_>>()).done();
    cluster
        .run_with(&["put", "--domain", "files", "key"], b"value")
        .done();
    for (old, new) in [("s6", "again"), ("again", "third"), ("third", "fourth")] {
        cluster.kill(old);
        cluster.join_in_memory(new, 6);
    }
    let servers = |cluster: &Cluster| {
        let status = cluster.run(&["status", "--json"]).done().objects();
        let servers = status.iter().filter(|line| line["server"].is_string());
        let server = |line: &serde_json::Value| {
            let text = |key: &str| line[key].as_str().unwrap().to_owned();
            (text("server"), text("state"), line["domains"].as_u64())
        };
        servers.map(server).collect::<Vec<_>>()
    };
    let serving = |name: &str, domains| (name.to_owned(), "serving".to_owned(), Some(domains));
    let mut known: Vec<_> = [3, 3, 2, 2, 2]
        .iter()
        .enumerate()
        .map(|(position, domains)| serving(&format!("s{}", position + 1), *domains))
        .collect();
    known.push(serving("s6", 0));
    let shown = servers(&cluster);
    assert_eq!(shown[..6], known);
    let (lost, state, domains) = &shown[6];
    assert_eq!((state.as_str(), *domains), ("not registered", Some(1)));
    let get = ["get", "--domain", "files", "key"];
    assert_eq!(cluster.run(&get).done().text(), "value");
    cluster.run(&["server", "replace", lost]).done();
    assert_eq!(cluster.run(&get).done().text(), "value");
    known[5] = serving("s6", 1);
    assert_eq!(servers(&cluster), known);
}

/// The code and the body of an answer of an admin port.
pub(crate) fn ask(port: u16, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    .expect("it reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("it answers");
    let (head, body) = reply.split_once("\r\n\r\n").expect("a head and a body");
    let code = head.split(' ').nth(1).expect("a code");
    (code.to_owned(), body.to_owned())
}

/// `[X-28 memory-replaced]`: the next process in the directory, or one on a copy of it, draws an id of its own.
/// The cluster has no keys: where there are some, a server is let in before it begins.
#[test]
fn a_server_in_memory_that_is_not_registered_leaves_no_identity() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str| folder.path().join(name);
    let (port, is_made) = (free_ports(), || of("m").join("IDENTITY").exists());
    let first = format!("127.0.0.1:{port}");
    let join = ["--join", first.as_str()];
    let serving = |servers: usize| {
        let status = areo(&["--cluster", &first, "status", "--timeout", "2s"], b"");
        status.text().matches("\tserving\t").count() == servers
    };
    let _first = server(&of("a"), port, &["--init", "--root", "fixed"]);
    wait_until(|| serving(1));
    let others =
        || ["b", "c"].map(|name| server(&of(name), port + u16::from(name == "c") + 1, &join));
    let running = others();
    wait_until(|| serving(3));
    let add = ["reconfig", "start", "@root", "--add", "s2,s3"];
    areo(&[&["--cluster", &first][..], &add].concat(), b"").done();
    drop(running);
    let in_memory = [&join[..], &["--durability", "memory"]].concat();
    let unregistered = server(&of("m"), port + 3, &in_memory);
    let admin = port + 3 + 90;
    wait_until(|| TcpStream::connect(("127.0.0.1", admin)).is_ok());
    // It answers once it has opened its directory.
    assert_eq!(ask(admin, "/health/live").0, "200");
    assert!(!is_made());
    drop(unregistered);
    let _running = others();
    wait_until(|| serving(3));
    let registered = server(&of("m"), port + 3, &in_memory);
    wait_until(|| serving(4) && is_made());
    drop(registered);
    let (data, listen) = (of("m"), format!("127.0.0.1:{}", port + 3));
    let again = ["server", "--durability", "memory", "--listen", &listen];
    let again = [&again[..], &["--data", data.to_str().unwrap()]].concat();
    areo(&again, b"").refused(1, &["keeps nothing on disk", "new directory"]);
}

#[test]
fn health_is_told_on_the_admin_port() {
    let mut cluster = Cluster::start(&["--durability", "memory"]);
    let port = cluster.port() + 90;
    let get = |path: &str| ask(port, path);
    assert_eq!(get("/health/live").0, "200");
    assert_eq!(get("/health/ready").0, "200");
    assert_eq!(get("/none").0, "404");
    let whole = || {
        let (code, body) = get("/health/cluster");
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let domains = body["domains"].as_array().unwrap().iter();
        let serves = |domain: &serde_json::Value| {
            let name = domain["domain"].as_str().unwrap().to_owned();
            (name, domain["serves"].as_bool().unwrap())
        };
        assert_eq!(body["ready"], code == "200", "{body}");
        (code, domains.map(serves).collect::<Vec<_>>())
    };
    let named = |root, default| vec![("@root".to_owned(), root), ("default".to_owned(), default)];
    assert_eq!(whole(), ("200".into(), named(true, true)));
    let (_, body) = get("/health/cluster");
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        body["domains"][1],
        serde_json::json!({
            "domain": "default", "configuration": 0, "servers": 5, "quorum": 4, "serving": 5, "serves": true,
            "writes": true, "full": [],
        })
    );
    cluster.kill("s4");
    assert_eq!(whole(), ("200".into(), named(true, true)), "f = 1");
    cluster.kill("s5");
    assert_eq!(whole(), ("503".into(), named(true, false)));
    cluster.kill("s3");
    let alone = vec![("@root".to_owned(), false)];
    assert_eq!(
        whole(),
        ("503".into(), alone),
        "what else there is is not known"
    );
    assert_eq!(get("/health/ready").0, "200", "that is for this server");
}

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn server(data: &std::path::Path, port: u16, flags: &[&str]) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_areo"));
    let listen = format!("127.0.0.1:{port}");
    command
        .args(["server", "--config", "", "--listen", &listen, "--data"])
        .arg(data)
        .args(flags);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Server(command.spawn().expect("areo starts"))
}

#[test]
fn a_cluster_grows_server_by_server() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_ports();
    let first = format!("127.0.0.1:{port}");
    let on = |arguments: &[&str], input: &[u8]| {
        let arguments: Vec<&str> = ["--cluster", &first]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        areo(&arguments, input)
    };
    let serving = |servers: usize| {
        let status = on(&["status", "--json", "--timeout", "2s"], b"");
        status.code == 0 && status.objects()[0]["serving"] == servers
    };
    let first_server = server(&folder.path().join("a"), port, &["--init", "--name", "a"]);
    wait_until(|| serving(1));
    let warned = on(&["status"], b"").done().text().to_owned();
    assert!(
        warned.contains("the root domain is on one server and tolerates no crash")
            && warned.contains("start 2 more servers (`areo server --join`)"),
        "{warned}"
    );
    let join = ["--join", first.as_str(), "--name"];
    let second = [join.as_slice(), &["b"]].concat();
    let third = [join.as_slice(), &["c"]].concat();
    let _second = server(&folder.path().join("b"), port + 1, &second);
    let _third = server(&folder.path().join("c"), port + 2, &third);
    wait_until(|| serving(3));
    on(&["put", "key"], b"").refused(3, &["there is no domain 'default'", "areo domain create"]);
    // The root domain grows by itself, and to three at once.
    let root = || {
        let shown = on(&["domain", "show", "@root", "--json"], b"");
        let shown = shown.done().objects().remove(0);
        (
            shown["servers"].as_array().unwrap().len(),
            shown["configuration"].as_u64(),
        )
    };
    wait_until(|| root().0 > 1);
    assert_eq!(root(), (3, Some(1)));
    let created = on(&["domain", "create", "default", "--servers", "a,b,c"], b"").done();
    assert!(!created.stderr.contains("crash"), "{}", created.stderr);
    on(&["put", "key"], b"value").done();
    drop(first_server);
    let others = format!("127.0.0.1:{},127.0.0.1:{}", port + 1, port + 2);
    let without = |arguments: &[&str], input: &[u8]| {
        areo(&[&["--cluster", &others], arguments].concat(), input).done()
    };
    assert_eq!(without(&["get", "key"], b"").text(), "value");
    without(&["put", "key"], b"other");
    without(&["domain", "create", "later", "--servers", "a,b,c"], b"");
}

/// People may keep the root domain where it is: then a sentence says how to change it.
#[test]
fn a_fixed_root_domain_stays() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_ports();
    let first = format!("127.0.0.1:{port}");
    let fixed = ["--init", "--root", "fixed"];
    let _first = server(&folder.path().join("a"), port, &fixed);
    let status = || areo(&["--cluster", &first, "status", "--timeout", "2s"], b"");
    wait_until(|| status().text().contains("\tserving\t1\t"));
    let join = ["--join", first.as_str()];
    let _second = server(&folder.path().join("b"), port + 1, &join);
    let _third = server(&folder.path().join("c"), port + 2, &join);
    wait_until(|| status().text().matches("\tserving\t1\t").count() == 3);
    let warned = status().text().to_owned();
    assert!(
        warned.contains("areo reconfig start @root --add"),
        "{warned}"
    );
    let add = ["reconfig", "start", "@root", "--add", "s2,s3"];
    areo(&[&["--cluster", &first][..], &add].concat(), b"").done();
    let warned = status().text().to_owned();
    assert!(!warned.contains("crash"), "{warned}");
}

/// Addresses of two clusters are a mistake, wherever they are given.
#[test]
fn servers_of_two_clusters_are_not_mixed() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_ports();
    let address = |above: u16| format!("127.0.0.1:{}", port + above);
    let of = |name: &str| folder.path().join(name);
    let serving = |address: &str| {
        let status = areo(&["--cluster", address, "status", "--timeout", "2s"], b"");
        status.text().contains("\tserving\t1\t")
    };
    let first = server(&of("a"), port, &["--init"]);
    let _other = server(&of("b"), port + 1, &["--init"]);
    wait_until(|| serving(&address(0)) && serving(&address(1)));
    let both = format!("{},{}", address(0), address(1));
    areo(&["--cluster", &both, "ls"], b"").refused(2, &["several clusters", &address(1)]);
    let start = |data: &str, at: u16, join: &str| {
        let (data, listen) = (of(data), address(at));
        let data = data.to_str().unwrap();
        areo(
            &[
                "server", "--data", data, "--listen", &listen, "--join", join,
            ],
            b"",
        )
    };
    start("new", 2, &both).refused(2, &["is a server of cluster", "--join"]);
    drop(first);
    start("a", 0, &address(1)).refused(2, &["is a server of cluster", "--join"]);
}

/// A server that others cannot find where it says says so.
#[test]
fn an_address_that_leads_nowhere_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_ports();
    let (listen, elsewhere) = (
        format!("127.0.0.1:{port}"),
        format!("127.0.0.1:{}", port + 1),
    );
    let data = folder.path().join("a");
    let mut child = Command::new(env!("CARGO_BIN_EXE_areo"))
        .args(["server", "--config", "", "--init", "--listen", &listen])
        .args(["--advertise", &elsewhere, "--data"])
        .arg(&data)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("areo starts");
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let _server = Server(child);
    let said = format!("this server advertises {elsewhere}, and cannot reach itself there");
    let mut lines = lines.map(Result::unwrap);
    assert!(lines.any(|line| line.contains(&said)), "the log ends");
}

/// Copies a data directory whose server is down.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("there is room");
    for entry in std::fs::read_dir(from).expect("it is there") {
        let entry = entry.expect("it can be read");
        let place = to.join(entry.file_name());
        match entry.file_type().expect("it is known").is_dir() {
            true => copy(&entry.path(), &place),
            false => drop(std::fs::copy(entry.path(), place).expect("there is room")),
        }
    }
}

#[test]
fn a_copy_of_an_older_state_is_refused_however_often_it_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let (port, data, old) = (
        free_ports(),
        folder.path().join("b"),
        folder.path().join("old"),
    );
    let first = format!("127.0.0.1:{port}");
    let serving = |servers: usize| {
        let status = ["--cluster", &first, "status", "--json", "--timeout", "2s"];
        let status = areo(&status, b"");
        status.code == 0 && status.objects()[0]["serving"] == servers
    };
    let _first = server(&folder.path().join("a"), port, &["--init", "--name", "a"]);
    wait_until(|| serving(1));
    for start in 1..=3 {
        let running = server(&data, port + 1, &["--join", &first, "--name", "b"]);
        wait_until(|| serving(2));
        drop(running);
        wait_until(|| serving(1));
        if start == 1 {
            copy(&data, &old);
        }
    }
    for _ in 0..4 {
        let refused = RefCell::new(server(&old, port + 1, &["--join", &first]));
        wait_until(|| {
            assert!(!serving(2), "the copy must not serve");
            let ended = refused.borrow_mut().0.try_wait();
            ended.expect("it is our child").is_some()
        });
        let ended = refused.borrow_mut().0.wait().expect("it is our child");
        assert_eq!(ended.code(), Some(7));
    }
}

/// Copies of a cluster that runs would take its place, and reads would go back to what was there when they were made.
#[test]
fn a_copy_of_a_cluster_that_runs_is_refused_by_name() {
    let cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    cluster.run_with(&["put", "key"], b"before").done();
    let copied = cluster.folder().join("copied");
    copy(&cluster.data(), &copied);
    cluster.run_with(&["put", "key"], b"after").done();
    let port = free_ports().to_string();
    let ended = areo(
        &["up", "--data", copied.to_str().unwrap(), "--port", &port],
        b"",
    );
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    for number in 0..3 {
        let address = format!("127.0.0.1:{}", cluster.port() + number);
        let sentence = format!("a process answers as this server at {address}");
        assert!(ended.stderr.contains(&sentence), "{}", ended.stderr);
    }
    assert!(
        !ended.stderr.contains("The cluster serves"),
        "{}",
        ended.stderr
    );
    assert_eq!(cluster.run(&["get", "key"]).done().text(), "after");
    let status = cluster.run(&["status", "--json"]).done().objects();
    let starts = status
        .iter()
        .filter_map(|line| line["incarnation"].as_u64());
    assert_eq!(starts.collect::<Vec<_>>(), [1; 3], "nothing was registered");
}

/// Starts the server of a directory of the cluster on other ports.
fn serve_elsewhere(cluster: &Cluster, data: &std::path::Path) -> Server {
    let port = free_ports();
    let (listen, admin) = (
        format!("127.0.0.1:{port}"),
        format!("127.0.0.1:{}", port + 40),
    );
    let (file, data) = (cluster.file(), data.to_str().expect("it is text"));
    let arguments = [
        "--cluster",
        &file,
        "server",
        "--data",
        data,
        "--listen",
        &listen,
        "--admin",
        &admin,
    ];
    Server(spawn(&arguments))
}

/// A snapshot of the present start is like its directory, but for what others know of its log.
#[test]
fn a_snapshot_of_the_present_start_is_refused() {
    let mut cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    cluster.run_with(&["put", "key"], b"before").done();
    let (data, old) = (cluster.data().join("s3"), cluster.folder().join("old"));
    copy(&data, &old);
    cluster.run_with(&["put", "key"], b"after").done();
    cluster.signal("s3", Signal::INT);
    cluster.wait_for_end("s3");
    for _ in 0..2 {
        let mut refused = serve_elsewhere(&cluster, &old);
        let ended = refused.0.wait().expect("it is our child");
        assert_eq!(ended.code(), Some(7));
    }
    let _own = serve_elsewhere(&cluster, &data);
    wait_until(|| cluster.state("s3") == "serving");
    assert_eq!(cluster.number("s3", "incarnation"), Some(2));
    assert_eq!(cluster.run(&["get", "key"]).done().text(), "after");
}

/// A server may be started elsewhere because its process stood still. When that goes on it answers no client.
#[test]
fn a_process_that_stood_still_ends_when_its_server_was_started_elsewhere() {
    let mut cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    cluster.run_with(&["put", "key"], b"before").done();
    cluster.signal("s3", Signal::STOP);
    let moved = cluster.folder().join("moved");
    copy(&cluster.data().join("s3"), &moved);
    let _moved = serve_elsewhere(&cluster, &moved);
    wait_until(|| cluster.number("s3", "incarnation") == Some(2));
    cluster.run_with(&["put", "key"], b"moved").done();
    cluster.signal("s3", Signal::CONT);
    cluster.wait_for_end("s3");
    assert_eq!(cluster.state("s3"), "serving");
    assert_eq!(cluster.run(&["get", "key"]).done().text(), "moved");
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("s");
    let data = data.to_str().unwrap();
    let listen = format!("127.0.0.1:{}", free_ports());
    let start = |flags: &[&str]| {
        let fixed = ["server", "--data", data];
        let arguments: Vec<&str> = fixed.iter().chain(flags).copied().collect();
        areo(&arguments, b"")
    };
    let says = |ended: crate::cluster::CommandOutput, code: i32, words: &[&str]| {
        assert_eq!(ended.code, code, "{}", ended.stderr);
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(
            words.iter().all(|word| last.contains(word)),
            "{}",
            ended.stderr
        );
    };
    says(start(&["--listen", "7400", "--init"]), 2, &["HOST:PORT"]);
    for everywhere in ["0.0.0.0:7400", "[::]:7400"] {
        let open = ["--listen", everywhere, "--init"];
        says(start(&open), 2, &[everywhere, "--advertise HOST:PORT"]);
    }
    let wrong = "0.0.0.0:7400 [::]:7400 [::ffff:0.0.0.0]:7400 0:1 host:0 host :7400";
    for wrong in wrong.split(' ').chain(["a b:1"]) {
        let advertise = ["--listen", &listen, "--init", "--advertise", wrong];
        says(start(&advertise), 2, &[wrong, "is no address at which"]);
    }
    let here_alone = [
        "--listen",
        "0.0.0.0:7400",
        "--init",
        "--advertise",
        "localhost:7400",
    ];
    says(
        start(&here_alone),
        2,
        &["localhost:7400", "only this machine"],
    );
    let any_admin = ["--listen", &listen, "--init", "--admin", "127.0.0.1:0"];
    says(start(&any_admin), 2, &["127.0.0.1:0", "choose one"]);
    for wrong in [":1", "http://h:1", "a b:1"] {
        says(
            start(&["--listen", &listen, "--join", wrong]),
            2,
            &[wrong, "HOST:PORT"],
        );
    }
    let unknown = ["--listen", &listen, "--join", "no.such.invalid:1"];
    says(
        start(&unknown),
        1,
        &["no.such.invalid:1: its name does not resolve"],
    );
    let any_port = ["--listen", "127.0.0.1:0", "--init"];
    says(start(&any_port), 2, &["127.0.0.1:0", "choose one"]);
    assert!(!folder.path().join("s").exists(), "nothing was made");
    says(start(&["--listen", &listen]), 2, &["--init", "--join"]);
    let nobody = format!("127.0.0.1:{}", free_ports());
    says(
        start(&["--listen", &listen, "--join", &nobody]),
        1,
        &[&nobody],
    );
    says(areo(&["server"], b""), 2, &["--data"]);
}
