use super::*;
use crate::target::tests::local;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::spawn_local;

fn signer(secret: &'static str) -> Signer {
    let signer = Signer::from_variables(|name| match name {
        "AWS_ACCESS_KEY_ID" => Some("somebody".into()),
        "AWS_SECRET_ACCESS_KEY" => Some(secret.into()),
        "AWS_SESSION_TOKEN" => Some("for today".into()),
        "AWS_REGION" => Some("here".into()),
        _ => None,
    });
    signer.unwrap()
}

/// What a bucket has, and how many connections were made to it.
#[derive(Clone, Default)]
struct Bucket {
    objects: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
    connections: Rc<Cell<usize>>,
}

impl Bucket {
    /// Listens; where.
    async fn serve(&self) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let bucket = self.clone();
        spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                bucket.connections.set(bucket.connections.get() + 1);
                let bucket = bucket.clone();
                spawn_local(async move { bucket.talk(stream).await });
            }
        });
        Endpoint::parse(&format!("http://{host}/a-bucket")).unwrap()
    }

    async fn talk(&self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        loop {
            let end = loop {
                if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                    break end;
                }
                if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                    return;
                }
            };
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            bytes.drain(..end + 4);
            let length = header(&head, "content-length").map_or(0, |text| text.parse().unwrap());
            while bytes.len() < length {
                assert!(stream.read_buf(&mut bytes).await.unwrap() > 0);
            }
            let content = bytes.drain(..length).collect();
            let (status, body) = self.answer(&head, content);
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n");
            let answer = [head.as_bytes(), &body].concat();
            stream.write_all(&answer).await.unwrap();
        }
    }

    fn answer(&self, head: &str, content: Vec<u8>) -> (&'static str, Vec<u8>) {
        let mut words = head.split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let signed = [
            "host",
            "x-amz-content-sha256",
            "x-amz-date",
            "x-amz-security-token",
        ];
        let signed = signed.map(|name| (name, header(head, name).unwrap()));
        let right = signer("right").authorization(method, path, &signed, UNSIGNED);
        if header(head, "authorization") != Some(&right) {
            return ("403 Forbidden", b"SignatureDoesNotMatch".to_vec());
        }
        let Some(key) = path.strip_prefix("/a-bucket/") else {
            return ("404 Not Found", b"<Code>NoSuchBucket</Code>".to_vec());
        };
        let mut objects = self.objects.borrow_mut();
        match (method, objects.get(key)) {
            ("PUT", _) => {
                objects.insert(key.to_owned(), content);
                ("200 OK", Vec::new())
            }
            (_, Some(content)) => ("200 OK", content.clone()),
            (_, None) => ("404 Not Found", b"<Code>NoSuchKey</Code>".to_vec()),
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find_map(|(found, value)| found.eq_ignore_ascii_case(name).then_some(value))
}

const LIMIT: Duration = Duration::from_mins(1);

#[test]
fn what_is_put_into_a_bucket_is_got_from_it() {
    local(async {
        let bucket = Bucket::default();
        let endpoint = bucket.serve().await;
        let s3 = S3::open(endpoint, signer("right"), LIMIT).await.unwrap();
        let mut caller = s3.caller().await.unwrap();
        for length in [0, 16, 300_000] {
            let value = Bytes::from(vec![7; length]);
            caller.put("an-object", value.clone()).await.unwrap();
            let (found, _) = caller.get("an-object").await.unwrap();
            assert_eq!(found, Some(value));
        }
        let (missing, _) = caller.get("another").await.unwrap();
        assert_eq!(missing, None);
        assert_eq!(bucket.objects.borrow().len(), 1);
        // One to see whether it answers, and one of the caller.
        assert_eq!(bucket.connections.get(), 2);
        assert!(s3.processes().is_empty());
    });
}

#[test]
fn an_endpoint_that_cannot_be_used_is_told_at_once() {
    local(async {
        let bucket = Bucket::default();
        let endpoint = bucket.serve().await;
        let failed = |endpoint, secret| async move {
            let opened = S3::open(endpoint, signer(secret), LIMIT).await;
            opened.map(drop).unwrap_err().to_string()
        };
        let refused = failed(endpoint.clone(), "wrong").await;
        assert!(
            refused.contains("403 Forbidden: SignatureDoesNotMatch"),
            "{refused}"
        );
        let other = Endpoint {
            bucket: "another".into(),
            ..endpoint
        };
        let missing = failed(other, "right").await;
        assert!(missing.contains("NoSuchBucket"), "{missing}");
        let nobody = Endpoint::parse("http://127.0.0.1:1/b").unwrap();
        let nobody = failed(nobody, "right").await;
        assert!(
            nobody.starts_with("cannot start s3: cannot connect to 127.0.0.1:1"),
            "{nobody}"
        );
    });
}

#[test]
fn addresses_of_buckets_are_read() {
    let read = Endpoint::parse("http://localhost:9000/bucket/").unwrap();
    assert_eq!((&*read.host, &*read.bucket), ("localhost:9000", "bucket"));
    assert_eq!(read.address(), "localhost:9000");
    assert_eq!(Endpoint::parse("http://s3/b").unwrap().address(), "s3:80");
    for wrong in [
        "",
        "https://h/b",
        "http://h",
        "http:///b",
        "http://h/b/c",
        "http://h/b c",
    ] {
        let error = Endpoint::parse(wrong).unwrap_err();
        assert!(error.contains("http://HOST:PORT/BUCKET"), "{wrong}");
    }
}
