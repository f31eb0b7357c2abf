//! A client proves its key: when it connects, again before its ticket ends, and whenever a server takes the ticket no longer.
//!
//! The proof goes to one server, which answers with a ticket; each server judges that alone. A server that is down, or has not read the log of trust
//! yet, is passed over.

use crate::connect::{Attempt, ConnectError};
use areo_net::network::{BootstrapError, Contact, Network, TrustResponse};
use areo_net::{Bearer, Role, Tls};
use areo_trust::SKEW_SECONDS;
use areo_trust::grant::{Grants, Need};
use areo_trust::id::KeyId;
use areo_trust::key::{AccessKey, Prover};
use areo_trust::protocol::{
    Ask, KeyProof, ProofSite, RefusalKind, TicketAnswer, TrustAnswer, TrustRefusal,
};
use areo_trust::secret;
use areo_trust::ticket::{Holder, TICKET_SECONDS, Ticket};
use areo_trust::tls::DefaultTimeProvider;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::{JoinSet, spawn_local};
use tokio::time::{sleep, timeout};

/// Other addresses are asked as well once those asked have not answered for so long: one at first, and each time twice as many, so that any number of
/// silent servers takes little time.
const NEXT_AFTER: Duration = Duration::from_millis(100);
/// The number of times for which the number of addresses grows.
const MOST_DOUBLINGS: u32 = 4;
/// The longest wait for one server.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause before all are asked again.
const AGAIN: Duration = Duration::from_millis(50);
/// A ticket is renewed after half of its life.
const RENEWAL: Duration = Duration::from_secs(TICKET_SECONDS / 2);
/// The pause between two attempts to renew a ticket.
const RENEW_AGAIN: Duration = Duration::from_secs(1);
/// The pause before a key is proven again that was refused.
const ASK_ANYWAY: Duration = Duration::from_secs(30);

/// The key of a client, with what it proves itself by.
pub(crate) struct KeyHolder {
    key: AccessKey,
    /// The other key on whose behalf the tickets are, if this process is a gateway.
    behalf: Option<KeyId>,
    tls: Tls,
    holder: Arc<Holder>,
    is_kept: Cell<bool>,
    /// The key of the present ticket, and its grants.
    grants: RefCell<Option<(KeyId, Grants)>>,
}

/// The reason why a server issued no ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NoTicket {
    /// The cluster does not take the key.
    Refused { sentence: String },
    /// The other end speaks no TLS, or is no server of areo.
    Distrusted { sentence: String },
    /// The server issues no ticket now.
    Passed { reason: String },
}

/// The outcomes at addresses.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// A reason for each address why it gives no ticket now.
    reasons: Vec<String>,
    /// The sentence of one where no server of a cluster with keys answers.
    distrusted: Option<String>,
}

impl KeyHolder {
    /// Proves the key for the first time. Where no server of a cluster with keys answers there is no need to look whether it runs.
    ///
    /// # Errors
    /// [`ConnectError::NoServer`], [`ConnectError::Unauthorised`].
    pub(crate) async fn begin(
        self: &Rc<Self>,
        addresses: &[String],
        time: Duration,
    ) -> Result<(), ConnectError> {
        let mut attempts = Attempts::default();
        let proven = self.prove(addresses, time, &mut attempts).await;
        proven.map_err(|error| match (error, attempts.distrusted) {
            (ConnectError::NoServer { .. }, Some(sentence)) => {
                ConnectError::Unauthorised { sentence }
            }
            (error, _) => error,
        })
    }

    /// Makes the key of this process.
    pub(crate) fn new(
        key: AccessKey,
        behalf: Option<KeyId>,
        tls: Tls,
    ) -> Result<KeyHolder, secret::NoRandomness> {
        Ok(KeyHolder {
            key,
            behalf,
            tls,
            holder: Arc::new(Holder::create()?),
            is_kept: Cell::new(false),
            grants: RefCell::default(),
        })
    }

    /// Proves the key to one of these addresses, within this time, and shows the ticket from now on.
    ///
    /// # Errors
    /// [`ConnectError::NoServer`], [`ConnectError::Unauthorised`].
    pub(crate) async fn prove(
        self: &Rc<Self>,
        addresses: &[String],
        time: Duration,
        attempts: &mut Attempts,
    ) -> Result<(), ConnectError> {
        let begun = Instant::now();
        let network = &proving_network();
        attempts.reasons = vec![String::new(); addresses.len()];
        loop {
            let left = time.saturating_sub(begun.elapsed());
            let round = self.prove_to_one(network, addresses, attempts);
            match timeout(left, round).await {
                Ok(Ok(true)) => return Ok(()),
                Ok(Ok(false)) if begun.elapsed() + AGAIN < time => sleep(AGAIN).await,
                Ok(Err(sentence)) => return Err(ConnectError::Unauthorised { sentence }),
                Ok(Ok(false)) | Err(_) => break,
            }
        }
        let reasons = std::mem::take(&mut attempts.reasons);
        let outcome = |(address, reason): (&String, String)| Attempt {
            address: address.clone(),
            reason: match reason.is_empty() {
                true => "timed out".to_owned(),
                false => reason,
            },
        };
        Err(ConnectError::NoServer {
            cluster: None,
            attempts: addresses.iter().zip(reasons).map(outcome).collect(),
        })
    }

    /// Asks one address after the other until there is a ticket. False: none gives one now; the error is the sentence of one that does not take the
    /// key, where no other one gives a ticket. A ticket of another time than this machine's is taken if no other one comes: the other servers refuse
    /// it where the clock of the one that issued it is wrong.
    async fn prove_to_one(
        self: &Rc<Self>,
        network: &Network,
        addresses: &[String],
        attempts: &mut Attempts,
    ) -> Result<bool, String> {
        let mut asked = JoinSet::new();
        let mut next = addresses.iter().enumerate();
        let (mut refused, mut doubtful) = (None, None);
        let (mut due, mut silences) = (1, 0);
        loop {
            let is_last = next.len() == 0;
            for (position, address) in next.by_ref().take(due) {
                let (holder, network, address) =
                    (Rc::clone(self), network.clone(), address.clone());
                asked.spawn_local(async move { (position, holder.ask(&network, &address).await) });
            }
            let wait = match is_last && doubtful.is_none() {
                true => PATIENCE * 2,
                false => NEXT_AFTER,
            };
            due = 1;
            let ended = match timeout(wait, asked.join_next()).await {
                Ok(Some(ended)) => ended,
                Err(_) if doubtful.is_none() || next.len() > 0 => {
                    silences += 1;
                    due = 1 << silences.min(MOST_DOUBLINGS);
                    continue;
                }
                Ok(None) | Err(_) => break,
            };
            let (position, outcome) = ended.expect("asking does not panic, and is not cancelled");
            match outcome {
                Ok((cluster, answer)) if is_of_now(&answer.ticket) => {
                    self.take(cluster, answer)?;
                    return Ok(true);
                }
                Ok(answered) => doubtful = doubtful.or(Some(answered)),
                // The server that refuses has not proven the key itself, so that its word is not final: another server may give a ticket.
                Err(NoTicket::Refused { sentence }) => refused = Some(sentence),
                Err(NoTicket::Passed { reason }) => attempts.reasons[position] = reason,
                Err(NoTicket::Distrusted { sentence }) => {
                    attempts.reasons[position].clone_from(&sentence);
                    attempts.distrusted = Some(sentence);
                }
            }
        }
        match (doubtful, refused) {
            (Some((cluster, answer)), _) => self.take(cluster, answer).map(|()| true),
            (None, Some(sentence)) => Err(sentence),
            (None, None) => Ok(false),
        }
    }

    async fn ask(
        &self,
        network: &Network,
        address: &str,
    ) -> Result<(u128, TicketAnswer), NoTicket> {
        let mut sent = None;
        let prove = |contact: &Contact| {
            let (proof, site) = self.proof(contact);
            sent = Some((proof, site));
            Ask::Prove(proof)
        };
        let passed = |reason: String| NoTicket::Passed { reason };
        let asked = network.ask_trust(address, PATIENCE, prove).await;
        let TrustResponse { contact, answer } = asked.map_err(|error| match error.cause {
            BootstrapError::Distrusted { sentence } => NoTicket::Distrusted { sentence },
            cause => passed(cause.to_string()),
        })?;
        let (proof, site) = sent.expect("it was sent");
        match answer {
            TrustAnswer::Ticket(ticket) => {
                let exchange = proof.exchange(&site);
                let is_proven =
                    exchange.is_proven(&self.key.secret, Prover::Server, &ticket.answer);
                if !is_proven {
                    return Err(passed("it does not know the key itself".to_owned()));
                }
                // Other holders of the key know it, too: once there is a CA to judge by, a server has a certificate that counts.
                contact.judge(&self.tls, &ticket.other_certificates).map_err(|error| {
                    tracing::warn!(%address, %error, "not believed, although it knows the access key");
                    passed(error.to_string())
                })?;
                Ok((site.cluster, ticket))
            }
            TrustAnswer::Refused(TrustRefusal { kind, sentence }) => match kind {
                // Not found: the key on whose behalf the ticket is to be.
                RefusalKind::Unauthorised | RefusalKind::NotFound => {
                    Err(NoTicket::Refused { sentence })
                }
                _ => Err(passed(sentence)),
            },
            _ => Err(passed("what answers there makes no sense".to_owned())),
        }
    }

    /// The proof for one connection.
    fn proof(&self, contact: &Contact) -> (KeyProof, ProofSite) {
        let site = ProofSite {
            cluster: contact.cluster,
            server: contact.server,
            binding: contact
                .binding
                .expect("each connection of a key is encrypted"),
        };
        let holder = self.holder.public();
        let at = (&site, &secret::system as &secret::RandomSource);
        let proof = KeyProof::on_behalf(&self.key, self.behalf, holder, at);
        (
            proof.expect("there was entropy for the key of this process"),
            site,
        )
    }

    /// The sentence about a grant that the present ticket lacks: it has none of these.
    pub(super) fn lacks(&self, needs: &[Need<'_>]) -> Option<String> {
        let grants = self.grants.borrow();
        let (key, grants) = grants.as_ref()?;
        let mut lacking = None;
        for need in needs {
            match grants.demand(*key, need) {
                Ok(()) => return None,
                Err(error) => lacking = lacking.or(Some(error.to_string())),
            }
        }
        lacking
    }

    /// Shows the ticket from now on, and trusts what the cluster trusts.
    fn take(&self, cluster: u128, answer: TicketAnswer) -> Result<(), String> {
        let trusted = self.tls.trust(cluster, &answer.roots);
        trusted.map_err(|error| error.to_string())?;
        self.grants.replace(Ticket::grants_of(&answer.ticket));
        self.tls.bear(Bearer {
            ticket: answer.ticket,
            holder: Arc::clone(&self.holder),
        });
        Ok(())
    }
}

/// True if a ticket was issued about now, by the clock of this machine. A ticket that cannot be read is judged by servers alone.
fn is_of_now(ticket: &[u8]) -> bool {
    let now = SystemTime::UNIX_EPOCH.elapsed();
    let now_seconds = now.unwrap_or_default().as_secs();
    let issued = Ticket::issued_at(ticket);
    issued.is_none_or(|seconds| seconds.abs_diff(now_seconds) <= SKEW_SECONDS)
}

/// Connections on which a key is proven. The server is known by its proof of the key, not by its certificate, whose CA may be new to this
/// process. They carry no ticket: the present one may be the reason for which another one is wanted.
fn proving_network() -> Network {
    let own_id = u128::from(getrandom::u64().expect("the operating system gives entropy"));
    let tls = Tls::of_prover(Arc::new(DefaultTimeProvider));
    Network::with_tls(Role::Client, own_id, Some(tls))
}

impl KeyHolder {
    /// Renews the ticket for as long as the client lives. `client` returns its network and the addresses of servers; `None`: it has ended. The first
    /// call counts.
    pub(super) fn keep(
        self: &Rc<Self>,
        client: impl Fn() -> Option<(Network, Vec<String>)> + 'static,
    ) {
        if !self.is_kept.replace(true) {
            self.tls.renew_tickets();
            let holder = Rc::clone(self);
            drop(spawn_local(async move { renew(&holder, client).await }));
        }
    }
}

async fn renew(holder: &Rc<KeyHolder>, client: impl Fn() -> Option<(Network, Vec<String>)>) {
    loop {
        // Either way it is time for another one.
        let _ = timeout(RENEWAL, holder.tls.ticket_wanted()).await;
        loop {
            let Some((network, addresses)) = client() else {
                return;
            };
            match holder
                .prove(&addresses, PATIENCE, &mut Attempts::default())
                .await
            {
                Ok(()) => {
                    holder.tls.renew_tickets();
                    network.hurry();
                    // A server that does not answer with a good certificate either way is no reason for a ticket each moment.
                    sleep(RENEW_AGAIN).await;
                    break;
                }
                Err(ConnectError::Unauthorised { sentence }) => {
                    tracing::warn!(%sentence, "the access key is not taken any more");
                    holder.tls.stop_renewing();
                    // The end that said so may be no server of the cluster.
                    sleep(ASK_ANYWAY).await;
                }
                Err(error) => tracing::debug!(%error, "the ticket is not renewed yet"),
            }
            sleep(RENEW_AGAIN).await;
        }
    }
}

#[cfg(test)]
mod tests;
