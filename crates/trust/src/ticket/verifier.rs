//! The judge of tickets, which each server has.

use std::collections::{BTreeMap, BTreeSet};

use ring::signature::{ED25519, UnparsedPublicKey};

use super::{
    MAX_TICKET_BYTES, PublicKey, SIGNATURE_BYTES, Standing, TICKET_MARK, Ticket, TicketError,
};
use crate::SKEW_SECONDS;
use crate::id::KeyId;

/// Everything by which a server judges tickets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifier {
    pub cluster: u128,
    /// The public keys that count: one, or two while the signing key is changed.
    pub signers: Vec<PublicKey>,
    /// Keys that were revoked.
    pub revoked: BTreeSet<KeyId>,
    /// The least standing of a ticket that counts, of keys that were rotated or have other grants.
    pub least: BTreeMap<KeyId, Standing>,
}

impl Verifier {
    /// Judges a ticket. The signature is first: nothing of a ticket is read before it.
    ///
    /// # Errors
    /// [`TicketError`].
    pub fn verify(&self, bytes: &[u8], now_seconds: u64) -> Result<Ticket, TicketError> {
        let length = TicketError::Length { bytes: bytes.len() };
        if bytes.len() > MAX_TICKET_BYTES {
            return Err(length);
        }
        let (signature, fields) = bytes.split_at_checked(SIGNATURE_BYTES).ok_or(length)?;
        let message = [TICKET_MARK, fields].concat();
        let signed = |signer: &PublicKey| {
            let key = UnparsedPublicKey::new(&ED25519, signer);
            key.verify(&message, signature).is_ok()
        };
        if !self.signers.iter().any(signed) {
            return Err(TicketError::Signature);
        }
        let ticket = Ticket::decode(fields)?;
        if ticket.cluster != self.cluster {
            return Err(TicketError::OtherCluster {
                expected: self.cluster,
                found: ticket.cluster,
            });
        }
        self.still_counts(&ticket, now_seconds)?;
        Ok(ticket)
    }

    /// Judges a verified ticket again, later on the same connection: its time may be over, its key revoked, its secret retired, its grants
    /// changed. A ticket that a gateway has on behalf of a key ends with either of the two keys.
    ///
    /// # Errors
    /// [`TicketError::Expired`], [`TicketError::NotYet`], [`TicketError::Revoked`], [`TicketError::Retired`],
    /// [`TicketError::GrantsChanged`].
    pub fn still_counts(&self, ticket: &Ticket, now_seconds: u64) -> Result<(), TicketError> {
        if now_seconds >= ticket.expires_seconds.saturating_add(SKEW_SECONDS) {
            let seconds = now_seconds - ticket.expires_seconds;
            return Err(TicketError::Expired { seconds });
        }
        if ticket.issued_seconds > now_seconds.saturating_add(SKEW_SECONDS) {
            let seconds = ticket.issued_seconds - now_seconds;
            return Err(TicketError::NotYet { seconds });
        }
        if let Some(gateway) = &ticket.gateway {
            self.key_counts(gateway.key, gateway.standing)?;
        }
        self.key_counts(ticket.key, ticket.standing)
    }

    /// Judges one of the keys that a ticket names.
    fn key_counts(&self, key: KeyId, standing: Standing) -> Result<(), TicketError> {
        if self.revoked.contains(&key) {
            return Err(TicketError::Revoked { key });
        }
        let least = self.least.get(&key).copied().unwrap_or_default();
        if standing.secret < least.secret {
            return Err(TicketError::Retired { key });
        }
        if standing.grants < least.grants {
            return Err(TicketError::GrantsChanged { key });
        }
        Ok(())
    }
}
