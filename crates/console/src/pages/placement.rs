//! The page *Placement*: which server holds which element of an object, and which of them are a quorum.

use super::domains::{DomainList, field};
use super::moving;
use crate::command::Command;
use crate::door::Visit;
use crate::html::{badge, picture, query, table};
use crate::page::Page;
use crate::trouble::Trouble;
use areo_client::units::{show_size, show_time};
use areo_client::{DomainInfo, Holds, ObjectInfo, Placement};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

#[derive(Deserialize)]
pub(super) struct PlacementPage {
    domain: Option<String>,
    key: Option<String>,
}

/// The object as `areo stat --json` prints it; without a key, the domains to choose from.
#[derive(Serialize)]
pub(super) struct View {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    domains: Vec<DomainInfo>,
    #[serde(flatten)]
    object: Option<PlacedObject>,
}

#[derive(Serialize)]
struct PlacedObject {
    domain: String,
    key: String,
    #[serde(flatten)]
    info: ObjectInfo,
    /// Names of servers that are a quorum and hold the version; none if there is no such quorum.
    quorum_members: Vec<String>,
}

impl PlacedObject {
    fn of(domain: &str, key: &str, info: ObjectInfo) -> PlacedObject {
        let quorum = info.shape.quorum();
        let holders = info.placement.iter().filter(|it| holds(it));
        let mut members: Vec<String> = holders.map(|it| it.name.clone()).collect();
        match members.len() >= quorum {
            true => members.truncate(quorum),
            false => members.clear(),
        }
        PlacedObject {
            domain: domain.to_owned(),
            key: key.to_owned(),
            info,
            quorum_members: members,
        }
    }

    fn holders(&self) -> usize {
        self.info.placement.iter().filter(|it| holds(it)).count()
    }

    fn is_in_quorum(&self, place: &Placement) -> bool {
        holds(place) && self.quorum_members.contains(&place.name)
    }
}

fn holds(place: &Placement) -> bool {
    place.holds == Some(Holds::Element)
}

impl Page for PlacementPage {
    const PATH: &'static str = "/placement";
    const TITLE: &'static str = "Placement";
    type View = View;

    async fn look(&self, visit: &Visit) -> Result<View, Trouble> {
        let client = visit.client();
        let (Some(name), Some(key)) = (&self.domain, &self.key) else {
            return Ok(View {
                domains: DomainList::ask(visit).await?.domains,
                object: None,
            });
        };
        let info = moving::find(client, name).await?.inspect(key).await?;
        Ok(View {
            domains: Vec::new(),
            object: Some(PlacedObject::of(name, key, info)),
        })
    }

    fn commands(&self, view: &View) -> Vec<Command> {
        vec![match &view.object {
            Some(it) => {
                let stat = Command::new("stat").option("--domain", &it.domain);
                stat.argument(&it.key)
            }
            None => Command::new("stat --domain DOMAIN KEY"),
        }]
    }

    fn draw(&self, view: &View) -> Markup {
        html! {
            @match &view.object {
                Some(object) => (shown(object)),
                None => p { "Each server of a domain holds one element of an object: a copy of it, or a fragment. Choose the object below." },
            }
        }
    }

    fn forms(&self, _visit: &Visit, view: &View) -> Markup {
        let domain = self.domain.as_deref().unwrap_or("default");
        let names: Vec<&str> = view.domains.iter().map(|it| it.name.as_str()).collect();
        html! {
            h2 { "Another object" }
            form method="get" action=(Self::PATH) {
                (field("domains", domain, &names))
                label { "Key" input name="key" required value=[self.key.as_deref()] autocomplete="off"; }
                button { "Show its placement" }
            }
            @if let Some(it) = &view.object {
                p {
                    a href={ "/objects" (query(&[("domain", &it.domain)])) } { "Objects of " (it.domain) } " · "
                    a href={ "/reconfigure" (query(&[("domain", &it.domain)])) } { "Reconfigure " (it.domain) }
                }
            }
        }
    }
}

fn shown(object: &PlacedObject) -> Markup {
    let info = &object.info;
    let (n, k, quorum) = (info.shape.n(), info.shape.k(), info.shape.quorum());
    let holders = object.holders();
    html! {
        h2 { "Object " (object.key) " of " (object.domain) }
        dl {
            dt { "version" } dd { (info.version) }
            dt { "size" } dd { (show_size(info.length)) " (" (info.length) " bytes)" }
            @if let Some(blocks) = &info.metadata.blocks {
                dt { "blocks" } dd { (blocks.count()) " of " (show_size(blocks.block_bytes().into())) ": each is placed by itself, what follows is the list of them" }
            }
            @if let Some(ms) = info.metadata.written_at_ms { dt { "written" } dd { (show_time(ms)) " by the writer's clock" } }
            dt { "configuration" } dd { (info.configuration) ", " (info.shape) }
        }
        @if holders == n {
            p.done { "All " (n) " servers hold their element of this version." }
        } @else if holders >= quorum {
            p.notice { (holders) " of " (n) " servers hold their element of this version: enough for reads and writes. The others get theirs by a repair, or by the next write." }
        } @else {
            p.trouble role="alert" {
                (holders) " of " (n) " servers are known to hold their element of this version, and a quorum is " (quorum)
                ". The page Cluster shows which servers are missing."
            }
        }
        p { "Any " (quorum) " of the " (n) " servers are a quorum, and any " (k) @if k == 1 { " element makes" } @else { " elements make" } " the value." }
        div.wide tabindex="0" role="region" aria-label="Picture" { (ring(object)) }
        (table("Elements", &COLUMNS, &info.placement.iter().map(|it| row(object, it)).collect::<Vec<_>>()))
    }
}

const COLUMNS: [&str; 5] = [
    "server",
    "element",
    "role",
    "holds",
    "a quorum that has the version",
];

fn row(object: &PlacedObject, place: &Placement) -> Vec<Markup> {
    let text = place
        .holds
        .map_or("not asked".to_owned(), |it| it.to_string());
    vec![
        html! { (place.name) },
        html! { (place.element) },
        html! { (place.role) },
        badge(colour(place), &text),
        html! { @if object.is_in_quorum(place) { "yes" } @else { "–" } },
    ]
}

fn colour(place: &Placement) -> &'static str {
    match place.holds {
        Some(Holds::Element) => "good",
        Some(Holds::Other { .. } | Holds::Missing | Holds::Superseded) => "warning",
        Some(Holds::Damaged) => "bad",
        Some(Holds::Unknown) | None => "plain",
    }
}

/// The mark of a state, which says it without its colour.
fn mark(place: &Placement) -> &'static str {
    match place.holds {
        Some(Holds::Element) => "✓",
        Some(Holds::Other { .. }) => "older",
        Some(Holds::Missing) => "missing",
        Some(Holds::Damaged) => "damaged",
        Some(Holds::Superseded) => "moved on",
        Some(Holds::Unknown) | None => "silent",
    }
}

/// The servers around the object. A thick line leads to those of a quorum that has the version.
fn ring(object: &PlacedObject) -> Markup {
    // The centre is at (230, 200).
    let places = &object.info.placement;
    let at = |place: usize| {
        let angle = 2.0 * PI * place as f64 / places.len() as f64 - PI / 2.0;
        let (x, y) = (230.0 + 150.0 * angle.cos(), 200.0 + 150.0 * angle.sin());
        (x.round(), y.round())
    };
    let content = html! {
        @for (number, place) in places.iter().enumerate() {
            @let (x, y) = at(number);
            @let class = if object.is_in_quorum(place) { "line quorum" } else { "line" };
            path class=(class) fill="none" d=(format!("M230 200L{x} {y}")) {}
        }
        circle class="box final" cx="230" cy="200" r="34" {}
        text x="230" y="205" text-anchor="middle" { "value" }
        @for (number, place) in places.iter().enumerate() {
            @let (x, y) = at(number);
            g {
                title { (place.name) ", element " (place.element) ", " (place.role) @if let Some(holds) = place.holds { ": " (holds) } }
                circle class={ "box " (colour(place)) } cx=(x) cy=(y) r="36" {}
                text x=(x) y=(y - 6.0) text-anchor="middle" { (place.name.chars().take(9).collect::<String>()) }
                text x=(x) y=(y + 10.0) text-anchor="middle" { (place.role) " " (place.element) }
                text x=(x) y=(y + 25.0) text-anchor="middle" { (mark(place)) }
            }
        }
    };
    let title = format!(
        "{} of {} servers hold their element; thick lines lead to a quorum of {}",
        object.holders(),
        places.len(),
        object.info.shape.quorum()
    );
    picture((460, 400), &title, &content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::{Dap, ElementRole, Metadata, ServerId, Shape, Version};

    fn object(holds: [Holds; 5]) -> PlacedObject {
        let place = |(number, holds): (u8, Holds)| Placement {
            name: format!("<s{number}>"),
            server: ServerId(u128::from(number) + 1),
            element: number,
            role: if number < 3 {
                ElementRole::Data
            } else {
                ElementRole::Parity
            },
            holds: Some(holds),
        };
        let info = ObjectInfo {
            version: Version::INITIAL,
            length: 1 << 20,
            metadata: Metadata::default(),
            configuration: 2,
            shape: Shape::new(Dap::Ec { k: 3 }, 5).unwrap(),
            placement: (0..).zip(holds).map(place).collect(),
        };
        PlacedObject::of("photos", "<b>cat</b>", info)
    }

    #[test]
    fn a_quorum_is_shown_where_one_holds_the_version() {
        let whole = object([Holds::Element; 5]);
        assert_eq!(whole.quorum_members, ["<s0>", "<s1>", "<s2>", "<s3>"]);
        let drawn = shown(&whole).into_string();
        assert!(drawn.contains("All 5 servers hold"), "{drawn}");
        assert_eq!(drawn.matches("line quorum").count(), 4);

        let mut holds = [Holds::Element; 5];
        (holds[1], holds[4]) = (Holds::Damaged, Holds::Missing);
        let below = object(holds);
        assert!(below.quorum_members.is_empty());
        let drawn = shown(&below).into_string();
        for part in [
            "3 of 5 servers are known to hold",
            "DAMAGED",
            "MISSING",
            "a quorum is 4",
            "any 3 elements make",
        ] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
        assert_eq!(drawn.matches("line quorum").count(), 0);
    }

    #[test]
    fn names_of_strangers_are_no_markup() {
        let drawn = shown(&object([Holds::Element; 5])).into_string();
        assert!(!drawn.contains("<b>") && !drawn.contains("<s0>"), "{drawn}");
        assert!(drawn.contains("&lt;b&gt;cat&lt;/b&gt;"), "{drawn}");
        let json = serde_json::to_value(View {
            domains: Vec::new(),
            object: Some(object([Holds::Element; 5])),
        })
        .unwrap();
        assert_eq!(
            (&json["key"], &json["bytes"]),
            (&"<b>cat</b>".into(), &(1 << 20).into())
        );
    }
}
