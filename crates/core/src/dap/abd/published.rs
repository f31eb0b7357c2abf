//! MW-ABD as published (`docs/spec` 1.1): every read brings the pair that it found to a majority. The papers compare with it;
//! [`super::Abd`] is the same with reads of one round.

use super::Abd;
use crate::config::Configuration;
use crate::dap::kind::{Kind, Remembers};
use crate::dap::versions::{Admission, Arrival, Bounds, StoredVersion, Versions};
use crate::dap::{PassedVersions, Scope};
use crate::element::{Element, Handle, Value};
use crate::env::Env;
use crate::message::{HeldVersions, Want};
use crate::object::Name;
use crate::tag::Tag;

/// What MW-ABD decides.
pub(crate) enum AbdPublished {}

impl Kind for AbdPublished {
    const CONFIRMS: bool = false;
    const REMEMBERS: Remembers = Remembers::Nothing;

    // ---- client half ----

    fn wants<E: Env>(
        env: &E,
        c: &Configuration,
        name: &Name,
        scope: Scope,
        attempt: u32,
    ) -> Vec<Want> {
        Abd::wants(env, c, name, scope, attempt)
    }

    fn accepted(
        c: &Configuration,
        held: &[Option<HeldVersions>],
        have: Tag,
        passed: &PassedVersions,
    ) -> Option<Tag> {
        Abd::accepted(c, held, have, passed)
    }

    fn decode<E: Env>(env: &E, c: &Configuration, elements: Vec<Element>) -> Value {
        Abd::decode(env, c, elements)
    }

    fn elements(c: &Configuration, name: &Name, value: &Value) -> Vec<Element> {
        Abd::elements(c, name, value)
    }

    // ---- server half ----

    fn admit(versions: &Versions, tag: Tag, arrival: Arrival, bounds: Bounds) -> Admission {
        Abd::admit(versions, tag, arrival, bounds)
    }

    fn trim(
        versions: &mut Versions,
        delta: u16,
        quiet: bool,
        draw: impl FnMut() -> Handle,
    ) -> Vec<StoredVersion> {
        Abd::trim(versions, delta, quiet, draw)
    }
}
