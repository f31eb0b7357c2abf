//! Keys that are revoked and rotated, and CAs that are rotated, while clients make requests.

use super::World;
use crate::trouble::{Schedule, Trouble};
use areo_client::trust::{Standing, Trust, TrustError};
use areo_client::{Access, Client, ConnectError, ConnectOptions, Domain, Error, ServerInfo};
use areo_trust::grant::{Grant, Grants};
use areo_trust::key::AccessKey;
use areo_trust::protocol::RefusalKind;
use areo_trust::roots::RootDigest;
use std::io;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The longest time for which a request by a key that was revoked may still be answered. The product bounds it where a server reaches the root
/// domain, by seconds; other troubles keep servers from it, or stop them, for less than this.
const STILL_COUNTS: Duration = Duration::from_secs(20);
/// The longest time for which one change is tried again: other troubles may leave no quorum for a while.
const TRY: Duration = Duration::from_mins(2);
/// Between two attempts.
const AGAIN: Duration = Duration::from_millis(50);
/// Refusals, one after the other, after which a key counts no longer.
const REFUSALS: u32 = 5;
/// The clocks of servers go so far ahead and back. A ticket of before has ended then, or is of the future, by more than clocks may be apart; and
/// clients, whose clock stays, take the certificates that are issued meanwhile.
const AHEAD: Duration = Duration::from_mins(210);
/// The advice of a server that judges a ticket of before such a move.
const CLOCKS: &str = "compare the clocks";
/// Pauses after a move of the clocks: until clients have other tickets their operations wait.
const CLOCK_PAUSES: usize = 20;
/// The domain in which clients with keys of their own make requests.
const DOMAIN: &str = "abd";

/// The administrator, and the names of the keys that it makes.
struct Operator<'a> {
    connect: &'a ConnectOptions,
    keys: u32,
}

/// The end of a request of a client that may read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Given,
    Refused,
    /// Others left no quorum.
    NotKnown,
}

/// Changes keys and CAs until the time is over.
pub(crate) async fn trust(world: &World, connect: ConnectOptions, mut schedule: Schedule) {
    let mut operator = Operator {
        connect: &connect,
        keys: 0,
    };
    while let Some(trouble) = schedule.next(world.is_over()) {
        let done = match trouble {
            Trouble::Revoke => operator.revoke().await,
            Trouble::RotateKey => operator.rotate_key().await,
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

/// Moves the clocks of all servers ahead and back until the time is over. Each time every ticket ends that was issued before, and a client with an
/// old one gets answers all the same.
pub(crate) async fn clocks(
    world: &World,
    connect: ConnectOptions,
    mut schedule: Schedule,
) -> io::Result<()> {
    let Some(clock) = &world.clock else {
        return Ok(());
    };
    let mut ahead = Duration::ZERO;
    while let Some(trouble) = schedule.next(world.is_over()) {
        ahead = match ahead.is_zero() {
            true => AHEAD,
            false => Duration::ZERO,
        };
        let before = with_ticket(&connect).await;
        clock.set_ahead(ahead)?;
        let done = match before {
            Ok(domain) => counts(&domain).await,
            Err(sentence) => Err(sentence),
        };
        match done {
            Ok(()) => world.incidents.fired(trouble),
            Err(sentence) => world.incidents.violation(format!("{trouble}: {sentence}")),
        }
        for _ in 0..CLOCK_PAUSES {
            world.pause(&mut schedule.random).await;
        }
    }
    clock.set_ahead(Duration::ZERO)
}

/// The domain, by a client that has shown its ticket.
async fn with_ticket(connect: &ConnectOptions) -> Result<Domain, String> {
    let client = connected(connect).await?;
    let begun = Instant::now();
    loop {
        match client.domain(DOMAIN).await {
            Ok(domain) => break counts(&domain).await.map(|()| domain),
            Err(error) if begun.elapsed() > TRY => break Err(error.to_string()),
            Err(Error::Unauthorised { call }) => {
                break Err(format!("a key that counts was refused: {call:?}"));
            }
            Err(_) => sleep(AGAIN).await,
        }
    }
}

impl Operator<'_> {
    async fn client(&self) -> Result<Client, String> {
        connected(self.connect).await
    }

    /// A new key that may read, and its name.
    async fn key(&mut self, trust: &Trust) -> Result<(String, AccessKey), String> {
        let grant: Grant = "read:*".parse().expect("it is a grant");
        let grants = Grants::new(vec![grant]).expect("one grant is few");
        let begun = Instant::now();
        loop {
            self.keys += 1;
            let name = format!("nemesis-{}", self.keys);
            match trust.create_key(&name, &grants).await {
                Ok(key) => return Ok((name, key)),
                Err(error) => again(&error, begun)?,
            }
            sleep(AGAIN).await;
        }
    }

    /// The domain by a client with this key, which still counts.
    async fn domain(&self, key: AccessKey) -> Result<Domain, String> {
        let connect = ConnectOptions {
            access: Some(Access::Key(key)),
            ..self.connect.clone()
        };
        with_ticket(&connect).await
    }

    async fn revoke(&mut self) -> Result<(), String> {
        let trust = self.client().await?.trust();
        let (name, key) = self.key(&trust).await?;
        let domain = self.domain(key).await?;
        surely(async || trust.revoke_key(&name).await).await?;
        counts_no_longer(&domain, Instant::now()).await
    }

    async fn rotate_key(&mut self) -> Result<(), String> {
        let trust = self.client().await?.trust();
        let begun = Instant::now();
        loop {
            let (name, first) = self.key(&trust).await?;
            let first = self.domain(first).await?;
            let second = match trust.rotate_key(&name).await {
                Ok(second) => self.domain(second).await?,
                // The second secret may have been made, and is not known: another key.
                Err(error) => {
                    again(&error, begun)?;
                    continue;
                }
            };
            counts(&first).await?;
            surely(async || trust.retire_key(&name).await).await?;
            counts_no_longer(&first, Instant::now()).await?;
            counts(&second).await?;
            surely(async || trust.revoke_key(&name).await).await?;
            return counts_no_longer(&second, Instant::now()).await;
        }
    }

    /// Does the next step that is due, until the CA from before is gone.
    async fn rotate_ca(&mut self) -> Result<(), String> {
        let client = self.client().await?;
        let trust = client.trust();
        let (begun, mut old) = (Instant::now(), None);
        loop {
            let step = next_step(&client, &trust, &mut old).await;
            match step {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => again(&error, begun)?,
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

/// A client, as soon as others let it in.
async fn connected(connect: &ConnectOptions) -> Result<Client, String> {
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

/// Passes over a failure of a change that others hindered. A change that was sent just before the clocks are moved is refused for its ticket.
fn again(error: &TrustError, begun: Instant) -> Result<(), String> {
    let is_of_clocks =
        || error.kind() == RefusalKind::Unauthorised && error.to_string().contains(CLOCKS);
    let is_hindered = matches!(
        error.kind(),
        RefusalKind::Unavailable | RefusalKind::Unknown
    ) || is_of_clocks();
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

async fn ask(domain: &Domain) -> Answer {
    match domain.stat("none").await {
        Ok(_) | Err(Error::NotFound { .. }) => Answer::Given,
        Err(Error::Unauthorised { .. }) => Answer::Refused,
        Err(_) => Answer::NotKnown,
    }
}

/// Asks until there is an answer, which must not be a refusal.
async fn counts(domain: &Domain) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        match ask(domain).await {
            Answer::Given => return Ok(()),
            Answer::Refused => return Err("a key that counts was refused".to_owned()),
            Answer::NotKnown if begun.elapsed() > TRY => return Err("no answer".to_owned()),
            Answer::NotKnown => sleep(AGAIN).await,
        }
    }
}

/// Asks until it is refused again and again. `since`: from then on the key is not to count.
async fn counts_no_longer(domain: &Domain, since: Instant) -> Result<(), String> {
    let mut refusals = 0;
    while refusals < REFUSALS {
        let begun = since.elapsed();
        match ask(domain).await {
            Answer::Refused => refusals += 1,
            Answer::Given if begun > STILL_COUNTS => {
                let seconds = begun.as_secs();
                return Err(format!("a key counted {seconds} s after its end"));
            }
            Answer::Given => refusals = 0,
            Answer::NotKnown if begun > TRY => return Err("no answer".to_owned()),
            Answer::NotKnown => {}
        }
        sleep(AGAIN).await;
    }
    Ok(())
}
