//! A machine becomes a server of a cluster: by a token where the cluster has keys.
//!
//! The token has the digest of the cluster's CA. The secret in it is sent to a server that has shown this CA and a certificate of it, and to no
//! other one. The answer is all that a server has to have ([`Trust`]).
//!
//! A token lets in one id with one key. Both are in the data directory before the token is sent: where the answer is lost, and the process ends, the token
//! is good for the next attempt in this directory, and for no other machine.

use std::sync::Arc;
use std::time::Duration;

use areo_core::config::{Configuration, ServerId};
use areo_core::tlv::{self, MUST_UNDERSTAND};
use areo_net::Tls;
use areo_net::network::{Bootstrap, Network};
use areo_store::Directory;
use areo_trust::authority::ServerKey;
use areo_trust::protocol::{Ask, JoinAnswer, RefusalKind, TrustAnswer};
use areo_trust::secret::Secret;
use areo_trust::tls::DefaultTimeProvider;
use areo_trust::token::JoinToken;
use areo_wire::hello::Role;
use bytes::BytesMut;
use zeroize::Zeroize;

use super::{Trust, TrustError};
use crate::error::ServeError;
use crate::identity::random;
use crate::registration::{check_seeds, find_cluster};

/// The longest wait for a server that lets this one in: it changes the log of trust.
const PATIENCE: Duration = Duration::from_secs(10);

const SERVER: u16 = MUST_UNDERSTAND | 1;
const KEY: u16 = MUST_UNDERSTAND | 2;

/// The id and the key with which a machine asks to be a server.
pub(crate) struct Attempt {
    server: ServerId,
    key: ServerKey,
}

impl Attempt {
    /// The attempt in this directory, which has one from now on.
    pub(crate) fn of(directory: &Directory) -> Result<Attempt, ServeError> {
        if let Some(attempt) = directory.read_join()?.and_then(|it| Attempt::decode(&it)) {
            return Ok(attempt);
        }
        let attempt = Attempt {
            server: ServerId(random()),
            key: ServerKey::create().map_err(|error| ServeError::NoKey { error })?,
        };
        let written = directory.write_join(attempt.encode().expose());
        let at = super::at(directory.path());
        written.map_err(|error| at(TrustError::Write(error)))?;
        Ok(attempt)
    }

    pub(super) fn encode(&self) -> Secret {
        let private = self.key.private();
        let bytes = 2 * tlv::HEAD_BYTES + size_of::<u128>() + private.expose().len();
        // It does not grow, so that no copy of the key is left behind.
        let mut out = BytesMut::with_capacity(bytes);
        tlv::put_field(&mut out, SERVER, &self.server.0.to_le_bytes());
        tlv::put_field(&mut out, KEY, private.expose());
        let written = Secret::new(out.to_vec());
        out.as_mut().zeroize();
        written
    }

    /// `None`: it cannot be read, so that a token that was shown with it lets this machine in no more.
    fn decode(bytes: &[u8]) -> Option<Attempt> {
        let (mut server, mut key) = (None, None);
        for field in tlv::fields(bytes) {
            let (kind, value) = field.ok()?;
            match kind {
                SERVER => server = Some(u128::from_le_bytes(tlv::number(kind, value).ok()?)),
                KEY => key = ServerKey::load(&Secret::new(value.to_vec())).ok(),
                _ => tlv::unknown(kind).ok()?,
            }
        }
        Some(Attempt {
            server: ServerId(server?),
            key: key?,
        })
    }
}

/// A cluster that this machine may be a server of.
pub(crate) struct Joined {
    pub(crate) server: ServerId,
    pub(crate) cluster: u128,
    pub(crate) root: Arc<Configuration>,
    /// The keys of this server, if the cluster has any.
    pub(crate) trust: Option<Trust>,
}

/// Finds the cluster of these addresses, which has no keys.
pub(crate) async fn without_token(seeds: &[String]) -> Result<Joined, ServeError> {
    let server = ServerId(random());
    let found = find(seeds, &Network::new(Role::Server, server.0)).await?;
    Ok(Joined {
        server,
        cluster: found.cluster,
        root: found.directory.root,
        trust: None,
    })
}

/// Finds the cluster of these addresses, and has this server let in. `begin` is called before the token is sent; `None`: the directory has a server by now.
pub(crate) async fn by_token(
    seeds: &[String],
    token: &JoinToken,
    begin: impl FnOnce() -> Result<Option<Attempt>, ServeError>,
) -> Result<Option<Joined>, ServeError> {
    // A server is one by its certificate, which this one does not have yet.
    let tls = Tls::of_digest(token.root, Arc::new(DefaultTimeProvider));
    let network = Network::with_tls(Role::Client, random(), Some(tls));
    let found = find(seeds, &network).await?;
    let Some(Attempt { server, key }) = begin()? else {
        return Ok(None);
    };
    let (address, answer) = let_in(&network, seeds, (server, &key), token).await?;
    let trust = Trust::joined((found.cluster, server), key, answer);
    let not_meant = || ServeError::NotLetIn {
        address,
        sentence: "its answer is for another server: look at what runs there".to_owned(),
    };
    Ok(Some(Joined {
        server,
        cluster: found.cluster,
        root: found.directory.root,
        trust: Some(trust.ok_or_else(not_meant)?),
    }))
}

async fn find(seeds: &[String], network: &Network) -> Result<Bootstrap, ServeError> {
    check_seeds(seeds, network).await?;
    find_cluster(seeds, network).await
}

/// Shows the token to one server after the other until one lets this machine in: its address, and its answer. A server may show it again with its key
/// and its id, because an answer may have been lost.
async fn let_in(
    network: &Network,
    seeds: &[String],
    (server, key): (ServerId, &ServerKey),
    token: &JoinToken,
) -> Result<(String, JoinAnswer), ServeError> {
    let ask = Ask::Join {
        token: token.id,
        secret: token.secret.clone(),
        server,
        key: key.public(),
    };
    let mut attempts = Vec::new();
    for seed in seeds {
        let asked = network.ask_trust(seed.as_str(), PATIENCE, |_| ask.clone());
        let answer = match asked.await {
            Ok(answer) => answer.answer,
            Err(error) => {
                attempts.push((seed.clone(), error.to_string()));
                continue;
            }
        };
        match answer {
            TrustAnswer::Joined(answer) => return Ok((seed.clone(), answer)),
            TrustAnswer::Refused(refusal) if refusal.kind == RefusalKind::Unauthorised => {
                return Err(ServeError::NotLetIn {
                    address: seed.clone(),
                    sentence: refusal.sentence,
                });
            }
            TrustAnswer::Refused(refusal) => attempts.push((seed.clone(), refusal.sentence)),
            _ => attempts.push((seed.clone(), "what answers makes no sense".to_owned())),
        }
    }
    Err(ServeError::Join { attempts })
}
