//! CORS: rules of a bucket that all gateways go by, and that open nothing.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::wait_until;
use crate::s3::{Served, served};
use crate::s3_client::{Caller, Gateway, Response, call};
use areo_client::blocking::wait;
use areo_client::{Client, ConnectOptions, Domain, Error, PutOptions};

const RULES: &str = "<CORSConfiguration><CORSRule><ID>pages</ID><AllowedOrigin>https://*.example</AllowedOrigin><AllowedMethod>GET</AllowedMethod><AllowedMethod>PUT</AllowedMethod><AllowedHeader>x-amz-*</AllowedHeader><AllowedHeader>authorization</AllowedHeader><ExposeHeader>ETag</ExposeHeader><MaxAgeSeconds>600</MaxAgeSeconds></CORSRule><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>HEAD</AllowedMethod></CORSRule></CORSConfiguration>";

const ORIGIN: &str = "access-control-allow-origin";

impl Served {
    fn put_cors(&self, caller: &Caller, body: &[u8]) -> Response {
        let put = call(&self.gateway, caller, "PUT", "/pages?cors");
        put.body(body).send()
    }

    /// The answer of a gateway to a browser.
    fn preflight(&self, gateway: &Gateway, target: &str, origin: &str, method: &str) -> Response {
        let asked = call(gateway, &self.caller, "OPTIONS", target).unsigned();
        asked
            .header("origin", origin)
            .header("access-control-request-method", method)
            .header(
                "access-control-request-headers",
                "X-Amz-Date, authorization",
            )
            .send()
    }

    /// A key with these grants.
    fn key(&self, name: &str, grant: &str) -> Caller {
        Caller::of(&self.key_file(name, grant))
    }

    fn key_file(&self, name: &str, grant: &str) -> std::path::PathBuf {
        let file = self.cluster.folder().join(format!("{name}.toml"));
        let create = ["key", "create", name, "--grant", grant, "--file"];
        let create = [&create[..], &[file.to_str().unwrap()]].concat();
        self.cluster.run(&create).done();
        file
    }

    /// The bucket, with a key of these grants, by the library.
    fn domain_as(&self, name: &str, grant: &str) -> Domain {
        let file = self.key_file(name, grant);
        let options = ConnectOptions::of(file.to_str().unwrap()).unwrap();
        let client = wait(Client::connect(options)).unwrap();
        wait(client.domain("pages")).unwrap()
    }
}

/// Compares the answers to a browser with the rules.
fn is_open(served: &Served, page: &str) {
    let open = served.preflight(&served.gateway, "/pages/a", page, "PUT");
    for (name, value) in [
        (ORIGIN, page),
        ("access-control-allow-methods", "GET, PUT"),
        ("access-control-allow-headers", "x-amz-date, authorization"),
        ("access-control-allow-credentials", "true"),
        ("access-control-expose-headers", "ETag"),
        ("access-control-max-age", "600"),
        (
            "vary",
            "Origin, Access-Control-Request-Headers, Access-Control-Request-Method",
        ),
    ] {
        assert_eq!(open.header(name), Some(value), "{name}");
    }
    for (target, origin, method) in [
        ("/pages/a", "https://a.example.org", "PUT"),
        ("/pages/a", page, "DELETE"),
        ("/none/a", page, "PUT"),
        ("/", page, "GET"),
        // Its rule allows no headers.
        ("/pages/a", "https://b", "HEAD"),
    ] {
        let closed = served.preflight(&served.gateway, target, origin, method);
        assert_eq!(closed.status, 403, "{target} {origin} {method}");
        assert_eq!(closed.header(ORIGIN), None);
    }
}

#[test]
fn rules_of_a_bucket_count_at_all_gateways() {
    let served = served(&["--durability", "memory"]);
    let second = Gateway::start(&served.cluster);
    let (gateway, caller) = (&served.gateway, &served.caller);
    let page = "https://a.example";
    served.status("PUT", "/pages", 200);
    let put = call(gateway, caller, "PUT", "/pages/a").body(b"content");
    assert_eq!(put.send().status, 200);
    let none = call(gateway, caller, "GET", "/pages?cors").send();
    assert_eq!(
        (none.status, none.element("Code")),
        (404, "NoSuchCORSConfiguration")
    );
    let closed = served.preflight(&second, "/pages/a", page, "PUT");
    assert_eq!(
        (closed.status, closed.element("Code")),
        (403, "AccessForbidden")
    );

    let put = served.put_cors(caller, RULES.as_bytes());
    assert_eq!(put.status, 200, "{put:?}");
    let get = call(&second, caller, "GET", "/pages?cors").send();
    assert_eq!(get.status, 200);
    assert!(get.text().contains("<ID>pages</ID>"), "{}", get.text());
    wait_until(|| served.preflight(&second, "/pages/a", page, "PUT").status == 200);
    is_open(&served, page);

    let from = |method, origin| call(gateway, caller, method, "/pages/a").header("origin", origin);
    let get = from("GET", page).send();
    assert_eq!((get.status, get.text()), (200, "content"));
    assert_eq!(
        (get.header(ORIGIN), get.header("vary")),
        (Some(page), Some("Origin"))
    );
    let head = from("HEAD", "https://b").send();
    assert_eq!(head.header(ORIGIN), Some("*"));
    assert_eq!(head.header("access-control-allow-credentials"), None);
    let other = from("GET", "https://b").send();
    assert_eq!((other.status, other.header(ORIGIN)), (200, None));
    // The rules open nothing: the page sees a refusal, and no object.
    let refused = from("GET", page).unsigned().send();
    assert_eq!(
        (refused.status, refused.element("Code")),
        (403, "AccessDenied")
    );
    assert_eq!(refused.header(ORIGIN), Some(page));

    let list = call(gateway, caller, "GET", "/pages?list-type=2").send();
    assert_eq!(list.element("KeyCount"), "1", "{}", list.text());
    let uploads = call(gateway, caller, "GET", "/pages?uploads").send();
    assert!(!uploads.text().contains("<Upload>"), "{}", uploads.text());

    // They move with the bucket.
    let change = ["reconfig", "start", "pages", "--k", "3"];
    served.cluster.run(&change).done();
    let get = call(&second, caller, "GET", "/pages?cors").send();
    assert_eq!(get.status, 200);
    served.status("DELETE", "/pages?cors", 204);
    served.status("DELETE", "/pages?cors", 204);
    served.status("GET", "/pages?cors", 404);
    wait_until(|| served.preflight(&second, "/pages/a", page, "PUT").status == 403);
}

#[test]
fn rules_that_cannot_be_kept_are_refused() {
    let served = served(&["--durability", "memory"]);
    served.status("PUT", "/pages", 200);
    let rule =
        "<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>";
    let of = |rules: &str| format!("<CORSConfiguration>{rules}</CORSConfiguration>");
    let header = format!(
        "<AllowedHeader>{}</AllowedHeader></CORSRule>",
        "h".repeat(700)
    );
    let long = rule.replace("</CORSRule>", &header).repeat(100);
    for (body, code) in [
        (of(""), "MalformedXML"),
        (of(&rule.repeat(101)), "MalformedXML"),
        (of(&rule.replace("GET", "TRACE")), "InvalidRequest"),
        (of(&long), "InvalidRequest"),
        (
            of(&format!("<!--{}-->{rule}", " ".repeat(64 << 10))),
            "InvalidRequest",
        ),
    ] {
        let answer = served.put_cors(&served.caller, body.as_bytes());
        assert_eq!(
            (answer.status, answer.element("Code")),
            (400, code),
            "{answer:?}"
        );
    }
    served.status("GET", "/pages?cors", 404);
    assert_eq!(
        served
            .put_cors(&served.caller, of(&rule.repeat(100)).as_bytes())
            .status,
        200
    );
}

/// Documents of a domain are changed by keys with `admin`, whichever way they come.
#[test]
fn rules_are_changed_by_keys_with_admin_alone() {
    let served = served(&["--durability", "memory"]);
    served.status("PUT", "/pages", 200);
    assert_eq!(
        served.put_cors(&served.caller, RULES.as_bytes()).status,
        200
    );
    let writer = served.key("writer", "read,write,list,delete:pages");
    let put = served.put_cors(&writer, RULES.as_bytes());
    assert_eq!((put.status, put.element("Code")), (403, "AccessDenied"));
    let delete = call(&served.gateway, &writer, "DELETE", "/pages?cors").send();
    assert_eq!(delete.status, 403);
    let get = call(&served.gateway, &writer, "GET", "/pages?cors").send();
    assert_eq!(get.status, 200, "any key reads them");
    // By the library, and as a record of that name.
    let domain = served.domain_as("native", "read,write,list,delete:pages");
    let options = PutOptions::default;
    let put = wait(domain.put_document("cors", "", options()));
    let is_refused = |error: Option<Error>| matches!(error, Some(Error::Unauthorised { .. }));
    assert!(is_refused(put.err()));
    let put = wait(domain.put_record("domain", "document/cors", "", options()));
    assert!(is_refused(put.err()));
    assert!(is_refused(wait(domain.delete_document("cors")).err()));
    let found = wait(domain.get_document("cors")).unwrap();
    assert!(found.into_bytes().starts_with(b"<?xml"));
    let admin = served.domain_as("manager", "admin:pages");
    wait(admin.delete_document("cors")).unwrap();
    wait(admin.put_document("cors", RULES, options())).unwrap();
    let get = call(&served.gateway, &served.caller, "GET", "/pages?cors").send();
    assert_eq!(get.text(), RULES);
}
