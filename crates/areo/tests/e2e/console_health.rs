//! The pages *Traces* and *Health* of the console: where the time of an operation went, and what the autopilot may do.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::autopilot::{assert_replaced, end, replacement, state, watched};
use crate::cluster::{Cluster, wait_until};
use crate::console_client::{Browser, Console};
use crate::keyed::{KeyedCluster, key_in};

/// The page Health as JSON, once an instance of the autopilot has begun.
fn wait_for_autopilot(browser: &mut Browser) {
    wait_until(|| !browser.json("/health.json")["autopilot"]["instance"].is_null());
}

/// A write of which each part is remembered, from the client to a disk: the id of its trace.
fn whole_write(browser: &mut Browser) -> Option<String> {
    let listed = browser.json("/traces.json?operation=areo.write");
    let traces = listed["traces"].as_array().unwrap().iter();
    let mut ids = traces.map(|it| it["trace"].as_str().unwrap().to_owned());
    ids.find(|id| {
        let one = browser.json(&format!("/traces.json?id={id}"));
        let records = one["shown"]["records"].as_array().unwrap();
        let parts = ["areo.write", "net.quorum", "server.access", "store.sync"];
        let is_there = |name: &&str| records.iter().any(|it| it["name"] == *name);
        parts.iter().all(is_there)
    })
}

#[test]
fn a_write_of_the_console_is_found_drawn_and_explained() {
    let (cluster, autopilot) = watched("advise");
    let mut console = Console::start(cluster.file(), &[]);
    let mut browser = console.browser();
    wait_for_autopilot(&mut browser);
    // A write by the client of the console.
    let page = browser.submit("/health/pause", &[("pause", "on")]);
    assert!(page.contains("It is paused"), "{page}");
    let status = cluster.run(&["autopilot", "status", "--json"]).done();
    assert_eq!(status.objects()[0]["paused"], true);
    let page = browser.submit("/health/pause", &[("pause", "off")]);
    assert!(page.contains("Pause the autopilot"), "{page}");
    end(autopilot);

    // A server may end its part after the client has its answer.
    wait_until(|| whole_write(&mut browser).is_some());
    let id = whole_write(&mut browser).unwrap();
    let page = browser.page(&format!("/traces?operation=areo.write&id={id}"));
    for part in [
        "<svg role=\"img\"",
        "bar-disk",
        "areo.write took ",
        "The longest step is ",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.contains(&format!("areo trace {id}")), "{page}");
    let unknown = "0".repeat(31) + "1";
    assert_eq!(browser.get(&format!("/traces?id={unknown}")).status, 404);
    assert_eq!(browser.get("/traces?id=x").status, 400);
    assert_eq!(browser.get("/traces?which=slow").status, 200);
}

#[test]
fn an_intent_is_approved_on_the_page_and_carried_out() {
    let (mut cluster, autopilot) = watched("advise");
    let mut console = Console::start(cluster.file(), &[]);
    let mut browser = console.browser();
    wait_for_autopilot(&mut browser);
    cluster.kill("s2");
    let waits = |cluster: &Cluster, text: &str| {
        let intent = replacement(cluster);
        intent.is_some_and(|it| it["waits_for"].to_string().contains(text))
    };
    wait_until(|| waits(&cluster, "approval") && !waits(&cluster, "evaluations"));
    let page = browser.page("/health");
    for part in [
        "replace s2 by s4",
        "other servers have not reached s2 for 2 s (rule dead)",
        "waits for: approval",
        "tolerates no further crash",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let number = replacement(&cluster).unwrap()["number"].to_string();
    assert_eq!(
        browser.post("/health/approve", &[("number", "77")]).status,
        404
    );
    assert_eq!(
        browser.post("/health/retry", &[("number", &number)]).status,
        409
    );
    browser.submit("/health/approve", &[("number", &number)]);
    wait_until(|| state(&cluster) == "done");
    assert_replaced(&cluster);
    let page = browser.page("/health");
    assert!(page.contains("has all objects of"), "{page}");
    assert_eq!(
        browser
            .post("/health/approve", &[("number", &number)])
            .status,
        409
    );
    end(autopilot);
}

#[test]
fn a_repair_is_a_job_that_says_what_was_missing() {
    let mut cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    let mut console = Console::start(cluster.file(), &[]);
    let mut browser = console.browser();
    cluster.kill("s3");
    cluster.run_with(&["put", "<b>lacking"], b"value").done();
    let domain = [("domain", "default")];
    browser.submit("/health/look", &domain);
    let ended = |browser: &mut Browser| {
        wait_until(|| browser.json("/health.json")["jobs"][0]["state"] != "running");
        browser.json("/health.json")["jobs"][0].clone()
    };
    let looked = ended(&mut browser);
    assert_eq!(looked["state"], "done", "{looked}");
    let found = looked["found"].to_string();
    assert!(found.contains("'<b>lacking': waiting"), "{looked}");
    assert!(found.contains("s3"), "{looked}");
    let page = browser.page("/health");
    assert!(
        !page.contains("<b>lacking") && page.contains("&lt;b&gt;lacking"),
        "{page}"
    );
    cluster.restart("s3");
    wait_until(|| {
        browser.submit("/health/repair", &domain);
        ended(&mut browser)["state"] == "done"
    });
    cluster
        .run(&["repair", "status", "--domain", "default"])
        .done();
    assert_eq!(
        browser.post("/health/look", &[("domain", "none")]).status,
        404
    );
}

/// The console is a process of the user of the servers, to whom admin ports show traces: a session with a key is judged by the key all the same.
#[test]
fn a_key_without_the_grant_sees_no_traces_and_changes_nothing() {
    let cluster = KeyedCluster::start();
    let console = Console::start(cluster.file(), &[]);
    let weak = cluster.key("weak", &["status", "read:*"]);
    let mut browser = console.browser_of(&key_in(&weak));
    let refused = browser.get("/traces.json");
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(refused.text().contains("'trace'"), "{}", refused.text());
    browser.page("/health");
    // The state of servers is shown for the grant `status` alone.
    let blind = cluster.key("blind", &["read,list:*"]);
    let refused = console.browser_of(&key_in(&blind)).get("/health.json");
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(refused.text().contains("'status'"), "{}", refused.text());
    let refused = browser.post("/health/pause", &[("pause", "on")]);
    assert!([403, 404].contains(&refused.status), "{}", refused.text());
    let watcher = cluster.key("watcher", &["status", "trace"]);
    console.browser_of(&key_in(&watcher)).page("/traces");
}

/// A cluster that does not answer is not one without domains.
#[test]
fn an_outage_is_said_on_every_page_with_domains() {
    let mut cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    let mut console = Console::start(cluster.file(), &["--timeout", "2s"]);
    let mut browser = console.browser();
    assert!(browser.page("/placement").contains("value=\"default\""));
    for server in ["s1", "s2", "s3"] {
        cluster.kill(server);
    }
    for path in ["/placement", "/objects", "/placement.json"] {
        let answer = browser.get(path);
        assert_eq!(answer.status, 503, "{path}: {}", answer.text());
    }
    let page = browser.page("/health");
    assert!(page.contains("operations fail"), "{page}");
}
