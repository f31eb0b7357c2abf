//! Answers to requests about trust: who may ask what, and what is said to those that may not. The server bounds how often an address may ask.

use areo_core::config::ServerId;
use areo_core::env::Env;
use areo_core::manager::Root;

use super::entry::{Actor, AuthorityRecord, Origin};
use super::error::{
    ChangeKeyError, CreateKeyError, CreateTokenError, DropRootError, IssueError, IssueFromError,
    IssueTicketError, LogError, RedeemTokenError, RevokeTokenError, SigningKeysError,
    TrustRootError,
};
use super::{Redemption, Registry};
use crate::authority::{AuthorityError, PublicKey};
use crate::grant::{Need, Verb};
use crate::id::KeyId;
use crate::key::KeyError;
use crate::protocol::{
    Ask, JoinAnswer, KeyProof, KeyRow, PAGE_ROWS, Page, ProofSite, RefusalKind, TicketAnswer,
    TokenRow, TrustAnswer, TrustRefusal,
};
use crate::roots::{Root as Authority, RootDigest, RootsError};
use crate::ticket::{Ticket, TicketError};
use crate::tls::BINDING_BYTES;

/// Circumstances of a request, as the server that was asked knows them.
#[derive(Clone, Copy, Debug)]
pub struct AskContext<'a> {
    /// The server that answers.
    pub server: ServerId,
    /// The CA that issued its certificate.
    pub issuer: Option<RootDigest>,
    /// The key of its certificate.
    pub key: Option<PublicKey>,
    /// The CAs by which it judges certificates.
    pub trusted: &'a [RootDigest],
    /// The ticket of the caller, whose signature and possession were verified.
    pub ticket: Option<&'a Ticket>,
    /// The address of the caller.
    pub address: &'a str,
    /// The session of TLS; `None` of a plain connection.
    pub binding: Option<[u8; BINDING_BYTES]>,
    /// The clock of this server, in seconds since 1970.
    pub now_seconds: u64,
}

/// The result of a request, or its refusal.
type Answered = Result<TrustAnswer, TrustRefusal>;

impl Ask {
    /// The verb that the key of the caller needs, for the whole cluster. None: any caller may ask.
    pub fn needs(&self) -> Option<Verb> {
        match self {
            Ask::Prove(_) | Ask::Join { .. } => None,
            Ask::CreateToken { .. } | Ask::Tokens { .. } | Ask::RevokeToken { .. } => {
                Some(Verb::Join)
            }
            Ask::Standing
            | Ask::CreateKey { .. }
            | Ask::Keys { .. }
            | Ask::RotateKey { .. }
            | Ask::RetireKey { .. }
            | Ask::ChangeGrants { .. }
            | Ask::RevokeKey { .. }
            | Ask::Authorities
            | Ask::TrustAuthority { .. }
            | Ask::IssueFrom { .. }
            | Ask::DropRoot { .. }
            | Ask::Audit { .. } => Some(Verb::Keys),
            Ask::SigningKeys { .. } | Ask::GatewayCertificate { .. } => Some(Verb::Gateway),
        }
    }
}

impl Ask {
    /// True if the request changes nothing: it may be sent again where it is not known whether it was carried out.
    pub fn only_reads(&self) -> bool {
        matches!(
            self,
            Ask::Prove(_)
                | Ask::Standing
                | Ask::Tokens { .. }
                | Ask::Keys { .. }
                | Ask::Authorities
                | Ask::Audit { .. }
                | Ask::SigningKeys { .. }
                | Ask::GatewayCertificate { .. }
        )
    }
}

impl Registry {
    /// Carries a request out, or says why not.
    pub async fn answer<E: Env>(
        &self,
        root: &Root<E>,
        ask: &Ask,
        context: &AskContext<'_>,
    ) -> TrustAnswer {
        let answered = match (ask, ask.needs()) {
            _ if context.binding.is_none() => Err(plain()),
            (Ask::Prove(proof), _) => self.prove(root, proof, context).await,
            (Ask::Join { .. }, _) => self.join(root, ask, context).await,
            (_, Some(verb)) => self.of_key(root, ask, (verb, context)).await,
            (_, None) => unreachable!("the two of them are above"),
        };
        answered.unwrap_or_else(TrustAnswer::Refused)
    }

    async fn prove<E: Env>(
        &self,
        root: &Root<E>,
        proof: &KeyProof,
        context: &AskContext<'_>,
    ) -> Answered {
        let site = ProofSite {
            cluster: self.cluster,
            server: context.server,
            binding: context.binding.ok_or_else(plain)?,
        };
        let (exchange, now) = (proof.exchange(&site), context.now_seconds);
        let issued = self.issue_ticket(root, &exchange, &proof.proof, now);
        let issued = issued.await?;
        let view = self.view().ok_or(LogError::NotFounded)?;
        let own = context.key.as_ref().map(|key| (key, context.issuer));
        let also = own.map(|own| self.issue_by_others(context.server, own, now));
        Ok(TrustAnswer::Ticket(TicketAnswer {
            ticket: issued.ticket,
            answer: issued.answer,
            roots: view.roots.clone(),
            other_certificates: also.map_or_else(Vec::new, |also| also.to_vec()),
        }))
    }

    async fn join<E: Env>(&self, root: &Root<E>, ask: &Ask, context: &AskContext<'_>) -> Answered {
        let Ask::Join {
            token,
            secret,
            server,
            key,
        } = ask
        else {
            unreachable!("the caller has looked");
        };
        let shown = Redemption {
            id: *token,
            secret,
            server: *server,
            key,
        };
        let origin = origin(Actor::Server(*server), context);
        self.redeem_token(root, &shown, &origin).await?;
        let certificate = self.issue_certificate(*server, key, context.now_seconds)?;
        let view = self.view().ok_or(LogError::NotFounded)?;
        Ok(TrustAnswer::Joined(JoinAnswer {
            cluster_key: self.cluster_key.clone(),
            certificate,
            roots: view.roots.clone(),
        }))
    }

    /// Carries out a request that needs a key with this verb.
    async fn of_key<E: Env>(
        &self,
        root: &Root<E>,
        ask: &Ask,
        (verb, context): (Verb, &AskContext<'_>),
    ) -> Answered {
        let Some(ticket) = context.ticket else {
            let word = verb.word();
            let sentence = format!(
                "this needs an access key with the grant '{word}': name a cluster file that has one, or put it into AREO_KEY"
            );
            return Err(refusal(RefusalKind::Unauthorised, &sentence));
        };
        // A key that was revoked a moment ago makes no change any more.
        let judging = self.judging_view(root, ask).await?;
        let (verifier, now) = (&judging.view.verifier, context.now_seconds);
        let judged = verifier.still_counts(ticket, now);
        judged.map_err(|error| refusal(kind_of(&error), &error))?;
        let allowed = ticket.grants.demand(ticket.key, &Need::cluster(verb));
        allowed.map_err(|error| refusal(RefusalKind::Unauthorised, &error))?;
        let origin = origin(Actor::Key(ticket.key), context);
        match ask {
            Ask::CreateToken { .. } | Ask::Tokens { .. } | Ask::RevokeToken { .. } => {
                self.of_tokens(root, ask, &origin).await
            }
            Ask::CreateKey { .. }
            | Ask::Keys { .. }
            | Ask::RotateKey { .. }
            | Ask::RetireKey { .. }
            | Ask::ChangeGrants { .. }
            | Ask::RevokeKey { .. } => self.of_keys(root, ask, &origin).await,
            Ask::SigningKeys { .. } | Ask::GatewayCertificate { .. } => {
                self.answer_gateway(ask, context.now_seconds, judging)
            }
            Ask::Standing => Ok(TrustAnswer::Standing {
                issuer: context.issuer,
                trusted: context.trusted.to_vec(),
                generation: judging.view.generation,
            }),
            _ => self.of_authorities(root, ask, &origin).await,
        }
    }

    async fn of_tokens<E: Env>(&self, root: &Root<E>, ask: &Ask, origin: &Origin) -> Answered {
        Ok(match ask {
            Ask::CreateToken { ttl_seconds } => {
                TrustAnswer::Token(self.create_token(root, *ttl_seconds, origin).await?)
            }
            Ask::RevokeToken { token } => {
                self.revoke_token(root, *token, origin).await?;
                TrustAnswer::Done
            }
            Ask::Tokens { after } => {
                let tokens = self.tokens(root).await?;
                let rows = tokens.iter().map(TokenRow::from);
                TrustAnswer::Tokens(page(rows.filter(|row| Some(row.id) > *after)))
            }
            _ => unreachable!("these are the requests about tokens"),
        })
    }

    async fn of_keys<E: Env>(&self, root: &Root<E>, ask: &Ask, origin: &Origin) -> Answered {
        Ok(match ask {
            Ask::CreateKey { name, grants } => {
                TrustAnswer::Key(self.create_key(root, name, grants, origin).await?)
            }
            Ask::Keys { after } => {
                let keys = self.keys(root).await?;
                let rows = keys.iter().filter(|key| Some(key.id) > *after);
                TrustAnswer::Keys(page(rows.map(KeyRow::from)))
            }
            Ask::RotateKey { key } => {
                TrustAnswer::Key(self.rotate_key(root, self.named(key)?, origin).await?)
            }
            Ask::RetireKey { key } => {
                self.retire_key(root, self.named(key)?, origin).await?;
                TrustAnswer::Done
            }
            Ask::ChangeGrants { key, grants } => {
                let id = self.named(key)?;
                self.change_grants(root, id, grants, origin).await?;
                TrustAnswer::Done
            }
            Ask::RevokeKey { key } => {
                self.revoke_key(root, self.named(key)?, origin).await?;
                TrustAnswer::Done
            }
            _ => unreachable!("these are the requests about keys"),
        })
    }

    async fn of_authorities<E: Env>(&self, root: &Root<E>, ask: &Ask, origin: &Origin) -> Answered {
        Ok(match ask {
            Ask::Authorities => TrustAnswer::Authorities(self.authorities(root).await?),
            Ask::TrustAuthority { root: operators } => {
                let record = self.authority_record(operators.as_ref(), origin.now_seconds)?;
                self.trust_root(root, &record, origin).await?;
                let digest = record.root().digest();
                TrustAnswer::Authority { digest }
            }
            Ask::IssueFrom { digest } => {
                self.issue_from(root, *digest, origin).await?;
                TrustAnswer::Done
            }
            Ask::DropRoot { digest } => {
                self.drop_root(root, *digest, origin).await?;
                TrustAnswer::Done
            }
            Ask::Audit {
                since_seconds,
                after,
            } => {
                let page = self.audit_page(root, *since_seconds, *after).await?;
                TrustAnswer::Audit {
                    rows: page.records,
                    next: page.next,
                }
            }
            _ => unreachable!("these are the requests about CAs and the audit"),
        })
    }

    fn authority_record(
        &self,
        operators: Option<&Authority>,
        now_seconds: u64,
    ) -> Result<AuthorityRecord, AuthorityError> {
        match operators {
            Some(root) => Ok(AuthorityRecord::of_operator(root.clone())),
            None => AuthorityRecord::create(self.cluster, now_seconds),
        }
    }

    /// The key of this name that counts, or else the one of this id.
    fn named(&self, name: &str) -> Result<KeyId, TrustRefusal> {
        let found = self.key_named(name).or_else(|| KeyId::parse(name));
        found.ok_or_else(|| {
            let name = name.escape_debug();
            let sentence = format!("this cluster has no key '{name}': `areo key ls` lists them");
            refusal(RefusalKind::NotFound, &sentence)
        })
    }
}

fn origin(by: Actor, context: &AskContext<'_>) -> Origin {
    Origin {
        by,
        address: context.address.to_owned(),
        now_seconds: context.now_seconds,
    }
}

fn page<R>(mut rows: impl Iterator<Item = R>) -> Page<R> {
    Page {
        rows: rows.by_ref().take(PAGE_ROWS).collect(),
        has_more: rows.next().is_some(),
    }
}

fn refusal(kind: RefusalKind, sentence: &(impl ToString + ?Sized)) -> TrustRefusal {
    let sentence = sentence.to_string();
    TrustRefusal { kind, sentence }
}

/// The kind of a refusal for the ticket of a caller. A ticket that has ended, or from before a change of its key's grants, says nothing against the key: nothing was
/// done, and the caller asks again with its next ticket.
fn kind_of(error: &TicketError) -> RefusalKind {
    match error {
        TicketError::Expired { .. }
        | TicketError::NotYet { .. }
        | TicketError::GrantsChanged { .. } => RefusalKind::Unavailable,
        _ => RefusalKind::Unauthorised,
    }
}

fn plain() -> TrustRefusal {
    let sentence = "this connection is plain, and secrets go over encrypted ones alone: start the cluster with TLS";
    refusal(RefusalKind::Usage, sentence)
}

impl From<LogError> for TrustRefusal {
    fn from(error: LogError) -> TrustRefusal {
        let kind = match error {
            LogError::Unavailable(_) | LogError::NotFounded => RefusalKind::Unavailable,
            LogError::Unconfirmed(_) => RefusalKind::Unknown,
            LogError::Sealed { .. }
            | LogError::Record { .. }
            | LogError::Full
            | LogError::NoRandomness(_) => RefusalKind::Other,
        };
        refusal(kind, &error)
    }
}

impl From<AuthorityError> for TrustRefusal {
    fn from(error: AuthorityError) -> TrustRefusal {
        refusal(RefusalKind::Other, &error)
    }
}

impl From<CreateTokenError> for TrustRefusal {
    fn from(error: CreateTokenError) -> TrustRefusal {
        match error {
            CreateTokenError::Log(error) => error.into(),
            CreateTokenError::NoTime => refusal(RefusalKind::Usage, &error),
        }
    }
}

impl From<RevokeTokenError> for TrustRefusal {
    fn from(error: RevokeTokenError) -> TrustRefusal {
        match error {
            RevokeTokenError::Log(error) => error.into(),
            RevokeTokenError::Unknown { .. } => refusal(RefusalKind::NotFound, &error),
        }
    }
}

impl From<RedeemTokenError> for TrustRefusal {
    fn from(error: RedeemTokenError) -> TrustRefusal {
        match error {
            RedeemTokenError::Log(error) => error.into(),
            RedeemTokenError::Token(_) => refusal(RefusalKind::Unauthorised, &error),
            RedeemTokenError::Registered { .. } => refusal(RefusalKind::Usage, &error),
        }
    }
}

impl From<IssueError> for TrustRefusal {
    fn from(error: IssueError) -> TrustRefusal {
        let kind = match error {
            IssueError::NotRead => RefusalKind::Unavailable,
            IssueError::OfOperator { .. } => RefusalKind::Usage,
            IssueError::Authority(_) => RefusalKind::Other,
        };
        refusal(kind, &error)
    }
}

impl From<CreateKeyError> for TrustRefusal {
    fn from(error: CreateKeyError) -> TrustRefusal {
        match error {
            CreateKeyError::Log(error) => error.into(),
            CreateKeyError::Key(KeyError::Name { .. } | KeyError::NotPublic(_))
            | CreateKeyError::Prefix(_) => refusal(RefusalKind::Usage, &error),
            CreateKeyError::Key(_) => refusal(RefusalKind::Other, &error),
            CreateKeyError::NameTaken { .. } => refusal(RefusalKind::Lost, &error),
        }
    }
}

impl From<ChangeKeyError> for TrustRefusal {
    fn from(error: ChangeKeyError) -> TrustRefusal {
        match error {
            ChangeKeyError::Log(error) => error.into(),
            ChangeKeyError::Prefix(_)
            | ChangeKeyError::NotPublic(_)
            | ChangeKeyError::WithoutSecret { .. } => refusal(RefusalKind::Usage, &error),
            ChangeKeyError::Unknown { .. } => refusal(RefusalKind::NotFound, &error),
            ChangeKeyError::Revoked { .. }
            | ChangeKeyError::Rotating { .. }
            | ChangeKeyError::LastOfKeys { .. } => refusal(RefusalKind::Lost, &error),
        }
    }
}

impl From<IssueTicketError> for TrustRefusal {
    fn from(error: IssueTicketError) -> TrustRefusal {
        match error {
            IssueTicketError::Log(error) => error.into(),
            IssueTicketError::Proof(_)
            | IssueTicketError::OtherCluster { .. }
            | IssueTicketError::NoGateway(_) => refusal(RefusalKind::Unauthorised, &error),
            // The proof was good.
            IssueTicketError::BehalfUnknown { .. }
            | IssueTicketError::BehalfRevoked { .. }
            | IssueTicketError::NoAnonymous => refusal(RefusalKind::NotFound, &error),
            IssueTicketError::NoSigner => refusal(RefusalKind::Other, &error),
        }
    }
}

impl From<SigningKeysError> for TrustRefusal {
    fn from(error: SigningKeysError) -> TrustRefusal {
        match error {
            SigningKeysError::Log(error) => error.into(),
            SigningKeysError::Scope(_) => refusal(RefusalKind::Usage, &error),
            SigningKeysError::Unknown { .. } | SigningKeysError::Revoked { .. } => {
                refusal(RefusalKind::NotFound, &error)
            }
        }
    }
}

impl From<TrustRootError> for TrustRefusal {
    fn from(error: TrustRootError) -> TrustRefusal {
        match error {
            TrustRootError::Log(error) => error.into(),
            TrustRootError::Roots(error) => error.into(),
        }
    }
}

impl From<IssueFromError> for TrustRefusal {
    fn from(error: IssueFromError) -> TrustRefusal {
        match error {
            IssueFromError::Log(error) => error.into(),
            IssueFromError::Roots(error) => error.into(),
            error @ IssueFromError::OfOperator { .. } => refusal(RefusalKind::Usage, &error),
        }
    }
}

impl From<DropRootError> for TrustRefusal {
    fn from(error: DropRootError) -> TrustRefusal {
        match error {
            DropRootError::Log(error) => error.into(),
            DropRootError::Roots(error) => error.into(),
            DropRootError::Signs { .. } => refusal(RefusalKind::Lost, &error),
        }
    }
}

impl From<RootsError> for TrustRefusal {
    fn from(error: RootsError) -> TrustRefusal {
        let kind = match error {
            RootsError::Unknown { .. } => RefusalKind::NotFound,
            RootsError::Full | RootsError::Issuing { .. } => RefusalKind::Lost,
            RootsError::Unreadable
            | RootsError::NoCa
            | RootsError::List(_)
            | RootsError::Count { .. } => RefusalKind::Usage,
        };
        refusal(kind, &error)
    }
}
