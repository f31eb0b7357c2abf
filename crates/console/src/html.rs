//! The frame of every page, and the parts that pages are made of.

use crate::job::{JobState, JobView};
use areo_client::units::show_count;
use axum::response::Html;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The pages, in the order of the navigation: path, name.
const PAGES: [(&str, &str); 7] = [
    ("/cluster", "Cluster"),
    ("/reconfigure", "Reconfigure"),
    ("/placement", "Placement"),
    ("/traces", "Traces"),
    ("/objects", "Objects"),
    ("/keys", "Keys"),
    ("/health", "Health"),
];

/// Letters that a query keeps as they are.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// The session, as the frame of a page shows it.
pub(crate) struct Frame<'a> {
    pub(crate) path: &'a str,
    pub(crate) form_token: &'a str,
    pub(crate) key: Option<&'a str>,
}

/// A whole page, with its title and its frame.
pub(crate) fn document(title: &str, frame: Option<&Frame>, body: &Markup) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Areo" }
                link rel="stylesheet" href="/assets/console.css";
                link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                script src="/assets/console.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to the page" }
                header {
                    a.brand href="/" { "Areo" }
                    @if let Some(frame) = frame { (navigation(frame)) }
                }
                main #main { (body) }
            }
        }
    };
    Html(page.into_string())
}

fn navigation(frame: &Frame) -> Markup {
    html! {
        nav aria-label="Pages" {
            ul {
                @for (path, name) in PAGES {
                    li { a href=(path) aria-current=[frame.path.starts_with(path).then_some("page")] { (name) } }
                }
            }
        }
        form.session method="post" action="/logout" {
            (token(frame.form_token))
            span.key { @match frame.key { Some(key) => { "key " (key) }, None => "key of this console" } }
            button.quiet { "Sign out" }
        }
    }
}

/// The hidden field that proves that a form is of this session.
pub(crate) fn token(form_token: &str) -> Markup {
    html! { input type="hidden" name="token" value=(form_token); }
}

/// A query of these fields, with its question mark.
pub(crate) fn query(fields: &[(&str, &str)]) -> String {
    let pair =
        |(name, value): &(&str, &str)| format!("{name}={}", utf8_percent_encode(value, QUERY));
    let pairs: Vec<String> = fields.iter().map(pair).collect();
    format!("?{}", pairs.join("&"))
}

/// A table with a caption, which scrolls by itself where it is wider than the screen.
pub(crate) fn table(caption: &str, columns: &[&str], rows: &[Vec<Markup>]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (place, cell) in row.iter().enumerate() {
                                @if place == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                            }
                        }
                    }
                    @if rows.is_empty() { tr { td colspan=(columns.len()) { "none" } } }
                }
            }
        }
    }
}

/// A word with a colour, which the word explains: `good`, `warning`, `bad` or `plain`.
pub(crate) fn badge(colour: &'static str, word: &str) -> Markup {
    html! { span class={ "badge " (colour) } { (word) } }
}

/// A bar that is filled as far as something is done.
pub(crate) fn bar(label: &str, done: u64, total: u64) -> Markup {
    html! { progress value=(done) max=(total.max(1)) aria-label=(label) {} " " (done) " of " (total) }
}

/// The changes of the key of a session: all that go on, and the latest that ended.
pub(crate) fn jobs(jobs: &[JobView]) -> Markup {
    const ENDED: usize = 4;
    let is_running = |it: &JobView| it.progress.state == JobState::Running;
    let listed = jobs.iter().enumerate();
    let listed = listed.filter(|(place, it)| *place < ENDED || is_running(it));
    let listed: Vec<&JobView> = listed.map(|(_, it)| it).collect();
    html! {
        @if !listed.is_empty() {
            h2 { "Changes by this key" }
            @for it in listed { (job(it)) }
        }
    }
}

/// Parts of one change that are listed.
const PARTS: usize = 50;

/// The state of a change that takes longer than a request.
fn job(job: &JobView) -> Markup {
    let (colour, word) = match job.progress.state {
        JobState::Running => ("warning", "running"),
        JobState::Done => ("good", "done"),
        JobState::Failed => ("bad", "failed"),
    };
    let progress = &job.progress;
    html! {
        section.job aria-label=(format!("Change {}", job.number)) {
            h3 { (job.title) " " (badge(colour, word)) }
            p { (progress.sentence) }
            @if progress.state == JobState::Running && progress.total > 0 { p { (bar(&progress.sentence, progress.done, progress.total)) } }
            @if !progress.parts.is_empty() {
                ul.parts { @for it in progress.parts.iter().take(PARTS) { li { span { (it.name) } (bar(&it.name, it.done, it.total)) } } }
                (left_out(progress.parts.len(), PARTS, "part"))
            }
            @if !progress.found.is_empty() { ul.lines { @for sentence in &progress.found { li { (sentence) } } } }
            p.twin { code { "areo " (job.command) } }
        }
    }
}

/// The sentence that counts the entries of a list that has no place for all.
pub(crate) fn left_out(all: usize, listed: usize, noun: &str) -> Markup {
    let more = all.saturating_sub(listed) as u64;
    html! { @if more > 0 { p { "and " (show_count(more, &format!("other {noun}"))) } } }
}

/// A picture in SVG of this size, with the sentence that says what it shows.
pub(crate) fn picture(size: (u32, u32), title: &str, content: &Markup) -> Markup {
    let (width, height) = size;
    html! {
        svg role="img" viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) aria-label=(title) {
            title { (title) }
            (PreEscaped(&content.0))
        }
    }
}
