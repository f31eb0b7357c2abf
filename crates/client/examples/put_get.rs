//! Writes an object, reads it back and says where it is.
//!
//! ```console
//! cargo run --release -- up                                # in another terminal
//! cargo run -p areo-client --example put_get
//! ```
//!
//! Connects by the cluster file, or to the addresses, in `AREO_CLUSTER`, else by `areo-data/cluster.toml`; the object goes to the domain `default`.

use areo_client::blocking::wait;
use areo_client::{Client, ConnectOptions, Error, PutOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = std::env::var("AREO_CLUSTER").unwrap_or_else(|_| "areo-data/cluster.toml".into());
    let client = wait(Client::connect(ConnectOptions::of(&cluster)?))?;
    let domain = wait(client.domain("default"))?;
    let shape = domain.configuration().shape;
    println!(
        "'{}' is {shape}: {} of {} servers may crash, {:.2} bytes stored per byte",
        domain.name(),
        shape.f(),
        shape.n(),
        shape.stored_per_byte()
    );

    let options = PutOptions {
        content_type: Some("text/plain".into()),
        ..PutOptions::default()
    };
    let written = wait(domain.put_with("examples/greeting", "Hello, quorum.", options))?;
    println!("wrote version {written}");

    match wait(domain.get("examples/greeting")) {
        // Another writer may have been here in between: then this is a later version.
        Ok(object) => {
            let version = object.version;
            println!("read version {version}: {:?}", object.into_bytes());
        }
        Err(Error::NotFound { .. }) => println!("somebody deleted it meanwhile"),
        Err(error) => return Err(error.into()),
    }
    for place in wait(domain.stat("examples/greeting"))?.placement {
        println!("{}: element {}, {}", place.name, place.element, place.role);
    }
    wait(client.close());
    Ok(())
}
