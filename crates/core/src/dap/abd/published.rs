//! MW-ABD as published (`docs/spec` 1.1): every read brings the pair that it found to a majority. The papers compare with it;
//! [`super::Abd`] is the same with reads of one round.

use super::Abd;
use crate::dap::kind::{Confirmation, Kind, Remembers, as_in};

/// The rules of MW-ABD.
pub(crate) enum AbdPublished {}

impl Kind for AbdPublished {
    const CONFIRMATION: Confirmation = Confirmation::None;
    const REMEMBERS: Remembers = Remembers::Nothing;

    as_in!(Abd: wants supports accepted decode elements admit trim);
}
