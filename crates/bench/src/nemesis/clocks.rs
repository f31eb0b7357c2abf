//! The clocks of all servers, moved at once: tickets end, and certificates are renewed, while clients make requests.

use super::key_load::Answer;
use super::trust::{connected, found};
use super::{AGAIN, TRY, World};
use crate::clock::WallClock;
use crate::cluster::metric_at;
use crate::trouble::{Schedule, Trouble};
use areo_client::{Access, ConnectOptions, Domain};
use std::io;
use std::time::{Instant, SystemTime};
use tokio::time::sleep;

const MINUTE: i64 = 60;
const DAY: i64 = 24 * 60 * MINUTE;
/// The clocks go so far ahead and back for `expire`, in seconds. A ticket of before has ended then, or is of the future, by more than clocks may be apart; and
/// clients, whose clock stays, take the certificates that are issued meanwhile.
const AHEAD: i64 = 210 * MINUTE;
/// The clocks go so far back for `renew`. A certificate of now is of the future then; one that is made then counts for clients, whose clock stays, and is due as soon as
/// the clocks are right again, because less than a third of its 90 days is left.
const BACK: i64 = 61 * DAY;
/// A certificate of the past ends sooner than this from now on, and one of now later.
const ENDS: i64 = 60 * DAY;
/// The time at which the certificate ends that a server shows.
const EXPIRY: &str = "areo_server_certificate_expiry_timestamp_seconds ";
/// Pauses after a move of the clocks: until clients have other tickets their operations wait.
const PAUSES: usize = 20;
/// The domain of which a client with an old ticket asks.
const DOMAIN: &str = "abd";

/// Moves the clocks, and asks as the administrator.
struct ClockMover<'a> {
    world: &'a World,
    connect: &'a ConnectOptions,
    clock: &'a WallClock,
    /// Seconds by which the clocks are ahead.
    ahead: i64,
}

/// Moves the clocks of all servers until the time is over. Each time every ticket ends that was issued before, and a client with an old one gets answers
/// all the same.
pub(crate) async fn clocks(
    world: &World,
    connect: ConnectOptions,
    mut schedule: Schedule,
) -> io::Result<()> {
    let Some(clock) = &world.clock else {
        return Ok(());
    };
    let mut mover = ClockMover {
        world,
        connect: &connect,
        clock,
        ahead: 0,
    };
    while let Some(trouble) = schedule.next(world.is_over()) {
        let done = match trouble {
            Trouble::Expire => mover.expire().await,
            Trouble::Renew => mover.renew().await,
            other => unreachable!("{other} is not of this lane"),
        };
        match done {
            Ok(()) => world.incidents.fired(trouble),
            Err(sentence) => world.incidents.violation(format!("{trouble}: {sentence}")),
        }
        for _ in 0..PAUSES {
            world.pause(&mut schedule.random).await;
        }
    }
    clock.set_ahead(0)
}

impl ClockMover<'_> {
    fn set(&self, ahead: i64) -> Result<(), String> {
        let set = self.clock.set_ahead(ahead);
        set.map_err(|error| format!("the clocks are not moved: {error}"))
    }

    async fn expire(&mut self) -> Result<(), String> {
        let before = self.with_ticket().await?;
        self.ahead = AHEAD - self.ahead;
        self.set(self.ahead)?;
        counts(&before).await
    }

    /// Each server gets a certificate of the past, and then one of now.
    async fn renew(&mut self) -> Result<(), String> {
        let before = self.with_ticket().await?;
        self.set(self.ahead - BACK)?;
        self.each_shows(|ends, now| ends < now + ENDS).await?;
        counts(&before).await?;
        self.set(self.ahead)?;
        self.each_shows(|ends, now| ends > now + ENDS).await?;
        counts(&before).await
    }

    /// Waits until each server shows a certificate that ends so, in seconds since 1970, at the time which is now.
    async fn each_shows(&self, ends_so: impl Fn(i64, i64) -> bool) -> Result<(), String> {
        let begun = Instant::now();
        let key = match &self.connect.access {
            Some(Access::Key(key)) => Some(key),
            _ => None,
        };
        for (server, admin) in self.world.admins.iter().enumerate() {
            loop {
                let ends = metric_at(admin, key, EXPIRY).await;
                if ends.is_some_and(|ends| ends_so(ends as i64, now_seconds())) {
                    break;
                }
                if begun.elapsed() > TRY {
                    let number = server + 1;
                    return Err(format!(
                        "s{number} shows no other certificate, but {ends:?}"
                    ));
                }
                sleep(AGAIN).await;
            }
        }
        Ok(())
    }

    /// The domain, by a client that has shown its ticket.
    async fn with_ticket(&self) -> Result<Domain, String> {
        let client = connected(self.connect).await?;
        let domain = found(&client, DOMAIN).await?;
        counts(&domain).await.map(|()| domain)
    }
}

fn now_seconds() -> i64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    since.as_secs().cast_signed()
}

/// Asks until there is an answer, which must not be a refusal.
async fn counts(domain: &Domain) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        match Answer::of(&domain.stat("none").await) {
            Answer::Given => return Ok(()),
            Answer::Refused => return Err("a key that counts was refused".to_owned()),
            Answer::NotKnown if begun.elapsed() > TRY => return Err("no answer".to_owned()),
            Answer::NotKnown => sleep(AGAIN).await,
        }
    }
}
