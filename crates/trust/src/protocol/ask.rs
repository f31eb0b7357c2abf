//! Requests as bytes.

use bytes::Bytes;
use zeroize::Zeroizing;

use areo_core::config::ServerId;
use areo_core::tlv::{self, TlvError};

use super::fields::{
    BEHALF, CERTIFICATE, DAY, DIGEST, Fields, GENERATION, HOLDER, KEY, KIND, NAME, NONCE, PROOF,
    PUBLIC_KEY, REGION, SECONDS, SECRET, SERVER, TOKEN, Writer,
};
use super::{Ask, KeyProof, ProtocolError};
use crate::authority::PublicKey;
use crate::host::{Host, HostError, Hosts, MAX_HOSTS};
use crate::id::{KeyId, TokenId};
use crate::roots::{Root, RootDigest};
use crate::secret::{SECRET_BYTES, Secret};
use crate::signing::SigningScope;

const PROVE: u8 = 1;
const JOIN: u8 = 2;
const STANDING: u8 = 3;
const CREATE_TOKEN: u8 = 4;
const TOKENS: u8 = 5;
const REVOKE_TOKEN: u8 = 6;
const CREATE_KEY: u8 = 7;
const KEYS: u8 = 8;
const ROTATE_KEY: u8 = 9;
const RETIRE_KEY: u8 = 10;
const CHANGE_GRANTS: u8 = 11;
const REVOKE_KEY: u8 = 12;
const AUTHORITIES: u8 = 13;
const TRUST_AUTHORITY: u8 = 14;
const ISSUE_FROM: u8 = 15;
const DROP_ROOT: u8 = 16;
const AUDIT: u8 = 17;
const SIGNING_KEYS: u8 = 18;
const GATEWAY_CERTIFICATE: u8 = 19;

impl Ask {
    /// The request as bytes. They go into a connection, whose buffers are not wiped: a request with a secret is for an encrypted one.
    pub fn encode(&self) -> Bytes {
        let named = |kind, name: &str| Writer::new(kind).put(NAME, name.as_bytes());
        let writer = match self {
            Ask::Prove(proof) => Writer::new(PROVE)
                .u64(KEY, proof.key.0)
                .put(NONCE, &proof.client_nonce)
                .put(HOLDER, &proof.holder)
                .if_some(proof.behalf, |out, key| out.u64(BEHALF, key.0))
                .put(PROOF, &proof.proof),
            Ask::Join {
                token,
                secret,
                server,
                key,
            } => Writer::new(JOIN)
                .u64(TOKEN, token.0)
                .put(SECRET, secret.expose())
                .u128(SERVER, server.0)
                .put(PUBLIC_KEY, key.as_bytes()),
            Ask::Standing => Writer::new(STANDING),
            Ask::CreateToken { ttl_seconds } => {
                Writer::new(CREATE_TOKEN).u64(SECONDS, *ttl_seconds)
            }
            Ask::Tokens { after } => {
                Writer::new(TOKENS).if_some(*after, |out, id| out.u64(TOKEN, id.0))
            }
            Ask::RevokeToken { token } => Writer::new(REVOKE_TOKEN).u64(TOKEN, token.0),
            Ask::CreateKey { name, grants } => named(CREATE_KEY, name).grants(grants),
            Ask::Keys { after } => Writer::new(KEYS).if_some(*after, |out, id| out.u64(KEY, id.0)),
            Ask::RotateKey { key } => named(ROTATE_KEY, key),
            Ask::RetireKey { key } => named(RETIRE_KEY, key),
            Ask::ChangeGrants { key, grants } => named(CHANGE_GRANTS, key).grants(grants),
            Ask::RevokeKey { key } => named(REVOKE_KEY, key),
            Ask::Authorities => Writer::new(AUTHORITIES),
            Ask::TrustAuthority { root } => Writer::new(TRUST_AUTHORITY)
                .if_some(root.as_ref(), |out, root| {
                    out.put(CERTIFICATE, root.certificate())
                }),
            Ask::IssueFrom { digest } => Writer::new(ISSUE_FROM).put(DIGEST, &digest.0),
            Ask::DropRoot { digest } => Writer::new(DROP_ROOT).put(DIGEST, &digest.0),
            Ask::Audit {
                since_seconds,
                after,
            } => Writer::new(AUDIT)
                .u64(SECONDS, *since_seconds)
                .if_some(*after, |out, after| out.u32(GENERATION, after)),
            Ask::SigningKeys { key, scope } => Writer::new(SIGNING_KEYS)
                .u64(KEY, key.0)
                .u32(DAY, scope.day())
                .put(REGION, scope.region().as_bytes()),
            Ask::GatewayCertificate { hosts, key } => {
                let out = Writer::new(GATEWAY_CERTIFICATE).put(PUBLIC_KEY, key.as_bytes());
                let put = |out: Writer, host: &Host| out.put(NAME, host.to_string().as_bytes());
                hosts.all().iter().fold(out, put)
            }
        };
        writer.bytes()
    }

    /// Reads what [`Ask::encode`] wrote.
    ///
    /// # Errors
    /// [`ProtocolError`].
    pub fn decode(bytes: &[u8]) -> Result<Ask, ProtocolError> {
        let mut fields = Fields::read(bytes)?;
        let kind = fields.byte(KIND)?;
        let ask = read(kind, &mut fields)?;
        fields.finish()?;
        Ok(ask)
    }
}

fn read(kind: u8, fields: &mut Fields<'_>) -> Result<Ask, ProtocolError> {
    let digest = |fields: &mut Fields<'_>| fields.number(DIGEST).map(RootDigest);
    Ok(match kind {
        PROVE => Ask::Prove(KeyProof {
            key: KeyId(fields.u64(KEY)?),
            client_nonce: fields.number(NONCE)?,
            holder: fields.number(HOLDER)?,
            behalf: fields.maybe_u64(BEHALF)?.map(KeyId),
            proof: fields.number(PROOF)?,
        }),
        JOIN => Ask::Join {
            token: TokenId(fields.u64(TOKEN)?),
            secret: secret(SECRET, fields.one(SECRET)?)?,
            server: ServerId(fields.u128(SERVER)?),
            key: PublicKey::new(fields.one(PUBLIC_KEY)?)?,
        },
        STANDING => Ask::Standing,
        CREATE_TOKEN => Ask::CreateToken {
            ttl_seconds: fields.u64(SECONDS)?,
        },
        TOKENS => Ask::Tokens {
            after: fields.maybe_u64(TOKEN)?.map(TokenId),
        },
        REVOKE_TOKEN => Ask::RevokeToken {
            token: TokenId(fields.u64(TOKEN)?),
        },
        CREATE_KEY => Ask::CreateKey {
            name: fields.text(NAME)?,
            grants: fields.grants()?,
        },
        KEYS => Ask::Keys {
            after: fields.maybe_u64(KEY)?.map(KeyId),
        },
        ROTATE_KEY => Ask::RotateKey {
            key: fields.text(NAME)?,
        },
        RETIRE_KEY => Ask::RetireKey {
            key: fields.text(NAME)?,
        },
        CHANGE_GRANTS => Ask::ChangeGrants {
            key: fields.text(NAME)?,
            grants: fields.grants()?,
        },
        REVOKE_KEY => Ask::RevokeKey {
            key: fields.text(NAME)?,
        },
        AUTHORITIES => Ask::Authorities,
        TRUST_AUTHORITY => Ask::TrustAuthority {
            root: fields.maybe(CERTIFICATE)?.map(Root::from_der).transpose()?,
        },
        ISSUE_FROM => Ask::IssueFrom {
            digest: digest(fields)?,
        },
        DROP_ROOT => Ask::DropRoot {
            digest: digest(fields)?,
        },
        AUDIT => Ask::Audit {
            since_seconds: fields.u64(SECONDS)?,
            after: fields.maybe_number(GENERATION)?.map(u32::from_le_bytes),
        },
        SIGNING_KEYS => Ask::SigningKeys {
            key: KeyId(fields.u64(KEY)?),
            scope: SigningScope::new(fields.u32(DAY)?, &fields.text(REGION)?)?,
        },
        GATEWAY_CERTIFICATE => Ask::GatewayCertificate {
            hosts: hosts(fields)?,
            key: PublicKey::new(fields.one(PUBLIC_KEY)?)?,
        },
        kind => return Err(ProtocolError::Kind { kind }),
    })
}

fn hosts(fields: &mut Fields<'_>) -> Result<Hosts, ProtocolError> {
    let texts = fields.all(NAME);
    let count = texts.len();
    // Their number is judged before each is looked at.
    if count > MAX_HOSTS {
        return Err(HostError::Count { count }.into());
    }
    let host = |bytes: &[u8]| -> Result<Host, ProtocolError> {
        let text = std::str::from_utf8(bytes).map_err(|_| TlvError::Invalid { kind: NAME })?;
        Ok(text.parse()?)
    };
    let hosts: Result<_, ProtocolError> = texts.into_iter().map(host).collect();
    Ok(Hosts::new(hosts?)?)
}

/// The content of a field with a secret of the usual length.
pub(super) fn secret(field: u16, value: &[u8]) -> Result<Secret, ProtocolError> {
    let bytes = Zeroizing::new(tlv::number::<SECRET_BYTES>(field, value)?);
    Ok(Secret::new(bytes.to_vec()))
}
