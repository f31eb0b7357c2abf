//! The pages *Objects* and *Keys* of the console, as a person uses them.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, wait_until};
use crate::console_client::{Browser, Console};
use crate::keyed::{KeyedCluster, key_in};
use serde_json::Value;

const SCRIPT: &str = "<script>alert(1)</script>";

fn object(browser: &mut Browser, key: &str) -> Value {
    browser.json(&format!("/objects/object.json?domain=default&key={key}"))
}

#[test]
fn objects_are_uploaded_found_downloaded_and_deleted() {
    let cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    let mut console = Console::start(cluster.file(), &[]);
    let mut browser = console.browser();
    assert!(
        browser
            .page("/objects")
            .contains("domain=default&amp;prefix=")
    );
    // The key takes the name of the file, which may be anything.
    let name = format!("{SCRIPT}.html");
    let page = format!("<h1>{SCRIPT}</h1>");
    let fields = [("domain", "default"), ("key", "photos/2026/")];
    let sent = browser.upload("/objects/upload", &fields, (&name, page.as_bytes()));
    assert_eq!(sent.status, 303, "{}", sent.text());
    let shown = browser.page(sent.header("location").unwrap());
    assert!(!shown.contains(SCRIPT), "{shown}");
    assert!(
        shown.contains("&lt;script&gt;alert(1)&lt;/script&gt;.html"),
        "{shown}"
    );
    assert!(shown.contains("text/html"), "{shown}");
    // Blocks: of more than one of them, beside an upload that breaks off.
    let large: Vec<u8> = (0..10 << 20_u32)
        .map(|number| u8::try_from(number % 251).unwrap())
        .collect();
    let fields = [("domain", "default"), ("key", "photos/large")];
    let sent = browser.upload("/objects/upload", &fields, ("x", &large));
    assert_eq!(sent.status, 303, "{}", sent.text());
    assert_eq!(object(&mut browser, "photos/large")["bytes"], 10 << 20);
    let got = cluster.run(&["get", "photos/large"]).done();
    assert!(got.stdout == large, "what was uploaded");
    let downloaded = browser.get("/objects/download?domain=default&key=photos/large");
    assert!(downloaded.body == large, "what was uploaded");
    let listing = browser.json("/objects.json?domain=default");
    assert_eq!(
        listing["rows"],
        serde_json::json!([{ "prefix": "photos/" }])
    );
    let listing = browser.json("/objects.json?domain=default&prefix=photos/");
    assert_eq!(listing["rows"].as_array().unwrap().len(), 2, "{listing}");
    // A page that has an old version deletes nothing.
    let version = object(&mut browser, "photos/large")["version"]
        .as_str()
        .unwrap()
        .to_owned();
    cluster.run_with(&["put", "photos/large"], b"new").done();
    let delete = |version: &str, confirm: &str| {
        let fields = [
            ("domain", "default"),
            ("key", "photos/large"),
            ("version", version),
            ("confirm", confirm),
        ];
        browser.clone().post("/objects/delete", &fields).status
    };
    assert_eq!(delete(&version, "yes"), 409);
    let version = object(&mut browser.clone(), "photos/large")["version"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(delete(&version, ""), 400);
    assert_eq!(delete(&version, "yes"), 303);
    cluster
        .run(&["stat", "photos/large"])
        .refused(3, &["photos/large"]);
}

/// An object is of a stranger: a browser stores it, and never shows it as a page of the console.
#[test]
fn a_download_is_no_page() {
    let cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    let page = format!("<h1>{SCRIPT}</h1>");
    cluster
        .run_with(
            &["put", "a/page.html", "--content-type", "text/html"],
            page.as_bytes(),
        )
        .done();
    let mut console = Console::start(cluster.file(), &[]);
    let download = console
        .browser()
        .get("/objects/download?domain=default&key=a/page.html");
    assert_eq!(download.text(), page);
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        (
            "content-disposition",
            "attachment; filename=\"page.html\"; filename*=UTF-8''page%2Ehtml",
        ),
        ("content-security-policy", "sandbox; default-src 'none'"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(download.header(name), Some(value), "{name}");
    }
    let path = "/objects/download?domain=default&key=a/page.html";
    assert_eq!(console.stranger().get(path).status, 303);
}

/// Blocks that were sent are removed when a browser goes away in the middle.
#[test]
fn an_upload_that_breaks_off_leaves_nothing() {
    let cluster = Cluster::start(&["--servers", "3", "--dap", "abd"]);
    let mut console = Console::start(cluster.file(), &[]);
    let mut browser = console.browser();
    let token = browser.token();
    let before = cluster.number("s1", "element_bytes").unwrap();
    // Blocks that are alike are kept once.
    let part: Vec<u8> = (0..8_u32 << 20)
        .flat_map(|it| it.wrapping_mul(0x9E37_79B1).to_le_bytes())
        .collect();
    let fields = [("token", &*token), ("domain", "default"), ("key", "broken")];
    let request = browser
        .request("POST", "/objects/upload")
        .multipart(&fields, ("x", &part));
    let connection = request.cut_off(8 << 20).begin().into_inner();
    wait_until(|| cluster.number("s1", "element_bytes").unwrap() > before + (8 << 20));
    drop(connection);
    wait_until(|| cluster.number("s1", "element_bytes").unwrap() < before + (1 << 20));
    cluster.run(&["stat", "broken"]).refused(3, &["broken"]);
    browser.page("/objects");
}

/// Opens a key's page, and finds its id.
fn id_of(browser: &mut Browser, name: &str) -> String {
    let keys = browser.json("/keys.json");
    let key = keys["keys"]
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["name"] == name);
    key.unwrap()["id"].as_str().unwrap().to_owned()
}

/// The text of the first key on a page.
fn key_on(page: &str) -> String {
    let (_, rest) = page.split_once("<code>areokey1.").expect("a key");
    format!("areokey1.{}", rest.split_once('<').unwrap().0)
}

#[test]
fn keys_are_made_rotated_changed_and_revoked() {
    let cluster = KeyedCluster::start();
    let mut console = Console::start(cluster.file(), &[]);
    let mut browser = console.browser();
    let wrong = browser.post("/keys/create", &[("name", "a"), ("grants", "fly")]);
    assert_eq!(wrong.status, 400);
    assert!(
        wrong.text().contains("is no verb of a grant"),
        "{}",
        wrong.text()
    );
    let made = [("name", SCRIPT), ("grants", "status\r\nread:*")];
    let made = browser.submit("/keys/create", &made);
    let first = key_on(&made);
    let shown = browser.page("/keys");
    assert!(
        !shown.contains(SCRIPT) && !shown.contains("areokey1."),
        "{shown}"
    );
    assert!(
        shown.contains("&lt;script&gt;alert(1)&lt;/script&gt;"),
        "{shown}"
    );
    assert!(shown.contains("key-created"), "{shown}");
    console.browser_of(&first).page("/cluster");
    let id = id_of(&mut browser, SCRIPT);
    let second = key_on(&browser.submit("/keys/rotate", &[("id", &id)]));
    assert_ne!(first, second);
    for key in [&first, &second] {
        console.browser_of(key).page("/cluster");
    }
    let retired = [("id", &*id), ("confirm", "yes")];
    assert!(browser.submit("/keys/retire", &retired).contains("good"));
    let sign_in = || {
        let mut stranger = console.stranger();
        let request = stranger.request("POST", "/login");
        request.form(&[("key", &first)]).send().status
    };
    wait_until(|| sign_in() == 403);
    let changed = [("id", &*id), ("grants", "list:default")];
    assert!(
        browser
            .submit("/keys/grants", &changed)
            .contains("list:default")
    );
    assert_eq!(browser.post("/keys/revoke", &[("id", &id)]).status, 400);
    let revoked = browser.submit("/keys/revoke", &[("id", &id), ("confirm", "yes")]);
    assert!(revoked.contains("revoked"), "{revoked}");
    let key = browser.json(&format!("/keys/key.json?id={id}"));
    assert_eq!(
        (key["state"].as_str(), &key["grants"][0]),
        (Some("revoked"), &"list:default".into())
    );
    // A session of a key that is revoked meanwhile ends with it.
    let file = cluster.key("short", &["status,keys"]);
    let mut short = console.browser_of(&key_in(&file));
    short.page("/keys");
    let id = id_of(&mut browser, "short");
    browser.submit("/keys/revoke", &[("id", &id), ("confirm", "yes")]);
    wait_until(|| short.get("/keys").status == 403);
}
