//! What was measured, as one page that needs nothing else: tables, and plots as SVG.
//!
//! A page is made from a report that was read from `--json`, so that it can be drawn again.

mod paper;
mod peers;
mod plot;
mod stack;
mod timeline;
mod wide_area;

pub use plot::{Axis, Line, Place, Plot};
pub use stack::Stack;
pub use timeline::Timeline;

use crate::system::Machine;
use crate::{paper as of_paper, peers as of_peers, wide_area as of_wide_area};
use std::fmt::Write;

/// A page.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    /// What it is about.
    pub title: String,
    /// How it was made: command, time, machine.
    pub made: Vec<String>,
    /// What is on it.
    pub sections: Vec<Section>,
}

/// A part of a page.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Section {
    /// What it shows.
    pub heading: String,
    /// What to know when looking at it.
    pub text: String,
    /// Plots, side by side where there is room.
    pub plots: Vec<Plot>,
    /// Bars, after them.
    pub stacks: Vec<Stack>,
    /// Timelines, after them.
    pub timelines: Vec<Timeline>,
    /// Pictures as wide as the page: what each shows, and the SVG.
    pub pictures: Vec<(String, String)>,
    /// A table.
    pub table: Option<Table>,
}

/// Rows with a head; what is right of the first columns, which are texts, are numbers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    /// Columns that are texts.
    pub texts: usize,
    /// The head.
    pub head: Vec<String>,
    /// Rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
}

/// Colours of the system's own, so that the page can be read by day and by night.
const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}\
.made{color:GrayText;font-size:.85rem}.made code{user-select:all}\
.scroll{overflow-x:auto}\
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}\
th,td{padding:.2rem .7rem;border-bottom:1px solid color-mix(in srgb,currentColor 18%,transparent);text-align:right;white-space:nowrap}\
th.text,td.text{text-align:left}\
.plots{display:flex;flex-wrap:wrap;gap:1rem}\
.plots figure{margin:0;background:#fff;border-radius:6px;padding:.3rem}\
.wide{margin:1rem 0}";

impl Page {
    /// The page of a comparison; `made_at` is its time, as people write it.
    pub fn of_peers(report: &of_peers::Report, made_at: &str) -> Page {
        peers::page(report, made_at)
    }

    /// The page of servers that are far apart; `made_at` is its time, as people write it.
    pub fn of_wide_area(report: &of_wide_area::Report, made_at: &str) -> Page {
        wide_area::page(report, made_at)
    }

    /// The page of an experiment of the papers; `made_at` is its time, as people write it.
    pub fn of_paper(report: &of_paper::Report, made_at: &str) -> Page {
        paper::page(report, made_at)
    }

    /// Its plots, for other pages: the name of a file for each, without an end, and the SVG.
    pub fn plots(&self) -> impl Iterator<Item = (String, String)> {
        self.sections.iter().flat_map(|section| {
            let named = |(title, svg): (&str, String)| {
                let name = file_name(&format!("{} {title}", section.heading));
                (name, svg)
            };
            let pictures = section.pictures.iter();
            let pictures = pictures.map(|(title, svg)| (&**title, svg.clone()));
            section.drawn().into_iter().chain(pictures).map(named)
        })
    }

    /// As HTML.
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\">\
             <title>{title}</title><style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n"
        );
        for line in &self.made {
            write_to(
                &mut html,
                format_args!("<p class=\"made\">{}</p>\n", escape(line)),
            );
        }
        for section in &self.sections {
            section.write(&mut html);
        }
        html.push_str("</body></html>\n");
        html
    }
}

impl Section {
    /// Its plots, bars and timelines: the title of each, and as SVG.
    fn drawn(&self) -> Vec<(&str, String)> {
        let plots = self.plots.iter().map(|plot| (&*plot.title, plot.svg()));
        let stacks = self.stacks.iter().map(|stack| (&*stack.title, stack.svg()));
        let timelines = self.timelines.iter();
        let timelines = timelines.map(|timeline| (&*timeline.title, timeline.svg()));
        plots.chain(stacks).chain(timelines).collect()
    }

    fn write(&self, html: &mut String) {
        let heading = escape(&self.heading);
        write_to(html, format_args!("<section>\n<h2>{heading}</h2>\n"));
        if !self.text.is_empty() {
            write_to(html, format_args!("<p>{}</p>\n", escape(&self.text)));
        }
        let drawn = self.drawn();
        if !drawn.is_empty() {
            html.push_str("<div class=\"plots\">\n");
            for (_, svg) in drawn {
                write_to(html, format_args!("<figure>{svg}</figure>\n"));
            }
            html.push_str("</div>\n");
        }
        for (title, svg) in &self.pictures {
            write_to(
                html,
                format_args!(
                    "<figure class=\"wide\"><figcaption>{}</figcaption>{svg}</figure>\n",
                    escape(title)
                ),
            );
        }
        if let Some(table) = &self.table {
            table.write(html);
        }
        html.push_str("</section>\n");
    }
}

impl Table {
    fn write(&self, html: &mut String) {
        html.push_str("<div class=\"scroll\"><table>\n<thead>");
        self.row(html, "th", &self.head);
        html.push_str("</thead>\n<tbody>\n");
        for row in &self.rows {
            assert_eq!(row.len(), self.head.len(), "a row is as long as the head");
            self.row(html, "td", row);
        }
        html.push_str("</tbody></table></div>\n");
    }

    fn row(&self, html: &mut String, cell: &str, row: &[String]) {
        html.push_str("<tr>");
        for (place, text) in row.iter().enumerate() {
            let class = if place < self.texts {
                " class=\"text\""
            } else {
                ""
            };
            write_to(
                html,
                format_args!("<{cell}{class}>{}</{cell}>", escape(text)),
            );
        }
        html.push_str("</tr>\n");
    }
}

/// What is different, in the order in which it is first seen.
fn unique<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for one in all {
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    seen
}

/// A name as that of a file: letters and digits, and lines between words.
fn file_name(name: &str) -> String {
    let words = name.split(|character: char| !character.is_ascii_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    words.join("-")
}

/// When and where something was measured.
fn made(made_at: &str, machine: &Machine) -> String {
    format!(
        "{made_at}, {} processors ({}), {:.1} GiB, Linux {}",
        machine.processors,
        machine.model,
        machine.memory_bytes as f64 / f64::from(1 << 30),
        machine.kernel
    )
}

fn head(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn write_to(html: &mut String, what: std::fmt::Arguments<'_>) {
    html.write_fmt(what).expect("a string takes everything");
}

/// Text that is nothing but text in HTML.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
