//! Answers requests about the trust of the cluster, which pass through no algorithm.
//!
//! A caller without a ticket may prove a key or show a join token. Each such request costs this server a round of the root domain, so an
//! address has an allowance of them. A request that succeeds costs nothing of it, nor one that could not be judged because the root domain was away: what
//! counts is proofs and tokens that fail. A proof of a gateway on behalf of a key that is unknown or revoked has not failed.

use std::cell::{OnceCell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use areo_core::config::ServerId;
use areo_core::env::Env;
use areo_core::manager::Root;
use areo_core::message::Refusal;
use areo_net::{Allowance, Allowances, Binding, Origin, Rate, Responder, Tls};
use areo_trust::protocol::{Ask, RefusalKind, TrustAnswer, TrustRefusal};
use areo_trust::registry::{AskContext, Registry};
use areo_trust::ticket::Ticket;
use areo_wire::codec::trust;
use tokio::task::spawn_local;
use tokio::time::Instant;

use crate::registration::RootAccess;
use crate::service::unreadable;

/// The longest time for a request: several times the patience of a quorum call, because it may lead through several configurations.
const ATTEMPT: Duration = Duration::from_secs(10);
/// The longest wait of a proof, or of a request for signing keys, for the root domain: without a quorum there it is
/// judged by the records that this server has read.
const PROOF: Duration = Duration::from_millis(300);
/// Proofs and tokens that may fail. Callers on this machine are not counted: they have its processor anyway.
const FAILURES: Allowance = Allowance {
    address: Rate {
        burst: 60,
        per_second: 1,
    },
    strangers: Rate {
        burst: 1000,
        per_second: 100,
    },
    is_for_loopback: false,
};

/// The part of a server that answers requests about trust. Belongs to one thread.
pub(crate) struct Trusting {
    registry: Rc<Registry>,
    server: ServerId,
    tls: Tls,
    /// The clock, in seconds since 1970.
    clock: fn() -> u64,
    root: OnceCell<Rc<RootAccess>>,
    allowances: RefCell<Allowances>,
}

/// The caller of a request.
pub(crate) struct TrustCaller {
    /// Its ticket, which was verified.
    pub(crate) ticket: Option<Rc<Ticket>>,
    /// Address of the caller.
    pub(crate) remote: SocketAddr,
    /// The time at which it asks.
    pub(crate) now: Instant,
    /// The session of TLS; `None` of a plain connection.
    pub(crate) binding: Option<Binding>,
}

impl Trusting {
    pub(crate) fn new(
        registry: Rc<Registry>,
        server: ServerId,
        tls: Tls,
        clock: fn() -> u64,
    ) -> Trusting {
        Trusting {
            registry,
            server,
            tls,
            clock,
            root: OnceCell::new(),
            allowances: RefCell::default(),
        }
    }

    /// Sets the access to the root domain. The first call counts.
    pub(crate) fn reach(&self, root: Rc<RootAccess>) {
        self.root.get_or_init(|| root);
    }

    /// Answers a request, later on this thread.
    pub(crate) fn on_request(self: Rc<Self>, body: &[u8], responder: Responder) {
        let Some(ask) = read(body, &responder) else {
            responder.refuse(Refusal::Malformed, &[][..]);
            return;
        };
        let caller = TrustCaller {
            ticket: match responder.origin() {
                Origin::Key(ticket) => Some(Rc::clone(ticket)),
                Origin::Plain | Origin::Anonymous | Origin::Server(_) => None,
            },
            remote: responder.connection().remote(),
            now: Instant::now(),
            binding: responder.connection().binding(),
        };
        spawn_local(async move {
            let told = match self.root.get() {
                None => starting(),
                Some(root) => {
                    let time = match ask {
                        Ask::Prove(_) | Ask::SigningKeys { .. } => PROOF,
                        _ => ATTEMPT,
                    };
                    self.answer(&root.within(time), &ask, &caller).await
                }
            };
            say(responder, &told);
        });
    }

    /// Carries a request out, unless its address has failed too often.
    pub(crate) async fn answer<E: Env>(
        &self,
        root: &Root<E>,
        ask: &Ask,
        caller: &TrustCaller,
    ) -> TrustAnswer {
        let address = caller.remote.ip();
        let is_limited = ask.needs().is_none();
        if is_limited {
            let (mut allowances, now) = (self.allowances.borrow_mut(), caller.now);
            if !allowances.admits(address, &FAILURES, now) {
                tracing::info!(%address, "proofs and tokens of an address are not looked at: too many of it, or of all strangers, failed");
                return too_many();
            }
            allowances.charge(address, &FAILURES, now);
        }
        let context = AskContext {
            server: self.server,
            issuer: self.tls.issuer(),
            key: self.tls.public_key(),
            trusted: &self.tls.trusted(),
            ticket: caller.ticket.as_deref(),
            address: &caller.remote.to_string(),
            binding: caller.binding,
            now_seconds: (self.clock)(),
        };
        let told = self.registry.answer(root, ask, &context).await;
        let mut allowances = self.allowances.borrow_mut();
        match &told {
            TrustAnswer::Refused(refusal) => {
                let (kind, sentence) = (refusal.kind, &refusal.sentence);
                tracing::info!(%address, ?kind, sentence, "request about trust refused");
                if is_limited && is_unjudged(kind) {
                    allowances.refund(address);
                }
            }
            _ if is_limited => {
                allowances.refund(address);
                allowances.prove(address);
            }
            _ => {}
        }
        drop(allowances);
        if let (Ask::Prove(proof), TrustAnswer::Ticket(_)) = (ask, &told)
            && let Some(key) = proof.behalf
        {
            let gateway = proof.key;
            tracing::info!(%address, %gateway, %key, "a gateway has a ticket on behalf of a key");
        }
        if let (Ask::GatewayCertificate { hosts, .. }, TrustAnswer::GatewayCertificate(_)) =
            (ask, &told)
            && let Some(ticket) = &caller.ticket
        {
            let gateway = ticket.key;
            tracing::info!(%address, %gateway, %hosts, "a gateway has a certificate");
        }
        told
    }
}

/// True if the proof or token of a request that is refused like this was not found to be wrong. What is not found is the key on whose behalf a
/// gateway acts, whose own proof is good.
fn is_unjudged(kind: RefusalKind) -> bool {
    matches!(
        kind,
        RefusalKind::Unavailable | RefusalKind::Unknown | RefusalKind::NotFound
    )
}

fn read(body: &[u8], responder: &Responder) -> Option<Ask> {
    let remote = responder.connection().remote();
    let warn = |error: &dyn std::fmt::Display| unreadable(responder.origin(), remote, error);
    let fields = trust::decode_request(body)
        .map_err(|error| warn(&error))
        .ok()?;
    Ask::decode(fields).map_err(|error| warn(&error)).ok()
}

/// Answers a request of a cluster that has no trust to ask for.
pub(crate) fn refuse(responder: Responder) {
    say(
        responder,
        &refused(
            RefusalKind::Usage,
            "this cluster has no CA, tokens and keys: its connections are plain, and every caller may do everything",
        ),
    );
}

fn starting() -> TrustAnswer {
    refused(
        RefusalKind::Unavailable,
        "this server is starting, and has not found the root domain yet: try again",
    )
}

fn too_many() -> TrustAnswer {
    refused(
        RefusalKind::Unavailable,
        "too many proofs of keys and join tokens from this address, or from all addresses that are new to this server, have failed: wait a minute, and check the key or token",
    )
}

fn refused(kind: RefusalKind, sentence: &str) -> TrustAnswer {
    let sentence = sentence.to_owned();
    TrustAnswer::Refused(TrustRefusal { kind, sentence })
}

fn say(responder: Responder, told: &TrustAnswer) {
    responder.reply(&trust::encode_reply(&told.encode()), &[]);
}

#[cfg(test)]
mod tests;
