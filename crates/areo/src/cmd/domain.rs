//! `areo domain create|ls|show`.

mod graph;

use crate::args::{self, DapWord, ReconfigWord};
use crate::exit::{Code, Failure, Outcome};
use crate::output::{Column, Output};
use crate::progress;
use crate::session::{self, Session, choice_failure, creation_failure, failure};
use areo_client::units::show_size;
use areo_client::{
    ConfigurationGraph, ConfigurationInfo, Dap, DapKind, DomainInfo, DomainOptions, InvalidChoice,
    Shape,
};
use serde::Serialize;

pub(super) fn run(session: &Session, command: args::Domain) -> Outcome {
    match command {
        args::Domain::Create(args) => {
            let interrupted = "interrupted: the domain may have been created";
            session::run(create(session, args), interrupted)
        }
        args::Domain::Ls => session::run(ls(session), ""),
        args::Domain::Rm { name, yes } => {
            let interrupted = format!(
                "interrupted: '{name}' may be removed, or half: `areo domain rm {name}` goes on"
            );
            session::run(rm(session, &name, yes), &interrupted)
        }
        args::Domain::Show { name } => session::run(show(session, &name), ""),
    }
}

async fn create(session: &Session, args: args::DomainCreate) -> Outcome {
    // Refused here, where no server has to be asked.
    let usual = match args.reconfig {
        ReconfigWord::Ares => DapWord::Ec,
        ReconfigWord::Rambo
        | ReconfigWord::LRambo
        | ReconfigWord::Sm
        | ReconfigWord::Spsn
        | ReconfigWord::DynaStore => DapWord::Abd,
    };
    let word = args.dap.unwrap_or(usual);
    dap(word, args.k, 1)?;
    let client = session.connect().await?;
    let n = match args.servers.len() {
        0 => {
            let servers = progress::late(session.out, &client, client.candidates()).await;
            servers.map_err(failure)?.len()
        }
        named => named,
    };
    let options = DomainOptions {
        dap: dap(word, args.k, n)?,
        servers: args.servers,
        delta: args.delta,
        copy_bytes: args.copy_limit,
        experimental: args.experimental.all(),
        decided_by: args.consensus.unwrap_or_default(),
        reconfig: args.reconfig.into(),
        allow_f0: args.allow_f0,
    };
    let create = client.create_domain(&args.name, options);
    let created = progress::late(session.out, &client, create).await;
    let domain = created.map_err(creation_failure)?;
    let info = DomainInfo {
        name: domain.name().into(),
        id: domain.id(),
        configuration: domain.configuration(),
        pending: Some(Vec::new()),
    };
    match session.out.json {
        true => session.out.object(&info)?,
        false => print_one(session.out, &info, &ConfigurationGraph::default())?,
    }
    let warning = progress::late(session.out, &client, client.root_warning()).await;
    if let Some(warning) = warning {
        session.out.note(&warning);
    }
    client.close().await;
    Ok(())
}

async fn ls(session: &Session) -> Outcome {
    let client = session.connect().await?;
    let domains = progress::late(session.out, &client, client.domains()).await;
    print_all(session.out, &domains.map_err(failure)?)?;
    client.close().await;
    Ok(())
}

/// The output with `--json` of a domain that is shown.
#[derive(Serialize)]
struct ShownDomain<'a> {
    #[serde(flatten)]
    info: &'a DomainInfo,
    graph: Option<&'a ConfigurationGraph>,
}

async fn show(session: &Session, name: &str) -> Outcome {
    let client = session.connect().await?;
    let domain = session.find(&client, name).await?;
    let graph = progress::late(session.out, &client, domain.graph()).await;
    if let Err(error) = &graph {
        let note = format!("{error}; this is what the directory knows of it");
        session.out.note(&note);
    }
    let configuration = domain.configuration();
    let graph = graph.ok();
    let pending = |graph: &ConfigurationGraph| {
        let entries = graph.nodes.iter().filter(|entry| !entry.is_final);
        entries.map(|entry| entry.configuration.clone()).collect()
    };
    let info = DomainInfo {
        name: domain.name().into(),
        id: domain.id(),
        configuration,
        pending: graph.as_ref().map(pending),
    };
    match session.out.json {
        true => session.out.object(&ShownDomain {
            info: &info,
            graph: graph.as_ref(),
        })?,
        false => print_one(session.out, &info, &graph.unwrap_or_default())?,
    }
    client.close().await;
    Ok(())
}

async fn rm(session: &Session, name: &str, yes: bool) -> Outcome {
    let out = session.out;
    if !yes && !out.confirmed(&format!("remove '{name}' and everything in it?"))? {
        return Err(Failure::new(Code::Interrupted, "nothing was removed"));
    }
    let client = session.connect().await?;
    let removed = progress::late(out, &client, client.remove_domain(name)).await;
    removed.map_err(failure)?;
    match (out.json, out.terminal && !out.quiet) {
        (true, _) => out.object(&serde_json::json!({ "domain": name, "removed": true }))?,
        (false, true) => out.line(&format!("'{name}' is removed"))?,
        (false, false) => {}
    }
    client.close().await;
    Ok(())
}

/// The way of data access for these arguments. Without `--k`, as large as one crash allows: `n - 2`, so that f =
/// 1 from three servers on.
///
/// # Errors
/// A `k` for replication.
pub(super) fn dap(word: DapWord, k: Option<u8>, n: usize) -> Outcome<Dap> {
    let kind = DapKind::from(word);
    match k {
        Some(k) if !kind.is_coded() => Err(choice_failure(&InvalidChoice::NoFragments { k })),
        k => Ok(kind.with(k.unwrap_or(kind.default_k(n)))),
    }
}

/// The meaning of a shape, as a part of a sentence.
pub(super) fn meaning(shape: Shape) -> String {
    let (quorum, n, f, spare) = (
        shape.quorum(),
        shape.n(),
        shape.f(),
        shape.fragments_spare(),
    );
    let crashes = if f == 1 { "crash" } else { "crashes" };
    let elements = if shape.dap().is_coded() {
        "fragments"
    } else {
        "copies"
    };
    let stored = shape.stored_per_byte();
    format!(
        "quorum {quorum} of {n}, f = {f} ({f} {crashes} tolerated), {spare} of {n} {elements} may be lost, {stored:.2} bytes stored per byte written"
    )
}

/// The settings for experiments, in one line; usually none.
pub(super) fn experimental(c: &ConfigurationInfo) -> String {
    c.experimental.settings().join(", ")
}

fn print_all(out: Output, domains: &[DomainInfo]) -> Outcome {
    if out.json {
        return domains.iter().try_for_each(|info| out.object(info));
    }
    let short = ["domain", "dap", "quorum", "f", "pending", "servers"];
    let rows: Vec<_> = domains.iter().map(row).collect();
    out.short_table(&COLUMNS, &short, &rows)
}

/// The columns of a [`row`].
pub(super) const COLUMNS: [Column; 8] = [
    Column::Text("domain"),
    Column::Text("dap"),
    Column::Number("quorum"),
    Column::Number("f"),
    Column::Number("may be lost"),
    Column::Number("stored per byte"),
    Column::Text("pending"),
    Column::Text("servers"),
];

pub(super) fn row(info: &DomainInfo) -> Vec<String> {
    let shape = info.configuration.shape;
    vec![
        info.name.clone(),
        shape.to_string(),
        shape.quorum().to_string(),
        shape.f().to_string(),
        shape.fragments_spare().to_string(),
        format!("{:.2}", shape.stored_per_byte()),
        pending(info),
        names(&info.configuration),
    ]
}

/// Pending configurations in short; a dash if there is none, or none is known.
fn pending(info: &DomainInfo) -> String {
    let pending = info.pending.iter().flatten();
    let pending: Vec<String> = pending
        .map(|c| format!("{} {}", c.index, c.shape))
        .collect();
    match pending.is_empty() {
        true => "-".into(),
        false => pending.join(", "),
    }
}

pub(super) fn names(configuration: &ConfigurationInfo) -> String {
    let names: Vec<&str> = configuration
        .members
        .iter()
        .map(|m| m.name.as_str())
        .collect();
    names.join(",")
}

/// A configuration in short.
fn called(c: &ConfigurationInfo, status: &str) -> String {
    format!("{} {status}, {}", c.index, c.shape)
}

/// Prints one domain for people.
fn print_one(out: Output, info: &DomainInfo, graph: &ConfigurationGraph) -> Outcome {
    let configuration = &info.configuration;
    let mut lines = vec![
        ("domain", info.name.clone()),
        ("id", info.id.clone()),
        ("configuration", called(configuration, "finalized")),
        ("servers", names(configuration)),
        ("means", meaning(configuration.shape)),
        ("delta", configuration.delta.to_string()),
        (
            "copy limit",
            match out.terminal {
                true => show_size(configuration.copy_bytes.into()),
                false => configuration.copy_bytes.to_string(),
            },
        ),
        ("reconfig", configuration.reconfig.to_string()),
        ("decided by", configuration.decided_by.to_string()),
    ];
    // What is to be different is posted in the last one.
    let last = graph.nodes.last().map(|entry| &entry.configuration);
    if let Some(leader) = &last.unwrap_or(configuration).leader {
        lines.push(("led by", leader.clone()));
    }
    let experimental = experimental(configuration);
    if !experimental.is_empty() {
        lines.push(("experimental", experimental));
    }
    let after = graph::lines(graph);
    lines.extend(after.into_iter().map(|line| ("comes next", line)));
    for (name, value) in lines {
        match out.terminal {
            true => out.line(&format!("{name:<14} {value}"))?,
            false => out.line(&format!("{name}\t{value}"))?,
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use areo_client::experimental::Experimental;
    use areo_client::{Decider, Member, ReconfigKind, ServerId};

    #[test]
    fn k_leaves_room_for_one_crash_by_default() {
        for (n, k) in [(1, 1), (2, 1), (3, 1), (4, 2), (5, 3), (14, 12)] {
            assert_eq!(dap(DapWord::Ec, None, n), Ok(Dap::Ec { k }), "{n} servers");
            let shape = Shape::new(Dap::Ec { k }, n).unwrap();
            assert_eq!(shape.f(), usize::from(n >= 3), "{n} servers");
        }
        assert_eq!(dap(DapWord::Ec, Some(2), 5), Ok(Dap::Ec { k: 2 }));
        assert_eq!(dap(DapWord::Abd, None, 5), Ok(Dap::Abd));
        let refused = dap(DapWord::Abd, Some(2), 5).unwrap_err();
        assert!(refused.message.contains("leave --k out"), "{refused}");
    }

    pub(super) fn info() -> DomainInfo {
        domain("photos", Dap::Ec { k: 1 }, 2)
    }

    /// A domain on the servers from s1 on.
    pub(in crate::cmd) fn domain(name: &str, dap: Dap, n: u128) -> DomainInfo {
        let member = |i: u128| Member {
            id: ServerId(i),
            name: format!("s{i}"),
            address: (i > 1).then(|| format!("127.0.0.1:{}", 7399 + i)),
        };
        DomainInfo {
            name: name.into(),
            id: "0f".repeat(16),
            configuration: ConfigurationInfo {
                index: 0,
                shape: Shape::new(dap, usize::try_from(n).unwrap()).unwrap(),
                delta: 5,
                copy_bytes: 16_384,
                experimental: Experimental::default(),
                decided_by: Decider::Members,
                reconfig: ReconfigKind::default(),
                leader: None,
                members: (1..=n).map(member).collect(),
            },
            pending: Some(Vec::new()),
        }
    }

    #[test]
    fn json_has_stable_keys() {
        let object = serde_json::to_value(info()).unwrap();
        let member = |id: &str, address: Option<&str>| serde_json::json!({ "name": format!("s{id}"), "id": format!("{id:0>32}"), "address": address });
        assert_eq!(
            object,
            serde_json::json!({
                "domain": "photos", "id": "0f".repeat(16), "configuration": 0, "status": "finalized",
                "dap": "ec", "n": 2, "k": 1, "quorum": 2, "f": 0, "fragments_spare": 1,
                "stored_per_byte": 2.0, "delta": 5, "copy_limit_bytes": 16384,
                "consensus": "members", "reconfig": "ares", "experimental": [], "pending": [],
                "servers": [member("1", None), member("2", Some("127.0.0.1:7401"))],
            })
        );
    }

    #[test]
    fn experimental_settings_are_shown_where_there_are_some() {
        let mut c = info().configuration;
        assert_eq!(experimental(&c), "");
        c.experimental = Experimental::ARES;
        assert_eq!(experimental(&c), "piggyback=off, collect=off");
    }

    #[test]
    fn a_shape_is_explained() {
        let explained = meaning(Shape::new(Dap::Ec { k: 3 }, 5).unwrap());
        assert_eq!(
            explained,
            "quorum 4 of 5, f = 1 (1 crash tolerated), 2 of 5 fragments may be lost, 1.67 bytes stored per byte written"
        );
        let explained = meaning(Shape::new(Dap::Abd, 5).unwrap());
        assert!(
            explained.contains("f = 2 (2 crashes tolerated), 4 of 5 copies"),
            "{explained}"
        );
        assert_eq!(row(&info()).last().map(String::as_str), Some("s1,s2"));
    }
}
