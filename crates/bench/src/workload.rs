//! The objects of the nemesis's clients: a few objects of four domains.

use crate::load::{Contest, History, Plan, Store, value};
use crate::random::Random;
use crate::target::AreoCaller;
use areo_client::{Client, ConnectOptions, Dap};
use std::rc::Rc;
use std::time::Duration;

/// The domains: replicated, erasure-coded, conditional, and conditional at first; at first all on all servers.
pub(crate) const DOMAINS: [&str; 4] = ["abd", "ec", CONDITIONAL, CHANGING];
/// The domain that stays conditional.
pub(crate) const CONDITIONAL: &str = "conditional";
/// Changes between `conditional`, `abd` and `ec`. A client makes conditional writes there while the domain is conditional, as far as
/// the client knows.
pub(crate) const CHANGING: &str = "changing";
/// Few objects, so that clients meet.
const KEYS: u64 = 4;
/// The longest time that an operation may take after everything was mended.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Clients draw from another stream than troubles.
const STREAM: u64 = 1_000;

/// The first shape of each of the domains, on this number of servers.
pub(crate) fn shapes(servers: usize) -> [Dap; DOMAINS.len()] {
    let k = u8::try_from(servers - 2).expect("at most 32 servers");
    let conditional = Dap::Conditional { k: 1 };
    [Dap::Abd, Dap::Ec { k }, conditional, conditional]
}

/// The plan of clients that connect so; `deaths`: they end in the middle of operations.
pub(crate) fn plan(
    (clients, deaths): (usize, bool),
    connect: ConnectOptions,
    history: History,
    seed: u64,
) -> Plan {
    let contest = Contest {
        clients,
        connect: Box::new(move || Box::pin(stores(connect.clone()))),
        history,
        changing: CHANGING,
        deaths,
        patience: PATIENCE,
    };
    Plan {
        contest: Some(Rc::new(contest)),
        objects: KEYS,
        // The contenders draw sizes.
        size: value::HEAD,
        seed: Random::new(seed).derive(STREAM).next(),
        ..Plan::default()
    }
}

async fn stores(connect: ConnectOptions) -> Result<Vec<Store>, String> {
    let client = Client::connect(connect).await;
    let client = client.map_err(|error| error.to_string())?;
    let mut stores = Vec::new();
    for name in DOMAINS {
        let domain = client.domain(name).await;
        let domain = domain.map_err(|error| error.to_string())?;
        stores.push(Store {
            name: name.to_owned(),
            caller: Box::new(AreoCaller::of(&domain)),
        });
    }
    Ok(stores)
}
