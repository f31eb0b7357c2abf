//! Keys that are made, used at each server, and revoked, rotated or given other grants; and CAs that are rotated.

use super::key_load::{KeyLoad, RequestKind};
use super::{AGAIN, TRY, World};
use crate::trouble::{Schedule, Trouble};
use areo_client::trust::{Standing, Trust, TrustError};
use areo_client::{Access, Client, ConnectError, ConnectOptions, Domain, Error, ServerInfo};
use areo_trust::grant::{Grant, Grants};
use areo_trust::key::AccessKey;
use areo_trust::protocol::RefusalKind;
use areo_trust::roots::RootDigest;
use std::time::Instant;
use tokio::time::sleep;

/// Loads of keys that have ended and still ask. Older ones are stopped.
const ASKING: usize = 4;
/// The name of the key that counts for the whole run.
const WITNESS: &str = "witness";

/// The administrator, and the names of the keys that it makes.
struct Operator<'a> {
    world: &'a World,
    connect: &'a ConnectOptions,
    keys: u32,
}

/// The domain that this server alone holds.
pub(crate) fn own_domain(server: usize) -> String {
    format!("only-s{}", server + 1)
}

/// Changes keys and CAs until the time is over.
pub(crate) async fn trust(world: &World, connect: ConnectOptions, mut schedule: Schedule) {
    let mut operator = Operator::new(world, &connect);
    while let Some(trouble) = schedule.next(world.is_over()) {
        let done = match trouble {
            Trouble::Revoke => operator.revoke().await,
            Trouble::RotateKey => operator.rotate_key().await,
            Trouble::ChangeGrants => operator.change_grants().await,
            Trouble::RotateCa => operator.rotate_ca().await,
            other => unreachable!("{other} is not of this lane"),
        };
        match done {
            Ok(()) => world.incidents.fired(trouble),
            Err(sentence) => world.incidents.violation(format!("{trouble}: {sentence}")),
        }
        world.pause(&mut schedule.random).await;
    }
}

/// Begins requests of a key that counts for the whole run.
pub(crate) async fn begin_witness(world: &World, connect: &ConnectOptions) {
    let mut operator = Operator::new(world, connect);
    if let Err(sentence) = operator.begin_witness().await {
        world.incidents.violation(format!("{WITNESS}: {sentence}"));
    }
}

/// After everything was mended: keys that count are answered at each server, and no write of a key that has ended took effect later than it may.
pub(crate) async fn finish_keys(world: &World, connect: &ConnectOptions) {
    let loads = world.keys.loads.take();
    // No key was used, and servers have no domains of their own.
    if loads.is_empty() {
        return;
    }
    if let Err(sentence) = check(world, connect, &loads).await {
        world.incidents.violation(sentence);
    }
}

async fn check(world: &World, connect: &ConnectOptions, loads: &[KeyLoad]) -> Result<(), String> {
    let (ended, counting): (Vec<_>, Vec<_>) = loads.iter().partition(|load| load.has_ended());
    for load in counting {
        load.answered(RequestKind::Read, 0).await?;
        load.answered(RequestKind::Write, 0).await?;
    }
    let client = connected(connect).await?;
    for server in 0..world.servers {
        let domain = found(&client, &own_domain(server)).await?;
        for load in &ended {
            if let Some(number) = written(&domain, load.label()).await? {
                load.check_written(server, number)?;
            }
        }
    }
    Ok(())
}

/// The number that the last write has put into this object.
async fn written(domain: &Domain, key: &str) -> Result<Option<u64>, String> {
    let content = match domain.get(key).await {
        Ok(object) => object.into_bytes(),
        Err(Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(format!("what the key '{key}' wrote is not read: {error}")),
    };
    let number: Result<[u8; 8], _> = content[..].try_into();
    let number = number.map_err(|_| format!("the key '{key}' did not write this: {content:?}"))?;
    Ok(Some(u64::from_le_bytes(number)))
}

fn grants(text: &str) -> Grants {
    let grant: Grant = text.parse().expect("it is a grant");
    Grants::new(vec![grant]).expect("one grant is few")
}

impl<'a> Operator<'a> {
    fn new(world: &'a World, connect: &'a ConnectOptions) -> Operator<'a> {
        Operator {
            world,
            connect,
            keys: 0,
        }
    }

    async fn client(&self) -> Result<Client, String> {
        connected(self.connect).await
    }

    /// A new key that may read and write, and its name.
    async fn key(&mut self, trust: &Trust) -> Result<(String, AccessKey), String> {
        let begun = Instant::now();
        loop {
            self.keys += 1;
            let name = format!("nemesis-{}", self.keys);
            match trust.create_key(&name, &grants("read,write:*")).await {
                Ok(key) => return Ok((name, key)),
                Err(error) => again(&error, begun)?,
            }
            sleep(AGAIN).await;
        }
    }

    /// Requests at each server by a client with this key, which counts: each server answers.
    async fn load(&self, label: &str, key: AccessKey) -> Result<KeyLoad, String> {
        let connect = ConnectOptions {
            access: Some(Access::Key(key)),
            ..self.connect.clone()
        };
        let client = connected(&connect).await?;
        let mut domains = Vec::new();
        for server in 0..self.world.servers {
            domains.push(found(&client, &own_domain(server)).await?);
        }
        let load = KeyLoad::begin(label.to_owned(), domains, &self.world.keys);
        self.counts(&load).await?;
        Ok(load)
    }

    /// Each server answers. The one with a small disk may take no writes just then.
    async fn counts(&self, load: &KeyLoad) -> Result<(), String> {
        load.answered(RequestKind::Read, 0).await?;
        let full = usize::from(self.world.disk.is_some());
        load.answered(RequestKind::Write, full).await
    }

    /// Has a load whose key has ended ask on, so that no later start of a server lets it in again.
    fn keep(&self, load: KeyLoad) {
        load.go_idle();
        let mut loads = self.world.keys.loads.borrow_mut();
        loads.push(load);
        let ended = loads.iter_mut().rev().filter(|load| load.has_ended());
        ended.skip(ASKING).for_each(KeyLoad::stop);
    }

    async fn begin_witness(&mut self) -> Result<(), String> {
        let trust = self.client().await?.trust();
        let key = trust.create_key(WITNESS, &grants("read,write:*")).await;
        let key = key.map_err(|error| error.to_string())?;
        let load = self.load(WITNESS, key).await?;
        load.go_idle();
        self.world.keys.loads.borrow_mut().push(load);
        Ok(())
    }

    async fn revoke(&mut self) -> Result<(), String> {
        let trust = self.client().await?.trust();
        let (name, key) = self.key(&trust).await?;
        let load = self.load(&name, key).await?;
        ends(&load, &RequestKind::BOTH, async || {
            trust.revoke_key(&name).await
        })
        .await?;
        self.keep(load);
        Ok(())
    }

    async fn rotate_key(&mut self) -> Result<(), String> {
        let trust = self.client().await?.trust();
        let begun = Instant::now();
        let (name, first, second) = loop {
            let (name, first) = self.key(&trust).await?;
            let first = self.load(&format!("{name}-older"), first).await?;
            match trust.rotate_key(&name).await {
                Ok(second) => {
                    let second = self.load(&format!("{name}-newer"), second).await?;
                    break (name, first, second);
                }
                // The second secret may have been made, and is not known: another key.
                Err(error) => again(&error, begun)?,
            }
        };
        self.counts(&first).await?;
        ends(&first, &RequestKind::BOTH, async || {
            trust.retire_key(&name).await
        })
        .await?;
        self.keep(first);
        self.counts(&second).await?;
        ends(&second, &RequestKind::BOTH, async || {
            trust.revoke_key(&name).await
        })
        .await?;
        self.keep(second);
        Ok(())
    }

    /// Takes the right to write from a key, which goes on with reads, and then the key.
    async fn change_grants(&mut self) -> Result<(), String> {
        let trust = self.client().await?.trust();
        let (name, key) = self.key(&trust).await?;
        let load = self.load(&name, key).await?;
        let fewer = grants("read:*");
        let change = async || trust.change_grants(&name, &fewer).await;
        ends(&load, &[RequestKind::Write], change).await?;
        load.answered(RequestKind::Read, 0).await?;
        ends(&load, &[RequestKind::Read], async || {
            trust.revoke_key(&name).await
        })
        .await?;
        self.keep(load);
        Ok(())
    }

    /// Does the next step that is due, until the CA from before is gone.
    async fn rotate_ca(&mut self) -> Result<(), String> {
        let client = self.client().await?;
        let trust = client.trust();
        let (begun, mut old, mut may_be_made) = (Instant::now(), None, false);
        loop {
            match next_step(&client, &trust, &mut old).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // A server refuses to drop a CA that an earlier request has dropped. The list of the next look shows whether it did.
                Err(error) => match again(&error, begun) {
                    Ok(()) => may_be_made |= error.kind() == RefusalKind::Unknown,
                    Err(_) if may_be_made && begun.elapsed() < TRY => may_be_made = false,
                    Err(sentence) => return Err(sentence),
                },
            }
            if begun.elapsed() > TRY {
                return Err("the CA was not rotated in time".to_owned());
            }
            sleep(AGAIN).await;
        }
    }
}

/// One step of the rotation of the CA. True: it is over.
async fn next_step(
    client: &Client,
    trust: &Trust,
    old: &mut Option<RootDigest>,
) -> Result<bool, TrustError> {
    let rows = trust.authorities().await?;
    let issuing = rows.iter().find(|row| row.is_issuing);
    let Some(issuing) = issuing.map(|row| row.digest) else {
        return Ok(false);
    };
    let before = *old.get_or_insert(issuing);
    let other = rows.iter().map(|row| row.digest).find(|it| *it != issuing);
    match (issuing == before, other) {
        (true, None) => trust.trust_authority(None).await.map(drop)?,
        (true, Some(new)) => {
            if all(client, trust, |server| server.trusted.contains(&new)).await {
                trust.issue_from(new).await?;
            }
        }
        (false, Some(other)) => {
            if all(client, trust, |server| server.issuer == Some(issuing)).await {
                trust.drop_root(other).await?;
            }
        }
        (false, None) => return Ok(true),
    }
    Ok(false)
}

/// True if each server answers and its standing fits.
async fn all(client: &Client, trust: &Trust, is_so_far: impl Fn(&Standing) -> bool) -> bool {
    let Ok(servers) = client.servers().await else {
        return false;
    };
    for ServerInfo { id, .. } in servers {
        match trust.standing(id).await {
            Ok(standing) if is_so_far(&standing) => {}
            _ => return false,
        }
    }
    true
}

/// Makes a change that ends the right to these requests, and waits until each server refuses them.
async fn ends(
    load: &KeyLoad,
    kinds: &[RequestKind],
    change: impl AsyncFnMut() -> Result<(), TrustError>,
) -> Result<(), String> {
    load.end_begins(kinds);
    surely(change).await?;
    load.ended(kinds);
    for kind in kinds {
        load.refused(*kind).await?;
    }
    Ok(())
}

/// A client, as soon as others let it in.
pub(super) async fn connected(connect: &ConnectOptions) -> Result<Client, String> {
    let begun = Instant::now();
    loop {
        match Client::connect(connect.clone()).await {
            Ok(client) => return Ok(client),
            Err(error @ ConnectError::Unauthorised { .. }) => {
                return Err(format!("a key that counts was refused: {error}"));
            }
            Err(error) if begun.elapsed() > TRY => return Err(error.to_string()),
            Err(_) => sleep(AGAIN).await,
        }
    }
}

/// The domain of this name, by a client whose key counts.
pub(super) async fn found(client: &Client, name: &str) -> Result<Domain, String> {
    let begun = Instant::now();
    loop {
        match client.domain(name).await {
            Ok(domain) => return Ok(domain),
            Err(Error::Unauthorised { call }) => {
                return Err(format!("a key that counts was refused: {call:?}"));
            }
            Err(error) if begun.elapsed() > TRY => return Err(error.to_string()),
            Err(_) => sleep(AGAIN).await,
        }
    }
}

/// Passes over a failure of a change that others hindered.
fn again(error: &TrustError, begun: Instant) -> Result<(), String> {
    let is_hindered = matches!(
        error.kind(),
        RefusalKind::Unavailable | RefusalKind::Unknown
    );
    match is_hindered && begun.elapsed() < TRY {
        true => Ok(()),
        false => Err(error.to_string()),
    }
}

/// Makes a change of which the repetition is refused, until it is known to be made.
async fn surely(mut change: impl AsyncFnMut() -> Result<(), TrustError>) -> Result<(), String> {
    let (begun, mut may_be_made) = (Instant::now(), false);
    loop {
        match change().await {
            Ok(()) => return Ok(()),
            Err(error) => match again(&error, begun) {
                Ok(()) => may_be_made |= error.kind() == RefusalKind::Unknown,
                Err(_) if may_be_made => return Ok(()),
                Err(sentence) => return Err(sentence),
            },
        }
        sleep(AGAIN).await;
    }
}
