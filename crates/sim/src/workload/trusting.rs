//! Join tokens, access keys and CAs, by clients each of which has a registry of its own, as a server has (`[X-41 chain]`, `[X-42 one-trust-log]`).
//!
//! Acknowledged changes are remembered, and every later read is judged by them ([`facts`]).

mod facts;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::OnceLock;

use super::operation::One;
use super::{End, PROCESSES, Workload};
use crate::fault::Fault;
use crate::world::World;
use crate::world::call::SimEnv;
use areo_core::config::ServerId;
use areo_core::instant::Instant;
use areo_core::manager::Root;
use areo_trust::authority::PublicKey;
use areo_trust::grant::Grants;
use areo_trust::key::{Exchange, NONCE_BYTES, ProofError, Prover};
use areo_trust::registry::{
    Actor, ChangeKeyError, CreateKeyError, CreateTokenError, DropRootError, FoundError, Foundation,
    IssueFromError, IssueTicketError, LogError, Origin, RedeemTokenError, Redemption, Registry,
    RevokeTokenError, TrustRootError,
};
use areo_trust::secret::{SECRET_BYTES, Secret};
use areo_trust::token::RedeemError;

use facts::{Facts, IssuedFact, TokenUser};

/// The cluster to all registries.
const CLUSTER: u128 = 0xc1;
/// The clocks of a run begin at this time, in seconds since 1970.
const BEGIN_SECONDS: u64 = 1_800_000_000;
/// The life of a token.
const TTL_SECONDS: u64 = 24 * 60 * 60;
/// Seconds by which the clock of each process is wrong.
const SKEW_SECONDS: [i64; PROCESSES] = [-3600, 0, 3600];
/// Machines that show tokens.
const MACHINES: u64 = 3;
/// The id of the first of them: no server has it.
const FIRST_MACHINE: u128 = 1 << 100;
/// The names of keys.
const NAMES: [&str; 2] = ["camera", "backup"];
/// Three foundations, of which the first one is the cluster's, and the others are where its next CAs come from: the same in every run.
const FOUNDATIONS: &str = include_str!("trusting/foundations.txt");

/// The registries of the processes, and the acknowledged facts.
pub(super) struct Trusting {
    world: World,
    registries: RefCell<Vec<Rc<Registry>>>,
    facts: RefCell<Facts>,
}

impl Trusting {
    pub(super) fn new(world: &World) -> Trusting {
        let registries = (0..PROCESSES).map(|_| registry(world)).collect();
        Trusting {
            world: world.clone(),
            registries: RefCell::new(registries),
            facts: RefCell::default(),
        }
    }

    /// The process is another one now, and has read nothing.
    pub(super) fn forget(&self, process: usize) {
        self.registries.borrow_mut()[process] = registry(&self.world);
    }
}

/// A registry whose secrets are drawn as all else is, so that a seed repeats itself.
fn registry(world: &World) -> Rc<Registry> {
    let world = world.clone();
    let random = move |bytes: &mut [u8]| {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&world.random().draw().to_le_bytes()[..part.len()]);
        }
        Ok(())
    };
    let key = Secret::new(vec![9; SECRET_BYTES]);
    Rc::new(Registry::with_random(CLUSTER, key, Box::new(random)))
}

fn foundations() -> &'static [Foundation] {
    static FOUNDATIONS_READ: OnceLock<Vec<Foundation>> = OnceLock::new();
    FOUNDATIONS_READ.get_or_init(|| {
        let byte = |line: &str, at| u8::from_str_radix(&line[at..at + 2], 16).expect("digits");
        let bytes = |line: &str| {
            (0..line.len())
                .step_by(2)
                .map(|at| byte(line, at))
                .collect()
        };
        let read = |line: &str| Foundation::decode(&Secret::new(bytes(line)));
        FOUNDATIONS
            .lines()
            .map(|line| read(line).expect("a foundation"))
            .collect()
    })
}

fn machine(number: u64) -> (ServerId, PublicKey) {
    let mut point = [4; 65];
    point[64] = u8::try_from(number).expect("few machines");
    let key = PublicKey::new(&point).expect("it has the form of one");
    (ServerId(FIRST_MACHINE + u128::from(number)), key)
}

/// The end of an operation, for its rules.
enum Ended {
    /// It read the log to its end, and was acknowledged or refused.
    Judged,
    /// The log did not answer in time, or the change may have been made.
    Unknown,
    /// The log did not answer, and the records read before were enough.
    AsRead,
    /// No rule admits it.
    Broken(String),
}

/// The refusals of an operation, with those of the log separated.
trait Refusal: std::fmt::Debug {
    fn log(&self) -> Option<&LogError>;
}

macro_rules! refusal {
    ($($error:ident),*) => {$(
        impl Refusal for $error {
            fn log(&self) -> Option<&LogError> {
                match self {
                    $error::Log(error) => Some(error),
                    _ => None,
                }
            }
        }
    )*};
}

refusal!(
    FoundError,
    TrustRootError,
    IssueFromError,
    DropRootError,
    CreateTokenError,
    RevokeTokenError,
    RedeemTokenError,
    CreateKeyError,
    ChangeKeyError,
    IssueTicketError
);

impl Refusal for LogError {
    fn log(&self) -> Option<&LogError> {
        Some(self)
    }
}

/// Splits off results that are no answer; `admitted` tells which refusals the rules admit.
fn judged<T, X: Refusal>(ended: Result<T, X>, admitted: impl Fn(&X) -> bool) -> Result<T, Ended> {
    ended.map_err(|error| match error.log() {
        Some(LogError::Unavailable(_) | LogError::Unconfirmed(_)) => Ended::Unknown,
        None if admitted(&error) => Ended::Judged,
        _ => Ended::Broken(format!("{error:?}")),
    })
}

/// One operation of a process on the trust of the cluster.
struct Trust<'a> {
    work: &'a Workload,
    root: Root<SimEnv>,
    registry: Rc<Registry>,
    origin: Origin,
    /// The time at which it began.
    begun: Instant,
}

impl One<'_> {
    /// Makes, uses or revokes something; reads are judged by the facts acknowledged before.
    pub(super) async fn trust(&self) -> End {
        let choice = self.work.world.random().below(100);
        self.trust_with(choice).await
    }

    /// The operations of the finale: none may fail.
    pub(super) async fn trust_at_last(&self) -> End {
        for choice in [0, 20, 50, 80, 99] {
            if matches!(self.trust_with(choice).await, End::TimedOut) {
                return End::TimedOut;
            }
        }
        End::Done
    }

    async fn trust_with(&self, choice: u64) -> End {
        let work = self.work;
        let begun = work.world.now();
        let now = BEGIN_SECONDS + begun.0 / 1_000_000_000;
        let trust = Trust {
            work,
            root: self.client.root(&work.root),
            registry: work.trusting.registries.borrow()[self.process].clone(),
            origin: Origin {
                by: Actor::Founder,
                address: format!("127.0.0.1:{}", self.process),
                now_seconds: now.saturating_add_signed(SKEW_SECONDS[self.process]),
            },
            begun,
        };
        trust.run(choice).await
    }
}

impl Trust<'_> {
    fn facts(&self) -> std::cell::RefMut<'_, Facts> {
        self.work.trusting.facts.borrow_mut()
    }

    fn index(&self, length: usize) -> Option<usize> {
        let random = self.work.world.random();
        (length > 0).then(|| random.index(length))
    }

    async fn run(&self, choice: u64) -> End {
        // What is known before the log is read.
        let acknowledged = self.facts().acknowledged;
        let issued = self.facts().some_issued(self.work.world.random());
        let is_founded = acknowledged.is_some();
        let ended = match choice {
            _ if !is_founded => self.found().await,
            0..15 => self.create_token().await,
            15..45 => self.redeem().await,
            45..50 => self.revoke_token().await,
            50..58 => self.create_key().await,
            58..64 => self.rotate_key().await,
            64..68 => self.retire_key().await,
            68..71 => self.revoke_key().await,
            71..92 => self.issue_ticket().await,
            92..96 => self.rotate_root().await,
            _ => self.refresh().await,
        };
        let ended = match ended {
            Ok(()) | Err(Ended::Judged) => self.see(acknowledged, &issued),
            Err(ended) => Err(ended),
        };
        match ended {
            Ok(()) | Err(Ended::Judged | Ended::AsRead) => End::Done,
            Err(Ended::Unknown) => End::TimedOut,
            Err(Ended::Broken(sentence)) => {
                self.work.world.violate(format!("trust: {sentence}"));
                End::Done
            }
        }
    }

    /// The registry has read the log: it has all that was acknowledged before, of each generation all have one view, and tickets that were issued before are judged by it.
    fn see(&self, acknowledged: Option<u32>, issued: &[IssuedFact]) -> Result<(), Ended> {
        let view = self.registry.view();
        let view = view.ok_or(Ended::Broken("nothing was read".to_owned()))?;
        let (mut facts, now) = (self.facts(), self.origin.now_seconds);
        let seen = facts.see(&view, acknowledged);
        let mut issued = issued.iter();
        seen.and_then(|()| issued.try_for_each(|it| facts.judge(it, &view.verifier, now)))
            .map_err(Ended::Broken)
    }

    async fn found(&self) -> Result<(), Ended> {
        let foundation = &foundations()[0];
        let founded = self.registry.found(&self.root, foundation, &self.origin);
        judged(founded.await, |_| false)
    }

    async fn refresh(&self) -> Result<(), Ended> {
        // What is known before the log is read.
        let tokens = self.facts().tokens.clone();
        let read = judged(self.registry.tokens(&self.root).await, |_| false)?;
        for known in &tokens {
            let record = read.iter().find(|record| record.id == known.token.id);
            known.check(record).map_err(Ended::Broken)?;
        }
        Ok(())
    }

    async fn create_token(&self) -> Result<(), Ended> {
        let (registry, origin) = (&self.registry, &self.origin);
        let created = registry.create_token(&self.root, TTL_SECONDS, origin).await;
        let token = judged(created, |_| false)?;
        self.facts().add_token(token);
        Ok(())
    }

    async fn redeem(&self) -> Result<(), Ended> {
        let random = self.work.world.random();
        let count = self.facts().tokens.len();
        // One of the last, so that several show it.
        let Some(back) = self.index(count.min(3)) else {
            return self.create_token().await;
        };
        let index = count - 1 - back;
        let (server, key) = machine(random.below(MACHINES));
        let before = self.facts().tokens[index].clone();
        let shown = Redemption {
            id: before.token.id,
            secret: &before.token.secret,
            server,
            key: &key,
        };
        let redeemed = self.registry.redeem_token(&self.root, &shown, &self.origin);
        let redeemed = redeemed.await;
        let mut facts = self.facts();
        let known = &mut facts.tokens[index];
        if let Err(RedeemTokenError::Token(error)) = &redeemed {
            return match error {
                RedeemError::Used { by, .. } if known.may_be_used_by(*by) => {
                    self.work.world.plan().note(Fault::TokenContested);
                    Ok(())
                }
                RedeemError::Revoked { .. } if known.revocation_begun => Ok(()),
                error => Err(Ended::Broken(format!("{error:?} of {known:?}"))),
            };
        }
        judged(redeemed, |_| false)?;
        known
            .used(TokenUser { server }, &before)
            .map_err(Ended::Broken)
    }

    async fn revoke_token(&self) -> Result<(), Ended> {
        let count = self.facts().tokens.len();
        let Some(index) = self.index(count) else {
            return self.refresh().await;
        };
        let id = {
            let mut facts = self.facts();
            facts.tokens[index].revocation_begun = true;
            facts.tokens[index].token.id
        };
        let revoked = self.registry.revoke_token(&self.root, id, &self.origin);
        judged(revoked.await, |_| false)?;
        self.facts().tokens[index].revoked = true;
        Ok(())
    }

    async fn create_key(&self) -> Result<(), Ended> {
        let name = NAMES[self.work.world.random().index(NAMES.len())];
        let grants = Grants::default();
        let created = self
            .registry
            .create_key(&self.root, name, &grants, &self.origin);
        let is_taken = |error: &CreateKeyError| matches!(error, CreateKeyError::NameTaken { .. });
        let key = judged(created.await, is_taken)?;
        self.facts()
            .add_key(name, key, self.begun, self.work.world.now())
            .map_err(Ended::Broken)
    }

    async fn rotate_key(&self) -> Result<(), Ended> {
        let count = self.facts().keys.len();
        let Some(index) = self.index(count) else {
            return self.create_key().await;
        };
        let id = self.facts().keys[index].id;
        let rotated = self.registry.rotate_key(&self.root, id, &self.origin);
        let (begun, rotated) = (self.begun, rotated.await);
        let is_due = self.facts().keys[index].revocation_begun;
        let key = judged(rotated, |error| match error {
            ChangeKeyError::Rotating { .. } => true,
            ChangeKeyError::Revoked { .. } => is_due,
            _ => false,
        })?;
        let now = self.work.world.now();
        self.facts().keys[index].add_secret(key, begun, now);
        Ok(())
    }

    async fn retire_key(&self) -> Result<(), Ended> {
        let count = self.facts().keys.len();
        let Some(index) = self.index(count) else {
            return self.refresh().await;
        };
        let id = {
            let mut facts = self.facts();
            facts.keys[index].retirement_begun = true;
            facts.keys[index].id
        };
        let retired = self.registry.retire_key(&self.root, id, &self.origin).await;
        let is_due = self.facts().keys[index].revocation_begun;
        judged(retired, |error| {
            is_due && matches!(error, ChangeKeyError::Revoked { .. })
        })?;
        self.facts().keys[index].retired(self.begun);
        Ok(())
    }

    async fn revoke_key(&self) -> Result<(), Ended> {
        let count = self.facts().keys.len();
        let Some(index) = self.index(count) else {
            return self.refresh().await;
        };
        let id = {
            let mut facts = self.facts();
            facts.keys[index].revocation_begun = true;
            facts.keys[index].id
        };
        let revoked = self.registry.revoke_key(&self.root, id, &self.origin).await;
        judged(revoked, |_| false)?;
        self.facts().keys[index].revoked = true;
        Ok(())
    }

    async fn issue_ticket(&self) -> Result<(), Ended> {
        let count = self.facts().keys.len();
        let Some(index) = self.index(count) else {
            return self.create_key().await;
        };
        let before = self.facts().keys[index].clone();
        let secret = &before.secrets[self.work.world.random().index(before.secrets.len())];
        let exchange = Exchange {
            cluster: CLUSTER,
            server: ServerId(1),
            key: before.id,
            client_nonce: [3; NONCE_BYTES],
            holder: [5; 32],
            binding: [0; 32],
            behalf: None,
        };
        let proof = exchange.prove(&secret.key.secret, Prover::Client);
        let (registry, now) = (&self.registry, self.origin.now_seconds);
        let issued = registry
            .issue_ticket(&self.root, &exchange, &proof, now)
            .await;
        let after = self.facts().keys[index].clone();
        let issued = judged(issued, |error| match error {
            IssueTicketError::Proof(ProofError::Revoked { .. }) => after.revocation_begun,
            IssueTicketError::Proof(ProofError::Unknown { .. }) => after.retirement_begun,
            _ => false,
        });
        let is_refused = before.revoked || secret.retired;
        match issued {
            Ok(issued) if is_refused && issued.is_by_latest => Err(Ended::Broken(format!(
                "a ticket {issued:?} for a key that was revoked, or a secret that was retired"
            ))),
            Ok(issued) => {
                let is_by_latest = issued.is_by_latest;
                let fact = IssuedFact::new(issued, index, secret);
                self.facts().issued.push(fact);
                if !is_by_latest {
                    self.work.world.plan().note(Fault::TicketAsRead);
                    return Err(Ended::AsRead);
                }
                Ok(())
            }
            Err(ended) => {
                if is_refused && matches!(ended, Ended::Judged) {
                    self.work.world.plan().note(Fault::TicketRefused);
                }
                Err(ended)
            }
        }
    }

    /// One step of a rotation of the CA, drawn without regard to those before it.
    async fn rotate_root(&self) -> Result<(), Ended> {
        let random = self.work.world.random();
        let all = foundations();
        let record = &all[random.index(all.len())].authority;
        let digest = record.root().digest();
        let (registry, root, origin) = (&self.registry, &self.root, &self.origin);
        match random.index(4) {
            0 | 1 => judged(registry.trust_root(root, record, origin).await, |_| false),
            2 => judged(registry.issue_from(root, digest, origin).await, |_| true),
            _ => {
                self.facts().drop_begun = true;
                judged(registry.drop_root(root, digest, origin).await, |_| true)
            }
        }
    }
}

impl Workload {
    /// Each process reads and changes the trust of the cluster once more, after all is mended.
    pub(super) async fn trust_again(&self, one: &One<'_>) -> End {
        match self.shape.trust_per_mille {
            0 => End::Done,
            _ => one.trust_at_last().await,
        }
    }
}
