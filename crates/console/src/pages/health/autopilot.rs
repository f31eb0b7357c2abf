//! The autopilot: whether it is paused, the open intents with what may be done about them, and the journal.

use crate::command::Command;
use crate::door::Visit;
use crate::html::{badge, left_out, table, token};
use crate::trouble::Trouble;
use areo_client::journal::{JournalError, JournalObjects};
use areo_client::units::show_time;
use areo_steward::instance::JournalStore;
use areo_steward::intent::{Intent, State};
use areo_steward::journal::Journal;
use maud::{Markup, html};
use serde::Serialize;

/// Intents that are shown of the journal, the last ones.
const LAST: usize = 100;
/// Lines that explain one intent: there may be one for each domain.
const LINES: usize = 40;

/// All that `areo autopilot status --json` and `areo autopilot journal --json` print.
#[derive(Serialize)]
pub(super) struct View {
    /// An instance has run in this cluster.
    pub(super) began: bool,
    pub(super) paused: bool,
    /// The instance that acts, as far as the journal shows.
    pub(super) instance: Option<String>,
    pub(super) open: usize,
    /// Intents by number, finished ones too.
    pub(super) intents: Vec<IntentView>,
    /// Why the journal cannot be read by this session.
    pub(super) error: Option<String>,
}

#[derive(Serialize)]
pub(super) struct IntentView {
    #[serde(flatten)]
    intent: Intent,
    /// The lines of `areo autopilot explain`.
    explanation: Vec<String>,
}

/// Reads the journal. A session that may not read it sees the rest of the page.
pub(super) async fn look(visit: &Visit) -> View {
    let mut kept = visit.session.journal.lock().await;
    match read(visit, &mut kept).await {
        Ok(journal) => View::of(kept.as_ref(), journal),
        Err(error) => {
            // It is looked up again: it may have been made anew.
            *kept = None;
            View {
                error: Some(Trouble::from(error).sentence),
                ..View::of(None, Journal::default())
            }
        }
    }
}

async fn read(visit: &Visit, kept: &mut Option<JournalObjects>) -> Result<Journal, JournalError> {
    if kept.is_none() {
        *kept = JournalObjects::find(visit.client()).await?;
    }
    match kept {
        Some(objects) => objects.read().await,
        None => Ok(Journal::default()),
    }
}

impl View {
    pub(super) fn of(objects: Option<&JournalObjects>, journal: Journal) -> View {
        let lease = objects.and_then(JournalStore::lease);
        View {
            began: objects.is_some(),
            paused: journal.paused,
            instance: lease.map(|it| it.holder.clone()),
            open: journal.open().count(),
            intents: journal.intents.into_iter().map(IntentView::from).collect(),
            error: None,
        }
    }
}

impl From<Intent> for IntentView {
    fn from(intent: Intent) -> IntentView {
        IntentView {
            explanation: intent.explain(),
            intent,
        }
    }
}

pub(super) fn draw(view: &View, form_token: &str) -> Markup {
    let open = || view.intents.iter().filter(|it| !it.intent.state.is_final());
    html! {
        @if let Some(error) = &view.error { p.trouble role="alert" { "The journal of the autopilot cannot be read: " (error) } }
        @else if !view.began {
            p { "No autopilot has run in this cluster. " code { "areo autopilot" } " on a machine that reaches the servers proposes changes, which are approved here." }
        } @else {
            (switch(view, form_token))
            @if open().next().is_none() { p { "Nothing is open: no server or domain is to be changed." } }
            @for it in open() { (section(it, form_token)) }
            (journal(&view.intents))
        }
    }
}

fn switch(view: &View, form_token: &str) -> Markup {
    let command = Command::new("autopilot pause").switch("--off", view.paused);
    let (value, word) = if view.paused {
        ("off", "Go on")
    } else {
        ("on", "Pause the autopilot")
    };
    html! {
        @if view.paused { p.notice { "It is paused: nothing is changed until it goes on." } }
        @if let Some(instance) = &view.instance { p { "The last instance that acted is " code { (instance) } "." } }
        form method="post" action="/health/pause" {
            (token(form_token))
            input type="hidden" name="pause" value=(value);
            button.quiet { (word) }
            code { "areo " (command) }
        }
    }
}

fn colour(state: &State) -> &'static str {
    match state {
        State::Done { .. } => "good",
        State::Failed { .. } => "bad",
        State::Waiting { .. } | State::Running { .. } => "warning",
        _ => "plain",
    }
}

fn section(it: &IntentView, form_token: &str) -> Markup {
    let intent = &it.intent;
    let number = intent.number.to_string();
    let button = |verb: &str, word: &str| {
        html! {
            form method="post" action={ "/health/" (verb) } {
                (token(form_token))
                input type="hidden" name="number" value=(number);
                button { (word) " " (number) }
                code { "areo " (Command::new(&format!("autopilot {verb}")).argument(&number)) }
            }
        }
    };
    let may_be_approved = intent.change.is_some() && !intent.approved && !intent.state.is_begun();
    let may_be_retried = matches!(intent.state, State::Failed { .. });
    html! {
        section.job aria-label=(format!("Intent {}", intent.number)) {
            h3 { "Intent " (intent.number) " about " (intent.subject) " " (badge(colour(&intent.state), intent.state.word())) }
            ul.lines { @for line in it.explanation.iter().take(LINES) { li { (line.trim()) } } }
            (left_out(it.explanation.len(), LINES, "line"))
            @if intent.change.is_some() { p { "By hand: " code { (intent.remedy) } } }
            @if may_be_approved { (button("approve", "Approve intent")) }
            @if !intent.state.is_begun() { (button("decline", "Decline intent")) }
            @if may_be_retried { (button("retry", "Try again intent")) }
            p.twin { code { "areo " (Command::new("autopilot explain").argument(&intent.subject)) } }
        }
    }
}

fn journal(intents: &[IntentView]) -> Markup {
    let row = |it: &IntentView| {
        let intent = &it.intent;
        let change = intent.change.as_ref();
        vec![
            html! { (intent.number) },
            html! { (intent.subject) },
            html! { (intent.rule().word()) },
            badge(colour(&intent.state), intent.state.word()),
            html! { (show_time(intent.since_ms)) },
            html! { @match change { Some(change) => (change), None => "advice" } },
            html! { (intent.reasons[0].sentence) @if let State::Done { proof } = &intent.state { "; " (proof) } },
        ]
    };
    let rows: Vec<_> = intents.iter().rev().take(LAST).map(row).collect();
    let columns = ["intent", "about", "rule", "state", "since", "change", "why"];
    table("Journal of the autopilot", &columns, &rows)
}
