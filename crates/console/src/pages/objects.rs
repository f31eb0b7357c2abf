//! The page *Objects*: domains, and the objects of one domain as in folders.

mod delete;
mod download;
mod object;
mod upload;

use crate::door::Visit;
use crate::html::{query, table, token};
use crate::page::{self, Page};
use crate::pages::moving::quoted;
use crate::trouble::Trouble;
use crate::{Console, action};
use areo_client::units::{show_size, show_time};
use areo_client::{DomainInfo, Entry, ListOptions};
use axum::Router;
use axum::http::StatusCode;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

/// Rows of one page.
const ROWS: usize = 100;

pub(super) fn router() -> Router<Console> {
    Router::new()
        .merge(page::route::<Objects>())
        .merge(page::route::<object::ObjectPage>())
        .merge(download::router())
        .merge(upload::router())
        .merge(action::route::<delete::Delete>())
}

/// The address of the objects of a domain whose keys begin so.
fn objects_path(domain: &str, prefix: &str) -> String {
    format!(
        "{}{}",
        Objects::PATH,
        query(&[("domain", domain), ("prefix", prefix)])
    )
}

/// The address of an object below this path.
fn object_path(path: &str, domain: &str, key: &str) -> String {
    format!("{path}{}", query(&[("domain", domain), ("key", key)]))
}

#[derive(Deserialize)]
struct Objects {
    domain: Option<String>,
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    after: String,
    /// Keys up to it are one row, as a folder is; with an empty one each key is a row.
    #[serde(default = "slash")]
    delimiter: String,
}

fn slash() -> String {
    "/".into()
}

#[derive(Serialize)]
#[serde(untagged)]
enum View {
    Domains(DomainList),
    Listing(Listing),
}

/// The domains that `areo domain ls --json` prints, a page of them.
#[derive(Serialize)]
struct DomainList {
    domains: Vec<DomainInfo>,
    /// The reason why the key of the session sees none.
    refused: Option<String>,
    next: Option<String>,
}

/// A page of the lines that `areo ls --json` prints.
#[derive(Serialize)]
struct Listing {
    domain: String,
    prefix: String,
    delimiter: String,
    rows: Vec<Row>,
    next: Option<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Row {
    Prefix { prefix: String },
    Object(Entry),
}

impl Row {
    fn key(&self) -> &str {
        match self {
            Row::Prefix { prefix } => prefix,
            Row::Object(entry) => &entry.key,
        }
    }
}

impl Page for Objects {
    const PATH: &'static str = "/objects";
    const TITLE: &'static str = "Objects";
    type View = View;

    async fn look(&self, visit: &Visit) -> Result<View, Trouble> {
        match self.domain.as_deref().filter(|domain| !domain.is_empty()) {
            None => Ok(View::Domains(self.domains(visit).await?)),
            Some(domain) => Ok(View::Listing(self.listing(visit, domain).await?)),
        }
    }

    fn commands(&self, view: &View) -> Vec<String> {
        let View::Listing(listing) = view else {
            return vec!["domain ls".into()];
        };
        let options = [
            ("--delimiter ", &self.delimiter),
            ("--after ", &self.after),
            ("", &self.prefix),
        ];
        let given = options.iter().filter(|(_, value)| !value.is_empty());
        let words = given.map(|(option, value)| format!("{option}{}", quoted(value)));
        let all: Vec<String> = [format!("ls --domain {} --long", quoted(&listing.domain))]
            .into_iter()
            .chain(words)
            .collect();
        vec![all.join(" ")]
    }

    fn draw(&self, view: &View) -> Markup {
        match view {
            View::Domains(domains) => self.draw_domains(domains),
            View::Listing(listing) => draw_listing(listing),
        }
    }

    fn forms(&self, visit: &Visit, view: &View) -> Markup {
        match view {
            View::Domains(_) => html! {
                form method="get" action=(Objects::PATH) {
                    label { "Domain" input name="domain" required; }
                    button { "Open" }
                }
            },
            View::Listing(listing) => html! {
                h2 { "Find" }
                form method="get" action=(Objects::PATH) {
                    input type="hidden" name="domain" value=(listing.domain);
                    label { "Keys that begin with" input name="prefix" value=(listing.prefix); }
                    button { "Show" }
                }
                (upload::form(&visit.session.form_token, &listing.domain, &listing.prefix))
            },
        }
    }
}

impl Objects {
    async fn domains(&self, visit: &Visit) -> Result<DomainList, Trouble> {
        let all = visit.client().domains().await.map_err(Trouble::from);
        let (all, refused) = match all {
            Ok(all) => (all, None),
            // A key that sees no domains may still have one of its own, whose name its owner knows.
            Err(trouble) if trouble.status == StatusCode::FORBIDDEN => {
                (Vec::new(), Some(trouble.sentence))
            }
            Err(trouble) => return Err(trouble),
        };
        let mut rest = all.into_iter().filter(|it| it.name > self.after);
        let domains: Vec<DomainInfo> = rest.by_ref().take(ROWS).collect();
        let has_more = rest.next().is_some();
        let last = domains.last().filter(|_| has_more);
        Ok(DomainList {
            next: last.map(|it| it.name.clone()),
            domains,
            refused,
        })
    }

    async fn listing(&self, visit: &Visit, domain: &str) -> Result<Listing, Trouble> {
        let domain = visit.client().domain(domain).await?;
        let options = ListOptions {
            prefix: self.prefix.clone(),
            after: self.after.clone(),
            delimiter: self.delimiter.clone(),
            limit: ROWS,
        };
        let page = domain.list_with(options).await?;
        let objects = page.entries.into_iter().map(Row::Object);
        let prefixes = page.prefixes.into_iter();
        let prefixes = prefixes.map(|prefix| Row::Prefix { prefix });
        let mut rows: Vec<Row> = objects.chain(prefixes).collect();
        rows.sort_by(|one, other| one.key().cmp(other.key()));
        Ok(Listing {
            domain: domain.name().to_owned(),
            prefix: self.prefix.clone(),
            delimiter: self.delimiter.clone(),
            rows,
            next: page.next,
        })
    }

    fn draw_domains(&self, view: &DomainList) -> Markup {
        let row = |it: &DomainInfo| {
            let shape = &it.configuration.shape;
            vec![
                html! { a href=(objects_path(&it.name, "")) { (it.name) } },
                html! { (shape.dap().word()) },
                html! { "[" (shape.n()) ", " (shape.k()) "]" },
            ]
        };
        let rows: Vec<_> = view.domains.iter().map(row).collect();
        let after = view.next.as_deref().map(|it| query(&[("after", it)]));
        html! {
            @if let Some(refused) = &view.refused {
                p.notice { "The key of this session sees no list of domains: " (refused) ". Name the domain below." }
            } @else {
                (table("Domains", &["domain", "kind", "[n, k]"], &rows))
            }
            p { (first(&self.after)) (next(after.as_deref())) }
        }
    }
}

/// A link to the first page of the domains, where a page is not that.
fn first(after: &str) -> Markup {
    html! { @if !after.is_empty() { a href=(Objects::PATH) { "First page" } " " } }
}

/// A link to the next page, where there is one.
fn next(query: Option<&str>) -> Markup {
    html! { @if let Some(query) = query { a rel="next" href={ (Objects::PATH) (query) } { "Next page" } } }
}

fn draw_listing(view: &Listing) -> Markup {
    let Listing {
        domain,
        prefix,
        delimiter,
        ..
    } = view;
    let rows: Vec<_> = view.rows.iter().map(|it| row(view, it)).collect();
    let fields = |delimiter: &str, after: &str| {
        query(&[
            ("domain", domain),
            ("prefix", prefix),
            ("delimiter", delimiter),
            ("after", after),
        ])
    };
    let next_query = view.next.as_deref().map(|after| fields(delimiter, after));
    html! {
        (folders(domain, prefix))
        (table("Objects", &["key", "size", "written", "version"], &rows))
        p { (next(next_query.as_deref())) }
        p {
            @if delimiter.is_empty() { a href=(objects_path(domain, prefix)) { "Show folders" } }
            @else { a href={ (Objects::PATH) (fields("", "")) } { "Show all keys below, without folders" } }
        }
    }
}

/// The way from the list of domains to this prefix.
fn folders(domain: &str, prefix: &str) -> Markup {
    let ends = prefix.match_indices('/').map(|(at, _)| at + 1);
    let mut begin = 0;
    let steps: Vec<(&str, &str)> = ends
        .map(|end| {
            let step = (&prefix[begin..end], &prefix[..end]);
            begin = end;
            step
        })
        .collect();
    html! {
        nav aria-label="Folders" {
            p {
                a href=(Objects::PATH) { "Domains" } " › "
                a href=(objects_path(domain, "")) { (domain) }
                @for (name, below) in steps { " › " a href=(objects_path(domain, below)) { (name) } }
                @if begin < prefix.len() { " › " (&prefix[begin..]) }
            }
        }
    }
}

fn row(view: &Listing, row: &Row) -> Vec<Markup> {
    let shown = |key: &str| key.strip_prefix(&*view.prefix).unwrap_or(key).to_owned();
    let named = |key: &str| match shown(key) {
        rest if rest.is_empty() => key.to_owned(),
        rest => rest,
    };
    match row {
        Row::Prefix { prefix } => vec![
            html! { a href=(objects_path(&view.domain, prefix)) { (named(prefix)) } },
            html! { "folder" },
            html! {},
            html! {},
        ],
        Row::Object(entry) => {
            let path = object_path(object::ObjectPage::PATH, &view.domain, &entry.key);
            vec![
                html! { a href=(path) { (named(&entry.key)) } },
                html! { @if entry.damaged { "damaged" } @else { (show_size(entry.length)) } },
                html! { @if let Some(ms) = entry.written_at_ms { (show_time(ms)) } @else { "–" } },
                html! { (entry.version) },
            ]
        }
    }
}

/// The hidden fields that name an object.
fn named_fields(form_token: &str, domain: &str, key: &str) -> Markup {
    html! {
        (token(form_token))
        input type="hidden" name="domain" value=(domain);
        input type="hidden" name="key" value=(key);
    }
}

#[cfg(test)]
mod tests;
