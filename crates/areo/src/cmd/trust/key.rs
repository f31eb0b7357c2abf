//! `areo key`: access keys.
//!
//! A key that is made or rotated comes as a cluster file, which has all that a program on another machine needs.

use super::failure;
use crate::args;
use crate::exit::{Code, Failure, Outcome};
use crate::output::columns;
use crate::session::{self, Session, Target};
use areo_client::cluster_file::{ClusterFile, Server};
use areo_client::trust::{ANONYMOUS_NAME, KeyInfo};
use areo_client::{Access, Client, limits};
use areo_trust::id::KeyId;
use areo_trust::key::AccessKey;
use serde_json::json;
use std::path::Path;

pub(in crate::cmd) fn run(session: &Session, command: args::Key) -> Outcome {
    if let args::Key::Env = command {
        return env(session);
    }
    session::run(perform(session, command), "")
}

async fn perform(session: &Session, command: args::Key) -> Outcome {
    if let args::Key::Create {
        file: Some(file), ..
    } = &command
        && file.exists()
    {
        let file = file.display();
        return Err(Failure::usage(format!(
            "{file} exists: name another file, or use `areo key rotate` to replace the key in it"
        )));
    }
    let client = session.connect().await?;
    let trust = client.trust();
    match command {
        args::Key::Create { name, grants, file } => {
            let grants = grants
                .grants()
                .map_err(|error| Failure::usage(error.to_string()))?;
            if name == ANONYMOUS_NAME {
                if file.is_some() {
                    return Err(Failure::usage(
                        "the key 'anonymous' stands for callers without a key, and has no secret: leave out --file",
                    ));
                }
                let key = trust.create_key(&name, &grants).await.map_err(failure)?;
                return of_anonymous(session, key.id);
            }
            // What the file needs is asked for before there is a key that could be lost.
            let blank = blank(session, &client).await?;
            check_place(file.as_deref(), &blank)?;
            let key = trust.create_key(&name, &grants).await.map_err(failure)?;
            deliver(session, blank, (&name, key), file.as_deref())?;
        }
        args::Key::Env => unreachable!("it needs no server, and was done above"),
        args::Key::Ls => ls(session, &client).await?,
        args::Key::Rotate { key: name, file } => {
            let blank = blank(session, &client).await?;
            check_place(file.as_deref(), &blank)?;
            let key = trust.rotate_key(&name).await.map_err(failure)?;
            deliver(session, blank, (&name, key), file.as_deref())?;
            session.out.note(&format!(
                "the older secret counts, too, until `areo key retire {name}`"
            ));
        }
        args::Key::Retire { key } => {
            trust.retire_key(&key).await.map_err(failure)?;
            session.out.note(&format!("key {key} has one secret"));
        }
        args::Key::Grant { key, grants } => {
            let grants = grants
                .grants()
                .map_err(|error| Failure::usage(error.to_string()))?;
            trust.change_grants(&key, &grants).await.map_err(failure)?;
            session.out.note(&format!("key {key} has these grants"));
        }
        args::Key::Revoke { key } => {
            trust.revoke_key(&key).await.map_err(failure)?;
            session.out.note(&format!("key {key} is revoked"));
        }
    }
    client.close().await;
    Ok(())
}

/// Prints the key that commands use here, in the form of clients of S3.
fn env(session: &Session) -> Outcome {
    let target = session.target()?;
    let Some(Access::Key(key)) = session.access(&target)? else {
        return Err(Failure::usage(
            "there is no key here: name a cluster file that has one, or put it into AREO_KEY",
        ));
    };
    let (id, secret) = (key.id.to_string(), key.secret.expose_text());
    if session.out.json {
        return session.out.object(&json!({
            "access_key_id": id,
            "secret_access_key": *secret,
        }));
    }
    session
        .out
        .line(&format!("export AWS_ACCESS_KEY_ID={id}"))?;
    let line = format!("export AWS_SECRET_ACCESS_KEY={}", *secret);
    session.out.line(&line)
}

/// The cluster file of this cluster without a key.
async fn blank(session: &Session, client: &Client) -> Outcome<ClusterFile> {
    let servers = client.servers().await.map_err(session::failure)?;
    let server = |info: areo_client::ServerInfo| Server {
        name: info.name,
        id: info.id.0,
        address: info.address,
        admin: info.admin,
    };
    let servers: Vec<Server> = servers.into_iter().map(server).collect();
    let (memory, max_object) = match session.target()? {
        Target::File(_, file) => (file.memory(), file.max_object),
        Target::Addresses(_) => (false, limits::DEFAULT_VALUE_BYTES),
    };
    Ok(ClusterFile::new(
        client.cluster().0,
        memory,
        max_object,
        servers,
    ))
}

/// A file that is not of this cluster stays, and a key is not made for a file that cannot be.
fn check_place(path: Option<&Path>, blank: &ClusterFile) -> Outcome {
    let Some(path) = path else { return Ok(()) };
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        let path = path.display();
        return Err(Failure::usage(format!(
            "the folder of {path} does not exist: make it, or name another file"
        )));
    }
    match ClusterFile::read(path)? {
        Some(file) if file.cluster != blank.cluster => {
            let path = path.display();
            Err(Failure::usage(format!(
                "{path} is the file of another cluster: name another file"
            )))
        }
        _ => Ok(()),
    }
}

/// Writes the file, or prints it: the only time that the key is shown.
fn deliver(
    session: &Session,
    mut file: ClusterFile,
    (name, key): (&str, AccessKey),
    path: Option<&Path>,
) -> Outcome {
    let (out, id) = (session.out, key.id);
    file.key = Some(key);
    if let Some(path) = path {
        session::write_cluster_file(&file, path).map_err(|failure| {
            let message = format!(
                "{failure}; the secret of key {id} is lost: revoke the key (`areo key revoke {id}`), and make another one"
            );
            Failure::new(Code::Other, message)
        })?;
    }
    match (out.json, path) {
        (true, path) => out.object(&report(name, &file, path)),
        (false, Some(path)) => {
            let path = path.display();
            out.note(&format!(
                "{path} has key {id} ({name}): `areo --cluster {path} ls` uses it"
            ));
            out.note(&s3_note(id));
            Ok(())
        }
        (false, None) => {
            out.line(file.text().trim_end())?;
            out.note(&format!("key {id} ({name}) is not shown again"));
            out.note(&s3_note(id));
            Ok(())
        }
    }
}

/// Reports the key of callers without a key, which has no secret.
fn of_anonymous(session: &Session, id: KeyId) -> Outcome {
    if session.out.json {
        return session.out.object(&json!({
            "name": ANONYMOUS_NAME,
            "id": id.to_string(),
            "key": null,
            "secret_access_key": null,
        }));
    }
    session.out.note(&format!(
        "key {id} ({ANONYMOUS_NAME}): requests of S3 without a signature have its grants, until `areo key revoke {ANONYMOUS_NAME}`"
    ));
    Ok(())
}

/// Prints the values that S3 clients take from the key, without its secret.
fn s3_note(id: KeyId) -> String {
    format!(
        "clients of S3: the access key id is {id}, and the secret access key is what follows the last '.' of the key"
    )
}

fn report(name: &str, file: &ClusterFile, path: Option<&Path>) -> serde_json::Value {
    let key = file.key.as_ref().expect("the caller has put it there");
    json!({
        "name": name,
        "id": key.id.to_string(),
        "cluster": format!("{:032x}", file.cluster),
        "addresses": file.addresses(),
        "file": path.map(|path| path.display().to_string()),
        "access_key_id": key.id.to_string(),
        // In one place alone: in the file, if there is one.
        "key": path.is_none().then(|| key.expose_text().to_string()),
        "secret_access_key": path.is_none().then(|| key.secret.expose_text().to_string()),
    })
}

async fn ls(session: &Session, client: &Client) -> Outcome {
    let mut keys = client.trust().keys().await.map_err(failure)?;
    keys.sort_by(|one, other| (&one.name, one.id).cmp(&(&other.name, other.id)));
    let keys: Vec<KeyInfo> = keys.iter().map(KeyInfo::from).collect();
    if session.out.json {
        return keys.iter().try_for_each(|key| session.out.object(key));
    }
    let row = |key: &KeyInfo| {
        vec![
            key.name.clone(),
            key.id.clone(),
            key.state.to_owned(),
            key.grants.join(" "),
        ]
    };
    let rows: Vec<_> = keys.iter().map(row).collect();
    let columns = columns("key | id | state | grants");
    session
        .out
        .short_table(&columns, &["key", "state", "grants"], &rows)
}
