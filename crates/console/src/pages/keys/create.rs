//! A new key, of which the secret is shown once.

use super::{parse_grants, secret};
use crate::action::{Action, NextPage};
use crate::door::Visit;
use crate::trouble::Trouble;
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct Create {
    name: String,
    grants: String,
}

impl Action for Create {
    const PATH: &'static str = "/keys/create";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        let grants = parse_grants(&self.grants)?;
        let trust = visit.client().trust();
        let key = trust.create_key(&self.name, &grants).await?;
        Ok(NextPage::Once("New key", secret::shown(&self.name, &key)))
    }
}
