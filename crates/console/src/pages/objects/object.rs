//! One object: everything but its value.

use super::{delete, download, folders, named_fields, object_path};
use crate::action::Action;
use crate::command::Command;
use crate::door::Visit;
use crate::page::Page;
use crate::trouble::Trouble;
use areo_client::ObjectInfo;
use areo_client::units::{show_size, show_time};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
pub(super) struct ObjectPage {
    domain: String,
    key: String,
}

/// The object that `areo stat --rule --json` prints.
#[derive(Serialize)]
pub(super) struct View {
    domain: String,
    key: String,
    #[serde(flatten)]
    info: ObjectInfo,
}

impl Page for ObjectPage {
    const PATH: &'static str = "/objects/object";
    const TITLE: &'static str = "Object";
    type View = View;

    async fn look(&self, visit: &Visit) -> Result<View, Trouble> {
        let domain = visit.client().domain(&self.domain).await?;
        Ok(View {
            info: domain.stat(&self.key).await?,
            domain: self.domain.clone(),
            key: self.key.clone(),
        })
    }

    fn commands(&self, view: &View) -> Vec<Command> {
        let of_domain = |verb: &str| Command::new(verb).option("--domain", &view.domain);
        let delete = of_domain("rm").option("--if-version", &view.info.version.to_string());
        let all = [of_domain("stat --rule"), of_domain("get"), delete];
        all.map(|it| it.argument(&view.key)).into()
    }

    fn draw(&self, view: &View) -> Markup {
        let View { domain, key, info } = view;
        let metadata = &info.metadata;
        html! {
            (folders(domain, key))
            dl {
                dt { "Key" } dd { (key) }
                dt { "Domain" } dd { (domain) }
                dt { "Version" } dd { (info.version) ", the newest; Areo keeps no older ones" }
                dt { "Size" } dd { (info.length) " bytes (" (show_size(info.length)) ")" }
                @if let Some(blocks) = &metadata.blocks {
                    dt { "Blocks" } dd { (blocks.count()) " of " (show_size(blocks.block_bytes().into())) }
                }
                @if let Some(content_type) = &metadata.content_type { dt { "Content type" } dd { (content_type) } }
                @for (name, value) in &metadata.user { dt { "Metadata " (name) } dd { (value) } }
                @if let Some(checksum) = metadata.checksum { dt { "Checksum" } dd { "crc32c " (format!("{checksum:08x}")) } }
                @if let Some(etag) = &metadata.etag { dt { "ETag" } dd { (etag.as_str()) } }
                @if let Some(ms) = metadata.written_at_ms { dt { "Written" } dd { (show_time(ms)) " by the writer's clock" } }
                dt { "Kept as" } dd { (info.shape) ", configuration " (info.configuration) }
            }
            p {
                a href=(object_path(download::PATH, domain, key)) { "Download" } " "
                a href=(object_path("/placement", domain, key)) { "Placement on servers" }
            }
        }
    }

    fn forms(&self, visit: &Visit, view: &View) -> Markup {
        html! {
            h2 { "Delete" }
            p { "The object is deleted for ever, if its version is still " (view.info.version) "." }
            form method="post" action=(delete::Delete::PATH) {
                (named_fields(&visit.session.form_token, &view.domain, &view.key))
                input type="hidden" name="version" value=(view.info.version);
                label.check { input type="checkbox" name="confirm" value="yes" required; "Delete it" }
                button.danger { "Delete object" }
            }
        }
    }
}
