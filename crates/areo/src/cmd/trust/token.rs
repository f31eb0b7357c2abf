//! `areo token`: tokens with which machines become servers.

use super::{failure, now_seconds, show_seconds};
use crate::args;
use crate::exit::Outcome;
use crate::output::columns;
use crate::session::{self, Session, Target};
use areo_client::Client;
use areo_trust::protocol::TokenRow;
use areo_trust::token::JoinToken;
use serde_json::json;
use std::time::Duration;

/// The life of a token that a server which joins makes for itself.
const LIFE: Duration = Duration::from_mins(10);

pub(in crate::cmd) fn run(session: &Session, command: args::Token) -> Outcome {
    session::run(perform(session, command), "")
}

async fn perform(session: &Session, command: args::Token) -> Outcome {
    let client = session.connect().await?;
    match command {
        args::Token::Create { ttl } => create(session, &client, ttl).await?,
        args::Token::Ls => ls(session, &client).await?,
        args::Token::Revoke { id } => {
            client.trust().revoke_token(id).await.map_err(failure)?;
            session.out.note(&format!("token {id} is revoked"));
        }
    }
    client.close().await;
    Ok(())
}

/// A token for a server that joins by these addresses, made with the key for that cluster, if the user has one.
///
/// # Errors
/// No server of the cluster answers, or the key may not make tokens.
pub(in crate::cmd) fn for_a_join(
    session: &Session,
    addresses: &[String],
) -> Outcome<Option<JoinToken>> {
    let is_joined = |target: &Target| {
        let known = target.addresses();
        addresses.iter().any(|address| known.contains(address))
    };
    let Some(target) = session.target_here()?.filter(is_joined) else {
        return Ok(None);
    };
    if session.access(&target)?.is_none() {
        return Ok(None);
    }
    let make = async {
        let client = session.connect().await?;
        let made = client.trust().create_token(LIFE).await;
        client.close().await;
        made.map(Some).map_err(failure)
    };
    session::run_unwatched(make)
}

async fn create(session: &Session, client: &Client, ttl: Duration) -> Outcome {
    let token = client.trust().create_token(ttl).await.map_err(failure)?;
    let text = token.expose_text();
    let expires = now_seconds().saturating_add(ttl.as_secs());
    if session.out.json {
        return session.out.object(&json!({
            "token": *text,
            "id": token.id.to_string(),
            "ca": token.root.to_string(),
            "expires_seconds": expires,
        }));
    }
    session.out.line(&text)?;
    let expires = show_seconds(expires);
    session.out.note(&format!(
        "one machine becomes a server with it, until {expires}; it is not shown again"
    ));
    Ok(())
}

async fn ls(session: &Session, client: &Client) -> Outcome {
    let mut tokens = client.trust().tokens().await.map_err(failure)?;
    tokens.sort_by_key(|token| (token.expires_seconds, token.id));
    let now = now_seconds();
    if session.out.json {
        return tokens.iter().try_for_each(|token| {
            session.out.object(&json!({
                "id": token.id.to_string(),
                "state": state(token, now),
                "expires_seconds": token.expires_seconds,
                "used_by": token.used_by.map(|server| server.to_string()),
                "revoked_seconds": token.revoked_seconds,
            }))
        });
    }
    let servers = client.servers().await.map_err(session::failure)?;
    let name = |token: &TokenRow| {
        let by = token.used_by?;
        let known = servers.iter().find(|server| server.id == by);
        Some(known.map_or_else(
            || by.to_string()[..8].to_owned(),
            |server| server.name.clone(),
        ))
    };
    let row = |token: &TokenRow| {
        vec![
            token.id.to_string(),
            state(token, now).to_owned(),
            show_seconds(token.expires_seconds),
            name(token).unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = tokens.iter().map(row).collect();
    session
        .out
        .table(&columns("token | state | expires | used by"), &rows)
}

/// The word for what can be done with a token.
fn state(token: &TokenRow, now_seconds: u64) -> &'static str {
    match (token.revoked_seconds, token.used_by) {
        (Some(_), _) => "revoked",
        (None, Some(_)) => "used",
        (None, None) if now_seconds >= token.expires_seconds => "expired",
        (None, None) => "open",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::ServerId;
    use areo_trust::id::TokenId;

    #[test]
    fn a_token_has_one_state() {
        let open = TokenRow {
            id: TokenId(1),
            expires_seconds: 100,
            used_by: None,
            revoked_seconds: None,
        };
        let used = TokenRow {
            used_by: Some(ServerId(1)),
            ..open
        };
        let revoked = TokenRow {
            revoked_seconds: Some(5),
            ..used
        };
        let states = [(open, 99), (open, 100), (used, 100), (revoked, 99)];
        let states = states.map(|(token, now)| state(&token, now));
        assert_eq!(states, ["open", "expired", "used", "revoked"]);
    }
}
