//! The domains of a cluster, a page of them at a time: a cluster may have ten thousand.

use crate::door::Visit;
use crate::html::query;
use crate::trouble::Trouble;
use areo_client::{DomainInfo, ROOT_DOMAIN};
use axum::http::StatusCode;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

/// Domains on one page.
const ROWS: usize = 100;

/// The query of a page with domains.
#[derive(Default, Deserialize)]
pub(super) struct Start {
    /// The last domain of the page before; empty: the first page.
    #[serde(default)]
    pub(super) after: String,
}

/// The domains of one page.
#[derive(Serialize)]
pub(super) struct DomainPage<T> {
    pub(super) domains: Vec<T>,
    /// The address of the next page as JSON.
    next: Option<String>,
    /// The last domain, if others follow.
    #[serde(skip)]
    last: Option<String>,
}

impl Start {
    /// The page of these domains that begins there: they are in the order of their names, the root domain before all.
    pub(super) fn page<T>(
        &self,
        path: &str,
        all: Vec<DomainInfo>,
        each: impl FnMut(DomainInfo) -> T,
    ) -> DomainPage<T> {
        let is_after = |it: &DomainInfo| {
            self.after.is_empty()
                || it.name != ROOT_DOMAIN && (self.after == ROOT_DOMAIN || it.name > self.after)
        };
        let mut rest = all.into_iter().filter(is_after);
        let domains: Vec<DomainInfo> = rest.by_ref().take(ROWS).collect();
        let has_more = rest.next().is_some();
        let last = domains.last().filter(|_| has_more);
        let last = last.map(|it| it.name.clone());
        let next = |last: &String| format!("{path}.json{}", query(&[("after", last)]));
        DomainPage {
            next: last.as_ref().map(next),
            last,
            domains: domains.into_iter().map(each).collect(),
        }
    }

    /// Links to the first page and to the next one, where there are several.
    pub(super) fn links<T>(&self, path: &str, page: &DomainPage<T>) -> Markup {
        html! {
            @if !self.after.is_empty() || page.last.is_some() {
                p {
                    @if !self.after.is_empty() { a href=(path) { "First page of domains" } " " }
                    @if let Some(last) = &page.last {
                        a rel="next" href={ (path) (query(&[("after", last)])) } { "Next page of domains" }
                    }
                }
            }
        }
    }
}

/// All domains, or the refusal of a key that may not list them: its owner may know the name of one.
pub(super) struct DomainList {
    pub(super) domains: Vec<DomainInfo>,
    pub(super) refused: Option<String>,
}

impl DomainList {
    /// Asks for the list.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(super) async fn ask(visit: &Visit) -> Result<DomainList, Trouble> {
        match visit.client().domains().await.map_err(Trouble::from) {
            Ok(domains) => Ok(DomainList {
                domains,
                refused: None,
            }),
            Err(trouble) if trouble.status == StatusCode::FORBIDDEN => Ok(DomainList {
                domains: Vec::new(),
                refused: Some(trouble.sentence),
            }),
            Err(trouble) => Err(trouble),
        }
    }
}

/// A field for the name of a domain, which proposes these.
pub(super) fn field(id: &str, chosen: &str, domains: &[&str]) -> Markup {
    html! {
        label {
            "Domain"
            input name="domain" required value=(chosen) list=(id) autocomplete="off";
        }
        datalist id=(id) { @for name in domains.iter().take(ROWS) { option value=(name) {} } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::domains;

    fn start(after: &str) -> Start {
        let after = after.to_owned();
        Start { after }
    }

    #[test]
    fn every_domain_is_on_one_page() {
        let all = domains(2 * ROWS);
        let expected: Vec<String> = all.iter().map(|it| it.name.clone()).collect();
        let (mut seen, mut at) = (Vec::new(), start(""));
        loop {
            let page = at.page("/cluster", all.clone(), |it| it.name);
            let last = page.last.clone();
            seen.extend(page.domains);
            match last {
                Some(last) => at = start(&last),
                None => break,
            }
        }
        assert_eq!(seen, expected);
        let page = start("").page("/cluster", all, |_| ());
        let next = format!("/cluster.json?after={}", expected[ROWS - 1]);
        assert_eq!(page.next, Some(next));
        let drawn = start("").links("/cluster", &page).into_string();
        assert!(
            drawn.contains("rel=\"next\" href=\"/cluster?after="),
            "{drawn}"
        );
    }

    #[test]
    fn a_page_that_begins_after_the_root_domain_has_all_others() {
        let page = start(ROOT_DOMAIN).page("/cluster", domains(2), |it| it.name);
        assert_eq!(page.domains, ["d00000", "d00001"]);
        assert_eq!(page.next, None);
    }
}
