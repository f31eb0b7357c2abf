//! The memory of a gateway: bounded by its connections, and not by the values that go through them.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::s3::{Served, served};
use crate::s3_client::{Call, call};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::thread;

/// The most that a connection adds to the memory of a gateway: `docs/s3.md`, *Memory*.
const CONNECTION_BYTES: u64 = 32 << 20;
/// The memory that a gateway keeps for itself once it has moved bytes, for any number of connections.
const PROCESS_BYTES: u64 = 32 << 20;
/// Bytes of a piece of a value.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces of the value that is put at once.
const PIECES: usize = 256;
/// Number of simultaneous connections.
const CONNECTIONS: usize = 8;
/// Connections that stay open after a put and a get of one piece.
const IDLE_CONNECTIONS: usize = 128;
/// The most that such a connection adds to the memory of a gateway.
const IDLE_BYTES: u64 = 128 << 10;
/// Pieces of each part of the value that is put in parts, one by each of the connections.
const PART_PIECES: usize = 48;

/// A gateway whose memory is compared with that before the first large value.
struct Measured {
    served: Served,
    piece: Vec<u8>,
    before: u64,
}

impl Measured {
    fn new() -> Measured {
        let served = served(&["--durability", "memory"]);
        served.status("PUT", "/large", 200);
        let put = call(&served.gateway, &served.caller, "PUT", "/large/value");
        assert_eq!(put.body(b"small").send().status, 200);
        served.status("GET", "/large/value", 200);
        let byte = |at: usize| (at * 31 + at / 251) as u8;
        Measured {
            before: served.gateway.memory("VmRSS"),
            piece: (0..PIECE_BYTES).map(byte).collect(),
            served,
        }
    }

    fn call<'a>(&'a self, method: &'a str, target: &'a str) -> Call<'a> {
        call(&self.served.gateway, &self.served.caller, method, target)
    }

    /// The most by which the memory of the gateway was ever larger.
    fn grown(&self) -> u64 {
        let most = self.served.gateway.memory("VmHWM");
        most.saturating_sub(self.before)
    }

    /// Demands that the gateway never had more memory than these connections account for.
    #[track_caller]
    fn check(&self, after: &str, connections: usize) {
        let grown = self.grown();
        println!("{after}: {} MiB", grown >> 20);
        let bound = PROCESS_BYTES + connections as u64 * CONNECTION_BYTES;
        assert!(grown <= bound, "{after}: {grown} bytes, of {bound}");
    }

    /// Puts these many pieces.
    fn put(&self, target: &str, pieces: usize) -> String {
        let put = self.call("PUT", target).repeated(&self.piece, pieces);
        let put = put.send();
        assert_eq!(put.status, 200, "{put:?}");
        put.etag()
    }

    /// Reads these many pieces, the body of a response, to its end.
    fn read(&self, mut body: impl Read, pieces: usize) {
        let mut read = vec![0; PIECE_BYTES];
        for piece in 0..pieces {
            body.read_exact(&mut read).unwrap();
            assert!(read == self.piece, "piece {piece}");
        }
        assert_eq!(body.read(&mut read).unwrap(), 0, "it ends there");
    }

    /// Reads the value in pieces.
    fn get(&self, target: &str, pieces: usize) {
        let stream = begun(&self.call("GET", target), 200);
        self.read(stream, pieces);
    }

    /// Begins an upload, and returns its id.
    fn upload(&self, target: &str) -> String {
        let begun = self.call("POST", &format!("{target}?uploads")).send();
        begun.element("UploadId").to_owned()
    }
}

/// The connection of a request behind the head of its response, which has this status.
fn begun(call: &Call<'_>, status: u16) -> BufReader<TcpStream> {
    let mut stream = call.begin();
    pass_head(&mut stream, status);
    stream
}

/// Reads the head of a response, which has this status.
fn pass_head(stream: &mut BufReader<TcpStream>, status: u16) {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert!(line.starts_with(&format!("HTTP/1.1 {status} ")), "{line}");
    while line.trim_end() != "" {
        line.clear();
        stream.read_line(&mut line).unwrap();
    }
}

#[test]
fn a_value_of_any_length_needs_the_memory_of_one_connection() {
    let measured = Measured::new();
    measured.put("/large/value", PIECES);
    measured.check("a put", 1);
    measured.get("/large/value", PIECES);
    measured.check("a get", 1);
}

#[test]
fn parts_and_ranges_at_once_need_the_memory_of_their_connections() {
    let measured = Measured::new();
    let upload = measured.upload("/large/value");
    let target = |part: usize| format!("/large/value?partNumber={part}&uploadId={upload}");
    let etags: Vec<String> = thread::scope(|scope| {
        let put = |part| measured.put(&target(part), PART_PIECES);
        let puts: Vec<_> = (1..=CONNECTIONS)
            .map(|part| scope.spawn(move || put(part)))
            .collect();
        puts.into_iter().map(|put| put.join().unwrap()).collect()
    });
    measured.check("parts at once", CONNECTIONS);
    let mut parts = String::new();
    for (part, etag) in (1..).zip(etags) {
        let part = format!("<PartNumber>{part}</PartNumber><ETag>{etag}</ETag>");
        write!(parts, "<Part>{part}</Part>").unwrap();
    }
    let document = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
    let target = format!("/large/value?uploadId={upload}");
    let done = measured.call("POST", &target).body(document.as_bytes());
    assert_eq!(done.send().status, 200);
    thread::scope(|scope| {
        for part in 0..CONNECTIONS {
            let (measured, part_bytes) = (&measured, PART_PIECES * PIECE_BYTES);
            scope.spawn(move || {
                let (first, end) = (part * part_bytes, (part + 1) * part_bytes);
                let range = format!("bytes={first}-{}", end - 1);
                let get = measured.call("GET", "/large/value").header("range", &range);
                measured.read(begun(&get, 206), PART_PIECES);
            });
        }
    });
    measured.check("ranges at once", CONNECTIONS);
    // Readers that stop, while another one reads the value to its end.
    let get = measured.call("GET", "/large/value");
    let stopped: Vec<_> = (1..CONNECTIONS).map(|_| begun(&get, 200)).collect();
    measured.get("/large/value", CONNECTIONS * PART_PIECES);
    measured.check("readers that stop", CONNECTIONS);
    drop(stopped);
}

#[test]
fn an_idle_connection_gives_its_memory_back() {
    let measured = Measured::new();
    let (put, get) = (
        measured.call("PUT", "/large/piece").body(&measured.piece),
        measured.call("GET", "/large/piece"),
    );
    let mut idle = Vec::new();
    for _ in 0..IDLE_CONNECTIONS {
        let mut stream = TcpStream::connect(&measured.served.gateway.address).unwrap();
        put.send_on(&mut stream);
        let mut stream = BufReader::new(stream);
        pass_head(&mut stream, 200);
        get.send_on(stream.get_mut());
        pass_head(&mut stream, 200);
        let mut piece = vec![0; PIECE_BYTES];
        stream.read_exact(&mut piece).unwrap();
        assert!(piece == measured.piece);
        idle.push(stream);
    }
    // One connection at a time had a body.
    let bound = PROCESS_BYTES + IDLE_CONNECTIONS as u64 * IDLE_BYTES;
    let grown = measured.grown();
    println!("idle: {} MiB", grown >> 20);
    assert!(grown <= bound, "{grown} bytes, of {bound}");
}
