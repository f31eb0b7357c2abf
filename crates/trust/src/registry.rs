//! The trust of a cluster as it is kept: its CAs, join tokens and access keys, with one winner for each change.
//!
//! All of it is one log (`[X-42 one-trust-log]`): a chain of decided-once cells of the root domain (`areo_core::manager::chains`), each of which is a change. A change is
//! judged by the state that all changes before it make, and proposed as the next one; a server that loses reads what won, and judges
//! again. So two servers with one token have one winner, a token that is revoked while it is used is one or the other, and a
//! rotation is a sequence of steps that each were decided once. The log names who made a change, from where and when: it is the audit
//! record, too.
//!
//! An entry is sealed as a whole under the cluster key, which each server has in its data directory, for its place in the log: it cannot be read,
//! changed or moved without that key, and one that was made without it is an error at every server.
//!
//! A [`Registry`] has read the log up to some generation. [`Registry::refresh`] asks for the next one: one round of the root domain where nothing
//! has changed. Every change and every ticket begins with it, so that it knows all that was acknowledged before. Where the root domain does not answer, a
//! ticket is issued by what was read last ([`Registry::issue_ticket`]).
//!
//! | module | |
//! |---|---|
//! | `entry` | a change as bytes |
//! | `state` | the fold of changes |
//! | `kept` | the part of it that a server keeps on its disk |
//! | `authority`, `tokens`, `keys` | the changes that there are, and when they are refused |
//! | `signing` | signing keys for gateways |
//! | `answer` | who may ask for a change ([`crate::protocol`]) |

mod answer;
mod authority;
mod entry;
mod error;
mod kept;
mod keys;
mod signing;
mod state;
mod tokens;

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;

use bytes::Bytes;

use areo_core::env::Env;
use areo_core::manager::{AppendError, Appended, Chain, Root};

use crate::secret::{self, RandomSource, Secret};

pub use answer::AskContext;
pub use entry::{
    Actor, AuthorityRecord, Foundation, FoundationError, MAX_ADDRESS_BYTES, Origin, RecordError,
    What,
};
pub use error::{
    BearerError, ChangeKeyError, CreateKeyError, CreateTokenError, DropRootError, FoundError,
    IssueError, IssueFromError, IssueTicketError, LogError, RedeemTokenError, RevokeTokenError,
    SigningKeysError, TrustRootError,
};
pub use keys::IssuedTicket;
pub use state::{AuthorityRow, View};
pub use tokens::Redemption;

use authority::IssuedByOthers;
use entry::Content;
pub(crate) use entry::Entry;
use state::State;

/// The name of the chain.
const LOG: &str = "trust";

/// The trust of a cluster, as far as one server has read the log. The tasks of a server share one.
pub struct Registry {
    cluster: u128,
    cluster_key: Secret,
    random: Box<RandomSource>,
    /// None before the cluster was founded, or the first look.
    state: RefCell<Option<State>>,
    /// The state has seen all changes that were acknowledged before some look; until then it may be one of long ago.
    is_complete: Cell<bool>,
    /// The state of an earlier process, by which is judged until then.
    kept: RefCell<Option<State>>,
    /// The view of the state, once it was asked for.
    view: RefCell<Option<Rc<View>>>,
    /// Certificates of this server that were issued for clients.
    issued_by_others: RefCell<Option<IssuedByOthers>>,
}

/// One line of the audit record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// The place of the change.
    pub generation: u32,
    /// Origin of the change.
    pub origin: Origin,
    /// Kind of the change.
    pub what: What,
    /// Its object: the id of a token, the id and the name of a key, the digest of a root.
    pub about: String,
}

/// A part of the audit record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPage {
    /// Lines of this part.
    pub records: Vec<AuditRecord>,
    /// The last change that was looked at, if others follow it.
    pub next: Option<u32>,
}

/// The verdict of the judge of a change.
enum Verdict<R> {
    /// There is nothing to change.
    AsItIs(R),
    /// A change that is to be made, with the result of making it.
    Change(What, Content, R),
}

impl Registry {
    /// A registry that has read nothing yet.
    ///
    /// # Panics
    /// If the key does not have [`secret::SECRET_BYTES`].
    pub fn new(cluster: u128, cluster_key: Secret) -> Registry {
        Registry::with_random(cluster, cluster_key, Box::new(secret::system))
    }

    /// A registry whose secrets and nonces come from this source: for a simulation.
    ///
    /// # Panics
    /// If the key does not have [`secret::SECRET_BYTES`].
    pub fn with_random(cluster: u128, cluster_key: Secret, random: Box<RandomSource>) -> Registry {
        let bytes = cluster_key.expose().len();
        assert_eq!(bytes, secret::SECRET_BYTES, "a key that seals");
        Registry {
            cluster,
            cluster_key,
            random,
            state: RefCell::default(),
            is_complete: Cell::default(),
            kept: RefCell::default(),
            view: RefCell::default(),
            issued_by_others: RefCell::default(),
        }
    }

    /// Reads all changes that were acknowledged before this began: the server judges by them from then on. If nothing
    /// has changed it is the view of the last time.
    ///
    /// # Errors
    /// [`LogError`]. Before the cluster is founded: [`LogError::NotFounded`].
    pub async fn refresh<E: Env>(&self, root: &Root<E>) -> Result<Rc<View>, LogError> {
        self.catch_up(&root.chain(LOG)).await?;
        self.view().ok_or(LogError::NotFounded)
    }

    /// The CAs and keys by which callers are judged now, secrets included: to be sealed. None before the first look of a new server.
    pub fn keep(&self) -> Option<Secret> {
        self.judging().as_ref().map(State::keep)
    }

    /// Takes in the records that an earlier process kept. Until the log was read as a whole, callers are judged by
    /// them if the root domain does not answer.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn recall(&self, kept: &Secret) -> Result<(), RecordError> {
        *self.kept.borrow_mut() = Some(State::recall(kept)?);
        *self.view.borrow_mut() = None;
        Ok(())
    }

    /// The state by which callers are judged.
    fn judging(&self) -> Ref<'_, Option<State>> {
        match self.is_complete.get() {
            true => self.state.borrow(),
            false => self.kept.borrow(),
        }
    }

    /// The view by which a server judges: the state that was read last, or kept by an earlier process. None before the first look of a new server.
    pub fn view(&self) -> Option<Rc<View>> {
        let mut view = self.view.borrow_mut();
        if view.is_none() {
            let state = self.judging();
            *view = state
                .as_ref()
                .map(|state| Rc::new(state.view(self.cluster)));
        }
        view.clone()
    }

    /// All changes since a time, in order, by the clocks of those that made them.
    ///
    /// # Errors
    /// [`LogError`].
    pub async fn audit<E: Env>(
        &self,
        root: &Root<E>,
        since_seconds: u64,
    ) -> Result<Vec<AuditRecord>, LogError> {
        let (mut records, mut after) = (Vec::new(), None);
        loop {
            let page = self.audit_page(root, since_seconds, after).await?;
            records.extend(page.records);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(records),
            }
        }
    }

    /// The changes of one page of the log, after this one, of which those since a time are returned.
    ///
    /// # Errors
    /// [`LogError`].
    pub async fn audit_page<E: Env>(
        &self,
        root: &Root<E>,
        since_seconds: u64,
        after: Option<u32>,
    ) -> Result<AuditPage, LogError> {
        let page = root.chain(LOG).page(after).await;
        let page = page.map_err(LogError::Unavailable)?;
        let mut records = Vec::new();
        for link in page.links {
            let entry = self.open(link.generation, &link.value)?;
            if entry.origin.now_seconds >= since_seconds {
                records.push(AuditRecord {
                    generation: link.generation,
                    about: entry.about(),
                    origin: entry.origin,
                    what: entry.what,
                });
            }
        }
        let next = page.end;
        Ok(AuditPage { records, next })
    }

    /// Makes one change, if its judge finds nothing against it: as the next one after all that it was judged by.
    async fn change<E: Env, R, X: From<LogError>>(
        &self,
        root: &Root<E>,
        origin: &Origin,
        judge: impl Fn(&State) -> Result<Verdict<R>, X>,
    ) -> Result<R, X> {
        let chain = root.chain(LOG);
        loop {
            self.catch_up(&chain).await?;
            let (after, verdict) = match &*self.state.borrow() {
                None => return Err(LogError::NotFounded.into()),
                Some(state) => (state.generation, judge(state)?),
            };
            let (what, content, result) = match verdict {
                Verdict::AsItIs(result) => return Ok(result),
                Verdict::Change(what, content, result) => (what, content, result),
            };
            let entry = Entry {
                origin: origin.clone(),
                what,
                content,
            };
            if self.append(&chain, Some(after), &entry).await? {
                return Ok(result);
            }
        }
    }

    /// Proposes the entry after this generation. False: another one is there.
    async fn append<E: Env>(
        &self,
        chain: &Chain<E>,
        after: Option<u32>,
        entry: &Entry,
    ) -> Result<bool, LogError> {
        let generation = match after {
            None => 0,
            Some(after) => after.checked_add(1).ok_or(LogError::Full)?,
        };
        let purpose = self.purpose(generation);
        // The nonce is random: no two proposals are equal.
        let sealed = secret::seal(&self.cluster_key, &purpose, &entry.encode(), &*self.random)?;
        let sealed = Bytes::from(sealed);
        match chain.append(after, &sealed).await {
            Ok(Appended::Won { generation }) => {
                self.take(generation, &sealed)?;
                Ok(true)
            }
            Ok(Appended::Lost(link)) => {
                self.take(link.generation, &link.value)?;
                Ok(false)
            }
            Err(AppendError::Unavailable(unavailable)) if unavailable.handed_over => {
                Err(LogError::Unconfirmed(unavailable))
            }
            Err(AppendError::Unavailable(unavailable)) => Err(LogError::Unavailable(unavailable)),
            Err(AppendError::TooLarge { .. }) => unreachable!("each entry fits into a cell"),
            Err(AppendError::Full) => Err(LogError::Full),
        }
    }

    /// Reads on until the next change is not decided.
    async fn catch_up<E: Env>(&self, chain: &Chain<E>) -> Result<(), LogError> {
        while let Some(next) = self.next() {
            let Some(value) = chain.at(next).await.map_err(LogError::Unavailable)? else {
                break;
            };
            self.take(next, &value)?;
            // There may be many more.
            let page = chain
                .page(Some(next))
                .await
                .map_err(LogError::Unavailable)?;
            for link in page.links {
                self.take(link.generation, &link.value)?;
            }
        }
        if !self.is_complete.replace(true) {
            *self.kept.borrow_mut() = None;
            *self.view.borrow_mut() = None;
        }
        Ok(())
    }

    /// The next generation to read; none if there can be no other one.
    fn next(&self) -> Option<u32> {
        match &*self.state.borrow() {
            None => Some(0),
            Some(state) => state.generation.checked_add(1),
        }
    }

    /// Takes a change in, unless another task has.
    fn take(&self, generation: u32, sealed: &[u8]) -> Result<(), LogError> {
        if self.next() != Some(generation) {
            return Ok(());
        }
        let entry = self.open(generation, sealed)?;
        let unreadable = |error| LogError::Record { generation, error };
        let mut state = self.state.borrow_mut();
        match &mut *state {
            None => *state = Some(State::founded(generation, entry).map_err(unreadable)?),
            Some(state) => state.apply(generation, entry).map_err(unreadable)?,
        }
        *self.view.borrow_mut() = None;
        Ok(())
    }

    fn open(&self, generation: u32, sealed: &[u8]) -> Result<Entry, LogError> {
        let purpose = self.purpose(generation);
        let opened = secret::open(&self.cluster_key, &purpose, sealed)
            .map_err(|error| LogError::Sealed { generation, error })?;
        Entry::decode(&opened).map_err(|error| LogError::Record { generation, error })
    }

    /// The place of an entry, which it is sealed for.
    fn purpose(&self, generation: u32) -> String {
        format!("trust log {:032x} {generation:08x}", self.cluster)
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Registry up to {:?}", self.next())
    }
}

#[cfg(test)]
mod tests;
