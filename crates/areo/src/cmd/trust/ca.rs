//! `areo ca`: the CAs that a cluster trusts, and their rotation.

use super::{failure, show_seconds};
use crate::args;
use crate::exit::{Code, Failure, Outcome, plain};
use crate::output::columns;
use crate::session::{self, Session};
use areo_client::trust::{Standing, TrustError};
use areo_client::{Client, ServerInfo};
use areo_trust::registry::AuthorityRow;
use areo_trust::roots::{Root, RootDigest};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// The pause between two looks at servers.
const PAUSE: Duration = Duration::from_millis(500);

pub(in crate::cmd) fn run(session: &Session, command: args::Ca) -> Outcome {
    let stopped = match command {
        args::Ca::Rotate => "interrupted: run `areo ca rotate` again, and it goes on",
        _ => "",
    };
    session::run(perform(session, command), stopped)
}

async fn perform(session: &Session, command: args::Ca) -> Outcome {
    let root = match &command {
        args::Ca::Trust { file } => Some(read_root(file)?),
        _ => None,
    };
    let client = session.connect().await?;
    match command {
        args::Ca::Ls => ls(session, &client).await?,
        args::Ca::Export => export(session, &client).await?,
        args::Ca::Rotate => rotate(session, &client).await?,
        args::Ca::Trust { .. } => {
            let digest = client
                .trust()
                .trust_authority(root)
                .await
                .map_err(failure)?;
            report(session, "trusted", digest)?;
        }
        args::Ca::Drop { digest } => drop_root(session, &client, digest).await?,
    }
    client.close().await;
    Ok(())
}

async fn ls(session: &Session, client: &Client) -> Outcome {
    let rows = client.trust().authorities().await.map_err(failure)?;
    let owner = |row: &AuthorityRow| if row.is_own { "cluster" } else { "operator" };
    if session.out.json {
        return rows.iter().try_for_each(|row| {
            session.out.object(&json!({
                "ca": row.digest.to_string(),
                "issues": row.is_issuing,
                "owner": owner(row),
                "since_seconds": row.since_seconds,
            }))
        });
    }
    let row = |row: &AuthorityRow| {
        vec![
            row.digest.to_string(),
            if row.is_issuing { "yes" } else { "" }.to_owned(),
            owner(row).to_owned(),
            show_seconds(row.since_seconds),
        ]
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    let columns = columns("ca | issues | owner | trusted since");
    session.out.short_table(&columns, &["ca", "issues"], &rows)
}

/// Prints what clients of a gateway trust.
async fn export(session: &Session, client: &Client) -> Outcome {
    let roots = client.trust().roots().await;
    let roots = roots.ok_or_else(|| {
        Failure::usage("this cluster has no CA: its connections are plain, and it has no keys")
    })?;
    roots.all().iter().try_for_each(|root| {
        let (ca, pem) = (root.digest().to_string(), root.pem());
        match session.out.json {
            true => session.out.object(&json!({ "ca": ca, "pem": pem })),
            false => session.out.bytes(pem.as_bytes()),
        }
    })
}

/// Has a new CA of the cluster issue. An interrupted rotation shows in the list of trusted CAs, and goes on.
async fn rotate(session: &Session, client: &Client) -> Outcome {
    let trust = client.trust();
    let before = trust.authorities().await.map_err(failure)?;
    let own = |row: &&AuthorityRow| row.is_own && !row.is_issuing;
    let newest = before
        .iter()
        .filter(own)
        .max_by_key(|row| row.since_seconds);
    let issuing = before.iter().find(|row| row.is_issuing);
    let digest = match (newest, issuing) {
        (Some(begun), Some(issuing)) if begun.since_seconds > issuing.since_seconds => begun.digest,
        // The new one issues already, and the old one was not dropped yet.
        (Some(_), Some(issuing)) => issuing.digest,
        _ => trust.trust_authority(None).await.map_err(failure)?,
    };
    // A server with a certificate of such a CA keeps it.
    let of_operator = before.iter().filter(|row| !row.is_own);
    let of_operator: Vec<RootDigest> = of_operator.map(|row| row.digest).collect();
    session.out.note(&format!("the new CA is {digest}"));
    wait(session, client, "trust the new CA", |standing| {
        standing.trusted.contains(&digest)
    })
    .await?;
    trust.issue_from(digest).await.map_err(failure)?;
    wait(
        session,
        client,
        "have a certificate of the new CA",
        |standing| {
            let mut others = of_operator.iter();
            standing.issuer == Some(digest) || others.any(|other| standing.issuer == Some(*other))
        },
    )
    .await?;
    report(session, "issues", digest)?;
    let olds = before.iter().filter(|row| row.is_own);
    for old in olds.filter(|row| row.digest != digest) {
        let old = old.digest;
        session
            .out
            .note(&format!("to end trust in the old one: areo ca drop {old}"));
    }
    Ok(())
}

/// Waits until a server is seen to be so far, for each server that is registered.
async fn wait(
    session: &Session,
    client: &Client,
    goal: &str,
    is_there: impl Fn(&Standing) -> bool,
) -> Outcome {
    let mut named = Vec::new();
    loop {
        let behind = behind(client, &is_there).await?;
        if behind.is_empty() {
            return Ok(());
        }
        if behind != named {
            let names = behind.join(", ");
            session
                .out
                .note(&format!("waiting until these servers {goal}: {names}"));
            named = behind;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The servers that are not so far, or do not answer, by name.
async fn behind(client: &Client, is_there: impl Fn(&Standing) -> bool) -> Outcome<Vec<String>> {
    let mut behind = Vec::new();
    for server in client.servers().await.map_err(session::failure)? {
        match standing(client, &server).await? {
            Some(standing) if is_there(&standing) => {}
            Some(_) => behind.push(server.name),
            None => behind.push(format!("{} (does not answer)", server.name)),
        }
    }
    Ok(behind)
}

/// The state of one server; none if it does not answer.
async fn standing(client: &Client, server: &ServerInfo) -> Outcome<Option<Standing>> {
    let client = client.with_timeout(Duration::from_secs(3));
    match client.trust().standing(server.id).await {
        Ok(standing) => Ok(Some(standing)),
        Err(TrustError::Unavailable { .. }) => Ok(None),
        Err(error) if Code::Unavailable == failure(error.clone()).code => Ok(None),
        Err(error) => Err(failure(error)),
    }
}

async fn drop_root(session: &Session, client: &Client, digest: RootDigest) -> Outcome {
    let stands_elsewhere = |standing: &Standing| {
        let issuer = standing.issuer;
        issuer.is_some_and(|issuer| issuer != digest)
    };
    let behind = behind(client, stands_elsewhere).await?;
    if !behind.is_empty() {
        let names = behind.join(", ");
        return Err(Failure::new(
            Code::Precondition,
            format!(
                "the CA {digest} is not dropped, because the certificates of these servers may stand on it: {names}; run `areo ca rotate`, or start those with a certificate of it by file (`--cert`) with another one, and start or forget (`areo server forget`) the servers that do not answer"
            ),
        ));
    }
    client.trust().drop_root(digest).await.map_err(failure)?;
    report(session, "dropped", digest)
}

fn report(session: &Session, what: &str, digest: RootDigest) -> Outcome {
    if session.out.json {
        return session
            .out
            .object(&json!({ "ca": digest.to_string(), "state": what }));
    }
    session.out.note(&match what {
        "issues" => format!(
            "the CA {digest} issues, and each server has a certificate of it, or one by file"
        ),
        what => format!("the CA {digest} is {what}"),
    });
    Ok(())
}

/// The certificate in a file, which is PEM or DER.
fn read_root(path: &Path) -> Outcome<Root> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| {
        let why = plain(&error);
        Failure::usage(format!("cannot read the certificate {shown}: {why}"))
    })?;
    Root::from_file(&bytes).map_err(|error| Failure::usage(format!("{shown}: {error}")))
}
