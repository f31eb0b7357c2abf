//! Sessions: each is one browser that is let in, with a client of its own.
//!
//! A session is 16 random bytes in a cookie that scripts cannot read and other sites do not send. It ends by age, without use, by *sign out*, to make
//! room for another one of its key, and with the process. Everything that is being sent to its browser then ends with it.

use crate::locked;
use areo_client::Client;
use areo_client::journal::JournalObjects;
use areo_client::trust::AccessKey;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Sessions of one key at a time: the one that was not used for longest makes room.
const SESSIONS: usize = 16;
/// Live pages of one session at a time. A browser has six connections to a host.
const STREAMS: usize = 8;

/// One browser that is let in.
pub(crate) struct Session {
    /// Asks the servers, by the key of the session.
    pub(crate) client: Client,
    /// The id of its key; none of a session of the console's own client.
    pub(crate) key: Option<String>,
    /// The key itself, which admin ports ask for.
    pub(crate) access_key: Option<AccessKey>,
    /// The journal of the autopilot as it was last read: only what has changed is read again.
    pub(crate) journal: tokio::sync::Mutex<Option<JournalObjects>>,
    /// The token that each form of this session carries: a page of another site does not know it.
    pub(crate) form_token: String,
    lifetime: Lifetime,
    streams: Arc<Semaphore>,
}

impl Session {
    /// A session that begins now.
    fn new(client: Client, key: Option<AccessKey>, longest: Duration) -> Session {
        Session {
            client,
            key: key.as_ref().map(|key| key.id.to_string()),
            access_key: key,
            journal: tokio::sync::Mutex::default(),
            form_token: random(),
            lifetime: Lifetime::new(longest),
            streams: Arc::new(Semaphore::new(STREAMS)),
        }
    }

    /// A place for a live page; none if there are too many.
    pub(crate) fn stream(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.streams).try_acquire_owned().ok()
    }

    /// Counts as a use.
    pub(crate) fn touch(&self) {
        *locked(&self.lifetime.used) = Instant::now();
    }

    /// Returns when the session has ended, for whichever reason.
    pub(crate) async fn ended(&self) {
        self.lifetime.ended().await;
    }
}

/// The time of a session: when it began, when it was used, and when it is over.
struct Lifetime {
    /// The age at which it ends. Without use it ends after a quarter of it.
    longest: Duration,
    begun: Instant,
    used: Mutex<Instant>,
    /// It was ended before its time.
    closed: CancellationToken,
}

impl Lifetime {
    fn new(longest: Duration) -> Lifetime {
        let now = Instant::now();
        Lifetime {
            longest,
            begun: now,
            used: Mutex::new(now),
            closed: CancellationToken::new(),
        }
    }

    /// The time that is left without a further use.
    fn left(&self) -> Duration {
        if self.closed.is_cancelled() {
            return Duration::ZERO;
        }
        let idle = locked(&self.used).elapsed();
        left(self.begun.elapsed(), idle, self.longest)
    }

    async fn ended(&self) {
        loop {
            let left = self.left();
            if left.is_zero() {
                return;
            }
            // It may be used meanwhile.
            tokio::select! {
                () = self.closed.cancelled() => {}
                () = tokio::time::sleep(left) => {}
            }
        }
    }
}

/// The time that is left of a session of this age that was not used for so long.
fn left(age: Duration, idle: Duration, longest: Duration) -> Duration {
    let of_age = longest.saturating_sub(age);
    of_age.min((longest / 4).saturating_sub(idle))
}

/// 16 random bytes as hexadecimal digits.
pub(crate) fn random() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes all letters");
        text
    })
}

/// All sessions, by the value of their cookies.
pub(crate) struct Sessions {
    longest: Duration,
    all: Mutex<HashMap<String, Arc<Session>>>,
}

impl Sessions {
    /// No session yet; each that is opened ends at this age.
    pub(crate) fn new(longest: Duration) -> Sessions {
        Sessions {
            longest,
            all: Mutex::default(),
        }
    }

    /// Opens a session; the value of its cookie.
    pub(crate) fn open(&self, client: Client, key: Option<AccessKey>) -> String {
        let session = Session::new(client, key, self.longest);
        let mut all = locked(&self.all);
        all.retain(|_, it| !it.lifetime.left().is_zero());
        let of_key = all.iter().filter(|(_, it)| it.key == session.key);
        if of_key.clone().count() >= SESSIONS {
            let oldest = of_key.min_by_key(|(_, it)| *locked(&it.lifetime.used));
            let oldest = oldest.map(|(id, _)| id.clone()).unwrap_or_default();
            end(&mut all, &oldest);
        }
        let id = random();
        all.insert(id.clone(), Arc::new(session));
        id
    }

    /// The session with this cookie, which is used now.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Session>> {
        let mut all = locked(&self.all);
        let session = all.get(id)?;
        if session.lifetime.left().is_zero() {
            all.remove(id);
            return None;
        }
        session.touch();
        Some(Arc::clone(session))
    }

    /// Ends the session with this cookie.
    pub(crate) fn close(&self, id: &str) {
        end(&mut locked(&self.all), id);
    }
}

/// Ends a session, and everything that is being sent to its browser.
fn end(sessions: &mut HashMap<String, Arc<Session>>, id: &str) {
    if let Some(session) = sessions.remove(id) {
        session.lifetime.closed.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_session_ends_by_age_and_without_use() {
        let life = Duration::from_hours(8);
        assert_eq!(left(life / 2, life / 8, life), life / 8);
        assert_eq!(left(life * 7 / 8, Duration::ZERO, life), life / 8);
        assert_eq!(left(life, Duration::ZERO, life), Duration::ZERO, "used");
        assert_eq!(left(life / 4, life / 4, life), Duration::ZERO, "not used");
    }

    #[tokio::test]
    async fn a_session_that_is_closed_has_ended() {
        let lifetime = Lifetime::new(Duration::from_hours(8));
        assert_eq!(lifetime.ended().now_or_never(), None);
        lifetime.closed.cancel();
        assert_eq!(lifetime.ended().now_or_never(), Some(()));
        Lifetime::new(Duration::ZERO).ended().await;
    }
}
