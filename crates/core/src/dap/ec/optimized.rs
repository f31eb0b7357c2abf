//! EC-DAPopt: EC-DAP as published ([`super::published`]) with the optimisation of `CoAres` (`docs/spec` 2.4). The papers
//! compare with it.
//!
//! A client remembers the last pair that it brought to a quorum (`prop`). It names that pair's tag when it asks; members
//! answer with what is newer; and a pair that it has brought there it does not write back.
//!
//! | pseudocode | here |
//! |---|---|
//! | `prop` | [`EcOptimized::REMEMBERS`], `dsm::propagated` |
//! | HAVE | server: [`EcOptimized::held`] |

use super::published::EcPublished;
use crate::config::Configuration;
use crate::dap::kind::{Kind, Remembers};
use crate::dap::versions::{Admission, Arrival, Bounds, StoredVersion, Versions};
use crate::dap::{PassedVersions, Scope};
use crate::element::{Element, Handle, Value};
use crate::env::Env;
use crate::message::{HeldVersions, Want};
use crate::object::Name;
use crate::tag::Tag;

/// What EC-DAPopt decides.
pub(crate) enum EcOptimized {}

impl Kind for EcOptimized {
    const CONFIRMS: bool = EcPublished::CONFIRMS;
    const REMEMBERS: Remembers = Remembers::Pairs;

    // ---- client half ----

    fn wants<E: Env>(
        env: &E,
        c: &Configuration,
        name: &Name,
        scope: Scope,
        attempt: u32,
    ) -> Vec<Want> {
        EcPublished::wants(env, c, name, scope, attempt)
    }

    fn accepted(
        c: &Configuration,
        held: &[Option<HeldVersions>],
        have: Tag,
        passed: &PassedVersions,
    ) -> Option<Tag> {
        EcPublished::accepted(c, held, have, passed)
    }

    fn decode<E: Env>(env: &E, c: &Configuration, elements: Vec<Element>) -> Value {
        EcPublished::decode(env, c, elements)
    }

    fn elements(c: &Configuration, name: &Name, value: &Value) -> Vec<Element> {
        EcPublished::elements(c, name, value)
    }

    // ---- server half ----

    /// A client that has a version is told of none that is older, and whether that one is here.
    fn held(versions: &Versions, want: Want, have: Tag, _: Bounds) -> HeldVersions {
        let mut held = versions.held(want, have);
        held.stored.retain(|(tag, _)| *tag >= have);
        held
    }

    fn admit(versions: &Versions, tag: Tag, arrival: Arrival, bounds: Bounds) -> Admission {
        EcPublished::admit(versions, tag, arrival, bounds)
    }

    fn trim(
        versions: &mut Versions,
        delta: u16,
        quiet: bool,
        draw: impl FnMut() -> Handle,
    ) -> Vec<StoredVersion> {
        EcPublished::trim(versions, delta, quiet, draw)
    }
}
