use super::{CRATES, check};
use crate::tree::Tree;

fn messages(files: &[(&str, &str)]) -> Vec<String> {
    messages_of("core", files)
}

fn messages_of(name: &str, files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<(String, &str)> = files
        .iter()
        .map(|(path, text)| (format!("crates/{name}/src/{path}"), *text))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), *text))
        .collect();
    check(&Tree::planted(&files))
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn arrows_down_are_allowed() {
    let found = messages(&[
        (
            "lib.rs",
            "pub mod tag; pub use manager::Manager; pub use tag::Tag;",
        ),
        (
            "manager.rs",
            "use crate::dsm::atomic; use crate::{fragment, env::Env, Tag};",
        ),
        (
            "dsm/atomic.rs",
            "use super::Context; use crate::dap::get_tag; use crate::reconfig::read_config;",
        ),
        (
            "dap/abd.rs",
            "use crate::gather::Tally; use crate::message::Request; use crate::tag::Tag;",
        ),
        ("tag.rs", "use crate::tlv::Field; use crate::error::Error;"),
        (
            "server/state.rs",
            "use crate::dap::abd::AbdServer; use crate::config::Configuration;",
        ),
        ("shard.rs", "use crate::server::Server;"),
        (
            "gather.rs",
            "use std::collections::BTreeMap; use crate::env::Env;",
        ),
    ]);
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_planted_arrow_upwards_is_caught() {
    for (path, text, arrow) in [
        ("dap/abd.rs", "use crate::dsm::Context;", "dap -> dsm"),
        (
            "dap/abd.rs",
            "use super::super::manager::Manager;",
            "dap -> manager",
        ),
        (
            "dap.rs",
            "fn f() { crate::reconfig::read() }",
            "dap -> reconfig",
        ),
        (
            "dap.rs",
            "use crate::consensus::decide;",
            "dap -> consensus",
        ),
        (
            "dap/ec.rs",
            "use crate::{tag::Tag, server::Server};",
            "dap -> server",
        ),
        ("tag.rs", "use crate::env::Env;", "tag -> env"),
        ("gather.rs", "use crate::Manager;", "gather -> manager"),
        ("env.rs", "type X = crate::gather::Tally;", "env -> gather"),
        ("server.rs", "use crate::env::Env;", "server -> env"),
        ("server.rs", "use crate::shard::Shard;", "server -> shard"),
        (
            "manager.rs",
            "use crate::server::Server;",
            "manager -> server",
        ),
    ] {
        let found = messages(&[("lib.rs", "pub use manager::Manager;"), (path, text)]);
        assert_eq!(found.len(), 1, "{path}: {text}: {found:?}");
        assert!(
            found[0].contains(&format!("forbidden arrow {arrow} ")),
            "{found:?}"
        );
        assert!(
            found[0].starts_with(&format!("crates/core/src/{path}:1: ")),
            "{found:?}"
        );
    }
}

#[test]
fn a_planted_unknown_module_is_caught() {
    let found = messages(&[("surprise.rs", "")]);
    assert!(
        found.len() == 1 && found[0].contains("unknown module 'surprise': add it to the table"),
        "{found:?}"
    );
    let found = messages(&[
        ("dsm.rs", "use crate::Mystery;"),
        ("tag.rs", "use crate::*;"),
    ]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found
            .iter()
            .all(|message| message.contains("no known module of core")),
        "{found:?}"
    );
}

#[test]
fn tests_may_look_anywhere() {
    let found = messages(&[
        (
            "tag.rs",
            "#[cfg(test)]\nmod tests { use crate::manager::Manager; }",
        ),
        ("dap.rs", "#[cfg(test)]\nmod tests;"),
        ("dap/tests.rs", "use crate::manager::Manager;"),
        ("lib.rs", "#[cfg(test)] mod fixture;"),
        ("fixture.rs", "use crate::manager::Manager;"),
        (
            "gather.rs",
            "// use crate::manager::Manager;\nconst TEXT: &str = \"crate::manager::x\";",
        ),
    ]);
    assert_eq!(found, [""; 0]);
}

#[test]
fn the_session_names_no_handle() {
    let lib = (
        "lib.rs",
        "pub use domain::Domain; pub use areo_core::config::Dap;",
    );
    let found = messages_of(
        "client",
        &[
            lib,
            (
                "objects.rs",
                "use crate::session::Context; use crate::Domain;",
            ),
            ("shape.rs", "use crate::Dap;"),
        ],
    );
    assert_eq!(found, [""; 0]);
    for (path, text, arrow) in [
        (
            "session/context.rs",
            "use crate::Domain;",
            "session -> domain",
        ),
        (
            "domain.rs",
            "use crate::stream::Upload;",
            "domain -> stream",
        ),
        (
            "error.rs",
            "use crate::session::Context;",
            "error -> session",
        ),
    ] {
        let found = messages_of("client", &[lib, (path, text)]);
        assert_eq!(found.len(), 1, "{path}: {text}: {found:?}");
        assert!(
            found[0].contains(&format!("forbidden arrow {arrow} ")),
            "{found:?}"
        );
    }
}

#[test]
fn the_tables_point_down_only() {
    for layers in CRATES {
        for (position, (name, uses)) in layers.modules.iter().enumerate() {
            assert!(!layers.ground.contains(name), "{name} is in both tables");
            for target in *uses {
                let mut below = layers.modules[position + 1..].iter();
                let is_below = below.any(|(other, _)| other == target);
                assert!(is_below, "{name} -> {target} points up in the table");
            }
        }
    }
}
