//! The page *Objects*: domains, and the objects of one domain as in folders.

mod delete;
mod download;
mod object;
mod upload;

use super::domains::{DomainList, DomainPage, Start};
use crate::action;
use crate::command::Command;
use crate::door::Visit;
use crate::html::{query, table, token};
use crate::page::{self, Page};
use crate::routes::Routes;
use crate::trouble::Trouble;
use areo_client::units::{show_size, show_time};
use areo_client::{DomainInfo, Entry, ListOptions};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

/// Rows of one page.
const ROWS: usize = 100;

pub(super) fn routes() -> Routes {
    Routes::default()
        .merge(page::routes::<Objects>())
        .merge(page::routes::<object::ObjectPage>())
        .merge(download::routes())
        .merge(upload::routes())
        .merge(action::routes::<delete::Delete>())
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
    /// The last key, or the last domain, of the page before.
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
    Domains(Domains),
    Listing(Listing),
}

/// The domains that `areo domain ls --json` prints, a page of them.
#[derive(Serialize)]
struct Domains {
    #[serde(flatten)]
    page: DomainPage<DomainInfo>,
    /// The reason why the key of the session sees none.
    refused: Option<String>,
}

/// A page of the lines that `areo ls --json` prints.
#[derive(Serialize)]
struct Listing {
    domain: String,
    prefix: String,
    delimiter: String,
    rows: Vec<Row>,
    /// The address of the next page as JSON.
    next: Option<String>,
    /// The last key, if others follow.
    #[serde(skip)]
    last: Option<String>,
}

impl Listing {
    /// The query of the page after this key, with this delimiter.
    fn query(&self, delimiter: &str, after: &str) -> String {
        query(&[
            ("domain", &self.domain),
            ("prefix", &self.prefix),
            ("delimiter", delimiter),
            ("after", after),
        ])
    }
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

    fn commands(&self, view: &View) -> Vec<Command> {
        let View::Listing(listing) = view else {
            return vec![Command::new("domain ls")];
        };
        let of_domain = |verb: &str| Command::new(verb).option("--domain", &listing.domain);
        let list = of_domain("ls --long");
        let list = list.given("--delimiter", &self.delimiter);
        let list = list.given("--after", &self.after);
        let list = match self.prefix.as_str() {
            "" => list,
            prefix => list.argument(prefix),
        };
        let put = of_domain("put").argument("KEY").argument("FILE");
        vec![list, put]
    }

    fn draw(&self, view: &View) -> Markup {
        match view {
            View::Domains(domains) => draw_domains(&self.start(), domains),
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
    fn start(&self) -> Start {
        let after = self.after.clone();
        Start { after }
    }

    async fn domains(&self, visit: &Visit) -> Result<Domains, Trouble> {
        let DomainList { domains, refused } = DomainList::ask(visit).await?;
        Ok(Domains {
            page: self.start().page(Objects::PATH, domains, |it| it),
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
        let mut listing = Listing {
            domain: domain.name().to_owned(),
            prefix: self.prefix.clone(),
            delimiter: self.delimiter.clone(),
            rows,
            next: None,
            last: page.next,
        };
        let next = |last: &String| listing.query(&listing.delimiter, last);
        let next = listing.last.as_ref().map(next);
        listing.next = next.map(|query| format!("{}.json{query}", Objects::PATH));
        Ok(listing)
    }
}

fn draw_domains(start: &Start, view: &Domains) -> Markup {
    let row = |it: &DomainInfo| {
        let shape = &it.configuration.shape;
        vec![
            html! { a href=(objects_path(&it.name, "")) { (it.name) } },
            html! { (shape.dap().word()) },
            html! { "[" (shape.n()) ", " (shape.k()) "]" },
        ]
    };
    let rows: Vec<_> = view.page.domains.iter().map(row).collect();
    html! {
        @if let Some(refused) = &view.refused {
            p.notice { "The key of this session sees no list of domains: " (refused) ". Name the domain below." }
        } @else {
            (table("Domains", &["domain", "kind", "[n, k]"], &rows))
            (start.links(Objects::PATH, &view.page))
        }
    }
}

fn draw_listing(view: &Listing) -> Markup {
    let Listing {
        domain,
        prefix,
        delimiter,
        ..
    } = view;
    let rows: Vec<_> = view.rows.iter().map(|it| row(view, it)).collect();
    let next = view.last.as_deref().map(|it| view.query(delimiter, it));
    html! {
        (folders(domain, prefix))
        (table("Objects", &["key", "size", "written", "version"], &rows))
        @if let Some(next) = next { p { a rel="next" href={ (Objects::PATH) (next) } { "Next page" } } }
        p {
            @if delimiter.is_empty() { a href=(objects_path(domain, prefix)) { "Show folders" } }
            @else { a href={ (Objects::PATH) (view.query("", "")) } { "Show all keys below, without folders" } }
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
