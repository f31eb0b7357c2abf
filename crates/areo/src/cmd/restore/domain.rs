//! The domain that a backup is restored into.

use crate::args::{DapWord, ReconfigWord};
use crate::cmd::archive::DomainLine;
use crate::cmd::domain::dap;
use crate::exit::{Failure, Outcome};
use crate::progress;
use crate::session::{Session, creation_failure, failure};
use areo_client::{Client, DapKind, Domain, DomainOptions, Error};
use clap::ValueEnum;

/// The domain of this name. One that is not there is created as the backup has it, on all servers.
///
/// # Errors
/// It cannot be created so here.
pub(super) async fn find_or_create(
    session: &Session,
    client: &Client,
    (name, line): (&str, &DomainLine),
) -> Outcome<Domain> {
    let out = session.out;
    match progress::late(out, client, client.domain(name)).await {
        Ok(domain) => return Ok(domain),
        Err(Error::NotFound { key: None, .. }) => {}
        Err(error) => return Err(failure(error)),
    }
    let servers = progress::late(out, client, client.candidates()).await;
    let n = servers.map_err(failure)?.len();
    let options = options(line, n).map_err(|why| unlike(name, line, &why))?;
    let create = client.create_domain(name, options);
    let created = progress::late(out, client, create).await;
    let domain = created.map_err(|error| {
        let failure = creation_failure(error);
        match failure.code {
            crate::exit::Code::Usage | crate::exit::Code::Precondition => {
                unlike(name, line, &failure.message)
            }
            _ => failure,
        }
    })?;
    let shape = domain.configuration().shape;
    out.note(&format!("'{name}' is created, {shape}"));
    Ok(domain)
}

/// The options with which the domain was created, as far as the backup tells. A code for other servers is one that as many crashes leave working.
fn options(line: &DomainLine, n: usize) -> Result<DomainOptions, String> {
    if !line.experimental.is_empty() {
        let settings = line.experimental.join(", ");
        return Err(format!("it has experimental settings ({settings})"));
    }
    let word = DapWord::from_str(&line.dap, false)
        .map_err(|_| format!("this program knows no '{}'", line.dap))?;
    let reconfig = ReconfigWord::from_str(&line.reconfig, false)
        .map_err(|_| format!("this program knows no '{}'", line.reconfig))?;
    let k = u8::try_from(line.k).map_err(|_| format!("k is {}", line.k))?;
    let is_coded = DapKind::from(word).is_coded();
    let k = match n == line.n {
        true => is_coded.then_some(k),
        false => None,
    };
    Ok(DomainOptions {
        dap: dap(word, k, n).map_err(|failure| failure.message)?,
        delta: Some(line.delta),
        copy_bytes: Some(line.copy_limit_bytes),
        reconfig: reconfig.into(),
        ..DomainOptions::default()
    })
}

fn unlike(name: &str, line: &DomainLine, why: &str) -> Failure {
    let DomainLine { dap, n, k, .. } = line;
    Failure::usage(format!(
        "cannot create '{name}' as the backup has it, {dap} [{n},{k}]: {why}; create it by `areo domain create {name}`, and restore again"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::{Dap, ReconfigKind};

    fn line(dap: &str, n: usize, k: usize) -> DomainLine {
        DomainLine {
            domain: "photos".into(),
            id: "1f".into(),
            dap: dap.into(),
            n,
            k,
            delta: 7,
            copy_limit_bytes: 9,
            reconfig: "ares".into(),
            consensus: "members".into(),
            experimental: Vec::new(),
        }
    }

    #[test]
    fn a_domain_is_created_of_its_kind_with_a_code_that_fits() {
        for (dap, n, k, servers, expected) in [
            ("ec", 5, 4, 5, Dap::Ec { k: 4 }),
            ("ec", 5, 4, 3, Dap::Ec { k: 1 }),
            ("ec", 3, 1, 7, Dap::Ec { k: 5 }),
            ("abd", 3, 1, 5, Dap::Abd),
            ("conditional", 5, 1, 3, Dap::Conditional { k: 1 }),
            ("casgc", 5, 3, 5, Dap::CasGc { k: 3 }),
        ] {
            let options = options(&line(dap, n, k), servers).unwrap();
            assert_eq!(options.dap, expected, "{dap} of {n} on {servers}");
            assert_eq!((options.delta, options.copy_bytes), (Some(7), Some(9)));
        }
        let rambo = DomainLine {
            reconfig: "l-rambo".into(),
            ..line("abd", 3, 1)
        };
        assert_eq!(options(&rambo, 3).unwrap().reconfig, ReconfigKind::LRambo);
    }

    #[test]
    fn a_domain_that_would_be_another_is_not_created() {
        let experimental = DomainLine {
            experimental: vec!["piggyback=off".into()],
            ..line("ec", 5, 3)
        };
        for (line, why) in [
            (experimental, "experimental settings (piggyback=off)"),
            (line("paxos", 5, 3), "no 'paxos'"),
        ] {
            let error = options(&line, 5).unwrap_err();
            assert!(error.contains(why), "{error}");
            let sentence = unlike("photos", &line, &error).message;
            assert!(sentence.contains("`areo domain create photos`"));
        }
    }
}
