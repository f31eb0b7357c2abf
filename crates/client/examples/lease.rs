//! A lease with fencing: of several programs that want it one holds it, and what it guards takes nothing from an earlier holder.
//!
//! ```console
//! cargo run --release -- up                                # in another terminal
//! cargo run --release -- domain create locks --dap conditional
//! cargo run -p areo-client --example lease
//! ```
//!
//! Connects by the cluster file, or to the addresses, in `AREO_CLUSTER`, else by `areo-data/cluster.toml`.
//!
//! A holder may stand still for longer than its lease, and then go on writing. No clock prevents that. The lease's version rises
//! with each holder: what is guarded remembers the largest that it has seen, and refuses smaller ones.

use areo_client::blocking::wait;
use areo_client::{Client, ConnectOptions, Domain, Error, Object, PutOptions, Version};

/// Takes the lease if `expired` says that its present holder has lost it, or if there is none. `None`: another program has it.
///
/// # Errors
/// What the store said.
pub(crate) fn take(
    domain: &Domain,
    who: &str,
    expired: impl Fn(&Object) -> bool,
) -> Result<Option<Version>, Error> {
    let held = match wait(domain.get("lease")) {
        Ok(object) if !expired(&object) => return Ok(None),
        Ok(object) => Some(object.version),
        Err(Error::NotFound { key: Some(_), .. }) => None,
        Err(error) => return Err(error),
    };
    let options = PutOptions::default();
    match wait(domain.compare_and_put("lease", who.to_owned(), held, options)) {
        Ok(version) => Ok(Some(version)),
        Err(Error::VersionConflict { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the value that the lease guards: refuses if a later holder has written. The fence is the first line of the
/// value.
///
/// # Errors
/// What the store said.
pub(crate) fn guarded_write(domain: &Domain, lease: Version, text: &str) -> Result<bool, Error> {
    let fence_of = |object: &Object| {
        let text = object.clone().into_bytes();
        let text = String::from_utf8_lossy(&text).into_owned();
        let fence = text.lines().next().and_then(|line| line.parse().ok());
        fence.unwrap_or(Version::INITIAL)
    };
    let mut is_late = false;
    let write = |object: Option<&Object>| {
        is_late = object.is_some_and(|object| fence_of(object) > lease);
        (!is_late).then(|| format!("{lease}\n{text}"))
    };
    wait(domain.update("guarded", write))?;
    Ok(!is_late)
}

/// Three programs want the lease; one of them loses it and writes late. Returns who got it first, whether the late write was taken,
/// and whether that of the second holder was.
///
/// # Errors
/// What the store said.
pub(crate) fn run(options: &ConnectOptions, domain: &str) -> Result<(usize, bool, bool), Error> {
    let client = wait(Client::connect(options.clone())).expect("the cluster is there");
    let domain = wait(client.domain(domain))?;
    // An earlier run may have left one.
    match wait(domain.get("lease")) {
        Ok(left) => drop(wait(domain.compare_and_delete("lease", left.version))?),
        Err(Error::NotFound { key: Some(_), .. }) => {}
        Err(error) => return Err(error),
    }
    let mut holders = Vec::new();
    for who in ["alice", "bob", "carol"] {
        holders.extend(take(&domain, who, |_| false)?);
    }
    let taken = holders.len();
    let first = holders[0];
    let second = take(&domain, "bob", |_| true)?.expect("no other client wants it");
    let in_time = guarded_write(&domain, second, "by bob")?;
    let late = guarded_write(&domain, first, "by alice, late")?;
    Ok((taken, late, in_time))
}

#[allow(dead_code, reason = "the tests call `run`")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = std::env::var("AREO_CLUSTER").unwrap_or_else(|_| "areo-data/cluster.toml".into());
    let options = ConnectOptions::of(&cluster)?;
    let (taken, late, in_time) = run(&options, "locks")?;
    println!("{taken} of three programs got the lease");
    println!(
        "the write of the second holder was taken: {in_time}; the late one of the first: {late}"
    );
    Ok(())
}
