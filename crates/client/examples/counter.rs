//! Several programs count up one counter, and no increment is lost or counted twice.
//!
//! ```console
//! cargo run --release -- up                                # in another terminal
//! cargo run --release -- domain create counters --dap conditional
//! cargo run -p areo-client --example counter
//! ```
//!
//! Connects by the cluster file, or to the addresses, in `AREO_CLUSTER`, else by `areo-data/cluster.toml`.

use areo_client::blocking::wait;
use areo_client::{Client, ConnectOptions, Error, Object};
use std::thread;

/// The value of the counter; 0 if it was never written.
fn count(object: Option<&Object>) -> u64 {
    let text = object.map(|object| object.clone().into_bytes());
    let text = text.as_deref().map(String::from_utf8_lossy);
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Lets `clients` clients count up to `times` each; returns the rise of the counter.
///
/// # Errors
/// What the store said.
pub(crate) fn run(
    options: &ConnectOptions,
    domain: &str,
    clients: usize,
    times: u64,
) -> Result<u64, Error> {
    let read = |key: &str| -> Result<u64, Error> {
        let client = wait(Client::connect(options.clone())).expect("the cluster is there");
        match wait(wait(client.domain(domain))?.get(key)) {
            Ok(object) => Ok(count(Some(&object))),
            Err(Error::NotFound { .. }) => Ok(0),
            Err(error) => Err(error),
        }
    };
    let before = read("visits")?;
    let counts = (0..clients).map(|_| {
        let (options, domain) = (options.clone(), domain.to_owned());
        thread::spawn(move || -> Result<(), Error> {
            let client = wait(Client::connect(options)).expect("the cluster is there");
            let domain = wait(client.domain(&domain))?;
            for _ in 0..times {
                // The closure runs again whenever another client was faster.
                let next = |object: Option<&Object>| Some((count(object) + 1).to_string());
                wait(domain.update("visits", next))?;
            }
            Ok(())
        })
    });
    let counts: Vec<_> = counts.collect();
    for count in counts {
        count.join().expect("no client panics")?;
    }
    Ok(read("visits")? - before)
}

#[allow(dead_code, reason = "the tests call `run`")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = std::env::var("AREO_CLUSTER").unwrap_or_else(|_| "areo-data/cluster.toml".into());
    let options = ConnectOptions::of(&cluster)?;
    let rose = run(&options, "counters", 4, 10)?;
    println!("4 clients counted 10 times each, and the counter rose by {rose}");
    Ok(())
}
