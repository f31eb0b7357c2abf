//! The page that takes a server that is in no domain off the list.

use super::{replace, status};
use crate::action::{Action, NextPage};
use crate::command::Command;
use crate::door::Visit;
use crate::html::{query, token};
use crate::page::Page;
use crate::trouble::Trouble;
use areo_client::ServerHealth;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

/// The page that asks once more.
#[derive(Deserialize)]
pub(super) struct ForgetPage {
    server: String,
}

/// Takes the server off the list.
#[derive(Deserialize)]
pub(super) struct Forget {
    server: String,
    /// Present: the person has ticked that the server is gone for good.
    sure: Option<String>,
}

#[derive(Serialize)]
pub(super) struct View {
    #[serde(flatten)]
    health: ServerHealth,
}

/// The address of the page for this server.
pub(super) fn address(health: &ServerHealth) -> String {
    format!(
        "{}{}",
        ForgetPage::PATH,
        query(&[("server", &health.server.name)])
    )
}

impl View {
    fn serves(&self) -> bool {
        self.health.status.answered().is_some_and(|it| it.serving)
    }
}

impl Page for ForgetPage {
    const PATH: &'static str = "/cluster/forget";
    const TITLE: &'static str = "Forget a server";
    type View = View;

    async fn look(&self, visit: &Visit) -> Result<View, Trouble> {
        let status = status(visit).await?;
        let mut servers = status.servers.into_iter();
        let found = servers.find(|it| it.server.name == self.server);
        let unknown = || Trouble::not_found(format!("there is no server '{}'", self.server));
        let health = found.ok_or_else(unknown)?;
        Ok(View { health })
    }

    fn commands(&self, _view: &View) -> Vec<Command> {
        vec![Command::new("server forget").argument(&self.server)]
    }

    fn draw(&self, view: &View) -> Markup {
        let name = &view.health.server.name;
        html! {
            p {
                b { (name) } " is taken off the list of servers. Its data directory can never be started again, and its name stays taken. "
                "Nothing is lost by this if the server is in no domain."
            }
            @match view.health.domains {
                Some(0) => p { (name) " is in no domain." },
                Some(domains) => p.notice {
                    (name) " is in " (domains) " domains: "
                    a href=(replace::address(&view.health)) { "replace it first" } "."
                },
                None => p.notice { "Not all domains answered: one may name " (name) ". Try again when they do." },
            }
            @if view.serves() { p.notice { (name) " serves: stop it first. It could not start again." } }
        }
    }

    fn forms(&self, visit: &Visit, view: &View) -> Markup {
        html! {
            @if view.health.domains == Some(0) && !view.serves() {
                form method="post" action=(Forget::PATH) {
                    (token(&visit.session.form_token))
                    input type="hidden" name="server" value=(self.server);
                    label.check {
                        input type="checkbox" name="sure" value="on" required;
                        "the server " (self.server) " is stopped for good"
                    }
                    button.danger { "Forget " (self.server) }
                }
            }
        }
    }
}

impl Action for Forget {
    const PATH: &'static str = "/cluster/forget/confirmed";

    async fn act(self, visit: &Visit) -> Result<NextPage, Trouble> {
        if self.sure.is_none() {
            return Err(Trouble::usage("tick that the server is stopped for good"));
        }
        visit.client().forget_server(&self.server).await?;
        Ok(NextPage::See("/cluster".into()))
    }
}
