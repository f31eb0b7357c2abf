//! The console of a cluster: pages in a browser that show it and change it.
//!
//! A console is a client like any other. A person opens it by a URL that counts once, or by an access key; each browser then has a session (`session`)
//! with a client of its own, and the servers judge every request by the grants of that session's key. The console itself refuses nothing that the
//! grants allow, and has no way to the servers that the command line has not: each page names the command that does what it does, and has a twin as
//! JSON at the same path with `.json`.
//!
//! A page is a type that implements `page::Page`, and a change one that implements `action::Action`; the router is made of them alone. Pages are
//! drawn by the server and work without JavaScript. With it, the live part of a page is replaced whenever it has changed.

mod action;
mod body;
mod command;
mod door;
mod forms;
mod guard;
mod html;
mod job;
mod jobs;
mod page;
mod pages;
mod routes;
mod serve;
mod session;
mod trouble;

use areo_client::{Client, ConnectOptions};
use areo_telemetry::SpanRecord;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use routes::Routes;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

pub use door::ONCE_LIFE;
pub use serve::{Accept, Connection, serve};

/// The way in which a console is reached, and reaches the cluster.
#[derive(Clone)]
pub struct ConsoleOptions {
    /// Reaches the cluster for a session with another key.
    pub connect: ConnectOptions,
    /// The names by which browsers reach it beside addresses and `localhost`. A request for any other one is refused: a page of a stranger could have
    /// its name resolve to this machine.
    pub names: Vec<String>,
    /// The port on which it listens: part of the name of its cookie, since browsers give a cookie to every port of a host.
    pub port: u16,
    /// Browsers reach it by TLS: they send its cookie by no other way.
    pub is_encrypted: bool,
    /// The age at which a session ends. One that is not used ends after a quarter of it.
    pub session_life: Duration,
    /// The spans that this machine remembers: of the console's own operations, and of commands.
    pub remembered: Arc<dyn Fn() -> Vec<SpanRecord> + Send + Sync>,
}

/// Bytes of a form at most, but for a form with a file: grants of a key, and a key of an object, have 2 KiB at most.
const FORM_BYTES: usize = 64 << 10;

/// The console of one cluster. Clones share it.
#[derive(Clone)]
pub struct Console(Arc<Shared>);

/// The parts that all requests share.
struct Shared {
    client: Client,
    options: ConsoleOptions,
    door: door::Door,
    jobs: jobs::Jobs,
}

impl Console {
    /// A console whose one-time URLs open sessions of this client.
    pub fn new(client: Client, options: ConsoleOptions) -> Console {
        Console(Arc::new(Shared {
            door: door::Door::new(options.session_life),
            jobs: jobs::Jobs::default(),
            client,
            options,
        }))
    }

    /// The path of a URL that opens one session, within [`ONCE_LIFE`]. Those that were made before it count no more.
    pub fn one_time_path(&self) -> String {
        format!("{}?once={}", door::LOGIN, self.0.door.once())
    }

    /// Returns when a one-time URL has been used since the last call.
    pub async fn opened(&self) {
        self.0.door.opened.notified().await;
    }

    /// All pages and changes.
    pub fn router(&self) -> Router {
        let router = routes().router().fallback(pages::missing);
        let router = router.layer(DefaultBodyLimit::max(FORM_BYTES));
        guard::protect(router, self).with_state(self.clone())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of the lock panics")
}

fn routes() -> Routes {
    pages::routes().merge(door::routes())
}

/// The paths of all changes, to which forms are sent.
pub fn action_paths() -> Vec<&'static str> {
    routes().forms()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_change_has_a_path_of_its_own() {
        let paths = super::action_paths();
        for path in ["/logout", "/objects/upload", "/keys/revoke"] {
            assert!(paths.contains(&path), "{path}: {paths:?}");
        }
        let different: BTreeSet<&str> = paths.iter().copied().collect();
        assert_eq!(different.len(), paths.len());
    }
}
