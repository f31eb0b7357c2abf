//! The changes of a key that exists.

use super::{after, parse_grants, secret};
use crate::action::{Action, NextPage};
use crate::door::Visit;
use crate::trouble::Trouble;
use serde::Deserialize;

/// The refusal of a change whose box is not ticked.
fn confirmed(confirm: Option<&str>, label: &str) -> Result<(), Trouble> {
    if confirm == Some("yes") {
        return Ok(());
    }
    let sentence = format!("the box '{label}' is not ticked: nothing was changed");
    Err(Trouble::usage(sentence))
}

#[derive(Deserialize)]
pub(super) struct ChangeGrants {
    id: String,
    grants: String,
}

impl Action for ChangeGrants {
    const PATH: &'static str = "/keys/grants";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        let grants = parse_grants(&self.grants)?;
        let trust = visit.client().trust();
        trust.change_grants(&self.id, &grants).await?;
        Ok(after(&self.id))
    }
}

#[derive(Deserialize)]
pub(super) struct Rotate {
    id: String,
}

impl Action for Rotate {
    const PATH: &'static str = "/keys/rotate";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        let key = visit.client().trust().rotate_key(&self.id).await?;
        Ok(NextPage::Once(
            "Second secret",
            secret::shown(&self.id, &key),
        ))
    }
}

#[derive(Deserialize)]
pub(super) struct Retire {
    id: String,
    confirm: Option<String>,
}

impl Action for Retire {
    const PATH: &'static str = "/keys/retire";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        let label = "All programs have the newer secret";
        confirmed(self.confirm.as_deref(), label)?;
        visit.client().trust().retire_key(&self.id).await?;
        Ok(after(&self.id))
    }
}

#[derive(Deserialize)]
pub(super) struct Revoke {
    id: String,
    confirm: Option<String>,
}

impl Action for Revoke {
    const PATH: &'static str = "/keys/revoke";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        confirmed(self.confirm.as_deref(), "Revoke it")?;
        visit.client().trust().revoke_key(&self.id).await?;
        Ok(after(&self.id))
    }
}
