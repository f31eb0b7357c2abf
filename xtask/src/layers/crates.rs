//! Arrows between crates.

use serde_json::Value;

use crate::findings::Finding;

/// The file with the table, for messages.
const TABLE: &str = "xtask/src/layers/crates.rs";

/// A crate of ours, and the crates that it may depend on.
struct Crate {
    name: &'static str,
    /// Crates of this workspace.
    ours: &'static [&'static str],
    /// Crates of others; `None`: any, with a line in a decision record.
    others: Option<&'static [&'static str]>,
}

const fn layer(name: &'static str, ours: &'static [&'static str]) -> Crate {
    Crate {
        name,
        ours,
        others: None,
    }
}

/// THE TABLE, from the top down. Every arrow that is not here is forbidden; a new crate gets a row.
const CRATES: &[Crate] = &[
    layer(
        "areo-lab",
        &[
            "areo",
            "areo-allocator",
            "areo-bench",
            "areo-check",
            "areo-sim",
            "areo-steward",
            "areo-telemetry",
            "areo-client",
            "areo-s3",
        ],
    ),
    layer(
        "areo",
        &[
            "areo-allocator",
            "areo-s3",
            "areo-console",
            "areo-steward",
            "areo-server",
            "areo-telemetry",
            "areo-client",
            "areo-trust",
            "areo-etcd",
        ],
    ),
    layer("areo-s3", &["areo-client", "areo-net"]),
    layer(
        "areo-console",
        &["areo-steward", "areo-telemetry", "areo-client", "areo-net"],
    ),
    layer(
        "areo-bench",
        &[
            "areo-sim",
            "areo-client",
            "areo-server",
            "areo-wire",
            "areo-check",
            "areo-etcd",
            "areo-erasure",
            "areo-telemetry",
            "areo-trust",
        ],
    ),
    layer(
        "areo-sim",
        &[
            "areo-node",
            "areo-steward",
            "areo-core",
            "areo-wire",
            "areo-store",
            "areo-trust",
            "areo-check",
        ],
    ),
    layer(
        "areo-server",
        &[
            "areo-client",
            "areo-node",
            "areo-store",
            "areo-wire",
            "areo-core",
            "areo-net",
            "areo-trust",
            "areo-telemetry",
        ],
    ),
    layer("areo-telemetry", &[]),
    layer(
        "areo-client",
        &["areo-steward", "areo-net", "areo-trust", "areo-core"],
    ),
    Crate {
        name: "areo-steward",
        ours: &[],
        others: Some(&["serde", "thiserror", "toml"]),
    },
    layer("areo-net", &["areo-wire", "areo-trust", "areo-core"]),
    Crate {
        name: "areo-node",
        ours: &["areo-store", "areo-core"],
        others: Some(&[]),
    },
    layer("areo-trust", &["areo-core"]),
    layer("areo-store", &["areo-wire", "areo-core"]),
    layer("areo-wire", &["areo-core"]),
    Crate {
        name: "areo-core",
        ours: &["areo-erasure"],
        others: Some(&["bytes", "tracing"]),
    },
    layer("areo-check", &[]),
    layer("areo-etcd", &[]),
    layer("areo-fuzzing", &[]),
    layer("areo-erasure", &[]),
    Crate {
        name: "areo-allocator",
        ours: &[],
        others: Some(&["libmimalloc-sys"]),
    },
    layer("xtask", &[]),
];

/// Crates that tests of any crate may use beside the table: judging a history makes no design depend on the judge,
/// nor does feeding a parser with rubbish, or measuring with the allocator of the programs.
const FOR_TESTS: &[&str] = &["areo-allocator", "areo-check", "areo-fuzzing"];

/// Every forbidden arrow in the output of `cargo metadata`.
pub(crate) fn check(metadata: &Value) -> Result<Vec<Finding>, String> {
    let members = metadata["workspace_members"]
        .as_array()
        .ok_or("`cargo metadata` lists no members")?;
    let packages = metadata["packages"]
        .as_array()
        .ok_or("`cargo metadata` lists no packages")?;
    let ours: Vec<&Value> = packages
        .iter()
        .filter(|package| members.contains(&package["id"]))
        .collect();
    let names: Vec<&str> = ours
        .iter()
        .filter_map(|package| package["name"].as_str())
        .collect();
    let mut findings = Vec::new();
    for package in ours {
        let name = package["name"].as_str().unwrap_or("?");
        let place = format!("{name}/Cargo.toml");
        let Some(row) = CRATES.iter().find(|row| row.name == name) else {
            let message =
                format!("unknown crate '{name}': add a row with what it may depend on to {TABLE}");
            findings.push(Finding::new(&place, 0, message));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if let Some(message) = forbidden(row, dependency, &names) {
                findings.push(Finding::new(&place, 0, message));
            }
        }
    }
    Ok(findings)
}

fn forbidden(row: &Crate, dependency: &Value, members: &[&str]) -> Option<String> {
    let name = row.name;
    let target = dependency["name"].as_str().unwrap_or("?");
    let for_tests = dependency["kind"].as_str() == Some("dev");
    if members.contains(&target) {
        let allowed = row.ours.contains(&target) || for_tests && FOR_TESTS.contains(&target);
        return (!allowed).then(|| {
            format!(
                "forbidden arrow {name} -> {target}: {name} may depend on {} of ours; move what you need down, \
                 or change the table in {TABLE} and ARCHITECTURE.md with a decision record",
                list(row.ours)
            )
        });
    }
    let others = row
        .others
        .filter(|others| !for_tests && !others.contains(&target))?;
    Some(format!(
        "forbidden dependency {name} -> {target}: {name} sees only {} from outside; do it behind `Env`, or in a \
         crate above",
        list(others)
    ))
}

fn list(names: &[&str]) -> String {
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{CRATES, check};

    /// A crate with its dependencies and their kind, as `cargo metadata` names it.
    type PlantedCrate<'a> = (&'a str, &'a [(&'a str, Option<&'a str>)]);

    fn metadata(packages: &[PlantedCrate]) -> Value {
        let describe = |(name, dependencies): &PlantedCrate| {
            let dependencies: Vec<Value> = dependencies
                .iter()
                .map(|(name, kind)| json!({ "name": name, "kind": kind }))
                .collect();
            json!({ "id": name, "name": name, "dependencies": dependencies })
        };
        let members: Vec<&str> = packages.iter().map(|(name, _)| *name).collect();
        json!({ "workspace_members": members, "packages": packages.iter().map(describe).collect::<Vec<_>>() })
    }

    fn messages(packages: &[PlantedCrate]) -> Vec<String> {
        let findings = check(&metadata(packages)).expect("well formed");
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arrows_of_the_table_are_allowed() {
        let found = messages(&[
            ("areo-erasure", &[("reed-solomon-erasure", Some("dev"))]),
            (
                "areo-core",
                &[
                    ("areo-erasure", None),
                    ("bytes", None),
                    ("proptest", Some("dev")),
                ],
            ),
            (
                "areo-wire",
                &[
                    ("areo-core", None),
                    ("areo-check", Some("dev")),
                    ("crc-fast", None),
                ],
            ),
            ("areo-check", &[]),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn a_planted_arrow_upwards_is_caught() {
        let found = messages(&[
            ("areo-core", &[("areo-wire", None)]),
            ("areo-wire", &[("areo-net", Some("dev"))]),
            ("areo-net", &[("areo-check", None)]),
            ("areo-check", &[]),
        ]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("areo-core -> areo-wire"), "{found:?}");
        assert!(found[1].contains("areo-wire -> areo-net"), "{found:?}");
        assert!(found[2].contains("areo-net -> areo-check"), "{found:?}");
    }

    #[test]
    fn a_planted_runtime_in_core_is_caught() {
        let found = messages(&[("areo-core", &[("tokio", None), ("bytes", None)])]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("areo-core -> tokio"), "{found:?}");
    }

    #[test]
    fn a_planted_unknown_crate_is_caught() {
        let found = messages(&[("areo-surprise", &[])]);
        assert!(
            found.len() == 1 && found[0].contains("unknown crate 'areo-surprise'"),
            "{found:?}"
        );
        assert!(check(&json!({})).is_err());
    }

    /// The product never depends on the programs that test and measure it; tests alone may use the judge.
    #[test]
    fn the_product_depends_on_nothing_of_the_laboratory() {
        let laboratory = ["areo-lab", "areo-bench", "areo-sim", "areo-check"];
        for part in laboratory {
            let found = messages(&[("areo", &[(part, None)]), (part, &[])]);
            let arrow = format!("areo -> {part}");
            assert!(found.iter().any(|one| one.contains(&arrow)), "{found:?}");
        }
        let judged: PlantedCrate = ("areo", &[("areo-check", Some("dev"))]);
        assert_eq!(messages(&[judged, ("areo-check", &[])]), [""; 0]);
        let (mut shipped, mut seen) = (vec!["areo"], 0);
        while let Some(&name) = shipped.get(seen) {
            let rows = CRATES.iter().filter(|row| row.name == name);
            shipped.extend(rows.flat_map(|row| row.ours));
            seen += 1;
        }
        assert!(shipped.contains(&"areo-core"), "{shipped:?}");
        assert!(
            !shipped.iter().any(|name| laboratory.contains(name)),
            "{shipped:?}"
        );
    }

    #[test]
    fn the_table_points_down_only() {
        for (position, row) in CRATES.iter().enumerate() {
            for target in row.ours {
                let below = CRATES[position + 1..]
                    .iter()
                    .any(|other| other.name == *target);
                assert!(below, "{} -> {target} points up in the table", row.name);
            }
        }
    }
}
