//! A client of S3: one signed request on one connection, as bytes.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, free_ports, wait_until};
use crate::keyed::key_in;
use areo_s3::auth::{Timestamp, derive_signing_key, sign};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

const REGION: &str = "us-east-1";

/// Sets a mark when it is dropped: threads that go on until then end where a comparison fails, too.
pub(crate) struct EndMark<'a>(pub(crate) &'a AtomicBool);

impl Drop for EndMark<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A process of the S3 gateway.
pub(crate) struct Gateway {
    /// `None`: another process ends it.
    child: Option<Child>,
    pub(crate) address: String,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Gateway {
    /// A gateway of the cluster that takes connections.
    pub(crate) fn start(cluster: &Cluster) -> Gateway {
        Gateway::start_with(cluster, &[])
    }

    /// A gateway with more options.
    pub(crate) fn start_with(cluster: &Cluster, options: &[&str]) -> Gateway {
        let address = format!("127.0.0.1:{}", free_ports());
        let child = cluster.spawn(&[&["s3", "--listen", &address], options].concat());
        wait_until(|| TcpStream::connect(&address).is_ok());
        let child = Some(child);
        Gateway { child, address }
    }

    /// The gateway of `areo up` at this address.
    pub(crate) fn of(address: &str) -> Gateway {
        Gateway {
            child: None,
            address: address.to_owned(),
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("a gateway of the test");
        let pid = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// A number of bytes of `/proc/PID/status`, of a gateway of the test.
    pub(crate) fn memory(&self, field: &str) -> u64 {
        let child = self.child.as_ref().expect("a gateway of the test");
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let number = line.and_then(|it| it.split_whitespace().nth(1));
        1024 * number.expect(field).parse::<u64>().unwrap()
    }

    /// The exit code, once it has ended.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let child = self.child.as_mut().expect("a gateway of the test");
        child.wait().unwrap().code()
    }
}

/// The owner of a key.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) id: String,
    pub(crate) secret: String,
}

impl Caller {
    /// The owner of the key in a cluster file.
    pub(crate) fn of(file: &Path) -> Caller {
        let key = key_in(file);
        let mut parts = key.split('.').skip(1).map(str::to_owned);
        Caller {
            id: parts.next().unwrap(),
            secret: parts.next().unwrap(),
        }
    }
}

/// A response of the gateway.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn etag(&self) -> String {
        self.header("etag").expect("an ETag").to_owned()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The text of the first element of this name.
    pub(crate) fn element(&self, name: &str) -> &str {
        let (_, rest) = self.text().split_once(&format!("<{name}>")).expect(name);
        rest.split_once(&format!("</{name}>")).expect(name).0
    }
}

/// A request of a caller; headers and body are set by name.
pub(crate) struct Call<'a> {
    gateway: &'a str,
    caller: Option<&'a Caller>,
    method: &'a str,
    target: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    body: &'a [u8],
    /// Number of copies of the body that are sent, one after another.
    times: usize,
}

/// A request that is signed by this caller.
pub(crate) fn call<'a>(
    gateway: &'a Gateway,
    caller: &'a Caller,
    method: &'a str,
    target: &'a str,
) -> Call<'a> {
    Call {
        gateway: &gateway.address,
        caller: Some(caller),
        method,
        target,
        headers: Vec::new(),
        body: b"",
        times: 1,
    }
}

impl<'a> Call<'a> {
    pub(crate) fn header(mut self, name: &'a str, value: &'a str) -> Call<'a> {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn body(mut self, body: &'a [u8]) -> Call<'a> {
        self.body = body;
        self
    }

    /// Sets a body of `times` copies of this piece, which is not in memory.
    pub(crate) fn repeated(mut self, piece: &'a [u8], times: usize) -> Call<'a> {
        (self.body, self.times) = (piece, times);
        self
    }

    pub(crate) fn unsigned(mut self) -> Call<'a> {
        self.caller = None;
        self
    }

    /// The head as bytes, with this header about the connection.
    fn head(&self, connection: &str) -> Vec<u8> {
        let mut request = http::Request::builder()
            .method(self.method)
            .uri(self.target);
        request = request.header("host", self.gateway);
        if self.method == "PUT" || self.method == "POST" {
            request = request.header("content-length", self.body.len() * self.times);
        }
        for (name, value) in &self.headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        if let Some(caller) = self.caller {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let now = Timestamp::of_unix_seconds(now.as_secs()).unwrap();
            let key = derive_signing_key(&caller.secret, now.day(), REGION, "s3");
            sign(&mut parts, (&caller.id, &key), REGION, now).unwrap();
        }
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        for (name, value) in &parts.headers {
            head.extend(name.as_str().as_bytes());
            head.extend(b": ");
            head.extend(value.as_bytes());
            head.extend(b"\r\n");
        }
        head.extend(format!("connection: {connection}\r\n\r\n").bytes());
        head
    }

    /// Sends the request on a connection that stays.
    pub(crate) fn send_on(&self, stream: &mut TcpStream) {
        stream.write_all(&self.head("keep-alive")).unwrap();
        (0..self.times).for_each(|_| stream.write_all(self.body).unwrap());
    }

    /// A connection on which the request was sent.
    pub(crate) fn begin(&self) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.gateway).unwrap();
        stream.write_all(&self.head("close")).unwrap();
        // A gateway that refuses does not read on.
        let _ = (0..self.times).try_for_each(|_| stream.write_all(self.body));
        BufReader::new(stream)
    }

    /// Sends the call and returns the response.
    pub(crate) fn send(&self) -> Response {
        read(&mut self.begin()).expect("a whole response")
    }
}

/// Reads a response. `None`: the connection ended before it was whole.
pub(crate) fn read(stream: &mut BufReader<TcpStream>) -> Option<Response> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        match line.trim_end() {
            "" if lines.is_empty() => return None,
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let status = lines[0].split(' ').nth(1)?.parse().ok()?;
    let header = |line: &String| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_ascii_lowercase(), value.trim().to_owned())
    };
    let headers: Vec<_> = lines[1..].iter().map(header).collect();
    let mut response = Response {
        status,
        headers,
        body: Vec::new(),
    };
    stream.read_to_end(&mut response.body).ok()?;
    let length = response.header("content-length").map(str::parse::<usize>);
    let is_whole = length.is_none_or(|length| length == Ok(response.body.len()));
    (is_whole || response.body.is_empty()).then_some(response)
}
