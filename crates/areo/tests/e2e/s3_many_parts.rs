//! An upload of as many parts as one may have.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::s3::{Served, served};
use crate::s3_client::{Call, Gateway, Response, call};
use areo_client::Client;
use areo_s3::body::checksum::multipart_etag;
use areo_s3::gateway::{self, GatewayOptions, ServeOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Parts of the upload.
const PARTS: u16 = 10_000;
/// Bytes of each part.
const PART_BYTES: usize = 13;
/// Connections that send parts.
const CONNECTIONS: usize = 8;
/// Bytes by which a gateway may grow.
const GROWTH_BYTES: u64 = 64 << 20;

/// A gateway in this process, which takes parts of any length: those that clients count on would be 50 GB.
struct SmallParts {
    gateway: Gateway,
    /// The gateway runs until this is dropped.
    _runtime: Runtime,
}

impl SmallParts {
    fn new(served: &Served) -> SmallParts {
        let runtime = Runtime::new().unwrap();
        let address = runtime.block_on(async {
            let client = Client::connect(served.cluster.options()).await.unwrap();
            let options = GatewayOptions {
                part_bytes: 1,
                ..GatewayOptions::default()
            };
            let served = Arc::new(gateway::Gateway::new(client, options));
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            // Its sender is gone: it is never stopped.
            let (_, stop) = watch::channel(false);
            let limits = ServeOptions::default();
            let serving = gateway::serve(served, listener, limits, gateway::plain(), stop);
            tokio::spawn(serving);
            address
        });
        SmallParts {
            gateway: Gateway::of(&address),
            _runtime: runtime,
        }
    }
}

/// The bytes of a part.
fn content(part: u16) -> String {
    let content = format!("part {part:05}, \n");
    assert_eq!(content.len(), PART_BYTES);
    content
}

struct ManyParts {
    served: Served,
    upload: String,
    /// Memory of the gateway before the parts.
    before: u64,
}

impl ManyParts {
    fn begin() -> ManyParts {
        let served = served(&["--durability", "memory"]);
        served.status("PUT", "/films", 200);
        let begun = call(
            &served.gateway,
            &served.caller,
            "POST",
            "/films/long?uploads",
        )
        .send();
        ManyParts {
            upload: begun.element("UploadId").to_owned(),
            before: served.gateway.memory("VmRSS"),
            served,
        }
    }

    fn call<'a>(&'a self, method: &'a str, target: &'a str) -> Call<'a> {
        call(&self.served.gateway, &self.served.caller, method, target)
    }

    /// Puts all parts, and returns their `ETag`s.
    fn put(&self) -> Vec<String> {
        let next = AtomicU16::new(1);
        let put_some = || {
            let mut etags = Vec::new();
            loop {
                let part = next.fetch_add(1, Ordering::Relaxed);
                if part > PARTS {
                    return etags;
                }
                let upload = &self.upload;
                let target = format!("/films/long?partNumber={part}&uploadId={upload}");
                let body = content(part);
                let put = self.call("PUT", &target).body(body.as_bytes()).send();
                assert_eq!(put.status, 200, "{part}: {put:?}");
                etags.push((part, put.etag()));
            }
        };
        let mut etags: Vec<(u16, String)> = thread::scope(|scope| {
            let putters: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(put_some)).collect();
            let etags = putters.into_iter().flat_map(|it| it.join().unwrap());
            etags.collect()
        });
        etags.sort_unstable();
        etags.into_iter().map(|(_, etag)| etag).collect()
    }

    /// Lists all parts, page by page, and demands that each is there once.
    fn check_list(&self) {
        let (mut marker, mut pages, mut next) = (String::from("0"), 0, 1);
        loop {
            let upload = &self.upload;
            let target = format!("/films/long?part-number-marker={marker}&uploadId={upload}");
            let page = self.call("GET", &target).send();
            assert_eq!(page.status, 200, "{page:?}");
            pages += 1;
            let size = format!("<Size>{PART_BYTES}</Size>");
            for part in page.text().split("<Part>").skip(1) {
                assert!(part.contains(&format!("<PartNumber>{next}</PartNumber>")));
                assert!(part.contains(&size), "{part}");
                next += 1;
            }
            if page.element("IsTruncated") == "false" {
                break;
            }
            page.element("NextPartNumberMarker").clone_into(&mut marker);
        }
        assert_eq!((pages, next - 1), (10, PARTS));
    }

    fn complete(&self, gateway: &Gateway, etags: &[String]) -> Response {
        let part = |(number, etag): (u16, &String)| {
            format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
        };
        let parts: String = (1..).zip(etags).map(part).collect();
        let document = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
        let target = format!("/films/long?uploadId={}", self.upload);
        let post = call(gateway, &self.served.caller, "POST", &target);
        post.body(document.as_bytes()).send()
    }

    #[track_caller]
    fn check_memory(&self, after: &str) {
        let grown = self
            .served
            .gateway
            .memory("VmHWM")
            .saturating_sub(self.before);
        println!("{after}: {} MiB", grown >> 20);
        assert!(grown <= GROWTH_BYTES, "{after}: {grown} bytes");
    }
}

#[test]
fn an_upload_of_ten_thousand_parts_becomes_an_object() {
    let many = ManyParts::begin();
    let etags = many.put();
    many.check_memory("all parts");
    many.check_list();
    many.check_memory("their lists");
    let short = many.complete(&many.served.gateway, &etags);
    assert_eq!(short.element("Code"), "EntityTooSmall", "{short:?}");
    many.check_memory("a completion");
    let small = SmallParts::new(&many.served);
    let done = many.complete(&small.gateway, &etags);
    assert_eq!(done.status, 200, "{done:?}");
    let md5 = |etag: &String| {
        u128::from_str_radix(etag.trim_matches('"'), 16)
            .unwrap()
            .to_be_bytes()
    };
    let md5s: Vec<[u8; 16]> = etags.iter().map(md5).collect();
    let etag = format!("\"{}\"", multipart_etag(&md5s));
    assert!(etag.ends_with("-10000\""), "{etag}");

    let get = many.call("GET", "/films/long").send();
    assert_eq!((get.status, get.etag()), (200, etag));
    let whole: String = (1..=PARTS).map(content).collect();
    assert!(get.text() == whole, "{} bytes", get.body.len());
    let last = whole.len() - 1;
    for (first, end) in [(0, 0), (12, 13), (5_000, 90_000), (last, last)] {
        let range = format!("bytes={first}-{end}");
        let get = many
            .call("GET", "/films/long")
            .header("range", &range)
            .send();
        assert_eq!(get.text(), &whole[first..=end], "{range}");
    }
    many.check_memory("reads");
    let target = format!("/films/long?uploadId={}", many.upload);
    many.served.status("GET", &target, 404);
    let again = many.complete(&many.served.gateway, &etags);
    assert_eq!(again.status, 200, "it is sent again: {again:?}");
    many.served.status("DELETE", "/films/long", 204);
}
