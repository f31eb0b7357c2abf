//! The deletion of the version of an object that a person has seen.

use super::objects_path;
use crate::action::{Action, NextPage};
use crate::door::Visit;
use crate::trouble::Trouble;
use areo_client::Version;
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct Delete {
    domain: String,
    key: String,
    version: String,
    confirm: Option<String>,
}

impl Action for Delete {
    const PATH: &'static str = "/objects/delete";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        if self.confirm.as_deref() != Some("yes") {
            return Err(Trouble::usage(
                "the box 'Delete it' is not ticked: nothing was deleted",
            ));
        }
        let version: Version = self.version.parse().map_err(Trouble::usage)?;
        let domain = visit.client().domain(&self.domain).await?;
        if domain.has_one_winner() {
            domain.compare_and_delete(&self.key, version).await?;
        } else {
            domain.delete_if(&self.key, version).await?;
        }
        let folder = self.key.rfind('/').map_or("", |at| &self.key[..=at]);
        Ok(NextPage::See(objects_path(&self.domain, folder)))
    }
}
