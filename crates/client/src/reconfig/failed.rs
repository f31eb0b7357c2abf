//! Errors of changes, with the names of servers.

use super::ReconfigError;
use super::conflict::Contradiction;
use crate::choice::InvalidChoice;
use crate::cluster::ConfigurationInfo;
use crate::reconfig_kind::ReconfigKind;
use crate::session::Context;
use areo_core::reconfig;

pub(super) fn conflict(
    context: &Context,
    configuration: ConfigurationInfo,
    about: Contradiction,
) -> ReconfigError {
    ReconfigError::Conflict {
        domain: context.domain.name().into(),
        configuration: Box::new(configuration),
        about,
    }
}

pub(super) async fn failed(context: &Context, error: reconfig::ReconfigError) -> ReconfigError {
    match error {
        reconfig::ReconfigError::Contradicts(last, about) => {
            let names = context.names_of(std::slice::from_ref(&last)).await;
            let about = Contradiction::named(about, &names);
            conflict(context, names.configuration(&last), about)
        }
        reconfig::ReconfigError::Invalid(error) => InvalidChoice::InvalidShape { error }.into(),
        reconfig::ReconfigError::TooFew { members, least } => {
            let reconfig = ReconfigKind::of(context.domain.found());
            InvalidChoice::TooFewServers {
                members,
                least,
                stays: matches!(reconfig, ReconfigKind::Sm | ReconfigKind::Spsn),
            }
            .into()
        }
        error => context.reconfig_error(error).into(),
    }
}
