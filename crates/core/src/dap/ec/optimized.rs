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
use crate::dap::kind::{Confirmation, Kind, Remembers, as_in};
use crate::dap::versions::{Bounds, Versions};
use crate::message::{HeldVersions, Want};
use crate::tag::Tag;

/// The rules of EC-DAPopt.
pub(crate) enum EcOptimized {}

impl Kind for EcOptimized {
    const CONFIRMATION: Confirmation = EcPublished::CONFIRMATION;
    const NAMES_LOST: bool = EcPublished::NAMES_LOST;
    const REMEMBERS: Remembers = Remembers::Pairs;

    as_in!(EcPublished: wants accepted decode elements admit trim);

    /// A client that has a version is told of none that is older, and whether that one is here.
    fn held(versions: &Versions, want: Want, have: Tag, _: Bounds) -> HeldVersions {
        let mut held = versions.held(want, have);
        held.stored.retain(|(tag, _)| *tag >= have);
        held
    }
}
