//! `areo stat`: everything of an object but its value.

use super::statistics;
use crate::args;
use crate::exit::Outcome;
use crate::output::Output;
use crate::progress;
use crate::session::{self, Session, failure};
use areo_client::units::{show_size, show_time};
use areo_client::{ObjectInfo, Statistics};
use serde::Serialize;

/// The output with `--json`.
#[derive(Serialize)]
struct StatReport<'a> {
    domain: &'a str,
    key: &'a str,
    #[serde(flatten)]
    info: &'a ObjectInfo,
    #[serde(flatten)]
    cost: Option<&'a Statistics>,
}

pub(super) fn run(session: &Session, args: &args::Stat) -> Outcome {
    session::run(stat(session, args), "")
}

async fn stat(session: &Session, args: &args::Stat) -> Outcome {
    let key = args.key.as_str();
    let (client, domain) = session.domain().await?;
    let (domain, statistics) = domain.measured();
    let look = async {
        match args.rule {
            true => domain.stat(key).await,
            false => domain.inspect(key).await,
        }
    };
    let info = progress::late(session.out, &client, look).await;
    let info = info.map_err(failure)?;
    let cost = args.stats.stats.then_some(&*statistics);
    if session.out.json {
        session.out.object(&StatReport {
            domain: domain.name(),
            key,
            info: &info,
            cost,
        })?;
    } else {
        print(session.out, domain.name(), key, &info)?;
        statistics::print(session.out, cost);
    }
    client.close().await;
    Ok(())
}

fn print(out: Output, domain: &str, key: &str, info: &ObjectInfo) -> Outcome {
    for (name, value) in lines(out.terminal, domain, key, info) {
        let value = out.foreign(&value);
        if out.terminal {
            out.line(&format!("{:<14} {value}", out.foreign(&name)))?;
        } else {
            out.line(&format!("{name}\t{value}"))?;
        }
    }
    Ok(())
}

fn lines(people: bool, domain: &str, key: &str, info: &ObjectInfo) -> Vec<(String, String)> {
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut line = |name: &str, value: String| lines.push((name.into(), value));
    line("key", key.into());
    line("domain", domain.into());
    line("version", info.version.to_string());
    line(
        "bytes",
        if people {
            format!("{} ({})", info.length, show_size(info.length))
        } else {
            info.length.to_string()
        },
    );
    let metadata = &info.metadata;
    if let Some(blocks) = &metadata.blocks {
        let (count, size) = (blocks.count(), show_size(blocks.block_bytes().into()));
        line("blocks", format!("{count} of {size}"));
    }
    if let Some(content_type) = &metadata.content_type {
        line("content type", content_type.clone());
    }
    for (name, value) in &metadata.user {
        line("metadata", format!("{name}={value}"));
    }
    if let Some(checksum) = metadata.checksum {
        line("checksum", format!("crc32c {checksum:08x}"));
    }
    if let Some(etag) = &metadata.etag {
        line("ETag", etag.as_str().into());
    }
    if let Some(ms) = metadata.written_at_ms {
        line(
            "written",
            format!("{} by the writer's clock", show_time(ms)),
        );
    }
    line(
        "configuration",
        format!("{}, {}", info.configuration, info.shape),
    );
    for placement in &info.placement {
        let (server, element, role) = (&placement.name, placement.element, placement.role);
        let holds = placement
            .holds
            .map_or(String::new(), |holds| format!(": {holds}"));
        line(
            "placement",
            format!("{server} element {element} ({role}){holds}"),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::{
        Blocks, Dap, ElementRole, Etag, Holds, Metadata, Placement, ServerId, Shape, Version,
    };

    fn info() -> ObjectInfo {
        ObjectInfo {
            version: Version::INITIAL,
            length: 2048,
            metadata: Metadata {
                content_type: Some("text/plain".into()),
                user: vec![("colour".into(), "blue".into())],
                checksum: Some(0xab),
                written_at_ms: Some(1000),
                etag: Some(Etag::new("e-1").unwrap()),
                blocks: Some(Blocks::new(Version::INITIAL.writer, 2048, 4096).into()),
                lost: None,
            },
            configuration: 0,
            shape: Shape::new(Dap::Ec { k: 3 }, 5).unwrap(),
            placement: vec![Placement {
                server: ServerId(1),
                name: "s1".into(),
                element: 4,
                role: ElementRole::Parity,
                holds: Some(Holds::Other {
                    version: Version::INITIAL,
                }),
            }],
        }
    }

    #[test]
    fn json_has_stable_keys() {
        let known = StatReport {
            domain: "default",
            key: "a",
            info: &info(),
            cost: None,
        };
        let object = serde_json::to_value(&known).unwrap();
        assert_eq!(
            object,
            serde_json::json!({
                "domain": "default", "key": "a", "version": "0-00000000000000000", "bytes": 2048,
                "blocks": 1, "block_bytes": 4096,
                "content_type": "text/plain", "etag": "e-1", "metadata": { "colour": "blue" }, "checksum": "000000ab",
                "written_at_ms": 1000, "configuration": 0, "dap": "ec", "n": 5, "k": 3,
                "placement": [{
                    "server": "s1", "id": "00000000000000000000000000000001", "element": 4, "role": "parity",
                    "holds": "other", "version": "0-00000000000000000"
                }],
            })
        );
    }

    #[test]
    fn people_see_everything_too() {
        let lines = lines(true, "default", "a", &info());
        let value = |name: &str| {
            let found = lines.iter().find(|(n, _)| n == name);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!(value("bytes"), Some("2048 (2.0 KiB)"));
        assert_eq!(value("blocks"), Some("1 of 4.0 KiB"));
        assert_eq!(value("metadata"), Some("colour=blue"));
        assert_eq!(
            value("written"),
            Some("1970-01-01 00:00:01 UTC by the writer's clock")
        );
        assert_eq!(value("configuration"), Some("0, ec [5,3]"));
        let missing = "s1 element 4 (parity): MISSING, holds version 0-00000000000000000";
        assert_eq!(value("placement"), Some(missing));
    }
}
