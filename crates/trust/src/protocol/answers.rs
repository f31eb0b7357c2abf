//! Answers as bytes.

use bytes::Bytes;
use rustls::pki_types::CertificateDer;

use areo_core::config::ServerId;
use areo_core::tlv::{self, TlvError};

use super::ask::secret;
use super::fields::{
    ADDRESS, CERTIFICATE, DIGEST, Fields, GENERATION, ISSUING, KEY, KIND, MORE, NAME, OWN, PROOF,
    REVOKED, ROOTS, ROTATING, ROW, SECONDS, SECRET, SENTENCE, SERVER, TICKET, TOKEN, TRUSTED, WHAT,
    Writer,
};
use super::{
    GatewayCertificate, JoinAnswer, KeyRow, Page, ProtocolError, RefusalKind, TicketAnswer,
    TokenRow, TrustAnswer, TrustRefusal,
};
use crate::id::{KeyId, TokenId};
use crate::key::AccessKey;
use crate::registry::{Actor, AuditRecord, AuthorityRow, Origin, What};
use crate::roots::{MAX_CERTIFICATE_BYTES, RootDigest, Roots};
use crate::secret::Secret;
use crate::token::JoinToken;

const TICKET_IS: u8 = 1;
const JOINED: u8 = 2;
const STANDING: u8 = 3;
const TOKEN_IS: u8 = 4;
const TOKENS: u8 = 5;
const KEY_IS: u8 = 6;
const KEYS: u8 = 7;
const AUTHORITIES: u8 = 8;
const AUTHORITY: u8 = 9;
const AUDIT: u8 = 10;
const DONE: u8 = 11;
const REFUSED: u8 = 12;
const SIGNING_KEYS: u8 = 13;
const GATEWAY_CERTIFICATE: u8 = 14;

impl TrustAnswer {
    /// The answer as bytes. They go into a connection, whose buffers are not wiped: an answer with a secret is for an encrypted one.
    pub fn encode(&self) -> Bytes {
        let writer = match self {
            TrustAnswer::Ticket(answer) => {
                let out = Writer::new(TICKET_IS)
                    .put(TICKET, &answer.ticket)
                    .put(PROOF, &answer.answer)
                    .put(ROOTS, &answer.roots.encode());
                let put = |out: Writer, also: &CertificateDer<'_>| out.put(CERTIFICATE, also);
                answer.other_certificates.iter().fold(out, put)
            }
            TrustAnswer::Joined(answer) => Writer::new(JOINED)
                .put(SECRET, answer.cluster_key.expose())
                .put(CERTIFICATE, &answer.certificate)
                .put(ROOTS, &answer.roots.encode()),
            TrustAnswer::Standing {
                issuer,
                trusted,
                generation,
            } => {
                let out = Writer::new(STANDING)
                    .if_some(*issuer, |out, digest| out.put(DIGEST, &digest.0))
                    .u32(GENERATION, *generation);
                let put = |out: Writer, digest: &RootDigest| out.put(TRUSTED, &digest.0);
                trusted.iter().fold(out, put)
            }
            TrustAnswer::Token(token) => Writer::new(TOKEN_IS)
                .put(DIGEST, &token.root.0)
                .u64(TOKEN, token.id.0)
                .put(SECRET, token.secret.expose()),
            TrustAnswer::Tokens(page) => page.put(Writer::new(TOKENS), put_token),
            TrustAnswer::Key(key) => Writer::new(KEY_IS)
                .u64(KEY, key.id.0)
                .put(SECRET, key.secret.expose()),
            TrustAnswer::Keys(page) => page.put(Writer::new(KEYS), put_key),
            TrustAnswer::Authorities(rows) => {
                put_rows(Writer::new(AUTHORITIES), rows, put_authority)
            }
            TrustAnswer::Authority { digest } => Writer::new(AUTHORITY).put(DIGEST, &digest.0),
            TrustAnswer::Audit { rows, next } => put_rows(Writer::new(AUDIT), rows, put_change)
                .if_some(*next, |out, next| out.u32(MORE, next)),
            TrustAnswer::SigningKeys(keys) => {
                let put = |out: Writer, key: &Secret| out.put(SECRET, key.expose());
                keys.iter().fold(Writer::new(SIGNING_KEYS), put)
            }
            TrustAnswer::GatewayCertificate(GatewayCertificate { certificate, roots }) => {
                Writer::new(GATEWAY_CERTIFICATE)
                    .put(CERTIFICATE, certificate)
                    .put(ROOTS, &roots.encode())
            }
            TrustAnswer::Done => Writer::new(DONE),
            TrustAnswer::Refused(refusal) => Writer::new(REFUSED)
                .byte(WHAT, refusal.kind as u8)
                .put(SENTENCE, refusal.sentence.as_bytes()),
        };
        writer.bytes()
    }

    /// Reads what [`TrustAnswer::encode`] wrote.
    ///
    /// # Errors
    /// [`ProtocolError`].
    pub fn decode(bytes: &[u8]) -> Result<TrustAnswer, ProtocolError> {
        let mut fields = Fields::read(bytes)?;
        let kind = fields.byte(KIND)?;
        let answer = read(kind, &mut fields)?;
        fields.finish()?;
        Ok(answer)
    }
}

fn read(kind: u8, fields: &mut Fields<'_>) -> Result<TrustAnswer, ProtocolError> {
    Ok(match kind {
        TICKET_IS => TrustAnswer::Ticket(TicketAnswer {
            ticket: Bytes::copy_from_slice(fields.one(TICKET)?),
            answer: fields.number(PROOF)?,
            roots: Roots::decode(fields.one(ROOTS)?)?,
            other_certificates: {
                let also = fields.all(CERTIFICATE).into_iter();
                also.map(certificate).collect::<Result<_, _>>()?
            },
        }),
        JOINED => TrustAnswer::Joined(JoinAnswer {
            cluster_key: secret(SECRET, fields.one(SECRET)?)?,
            certificate: certificate(fields.one(CERTIFICATE)?)?,
            roots: Roots::decode(fields.one(ROOTS)?)?,
        }),
        STANDING => TrustAnswer::Standing {
            issuer: fields.maybe_number(DIGEST)?.map(RootDigest),
            trusted: digests(fields)?,
            generation: fields.u32(GENERATION)?,
        },
        TOKEN_IS => TrustAnswer::Token(JoinToken {
            root: RootDigest(fields.number(DIGEST)?),
            id: TokenId(fields.u64(TOKEN)?),
            secret: secret(SECRET, fields.one(SECRET)?)?,
        }),
        TOKENS => TrustAnswer::Tokens(Page::read(fields, token)?),
        KEY_IS => TrustAnswer::Key(AccessKey {
            id: KeyId(fields.u64(KEY)?),
            secret: secret(SECRET, fields.one(SECRET)?)?,
        }),
        KEYS => TrustAnswer::Keys(Page::read(fields, key)?),
        AUTHORITIES => TrustAnswer::Authorities(rows(fields, authority)?),
        AUTHORITY => TrustAnswer::Authority {
            digest: RootDigest(fields.number(DIGEST)?),
        },
        AUDIT => TrustAnswer::Audit {
            rows: rows(fields, change)?,
            next: fields.maybe_number(MORE)?.map(u32::from_le_bytes),
        },
        SIGNING_KEYS => TrustAnswer::SigningKeys(signing_keys(fields)?),
        GATEWAY_CERTIFICATE => TrustAnswer::GatewayCertificate(GatewayCertificate {
            certificate: certificate(fields.one(CERTIFICATE)?)?,
            roots: Roots::decode(fields.one(ROOTS)?)?,
        }),
        DONE => TrustAnswer::Done,
        REFUSED => TrustAnswer::Refused(TrustRefusal {
            kind: RefusalKind::of(fields.byte(WHAT)?),
            sentence: fields.text(SENTENCE)?,
        }),
        kind => return Err(ProtocolError::Kind { kind }),
    })
}

impl<R> Page<R> {
    fn put(&self, out: Writer, put: fn(&R) -> Writer) -> Writer {
        put_rows(out, &self.rows, put).mark(MORE, self.has_more)
    }

    fn read(fields: &mut Fields<'_>, row: ReadRow<R>) -> Result<Page<R>, ProtocolError> {
        Ok(Page {
            rows: rows(fields, row)?,
            has_more: fields.mark(MORE)?,
        })
    }
}

/// Reads the fields of one row.
type ReadRow<R> = fn(&mut Fields<'_>) -> Result<R, ProtocolError>;

fn put_rows<R>(mut out: Writer, rows: &[R], put: fn(&R) -> Writer) -> Writer {
    for row in rows {
        out = out.put(ROW, &put(row).bytes());
    }
    out
}

fn rows<R>(fields: &mut Fields<'_>, read: ReadRow<R>) -> Result<Vec<R>, ProtocolError> {
    let mut rows = Vec::new();
    for bytes in fields.all(ROW) {
        let mut fields = Fields::read(bytes)?;
        rows.push(read(&mut fields)?);
        fields.finish()?;
    }
    Ok(rows)
}

fn put_token(row: &TokenRow) -> Writer {
    Writer::row()
        .u64(TOKEN, row.id.0)
        .u64(SECONDS, row.expires_seconds)
        .if_some(row.used_by, |out, by| out.u128(SERVER, by.0))
        .if_some(row.revoked_seconds, |out, at| out.u64(REVOKED, at))
}

fn token(fields: &mut Fields<'_>) -> Result<TokenRow, ProtocolError> {
    let used_by = fields.maybe_number(SERVER)?.map(u128::from_le_bytes);
    Ok(TokenRow {
        id: TokenId(fields.u64(TOKEN)?),
        expires_seconds: fields.u64(SECONDS)?,
        used_by: used_by.map(ServerId),
        revoked_seconds: fields.maybe_u64(REVOKED)?,
    })
}

fn put_key(row: &KeyRow) -> Writer {
    Writer::row()
        .u64(KEY, row.id.0)
        .put(NAME, row.name.as_bytes())
        .grants(&row.grants)
        .mark(ROTATING, row.is_rotating)
        .if_some(row.revoked_seconds, |out, at| out.u64(REVOKED, at))
}

fn key(fields: &mut Fields<'_>) -> Result<KeyRow, ProtocolError> {
    Ok(KeyRow {
        id: KeyId(fields.u64(KEY)?),
        name: fields.text(NAME)?,
        grants: fields.grants()?,
        is_rotating: fields.mark(ROTATING)?,
        revoked_seconds: fields.maybe_u64(REVOKED)?,
    })
}

fn put_authority(row: &AuthorityRow) -> Writer {
    Writer::row()
        .put(DIGEST, &row.digest.0)
        .u64(SECONDS, row.since_seconds)
        .mark(ISSUING, row.is_issuing)
        .mark(OWN, row.is_own)
}

fn authority(fields: &mut Fields<'_>) -> Result<AuthorityRow, ProtocolError> {
    Ok(AuthorityRow {
        digest: RootDigest(fields.number(DIGEST)?),
        since_seconds: fields.u64(SECONDS)?,
        is_issuing: fields.mark(ISSUING)?,
        is_own: fields.mark(OWN)?,
    })
}

fn put_change(row: &AuditRecord) -> Writer {
    let origin = &row.origin;
    let out = Writer::row()
        .u32(GENERATION, row.generation)
        .byte(WHAT, row.what as u8)
        .put(NAME, row.about.as_bytes())
        .u64(SECONDS, origin.now_seconds)
        .put(ADDRESS, origin.address.as_bytes());
    match origin.by {
        Actor::Key(key) => out.u64(KEY, key.0),
        Actor::Server(server) => out.u128(SERVER, server.0),
        Actor::Founder => out,
    }
}

fn change(fields: &mut Fields<'_>) -> Result<AuditRecord, ProtocolError> {
    let server = fields.maybe_number(SERVER)?.map(u128::from_le_bytes);
    let by = match (fields.maybe_u64(KEY)?, server) {
        (None, None) => Actor::Founder,
        (Some(key), None) => Actor::Key(KeyId(key)),
        (None, Some(server)) => Actor::Server(ServerId(server)),
        (Some(_), Some(_)) => return Err(TlvError::Invalid { kind: SERVER }.into()),
    };
    let what = What::of(fields.byte(WHAT)?);
    Ok(AuditRecord {
        generation: fields.u32(GENERATION)?,
        origin: Origin {
            by,
            address: fields.text(ADDRESS)?,
            now_seconds: fields.u64(SECONDS)?,
        },
        what: what.ok_or(TlvError::Invalid { kind: WHAT })?,
        about: fields.text(NAME)?,
    })
}

/// One, or two of a key that is rotated.
fn signing_keys(fields: &mut Fields<'_>) -> Result<Vec<Secret>, ProtocolError> {
    let keys = fields.all(SECRET);
    if keys.is_empty() || keys.len() > 2 {
        return Err(TlvError::Invalid { kind: SECRET }.into());
    }
    keys.into_iter().map(|key| secret(SECRET, key)).collect()
}

fn digests(fields: &mut Fields<'_>) -> Result<Vec<RootDigest>, ProtocolError> {
    let digest = |value| tlv::number(TRUSTED, value).map(RootDigest);
    let digests: Result<_, TlvError> = fields.all(TRUSTED).into_iter().map(digest).collect();
    Ok(digests?)
}

fn certificate(der: &[u8]) -> Result<CertificateDer<'static>, ProtocolError> {
    match der.len() <= MAX_CERTIFICATE_BYTES {
        true => Ok(CertificateDer::from(der.to_vec())),
        false => Err(TlvError::Invalid { kind: CERTIFICATE }.into()),
    }
}
