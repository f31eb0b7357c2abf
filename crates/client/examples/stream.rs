//! Writes a value that is made while it is sent, reads a part of it and then all of it, with bounded memory.
//!
//! ```console
//! cargo run --release -- up                                # in another terminal
//! cargo run -p areo-client --example stream
//! ```
//!
//! Connects by the cluster file, or to the addresses, in `AREO_CLUSTER`, else by `areo-data/cluster.toml`; the object goes to the domain `default`.

use areo_client::blocking::{Local, wait};
use areo_client::{Client, ConnectOptions, PutOptions, SweepOptions};
use std::io::{self, Read};

const LENGTH: u64 = 100_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = std::env::var("AREO_CLUSTER").unwrap_or_else(|_| "areo-data/cluster.toml".into());
    let client = wait(Client::connect(ConnectOptions::of(&cluster)?))?;
    let domain = wait(client.domain("default"))?;

    // No reader sees a part of it.
    let source = Local(io::repeat(b'x').take(LENGTH));
    let put = domain.put_stream("examples/large", source, PutOptions::default());
    let written = wait(put)?;
    println!("wrote {LENGTH} bytes as version {written}");

    // Of the blocks only those travel that the range touches.
    let mut part = wait(domain.get_range("examples/large", 50_000_000..50_000_010))?;
    while let Some(piece) = wait(part.next())? {
        println!("in the middle: {:?}", String::from_utf8_lossy(&piece));
    }

    let read = wait(domain.get_to("examples/large", Local(io::sink())))?;
    println!("read {} bytes of version {}", read.bytes, read.version);

    wait(domain.delete("examples/large"))?;
    // Its blocks stay for those who still read them; after a minute any sweep removes them.
    let swept = wait(domain.sweep(SweepOptions::default()))?;
    println!(
        "{} blocks are left over, {} were removed",
        swept.orphans().blocks,
        swept.removed.map_or(0, |removed| removed.blocks)
    );
    wait(client.close());
    Ok(())
}
