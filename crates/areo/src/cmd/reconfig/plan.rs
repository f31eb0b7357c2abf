//! `areo reconfig plan`: old and new, side by side.

use super::reconfig_failure;
use crate::args::ChangeArgs;
use crate::cmd::domain;
use crate::exit::Outcome;
use crate::output::{Column, Output};
use crate::session::Session;
use crate::units::{show_count, show_size};
use areo_client::{ConfigurationInfo, Plan, Shape};
use serde::Serialize;

/// What is printed with `--json`.
#[derive(Serialize)]
pub(super) struct Planned<'a> {
    domain: &'a str,
    unchanged: bool,
    old: domain::DescribedConfiguration<'a>,
    new: domain::DescribedConfiguration<'a>,
    added: Vec<&'a str>,
    removed: Vec<&'a str>,
    kept: Vec<&'a str>,
    unreachable: Vec<Unreachable<'a>>,
    /// Indices of configurations that are finished first.
    pending: Vec<u32>,
    objects: u64,
    bytes: u64,
    /// What the new configuration makes of them, for all servers together.
    element_bytes: u64,
    /// Of these, what has to be sent.
    sent_bytes: u64,
    /// How they were counted.
    counted: &'static str,
}

#[derive(Serialize)]
struct Unreachable<'a> {
    server: &'a str,
    reason: &'a str,
}

pub(super) async fn run(session: &Session, args: &ChangeArgs) -> Outcome {
    let client = session.connect().await?;
    let domain = Session::find(&client, &args.name).await?;
    let plan = domain.plan(&args.change()).await;
    let plan = plan.map_err(|error| reconfig_failure(&args.name, error))?;
    match session.out.json {
        true => session.out.object(&planned(&args.name, &plan))?,
        false => print(session.out, &args.name, &plan)?,
    }
    client.close().await;
    Ok(())
}

fn planned<'a>(name: &'a str, plan: &'a Plan) -> Planned<'a> {
    let Servers {
        added,
        removed,
        kept,
    } = servers(plan);
    let unreachable = |(server, reason): &'a (String, String)| Unreachable { server, reason };
    Planned {
        domain: name,
        unchanged: plan.unchanged,
        old: domain::describe_configuration(&plan.old),
        new: domain::describe_configuration(&plan.new),
        added,
        removed,
        kept,
        unreachable: plan.unreachable.iter().map(unreachable).collect(),
        pending: plan.pending.iter().map(|c| c.index).collect(),
        objects: plan.objects,
        bytes: plan.bytes,
        element_bytes: plan.element_bytes,
        sent_bytes: plan.sent_bytes,
        counted: counted(plan),
    }
}

fn counted(plan: &Plan) -> &'static str {
    match plan.more {
        false => "listing",
        true => "beginning of the listing",
    }
}

/// Names of servers that come, go and stay.
struct Servers<'a> {
    added: Vec<&'a str>,
    removed: Vec<&'a str>,
    kept: Vec<&'a str>,
}

fn servers(plan: &Plan) -> Servers<'_> {
    let (old, new) = (&plan.old, &plan.new);
    Servers {
        added: pick(new, old, false),
        removed: pick(old, new, false),
        kept: pick(new, old, true),
    }
}

fn pick<'a>(of: &'a ConfigurationInfo, other: &ConfigurationInfo, both: bool) -> Vec<&'a str> {
    let is_in_both = |id| other.members.iter().any(|member| member.id == id);
    let wanted = of.members.iter().filter(|m| is_in_both(m.id) == both);
    wanted.map(|member| member.name.as_str()).collect()
}

/// The plan for people, or for a pipe.
pub(super) fn print(out: Output, name: &str, plan: &Plan) -> Outcome {
    let columns = [Column::Text(""), Column::Text("old"), Column::Text("new")];
    out.table(&columns, &rows(plan))?;
    let size = |bytes: u64| match out.terminal {
        true => show_size(bytes),
        false => bytes.to_string(),
    };
    let dash = |names: Vec<&str>| match names.is_empty() {
        true => "-".into(),
        false => names.join(","),
    };
    let servers = servers(plan);
    let unreachable: Vec<&str> = plan
        .unreachable
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    let least = if plan.more { "more than " } else { "" };
    let lines = [
        ("added", dash(servers.added)),
        ("removed", dash(servers.removed)),
        ("kept", dash(servers.kept)),
        ("unreachable", dash(unreachable)),
        (
            "to move",
            format!(
                "{least}{}, {} of values",
                show_count(plan.objects, "object"),
                size(plan.bytes)
            ),
        ),
        (
            "to store",
            format!(
                "{least}{} in fragments and copies",
                size(plan.element_bytes)
            ),
        ),
        ("to send", format!("{least}{}", size(plan.sent_bytes))),
        ("counted", format!("by {}", counted(plan))),
    ];
    if out.terminal {
        out.line("")?;
    }
    for (name, value) in lines {
        match out.terminal {
            true => out.line(&format!("{name:<14} {value}"))?,
            false => out.line(&format!("{name}\t{value}"))?,
        }
    }
    if !plan.pending.is_empty() {
        out.note(&format!(
            "'{name}' has a pending change already: it is finished first"
        ));
    }
    if plan.unchanged {
        out.note(&format!(
            "'{name}' has this configuration already: there is nothing to do"
        ));
    }
    Ok(())
}

fn rows(plan: &Plan) -> Vec<Vec<String>> {
    let (old, new) = (&plan.old, &plan.new);
    let row = |name: &str, of: &dyn Fn(&ConfigurationInfo) -> String| {
        vec![name.to_owned(), of(old), of(new)]
    };
    let shape = |name: &str, of: fn(Shape) -> String| row(name, &|c| of(c.shape));
    vec![
        row("configuration", &|c| c.index.to_string()),
        shape("dap", |shape| shape.to_string()),
        shape("n", |shape| shape.n().to_string()),
        shape("k", |shape| shape.k().to_string()),
        shape("quorum", |shape| shape.quorum().to_string()),
        shape("f", |shape| shape.f().to_string()),
        shape("may be lost", |shape| shape.fragments_spare().to_string()),
        shape("stored per byte", |shape| {
            format!("{:.2}", shape.stored_per_byte())
        }),
        row("delta", &|c| c.delta.to_string()),
        row("decided by", &|c| c.decided_by.to_string()),
        row("experimental", &domain::experimental),
        row("servers", &domain::names),
    ]
}
