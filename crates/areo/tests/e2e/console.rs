//! The console: who may open it, and every misuse of its changes.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, wait_until};
use crate::console_client::{Browser, Console};
use crate::keyed::{KeyedCluster, key_in};
use crate::s3_client::Response;
use areo_console::action_paths;
use std::io::{BufRead, Read};
use std::time::Duration;

/// Fields with which the form of a change is complete, so that its misuse alone is a reason to refuse it.
fn fields(path: &str) -> Vec<(&'static str, &'static str)> {
    let servers = |names: [&'static str; 3]| names.map(|name| ("server", name));
    let domain = ("domain", "default");
    match path {
        "/cluster/forget/confirmed" => vec![("server", "s5"), ("sure", "on")],
        "/cluster/replace/start" => vec![("server", "s3"), ("with", "s6")],
        "/reconfigure/create" => {
            let named = [("name", "stranger"), ("kind", "abd")];
            [&named[..], &servers(["s1", "s2", "s3"])].concat()
        }
        "/reconfigure/start" => [&[domain][..], &servers(["s1", "s2", "s4"])].concat(),
        "/reconfigure/resume" => vec![("domain", PENDING)],
        "/health/look" | "/health/repair" => vec![("domain", "areo-autopilot")],
        _ => vec![
            domain,
            ("key", "kept"),
            ("version", "1-00000000000000011"),
            ("id", "0000000000000000"),
            ("name", "stranger"),
            ("grants", "status"),
            ("confirm", "yes"),
            ("number", "1"),
            ("pause", "on"),
        ],
    }
}

/// A domain with a change that its client left pending.
const PENDING: &str = "pending";
const UPLOAD: &str = "/objects/upload";
const LOGOUT: &str = "/logout";

/// A cluster with keys, a domain and an object.
fn cluster() -> KeyedCluster {
    let cluster = KeyedCluster::start();
    fill(&cluster, &["--servers", "s1", "--allow-f0"]);
    cluster
}

/// A cluster of which every change could be made: s1, s2 and s3 have the domains, s4 comes by a change that is pending, s6 is free, and s5 is stopped and in no domain.
fn large_cluster() -> KeyedCluster {
    let mut cluster = KeyedCluster::new();
    let init = ["--init", "--tls", "--name", "s1", "--root", "fixed"];
    cluster.serve("s1", 0, &init, None);
    wait_until(|| cluster.file().exists() && cluster.serving() == 1);
    let seed = cluster.address(0);
    for (number, name) in (1..).zip(["s2", "s3", "s4", "s6", "s5"]) {
        let token = cluster.token();
        cluster.serve(
            name,
            number,
            &["--join", &seed, "--name", name],
            Some(&token),
        );
    }
    wait_until(|| cluster.serving() == 6);
    fill(&cluster, &["--servers", "s1,s2,s3"]);
    let create = ["domain", "create", PENDING, "--dap", "abd"];
    let create = [&create[..], &["--servers", "s1,s2,s3"]].concat();
    cluster.run(&create).done();
    let change = ["reconfig", "start", PENDING, "--add", "s4", "--yes"];
    let change = [&change[..], &["--experimental", "leave-off=transferred"]].concat();
    cluster.run(&change);
    assert!(
        cluster
            .run(&["domain", "show", PENDING])
            .text()
            .contains("pending")
    );
    drop(cluster.servers.pop());
    wait_until(|| cluster.serving() == 5);
    cluster
}

/// Makes the domains and the object.
fn fill(cluster: &KeyedCluster, servers: &[&str]) {
    for (domain, kind) in [("default", "abd"), ("areo-autopilot", "conditional")] {
        let create = ["domain", "create", domain, "--dap", kind];
        cluster.run(&[&create[..], servers].concat()).done();
    }
    let put = cluster.run_as(&cluster.file(), &["put", "kept"], b"kept");
    put.done();
}

/// All that the changes of the console change.
fn state(cluster: &KeyedCluster) -> Vec<String> {
    let look = |words: &[&str]| cluster.run(&[words, &["--json"]].concat()).done();
    let looks: [&[&str]; 5] = [
        &["audit", "ls"],
        &["key", "ls"],
        &["domain", "ls"],
        &["ls", "--long"],
        &["reconfig", "status", "@root"],
    ];
    looks.map(|words| look(words).text().to_owned()).into()
}

/// Sends the form of a change with these headers.
fn misuse(
    browser: &mut Browser,
    path: &str,
    token: Option<&str>,
    headers: &[(&'static str, &str)],
) -> Response {
    let token = token.map(|token| ("token", token));
    let request = headers
        .iter()
        .fold(browser.request("POST", path), |request, (name, value)| {
            request.header(name, value)
        });
    let request = if path == UPLOAD {
        let fields: Vec<_> = token
            .into_iter()
            .chain([("domain", "default"), ("key", "planted")])
            .collect();
        request.multipart(&fields, ("planted", b"planted"))
    } else {
        let fields: Vec<_> = token.into_iter().chain(fields(path)).collect();
        request.form(&fields)
    };
    request.send()
}

#[track_caller]
fn assert_refused(path: &str, why: &str, status: u16, response: &Response) {
    let text = response.text();
    assert_eq!(response.status, status, "{path}, {why}: {text}");
}

/// A form counts only if the page of this session made it, for this host.
#[test]
fn every_change_refuses_forms_of_strangers() {
    let cluster = cluster();
    let mut console = Console::start(cluster.file(), &[]);
    let mut browser = console.browser();
    let token = browser.token();
    let other = console.browser_of(&key_in(&cluster.file())).token();
    let paths = action_paths();
    assert!(
        paths.contains(&UPLOAD) && paths.contains(&LOGOUT),
        "{paths:?}"
    );
    let before = state(&cluster);
    let port = console.address.rsplit_once(':').unwrap().1;
    let hosts = ["evil.example".to_owned(), format!("evil.example:{port}")];
    for path in &paths {
        let token = Some(token.as_str());
        let stranger = misuse(&mut console.stranger(), path, token, &[]);
        assert_refused(path, "no session", 401, &stranger);
        for (why, forged) in [
            ("no token", None),
            ("an empty token", Some("")),
            ("a forged token", Some("00000000000000000000000000000000")),
            ("the token of another session", Some(other.as_str())),
        ] {
            assert_refused(path, why, 403, &misuse(&mut browser, path, forged, &[]));
        }
        for origin in ["http://evil.example", "null", "http://localhost:1", ""] {
            let foreign = misuse(&mut browser, path, token, &[("origin", origin)]);
            assert_refused(path, origin, 403, &foreign);
        }
        for host in &hosts {
            let foreign = misuse(&mut browser, path, token, &[("host", host)]);
            assert_refused(path, host, 421, &foreign);
            // The page of the stranger whose name leads here.
            let own = format!("http://{host}");
            let rebound = misuse(
                &mut browser,
                path,
                token,
                &[("host", host), ("origin", &own)],
            );
            assert_refused(path, host, 421, &rebound);
        }
        for method in ["PUT", "DELETE", "PATCH", "OPTIONS"] {
            let status = browser.request(method, path).send().status;
            assert_eq!(status, 405, "{method} {path}");
        }
    }
    assert_eq!(state(&cluster), before);
    browser.page("/cluster");
}

/// The change that was begun last.
fn job(browser: &mut Browser) -> Option<serde_json::Value> {
    let page = browser.json("/reconfigure.json");
    page["jobs"]
        .as_array()
        .and_then(|jobs| jobs.first())
        .cloned()
}

/// The servers judge a session by its key.
#[test]
fn every_change_refuses_a_key_without_the_grant() {
    let cluster = large_cluster();
    let file = cluster.key("reader", &["read,list:default", "status"]);
    let console = Console::start(cluster.file(), &[]);
    let mut browser = console.browser_of(&key_in(&file));
    let token = browser.token();
    let before = state(&cluster);
    let stat = cluster.run(&["stat", "kept", "--json"]).done();
    let version = stat.objects()[0]["version"].as_str().unwrap().to_owned();
    let version = ("version", version.as_str());
    let paths = action_paths().into_iter().filter(|path| *path != LOGOUT);
    let mut others = Vec::new();
    for path in paths {
        let refused = match path {
            // Of another version the reader hears by a read, before it deletes.
            "/objects/delete" => {
                let fields = [("domain", "default"), ("key", "kept")];
                browser.post(
                    path,
                    &[&fields[..], &[version, ("confirm", "yes")]].concat(),
                )
            }
            path => misuse(&mut browser, path, Some(&token), &[]),
        };
        match refused.status {
            403 => {}
            // It is a job, which the servers refuse later than at once.
            303 => {
                let ended = || job(&mut browser.clone()).filter(|it| it["state"] != "running");
                wait_until(|| ended().is_some());
                let ended = ended().unwrap();
                let sentence = ended["sentence"].to_string();
                let is_refused = ended["state"] == "failed" && sentence.contains("authorised");
                if !is_refused {
                    others.push(format!("{path}: {ended}"));
                }
            }
            status => others.push(format!("{path}: {status}: {}", refused.text())),
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n\n"));
    assert_eq!(state(&cluster), before);
    assert!(browser.page("/objects?domain=default").contains("kept"));
    assert_eq!(browser.get("/keys").status, 403);
}

/// A session ends by age, whether it is used or not.
#[test]
fn every_change_refuses_a_session_that_has_ended() {
    let cluster = cluster();
    let mut console = Console::start(cluster.file(), &["--session", "2s"]);
    let mut browser = console.browser();
    let token = browser.token();
    let before = state(&cluster);
    wait_until(|| browser.get("/cluster.json").status == 401);
    for path in action_paths() {
        let refused = misuse(&mut browser, path, Some(&token), &[]);
        assert_refused(path, "the session has ended", 401, &refused);
    }
    assert_eq!(state(&cluster), before);
}

#[test]
fn a_one_time_url_counts_once() {
    let cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    let mut console = Console::start(cluster.file(), &[]);
    let url = console.one_time_url();
    let (_, path) = url.split_once(&console.address).unwrap();
    let mut first = console.stranger();
    assert_eq!(first.get("/cluster").status, 303);
    // A program that looks at a link before a person follows it.
    let mut head = String::new();
    let looked = first.request("HEAD", path).begin().read_line(&mut head);
    assert!(looked.is_ok() && head.contains(" 200 "), "{head}");
    assert_eq!(first.get(path).status, 200);
    first.page("/cluster");
    let mut second = console.stranger();
    assert_eq!(second.get(path).status, 401);
    assert_eq!(second.get("/cluster.json").status, 401);
    // The console prints another one, for another browser.
    console.browser().page("/cluster");
    for elsewhere in [
        "//evil.example",
        "https://evil.example",
        "/%09/evil.example",
        "/%5cevil.example",
    ] {
        let url = console.one_time_url();
        let (_, path) = url.split_once(&console.address).unwrap();
        let opened = console.stranger().get(&format!("{path}&next={elsewhere}"));
        assert_eq!(opened.header("refresh"), Some("0; url=/"), "{elsewhere}");
        assert!(!opened.text().contains("evil"), "{elsewhere}");
    }
}

#[test]
fn a_key_opens_the_console_until_it_signs_out() {
    let cluster = KeyedCluster::start();
    let console = Console::start(cluster.file(), &[]);
    let key = key_in(&cluster.file());
    let mut browser = console.browser_of(&key);
    browser.page("/cluster");
    let mut copy = browser.clone();
    let left = browser.post(LOGOUT, &[]);
    assert_eq!(left.status, 303, "{}", left.text());
    assert!(browser.cookies.is_empty());
    assert_eq!(copy.get("/cluster.json").status, 401);
    let (_, secret) = key.rsplit_once('.').unwrap();
    let wrong = key.replace(secret, &"0".repeat(secret.len()));
    let mut stranger = console.stranger();
    let refused = stranger.request("POST", "/login").form(&[("key", &wrong)]);
    assert_eq!(refused.send().status, 403);
    assert!(stranger.cookies.is_empty());
}

/// Nothing on a page is from elsewhere, nothing is kept by browsers, and no page is part of another one.
#[test]
fn every_answer_has_the_headers_of_the_guard() {
    let cluster = cluster();
    let mut console = Console::start(cluster.file(), &[]);
    let mut browser = console.browser();
    let mut answers = Vec::new();
    for path in [
        "/login",
        "/cluster",
        "/cluster.json",
        "/objects",
        "/keys",
        "/nothing",
        "/keys/create",
    ] {
        answers.push((path, browser.get(path)));
        answers.push((path, console.stranger().get(path)));
    }
    answers.push(("forged", misuse(&mut browser, "/keys/create", None, &[])));
    let foreign = browser
        .request("GET", "/cluster")
        .header("host", "evil.example");
    answers.push(("foreign", foreign.send()));
    for (path, answer) in &answers {
        let header = |name| {
            answer
                .header(name)
                .unwrap_or_else(|| panic!("{path}: {name}"))
        };
        let policy = header("content-security-policy");
        for part in [
            "default-src 'self'",
            "frame-ancestors 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("cache-control"), "no-store", "{path}");
        assert_eq!(header("x-frame-options"), "DENY", "{path}");
    }
    let opened = console.stranger().get(
        console
            .one_time_url()
            .split_once(&console.address)
            .unwrap()
            .1,
    );
    let cookie = opened.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
}

/// A form is as long as forms are: no page makes one of 100 MB.
#[test]
fn a_large_form_takes_no_memory() {
    const LARGE: usize = 100 << 20;
    let cluster = cluster();
    let mut console = Console::start(cluster.file(), &[]);
    let mut browser = console.browser();
    let token = browser.token();
    let before = console.memory("VmHWM:");
    for path in ["/keys/create", "/objects/delete", LOGOUT] {
        let request = browser
            .request("POST", path)
            .form(&[("token", &token), ("name", "")]);
        assert_eq!(request.and_more(LARGE).send().status, 413, "{path}");
    }
    let mut stranger = console.stranger();
    let request = stranger.request("POST", "/login").form(&[("key", "")]);
    assert_eq!(request.and_more(LARGE).send().status, 400);
    let text = "a".repeat(LARGE);
    let request = browser.request("POST", UPLOAD);
    let fields = [("token", &*token), ("domain", "default"), ("key", &text)];
    assert_eq!(request.multipart(&fields, ("a", b"")).send().status, 413);
    let grown = console.memory("VmHWM:") - before;
    assert!(grown < 32 << 20, "{grown} bytes");
}

/// Nothing that a session began to receive goes on without it.
#[test]
fn a_session_that_ends_takes_its_live_pages_along() {
    const PLACES: usize = 8;
    let cluster = KeyedCluster::start();
    let console = Console::start(cluster.file(), &[]);
    let mut browser = console.browser_of(&key_in(&cluster.file()));
    let begin = || {
        let stream = browser.clone().request("GET", "/cluster/live").begin();
        let patience = Some(Duration::from_mins(1));
        stream.get_ref().set_read_timeout(patience).unwrap();
        stream
    };
    let mut streams: Vec<_> = (0..PLACES).map(|_| begin()).collect();
    for stream in &mut streams {
        let mut lines = stream.lines().map(Result::unwrap);
        assert!(lines.any(|it| it.starts_with("data:")), "it is live");
    }
    assert_eq!(browser.clone().get("/cluster/live").status, 429);
    assert_eq!(browser.post(LOGOUT, &[]).status, 303);
    for stream in &mut streams {
        stream.read_to_end(&mut Vec::new()).expect("it ends");
    }
}

/// Each key has places of its own.
#[test]
fn a_key_ends_no_session_of_another() {
    const PLACES: usize = 16;
    let cluster = KeyedCluster::start();
    let mut console = Console::start(cluster.file(), &[]);
    let mut own = console.browser();
    let key = key_in(&cluster.key("watcher", &["status"]));
    let mut others: Vec<Browser> = (0..=PLACES).map(|_| console.browser_of(&key)).collect();
    own.page("/cluster");
    let statuses = others.iter_mut().map(|it| it.get("/cluster.json").status);
    let statuses: Vec<u16> = statuses.collect();
    assert_eq!(statuses[0], 401, "it made room");
    assert!(statuses[1..].iter().all(|it| *it == 200), "{statuses:?}");
}
