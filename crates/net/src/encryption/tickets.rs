//! Tickets in hellos: shown by a client on each connection that it makes, judged by the server that accepts it.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use areo_core::config::ServerId;
use areo_trust::ticket::{Holder, Possession, SIGNATURE_BYTES, Ticket, TicketError, Verifier};
use areo_wire::frame::Refusal;
use areo_wire::hello::Hello;
use bytes::Bytes;
use tokio::sync::Notify;

use super::{Binding, Current, Origin, Tls};

/// A ticket with the key of the process that it names.
#[derive(Clone, Debug)]
pub struct Bearer {
    /// The ticket as the cluster signed it.
    pub ticket: Bytes,
    /// The key of this process.
    pub holder: Arc<Holder>,
}

/// A caller that is not let in for its ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotAdmitted {
    /// The server does not know yet which keys sign tickets.
    NotReady,
    /// The ticket does not count.
    Ticket(TicketError),
}

impl NotAdmitted {
    /// The refusal, and the sentence that explains it.
    pub(crate) fn refusal(&self) -> (Refusal, Option<String>) {
        match self {
            NotAdmitted::NotReady => (Refusal::Starting, None),
            NotAdmitted::Ticket(error) => (Refusal::Unauthorised, Some(error.to_string())),
        }
    }
}

/// The renewal of the ticket that a process shows.
#[derive(Debug, Default)]
pub(super) struct Renewal {
    /// True if a task renews the ticket.
    is_kept: AtomicBool,
    /// A server took the ticket no longer.
    wanted: Notify,
}

impl Tls {
    /// Says that the caller renews the ticket whenever [`Tls::ticket_wanted`] returns, so that a server that takes it no
    /// longer counts as out of reach meanwhile.
    pub fn renew_tickets(&self) {
        self.renewal.is_kept.store(true, Ordering::Relaxed);
    }

    /// Ends the renewal: a server that does not take the ticket then refuses requests.
    pub fn stop_renewing(&self) {
        self.renewal.is_kept.store(false, Ordering::Relaxed);
    }

    /// Waits until a server takes the ticket no longer.
    pub async fn ticket_wanted(&self) {
        self.renewal.wanted.notified().await;
    }

    /// A server took the ticket no longer. True: there will be another one.
    pub(crate) fn ask_for_ticket(&self) -> bool {
        let is_kept = self.renewal.is_kept.load(Ordering::Relaxed);
        if is_kept {
            self.renewal.wanted.notify_one();
        }
        is_kept
    }

    /// Shows this ticket on connections that are made from now on. Open ones stay as they are, until the server closes them because
    /// their ticket counts no longer.
    pub fn bear(&self, bearer: Bearer) {
        self.replace(|current| current.bearer = Some(Arc::new(bearer)));
    }

    /// Judges tickets by this from now on, also those of open connections.
    pub fn verify_by(&self, verifier: Verifier) {
        self.replace(|current| current.verifier = Some(Arc::new(verifier)));
    }

    fn replace(&self, change: impl FnOnce(&mut Current)) {
        let mut current = self.write();
        let mut next = Current::clone(&current);
        change(&mut next);
        *current = Arc::new(next);
    }

    /// The hello with this process's ticket, if it has one, for a server of the cluster on this session.
    pub(crate) fn with_ticket(&self, hello: Hello, server: ServerId, binding: Binding) -> Hello {
        let current = self.current();
        // A process that knows a digest alone does not know yet which cluster its ticket is of.
        let (Some(bearer), Some(endpoint)) = (&current.bearer, current.known.endpoint()) else {
            return hello;
        };
        let possession = Possession {
            cluster: endpoint.cluster,
            server,
            binding,
        };
        let proof: [u8; SIGNATURE_BYTES] = bearer.holder.prove(&possession);
        hello.with_ticket(&bearer.ticket, &proof)
    }

    /// The caller of a hello to this server: the holder of the ticket in it, or `shown` if there is none.
    pub(crate) fn admit(
        &self,
        hello: &Hello,
        shown: Origin,
        (server, binding): (ServerId, Binding),
    ) -> Result<Origin, NotAdmitted> {
        let Some((ticket, proof)) = hello.ticket() else {
            return Ok(shown);
        };
        let current = self.current();
        let verifier = current.verifier.as_ref().ok_or(NotAdmitted::NotReady)?;
        let ticket = verifier.verify(ticket, current.now_seconds());
        let ticket = ticket.map_err(NotAdmitted::Ticket)?;
        let possession = Possession {
            cluster: verifier.cluster,
            server,
            binding,
        };
        let held = ticket.is_held(&possession, proof);
        held.map_err(NotAdmitted::Ticket)?;
        Ok(Origin::Key(Rc::new(ticket)))
    }

    /// Judges the ticket of an open connection again.
    pub(crate) fn still_counts(&self, ticket: &Ticket) -> Result<(), TicketError> {
        let current = self.current();
        match &current.verifier {
            Some(verifier) => verifier.still_counts(ticket, current.now_seconds()),
            // There was one when the connection was made.
            None => Ok(()),
        }
    }
}
