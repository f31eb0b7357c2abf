//! The change of a domain that a form asks for.

use crate::command::Command;
use crate::html::query;
use crate::trouble::Trouble;
use areo_client::{Change, ConfigurationInfo, Dap, DapKind};
use maud::{Markup, html};
use serde::Deserialize;

/// The kinds that a person may choose, and what each means.
pub(super) const KINDS: [(DapKind, &str); 6] = [
    (DapKind::Abd, "replicate: each server has a copy"),
    (
        DapKind::Ec,
        "erasure-code: each server has a fragment, any k make the value",
    ),
    (
        DapKind::Conditional,
        "of conditional writes on one version one succeeds",
    ),
    (DapKind::Cas, "coded atomic storage: every version stays"),
    (
        DapKind::CasGc,
        "coded atomic storage: replaced versions are dropped",
    ),
    (
        DapKind::CasSs,
        "coded atomic storage that recovers by itself, for caches",
    ),
];

/// The word for a kind, as the command line has it.
pub(super) fn word(kind: DapKind) -> &'static str {
    kind.with(1).word()
}

/// The kind of this word; of an empty one `None`.
///
/// # Errors
/// There is no such kind.
pub(super) fn kind(text: &str) -> Result<Option<DapKind>, Trouble> {
    if text.is_empty() {
        return Ok(None);
    }
    let mut kinds = KINDS.iter().map(|(kind, _)| *kind);
    let found = kinds.find(|it| word(*it) == text);
    let unknown = || Trouble::usage(format!("there is no kind '{text}' of domains"));
    found.map(Some).ok_or_else(unknown)
}

/// The fields of the form. One that is empty or missing leaves its part as it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Wish {
    pub(super) domain: String,
    /// All servers after the change; otherwise those that come and go.
    pub(super) server: Vec<String>,
    pub(super) add: Vec<String>,
    pub(super) remove: Vec<String>,
    pub(super) kind: String,
    pub(super) k: Option<u8>,
    pub(super) delta: Option<u16>,
    pub(super) consensus: String,
    pub(super) allow_f0: Option<String>,
    pub(super) force: Option<String>,
}

impl Wish {
    /// This wish, with the servers that come and go in place of all of them: the elements of the others stay where they are.
    pub(super) fn relative_to(&self, last: &ConfigurationInfo) -> Wish {
        let mut wish = self.clone();
        let all = std::mem::take(&mut wish.server);
        if all.is_empty() {
            return wish;
        }
        let names: Vec<&str> = last.members.iter().map(|it| it.name.as_str()).collect();
        let comes = |it: &&String| !names.contains(&it.as_str());
        wish.add = all.iter().filter(comes).cloned().collect();
        let goes = |it: &&&str| all.iter().all(|kept| kept != **it);
        wish.remove = names
            .iter()
            .filter(goes)
            .map(|it| (*it).to_owned())
            .collect();
        wish
    }

    /// The change for the client.
    ///
    /// # Errors
    /// There is no such kind, or nothing that could decide.
    pub(super) fn change(&self) -> Result<Change, Trouble> {
        let decider = Some(self.consensus.trim()).filter(|it| !it.is_empty());
        let decider = decider.map(|it| it.parse().map_err(Trouble::usage));
        let kind = kind(&self.kind)?;
        Ok(Change {
            servers: self.server.clone(),
            add: self.add.clone(),
            remove: self.remove.clone(),
            dap: kind,
            k: self.fragments(),
            delta: self.delta,
            decided_by: decider.transpose()?,
            allow_f0: self.allow_f0.is_some(),
            force: self.force.is_some(),
            ..Change::default()
        })
    }

    /// The fragments that make a value. A number that is left in the form means nothing for copies.
    fn fragments(&self) -> Option<u8> {
        let kind = kind(&self.kind).ok().flatten();
        self.k.filter(|_| kind.is_none_or(DapKind::is_coded))
    }

    /// The command that does it: `verb` is `plan` or `start`.
    pub(super) fn command(&self, verb: &str) -> Command {
        let number = |it: Option<u16>| it.map_or(String::new(), |it| it.to_string());
        Command::new(&format!("reconfig {verb}"))
            .given("--servers", &self.server.join(","))
            .given("--add", &self.add.join(","))
            .given("--remove", &self.remove.join(","))
            .given("--dap", &self.kind)
            .given("--k", &number(self.fragments().map(u16::from)))
            .given("--delta", &number(self.delta))
            .given("--consensus", self.consensus.trim())
            .switch("--allow-f0", self.allow_f0.is_some())
            .switch("--force", self.force.is_some())
            .argument(&self.domain)
    }

    /// Hidden fields that say it again.
    pub(super) fn hidden(&self) -> Markup {
        let number = |it: Option<u16>| it.map_or(String::new(), |it| it.to_string());
        let (k, delta) = (number(self.k.map(u16::from)), number(self.delta));
        let many = [
            ("server", &self.server),
            ("add", &self.add),
            ("remove", &self.remove),
        ];
        let single = [
            ("domain", self.domain.as_str()),
            ("kind", &self.kind),
            ("k", &k),
            ("delta", &delta),
            ("consensus", &self.consensus),
            ("allow_f0", self.allow_f0.as_deref().unwrap_or_default()),
            ("force", self.force.as_deref().unwrap_or_default()),
        ];
        let single = single.iter().filter(|(_, value)| !value.is_empty());
        html! {
            @for (name, values) in many {
                @for value in values { input type="hidden" name=(name) value=(value); }
            }
            @for (name, value) in single { input type="hidden" name=(name) value=(value); }
        }
    }

    /// The address of the page *Reconfigure* for this domain.
    pub(super) fn back(&self) -> String {
        format!("/reconfigure{}", query(&[("domain", &self.domain)]))
    }
}

/// Options of a choice of kinds.
pub(super) fn kinds(chosen: Option<Dap>) -> Markup {
    html! {
        @for (kind, means) in KINDS {
            option value=(word(kind)) selected[chosen.is_some_and(|it| DapKind::from(it) == kind)] { (word(kind)) " – " (means) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_becomes_a_change_and_its_command() {
        let form =
            "domain=a+b&server=s1&server=s3&server=s4&kind=ec&k=2&delta=&consensus=&allow_f0=on";
        let wish: Wish = serde_html_form::from_str(form).unwrap();
        let last = crate::pages::tests::configuration(3);
        let wish = wish.relative_to(&last);
        let change = wish.change().unwrap();
        let expected = Change {
            add: vec!["s4".into()],
            remove: vec!["s2".into()],
            dap: Some(DapKind::Ec),
            k: Some(2),
            allow_f0: true,
            ..Change::default()
        };
        assert_eq!(change, expected);
        let command = "reconfig start --add s4 --remove s2 --dap ec --k 2 --allow-f0 'a b'";
        assert_eq!(wish.command("start").to_string(), command);
        let hidden = wish.hidden().into_string();
        for part in [
            "name=\"add\" value=\"s4\"",
            "name=\"k\" value=\"2\"",
            "name=\"domain\" value=\"a b\"",
        ] {
            assert!(hidden.contains(part), "{hidden}");
        }
        assert!(!hidden.contains("\"delta\""), "{hidden}");
        let copies = Wish {
            kind: "abd".into(),
            ..wish
        };
        assert_eq!(copies.change().unwrap().k, None);
        let command = "reconfig plan --add s4 --remove s2 --dap abd --allow-f0 'a b'";
        assert_eq!(copies.command("plan").to_string(), command);
    }

    #[test]
    fn a_form_that_makes_no_sense_is_refused() {
        let kind = Wish {
            kind: "raid".into(),
            ..Wish::default()
        };
        assert!(
            kind.change()
                .unwrap_err()
                .sentence
                .contains("no kind 'raid'")
        );
        let decider = Wish {
            consensus: "dice".into(),
            ..Wish::default()
        };
        assert!(decider.change().is_err());
    }
}
