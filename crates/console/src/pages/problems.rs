//! The problems of a cluster, in one way on all pages.

use crate::html::{badge, left_out};
use areo_client::Problem;
use maud::{Markup, html};

/// Problems that a page shows: there may be one of each domain.
const SHOWN: usize = 50;

/// The problems as sentences, outages first.
pub(super) fn draw(problems: &[Problem]) -> Markup {
    html! {
        @for it in problems.iter().take(SHOWN) {
            @if it.is_outage {
                p.trouble role="alert" { (badge("bad", "operations fail")) " " (it.text) }
            } @else {
                p.notice { (badge("warning", "at risk")) " " (it.text) }
            }
        }
        (left_out(problems.len(), SHOWN, "problem"))
    }
}
