//! Lifecycle rules: gateways remove what has expired, and nothing that was written since.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::wait_until;
use crate::s3::{Served, served};
use crate::s3_client::{Caller, Gateway, Response, call};
use areo_client::blocking::wait;
use areo_client::{Client, Domain, PutOptions};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const EVERY: &[&str] = &["--lifecycle-every", "50ms"];
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A cluster with a bucket, and a gateway that carries rules out all the time.
struct Logs {
    served: Served,
    worker: Gateway,
    domain: Domain,
}

fn rule(filter: &str, action: &str) -> String {
    format!("<Rule><Filter>{filter}</Filter><Status>Enabled</Status>{action}</Rule>")
}

fn days(prefix: &str, days: u32) -> String {
    let action = format!("<Expiration><Days>{days}</Days></Expiration>");
    rule(&format!("<Prefix>{prefix}</Prefix>"), &action)
}

/// Options of a write that happened this many days ago.
fn written(days: u64) -> PutOptions {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now_ms = u64::try_from(now.as_millis()).unwrap();
    PutOptions {
        written_at_ms: Some(now_ms - days * DAY_MS),
        ..PutOptions::default()
    }
}

impl Logs {
    fn new() -> Logs {
        let served = served(&["--durability", "memory"]);
        let worker = Gateway::start_with(&served.cluster, EVERY);
        served.status("PUT", "/logs", 200);
        let client = wait(Client::connect(served.cluster.options())).unwrap();
        let domain = wait(client.domain("logs")).unwrap();
        Logs {
            served,
            worker,
            domain,
        }
    }

    fn put(&self, key: &str, age_days: u64) {
        wait(self.domain.put_with(key, key.to_owned(), written(age_days))).unwrap();
    }

    fn has(&self, key: &str) -> bool {
        wait(self.domain.stat(key)).is_ok()
    }

    fn put_rules(&self, caller: &Caller, bucket: &str, rules: &str) -> Response {
        let body = format!("<LifecycleConfiguration>{rules}</LifecycleConfiguration>");
        let target = format!("/{bucket}?lifecycle");
        let put = call(&self.served.gateway, caller, "PUT", &target);
        put.body(body.as_bytes()).send()
    }

    fn rules(&self, rules: &str) {
        let put = self.put_rules(&self.served.caller, "logs", rules);
        assert_eq!(put.status, 200, "{put:?}");
    }

    /// Waits until two more passes have begun: each removes this object, which has expired under `canary/`.
    fn wait_for_passes(&self) {
        for _ in 0..2 {
            self.put("canary/a", 9);
            wait_until(|| !self.has("canary/a"));
        }
    }
}

#[test]
fn objects_that_have_expired_are_removed_and_others_stay() {
    let logs = Logs::new();
    let none = call(&logs.worker, &logs.served.caller, "GET", "/logs?lifecycle").send();
    assert_eq!(
        (none.status, none.element("Code")),
        (404, "NoSuchLifecycleConfiguration")
    );
    for key in [
        "a/old",
        "b/old",
        "size/small",
        "size/of-many-bytes",
        "tag/a",
        "tag/b",
        "off/old",
    ] {
        logs.put(key, 9);
    }
    logs.put("a/new", 0);
    logs.put("a/third-day", 2);
    let tag = "<Tagging><TagSet><Tag><Key>temp</Key><Value>yes</Value></Tag></TagSet></Tagging>";
    let put = call(
        &logs.worker,
        &logs.served.caller,
        "PUT",
        "/logs/tag/a?tagging",
    );
    assert_eq!(put.body(tag.as_bytes()).send().status, 200);
    let day = "<Expiration><Days>3</Days></Expiration>";
    let date = "<Expiration><Date>2020-01-01T00:00:00Z</Date></Expiration>";
    let tagged = "<And><Prefix>tag/</Prefix><Tag><Key>temp</Key><Value>yes</Value></Tag></And>";
    let large =
        "<And><Prefix>size/</Prefix><ObjectSizeGreaterThan>12</ObjectSizeGreaterThan></And>";
    let rules = [
        days("canary/", 1),
        days("a/", 3),
        rule(tagged, day),
        rule(large, date),
        days("off/", 1).replace("Enabled", "Disabled"),
    ];
    logs.rules(&rules.concat());
    let gone = ["a/old", "tag/a", "size/of-many-bytes"];
    wait_until(|| gone.iter().all(|key| !logs.has(key)));
    logs.wait_for_passes();
    for key in [
        "a/new",
        "a/third-day",
        "b/old",
        "size/small",
        "tag/b",
        "off/old",
    ] {
        assert!(logs.has(key), "{key}");
    }
    let get = call(&logs.worker, &logs.served.caller, "GET", "/logs?lifecycle").send();
    assert_eq!(get.text().matches("<Rule>").count(), 5, "{}", get.text());

    let head = || {
        let head = call(&logs.worker, &logs.served.caller, "HEAD", "/logs/a/new").send();
        head.header("x-amz-expiration").map(str::to_owned)
    };
    wait_until(|| head().is_some());
    let shown = head().unwrap();
    assert!(
        shown.starts_with("expiry-date=\"") && shown.contains(" 00:00:00 GMT"),
        "{shown}"
    );

    logs.served.status("DELETE", "/logs?lifecycle", 204);
    logs.served.status("GET", "/logs?lifecycle", 404);
    logs.put("a/later", 9);
    thread::sleep(Duration::from_millis(500));
    assert!(logs.has("a/later"), "there are no rules");
}

/// Objects expire and are written again at the same time: what was written last is never removed.
#[test]
fn an_object_that_is_written_in_between_stays() {
    let logs = Logs::new();
    logs.rules(&days("", 1));
    let keys: Vec<String> = (0..40).map(|number| format!("{number:02}")).collect();
    for round in 0..25 {
        for key in &keys {
            logs.put(key, 9);
        }
        for key in &keys {
            logs.put(key, 0);
        }
        logs.wait_for_passes();
        for key in &keys {
            assert!(logs.has(key), "{key} of round {round}");
        }
    }
}

#[test]
fn uploads_that_were_given_up_are_aborted() {
    let logs = Logs::new();
    let begin = |key: &str, age: u64| {
        let upload = wait(logs.domain.begin_parts()).unwrap().to_string();
        wait(logs.domain.put_record(key, &upload, "", written(age))).unwrap();
        let target = format!("/logs/{key}?partNumber=1&uploadId={upload}");
        let put = call(&logs.worker, &logs.served.caller, "PUT", &target);
        assert_eq!(put.body(b"part").send().status, 200);
        upload
    };
    let (old, new, other) = (begin("a/b", 9), begin("a/b", 2), begin("c", 9));
    let abort = |days: u32| {
        format!(
            "<AbortIncompleteMultipartUpload><DaysAfterInitiation>{days}</DaysAfterInitiation></AbortIncompleteMultipartUpload>"
        )
    };
    let put = rule("<Prefix>a/</Prefix>", &abort(3));
    logs.rules(&(days("canary/", 1) + &put));
    let parts = |key: &str, upload: &str| {
        let target = format!("/logs/{key}?uploadId={upload}");
        call(&logs.worker, &logs.served.caller, "GET", &target)
            .send()
            .status
    };
    wait_until(|| parts("a/b", &old) == 404);
    logs.wait_for_passes();
    assert_eq!((parts("a/b", &new), parts("c", &other)), (200, 200));
    let records =
        wait(
            logs.domain
                .list_records_of("a/b", &old, areo_client::RecordsAfter::Nothing, 10),
        );
    assert_eq!(records.unwrap().entries, []);
}

#[test]
fn rules_have_the_grants_of_the_key_that_put_them() {
    let logs = Logs::new();
    let key = |name: &str, grant: &str| {
        let file = logs.served.cluster.folder().join(format!("{name}.toml"));
        let create = ["key", "create", name, "--grant", grant, "--file"];
        let create = [&create[..], &[file.to_str().unwrap()]].concat();
        logs.served.cluster.run(&create).done();
        Caller::of(&file)
    };
    let writer = key("writer", "read,write,list,delete:logs");
    let refused = logs.put_rules(&writer, "logs", &days("", 1));
    assert_eq!(
        (refused.status, refused.element("Code")),
        (403, "AccessDenied")
    );
    // It may change the bucket, and delete nothing.
    let manager = key("manager", "read,list,admin:logs");
    logs.put("a", 9);
    assert_eq!(logs.put_rules(&manager, "logs", &days("", 1)).status, 200);
    thread::sleep(Duration::from_millis(700));
    assert!(logs.has("a"), "the key may not delete");
    let owner = key("owner", "list,delete,admin:logs");
    logs.served
        .cluster
        .run(&["key", "revoke", "manager"])
        .done();
    assert_eq!(logs.put_rules(&owner, "logs", &days("", 1)).status, 200);
    wait_until(|| !logs.has("a"));
    logs.served.cluster.run(&["key", "revoke", "owner"]).done();
    // Servers know it within seconds.
    let is_kept = || {
        logs.put("a", 9);
        thread::sleep(Duration::from_millis(300));
        logs.has("a")
    };
    wait_until(is_kept);

    let caller = &logs.served.caller;
    let weak = call(&logs.worker, caller, "PUT", "/weak").header("x-areo-kind", "abd");
    assert_eq!(weak.send().status, 200);
    let refused = logs.put_rules(caller, "weak", &days("", 1));
    assert_eq!(
        (refused.status, refused.element("Code")),
        (501, "NotImplemented")
    );
    let abort = "<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>";
    assert_eq!(logs.put_rules(caller, "weak", &rule("", abort)).status, 200);
    let transition = "<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition>";
    let refused = logs.put_rules(caller, "logs", &rule("", transition));
    assert_eq!(
        (refused.status, refused.element("Code")),
        (501, "NotImplemented")
    );
}
