//! `areo reconfig plan`: old and new, side by side.

use super::reconfig_failure;
use crate::args::ChangeArgs;
use crate::cmd::domain;
use crate::exit::Outcome;
use crate::output::{Column, Output};
use crate::progress;
use crate::session::Session;
use areo_client::units::{show_count, show_size};
use areo_client::{ConfigurationInfo, Plan, Shape};
use serde::Serialize;

/// The output with `--json`.
#[derive(Serialize)]
struct PlanReport<'a> {
    domain: &'a str,
    #[serde(flatten)]
    plan: &'a Plan,
}

pub(super) async fn run(session: &Session, args: &ChangeArgs) -> Outcome {
    let client = session.connect().await?;
    let domain = session.find(&client, &args.name).await?;
    let change = args.change();
    let plan = progress::late(session.out, &client, domain.plan(&change)).await;
    let plan = plan.map_err(|error| reconfig_failure(&args.name, error))?;
    if session.out.json {
        session.out.object(&PlanReport {
            domain: &args.name,
            plan: &plan,
        })?;
    } else {
        print(session.out, &args.name, &plan)?;
    }
    client.close().await;
    Ok(())
}

/// The plan for people, or for a pipe.
pub(super) fn print(out: Output, name: &str, plan: &Plan) -> Outcome {
    let columns = [Column::Text(""), Column::Text("old"), Column::Text("new")];
    out.table(&columns, &rows(plan))?;
    let size = |bytes: u64| {
        if out.terminal {
            show_size(bytes)
        } else {
            bytes.to_string()
        }
    };
    let dash = |names: Vec<&str>| {
        if names.is_empty() {
            "-".into()
        } else {
            names.join(",")
        }
    };
    let unreachable: Vec<&str> = plan
        .unreachable
        .iter()
        .map(|unreachable| unreachable.server.as_str())
        .collect();
    let least = if plan.more { "more than " } else { "" };
    let lines = [
        ("added", dash(plan.added())),
        ("removed", dash(plan.removed())),
        ("kept", dash(plan.kept())),
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
        ("counted", format!("by {}", plan.counted())),
    ];
    if out.terminal {
        out.line("")?;
    }
    for (name, value) in lines {
        if out.terminal {
            out.line(&format!("{name:<14} {value}"))?;
        } else {
            out.line(&format!("{name}\t{value}"))?;
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
        vec![
            "may be lost now".into(),
            plan.spare_now.to_string(),
            "-".into(),
        ],
        shape("stored per byte", |shape| {
            format!("{:.2}", shape.stored_per_byte())
        }),
        row("delta", &|c| c.delta.to_string()),
        row("decided by", &|c| c.decided_by.to_string()),
        row("experimental", &domain::experimental),
        row("servers", &domain::names),
    ]
}
