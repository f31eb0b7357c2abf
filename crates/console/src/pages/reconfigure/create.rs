//! The form that creates a domain.

use super::{Reconfigure, boxes, wish};
use crate::action::{Action, NextPage};
use crate::door::Visit;
use crate::html::{query, token};
use crate::page::Page;
use crate::trouble::Trouble;
use areo_client::{Dap, DapKind, DomainOptions, ServerHealth};
use maud::{Markup, html};
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct Create {
    name: String,
    #[serde(default)]
    server: Vec<String>,
    kind: String,
    k: Option<u8>,
}

pub(super) fn form(visit: &Visit, servers: &[ServerHealth]) -> Markup {
    let is_ticked =
        |it: &ServerHealth| it.status.answered().is_some_and(|it| it.serving) && !it.server.leaving;
    html! {
        h2 { "Create a domain" }
        form method="post" action=(Create::PATH) {
            (token(&visit.session.form_token))
            label { "Name" input name="name" required autocomplete="off"; }
            (boxes(servers, &is_ticked))
            label { "Kind" select name="kind" { (wish::kinds(Some(Dap::Ec { k: 1 }))) } }
            label { "k, fragments that make a value" input type="number" name="k" min="1" max="254" placeholder="servers − 2"; }
            button { "Create" }
        }
    }
}

impl Action for Create {
    const PATH: &'static str = "/reconfigure/create";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        if self.server.is_empty() {
            return Err(Trouble::usage(
                "no server is ticked: tick those that the domain is to have",
            ));
        }
        let kind = wish::kind(&self.kind)?.unwrap_or(DapKind::Ec);
        // A number of fragments that is left in the form means nothing for copies.
        let k = self.k.filter(|_| kind.is_coded());
        let k = k.unwrap_or(kind.default_k(self.server.len()));
        let options = DomainOptions {
            dap: kind.with(k),
            servers: self.server,
            ..DomainOptions::default()
        };
        visit.client().create_domain(&self.name, options).await?;
        let query = query(&[("domain", &self.name)]);
        Ok(NextPage::See(format!("{}{query}", Reconfigure::PATH)))
    }
}
