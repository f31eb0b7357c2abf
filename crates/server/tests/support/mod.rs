//! Live servers in the process of a test.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use areo_server::{Durability, KeepAdministrator, Options, Program, Start};
use areo_telemetry::{Limits, Recorder, Sampler};

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The first server of a new cluster without keys.
pub(crate) fn init() -> Start {
    Start::Init {
        fixed_root: false,
        administrator: KeepAdministrator::new(|_| Ok(())),
    }
}

/// The options of a server at free ports.
pub(crate) fn options(folder: &Path, name: &str, start: Start) -> Options {
    let address = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    let (listen, admin) = (address(free_port()), address(free_port()));
    Options {
        data: folder.join(name),
        program: Program::default(),
        listen: listen.to_string(),
        advertise: None,
        admin: admin.to_string(),
        start,
        durability: Durability::Fsync,
        name: Some(name.to_owned()),
        max_value_bytes: 1 << 20,
        repair_bytes_per_s: 0,
        scrub_bytes_per_s: 1 << 20,
        recorder: Recorder::new(Sampler::Never, false, Limits::default()),
        tls: false,
        certificate: None,
        seeds: Vec::new(),
        replaced_after: Duration::from_mins(1),
        decide_outside: None,
    }
}

/// A server on a thread that ends with the process: where it listens, and its admin port.
pub(crate) fn start(folder: &Path, name: &str, start: Start) -> (SocketAddr, SocketAddr) {
    serve(options(folder, name, start))
}

/// Such a server with these options.
pub(crate) fn serve(options: Options) -> (SocketAddr, SocketAddr) {
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    let (listen, admin) = (address(&options.listen), address(&options.admin));
    std::thread::spawn(move || {
        areo_server::run(&options).expect("it serves until the process ends");
    });
    while !is_ready(admin) {
        std::thread::sleep(Duration::from_millis(10));
    }
    (listen, admin)
}

/// True if it serves.
pub(crate) fn is_ready(admin: SocketAddr) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect(admin).ok()?;
        stream
            .write_all(b"GET /health/ready HTTP/1.0\r\n\r\n")
            .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.contains(" 200 "))
    };
    ask().unwrap_or(false)
}
