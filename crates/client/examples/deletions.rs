//! Writes objects and deletes them, to see in the metrics of servers what their tombstones cost.
//!
//! ```console
//! cargo run --release -- up                                # in another terminal
//! cargo run -p areo-client --example deletions -- 100000
//! ```
//!
//! Connects by the cluster file, or to the addresses, in `AREO_CLUSTER`, else by `areo-data/cluster.toml`; the objects go to the domain `default`.

use areo_client::blocking::wait;
use areo_client::{Client, ConnectOptions, Domain, Error};
use std::thread;

/// Objects that are written and deleted at once.
const LANES: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = std::env::var("AREO_CLUSTER").unwrap_or_else(|_| "areo-data/cluster.toml".into());
    let count = std::env::args()
        .nth(1)
        .ok_or("say how many objects")?
        .parse()?;
    let client = wait(Client::connect(ConnectOptions::of(&cluster)?))?;
    let domain = wait(client.domain("default"))?;
    let lane = |lane| {
        let domain = domain.clone();
        thread::spawn(move || delete_each(&domain, (lane..count).step_by(LANES)))
    };
    let lanes: Vec<_> = (0..LANES).map(lane).collect();
    for lane in lanes {
        lane.join().map_err(|_| "a lane panicked")??;
    }
    wait(client.close());
    println!("{count} objects were written and deleted");
    Ok(())
}

fn delete_each(domain: &Domain, numbers: impl Iterator<Item = usize>) -> Result<(), Error> {
    for number in numbers {
        let key = format!("folder-{:03}/object-{number:08}", number % 1000);
        wait(domain.put(&key, "value"))?;
        wait(domain.delete(&key))?;
    }
    Ok(())
}
