//! Two people edit one file: edits of different parts are both there afterwards, and only what changed was sent.
//!
//! ```console
//! cargo run --release -- up                                # in another terminal
//! cargo run -p areo-client --example shared_file
//! ```
//!
//! Connects by the cluster file, or to the addresses, in `AREO_CLUSTER`, else by `areo-data/cluster.toml`; the file is in the domain `default`.

use areo_client::blocking::wait;
use areo_client::file::{Chunking, Method, PullOptions, PushOptions};
use areo_client::{Client, ConnectOptions};
use std::error::Error;
use std::fs;
use std::ops::ControlFlow;

fn main() -> Result<(), Box<dyn Error>> {
    let cluster = std::env::var("AREO_CLUSTER").unwrap_or_else(|_| "areo-data/cluster.toml".into());
    let client = wait(Client::connect(ConnectOptions::of(&cluster)?))?;
    let file = wait(client.domain("default"))?.file("poem")?;
    let folder = tempfile::tempdir()?;
    let (alice, bob) = (folder.path().join("alice"), folder.path().join("bob"));

    let lines: Vec<String> = (0..20_000).map(|line| format!("line {line}\n")).collect();
    let lines = lines.concat();
    fs::write(&alice, &lines)?;
    // Small blocks, because this is a small file.
    let chunking = Chunking::new(Method::FastCdc, 4 << 10, 8 << 10, 16 << 10)?;
    let options = PushOptions {
        chunking: Some(chunking),
        ..PushOptions::default()
    };
    let going_on = |_| ControlFlow::Continue(());
    let pushed = wait(file.push(&alice, None, options, going_on))?;
    println!("alice: {} of {} blocks", pushed.written, pushed.blocks);
    let pulled = wait(file.pull(&bob, None, PullOptions::default(), |_| {}))?;

    fs::write(&alice, lines.replace("line 10\n", "line ten, by alice\n"))?;
    fs::write(&bob, lines.replace("line 19000\n", "line 19000, by bob\n"))?;
    let by_alice = wait(file.push(&alice, Some(&pushed.base), options, going_on))?;
    let by_bob = wait(file.push(&bob, Some(&pulled.base), options, going_on))?;
    println!(
        "alice: {} blocks, bob: {} blocks",
        by_alice.written, by_bob.written
    );

    let pulled = wait(file.pull(&alice, Some(&by_alice.base), PullOptions::default(), |_| {}))?;
    println!(
        "alice fetches {} of {} blocks",
        pulled.fetched, pulled.blocks
    );
    let both = fs::read_to_string(&alice)?;
    assert!(both.contains("by alice") && both.contains("by bob"));
    wait(file.remove())?;
    wait(client.close());
    Ok(())
}
