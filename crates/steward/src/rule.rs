//! The evaluator: a pure function of records, journal and time.
//!
//! One evaluation finds reasons (`triggers.rs`), makes of each a change or advice (`changes.rs`), and compares these with the journal: a reason that is found
//! again confirms its intent, one that is found no more supersedes it, several reasons for one server become one change. [`decide`] then asks the guards.

pub(crate) mod changes;
mod spare;
mod triggers;

use crate::guard::{self, Actor, Level};
use crate::intent::{Change, Intent, State};
use crate::journal::Journal;
use crate::records::Records;
use crate::rules::{RuleName, Rules};
use crate::signal;
use std::collections::BTreeSet;
use triggers::{Trigger, Wanted};

pub use spare::spare_crashes;
pub use triggers::{bad_servers, dead_servers, is_at_risk};

/// The remedy of a reason as long as nothing can be changed.
struct Proposal {
    trigger: Trigger,
    change: Option<Change>,
    remedy: String,
}

/// The intents that are new, or other than in the journal. Numbers are those of the journal as it was read: each is written with one winner.
pub fn evaluate(rules: &Rules, records: &Records, journal: &Journal, now_ms: u64) -> Vec<Intent> {
    let mut work = Evaluation {
        rules,
        records,
        now_ms,
        journal: journal.clone(),
    };
    work.let_go();
    let mut triggers = triggers::all(rules, records, now_ms);
    triggers.sort_by(|a, b| (a.reason.rule, &a.subject).cmp(&(b.reason.rule, &b.subject)));
    let mut found = BTreeSet::new();
    let doubt = work.doubt(&triggers);
    for trigger in triggers {
        let proposal = work.plan(trigger);
        if let Some(number) = work.note(proposal, &found) {
            found.insert(number);
        }
    }
    work.supersede(&found, &doubt);
    work.end_declined(&doubt);
    let known = |it: &Intent| journal.intents.iter().any(|known| known == it);
    work.journal.intents.retain(|it| !known(it));
    work.journal.intents
}

struct Evaluation<'a> {
    rules: &'a Rules,
    records: &'a Records,
    now_ms: u64,
    /// The journal with what this evaluation has changed so far.
    journal: Journal,
}

impl Evaluation<'_> {
    /// Ends tries to repair what a server has that came and is gone itself: it holds no domain back that is to be changed for its sake.
    fn let_go(&mut self) {
        if self.journal.paused || self.is_blind() {
            return;
        }
        let gone = dead_servers(self.rules, self.records, self.now_ms);
        let is_gone = |with: &str| gone.contains(with) || self.records.server(with).is_none();
        // A domain that came since, or that is half changed, may name the server that is to go.
        let domains = &self.records.domains;
        let is_over = |it: &Change| {
            let mut domains = domains.iter();
            domains.all(|domain| !domain.has(&it.server) && !domain.is_pending)
        };
        let is_in_vain = |it: &&Intent| {
            let change = it.change.as_ref();
            let is_over = |it: &Change| is_gone(&it.with) && is_over(it);
            matches!(it.state, State::Failed { .. }) && change.is_some_and(is_over)
        };
        let in_vain: Vec<Intent> = self.journal.open().filter(is_in_vain).cloned().collect();
        for mut intent in in_vain {
            let with = intent.change.as_ref().map_or("", |it| it.with.as_str());
            let by = format!("{with} came, and is gone itself");
            intent
                .advance(State::Superseded { by }, self.now_ms)
                .expect("it has failed");
            self.journal.put(intent);
        }
    }

    /// The instance sees too little, or has watched for too short a time, for what it does not see to be gone.
    fn is_blind(&self) -> bool {
        let world = guard::World {
            rules: self.rules,
            records: self.records,
            journal: &self.journal,
            now_ms: self.now_ms,
        };
        world.is_broken() || world.young().is_some()
    }

    /// A change, if the reason wants one and a spare is there; otherwise advice.
    fn plan(&self, trigger: Trigger) -> Proposal {
        let server = match &trigger.wanted {
            Wanted::Advice { remedy } => {
                let remedy = remedy.clone();
                return Proposal {
                    trigger,
                    change: None,
                    remedy,
                };
            }
            Wanted::Replace => &trigger.subject,
        };
        let open = || self.journal.wanted().filter_map(|it| it.change.as_ref());
        let before = open().find(|change| change.server == *server);
        let taken: BTreeSet<&str> = open()
            .filter(|change| change.server != *server)
            .map(|change| change.with.as_str())
            .collect();
        let choice = changes::Choice {
            rules: self.rules,
            records: self.records,
            now_ms: self.now_ms,
            rule: trigger.reason.rule,
        };
        let planned = choice.replacement(server, before.map(|it| it.with.as_str()), &taken);
        match planned {
            Ok(change) => {
                let remedy = format!(
                    "areo server replace {} --with {}",
                    change.server, change.with
                );
                Proposal {
                    trigger,
                    change: Some(change),
                    remedy,
                }
            }
            Err(remedy) => Proposal {
                trigger,
                change: None,
                remedy,
            },
        }
    }

    /// Confirms the intent of this subject, or proposes one. Returns its number; `None`: an operator declined it, or another change of one of its domains
    /// comes first.
    fn note(&mut self, proposal: Proposal, found: &BTreeSet<u64>) -> Option<u64> {
        let Proposal {
            trigger,
            change,
            remedy,
        } = proposal;
        if self.is_declined(&trigger, change.as_ref()) {
            return None;
        }
        let is_same = |it: &&Intent| {
            let is_about = it.subject == trigger.subject;
            // Reasons for one change are merged; each piece of advice is one of its own.
            let is_alike = match it.change {
                Some(_) => change.is_some() || it.state.is_begun(),
                None => change.is_none() && it.rule() == trigger.reason.rule,
            };
            is_about && is_alike
        };
        let Some(known) = self.journal.open().find(is_same) else {
            return self.propose(trigger, change, remedy);
        };
        let mut intent = known.clone();
        if intent.state.is_begun() {
            return Some(intent.number);
        }
        // Nothing was known of it, and another change has taken its place meanwhile.
        if intent.found == 0
            && let Some(change) = &change
            && guard::busy(change, &self.journal, Some(intent.number)).is_some()
        {
            return None;
        }
        let is_first = !found.contains(&intent.number);
        if is_first {
            intent.found = intent
                .found
                .saturating_add(1)
                .min(self.rules.guards.hysteresis);
            intent.missing = 0;
            // An operator approved of one change, not of another one.
            intent.approved &= is_alike(intent.change.as_ref(), change.as_ref());
            (intent.change, intent.remedy) = (change, remedy);
        }
        match intent
            .reasons
            .iter_mut()
            .find(|it| it.rule == trigger.reason.rule)
        {
            // The first finding is the evidence; its numbers would change with each evaluation.
            Some(_) => {}
            None => intent.reasons.push(trigger.reason),
        }
        intent.reasons.sort_by_key(|it| it.rule);
        let number = intent.number;
        self.journal.put(intent);
        Some(number)
    }

    /// An operator declined what a reason wants: the same advice, or a replacement by any spare.
    fn is_declined(&self, trigger: &Trigger, change: Option<&Change>) -> bool {
        let is_alike = |it: &Intent| match it.change {
            Some(_) => trigger.wanted == Wanted::Replace,
            None => change.is_none(),
        };
        let mut declined = self.journal.declined();
        declined.any(|it| is_alike(it) && is_reason(it, trigger))
    }

    fn propose(&mut self, trigger: Trigger, change: Option<Change>, remedy: String) -> Option<u64> {
        if let Some(change) = &change
            && guard::busy(change, &self.journal, None).is_some()
        {
            return None;
        }
        let number = self.journal.next_number();
        self.journal.put(Intent {
            number,
            subject: trigger.subject,
            reasons: vec![trigger.reason],
            change,
            remedy,
            approved: false,
            found: 1,
            missing: 0,
            state: State::Proposed,
            since_ms: self.now_ms,
            history: Vec::new(),
        });
        Some(number)
    }

    /// Counts the evaluations that found no reason for an intent, and supersedes it. One of which nothing is known stays, and is not carried out.
    fn supersede(&mut self, found: &BTreeSet<u64>, doubt: &Doubt) {
        let is_missing = |it: &&Intent| !found.contains(&it.number) && !it.state.is_begun();
        let missing: Vec<Intent> = self.journal.open().filter(is_missing).cloned().collect();
        for mut intent in missing {
            intent.found = 0;
            intent.missing = match doubt.is_unjudged(&intent) {
                true => 0,
                false => intent.missing + 1,
            };
            if intent.missing >= self.rules.guards.hysteresis {
                let other = self.journal.open().find(|it| {
                    it.subject == intent.subject
                        && it.number != intent.number
                        && found.contains(&it.number)
                });
                let by = match other {
                    Some(other) => format!("intent {}", other.number),
                    None if doubt.is_there(&intent) => {
                        "another change, or the decision of an operator, goes first".into()
                    }
                    None => "its reason is gone".into(),
                };
                let superseded = State::Superseded { by };
                intent
                    .advance(superseded, self.now_ms)
                    .expect("it was not begun");
            }
            self.journal.put(intent);
        }
    }

    /// Ends declined intents whose reasons are gone: what is like them is proposed again once there is a new one.
    fn end_declined(&mut self, doubt: &Doubt) {
        let declined: Vec<Intent> = self.journal.declined().cloned().collect();
        for mut intent in declined {
            intent.missing = match doubt.may_be_there(&intent) {
                true => 0,
                false => intent.missing + 1,
            };
            if intent.missing >= self.rules.guards.hysteresis {
                let by = "its reason is gone".into();
                intent
                    .advance(State::Superseded { by }, self.now_ms)
                    .expect("it was declined");
            }
            self.journal.put(intent);
        }
    }

    fn doubt(&self, there: &[Trigger]) -> Doubt {
        let key = |it: &Trigger| (it.subject.clone(), it.reason.rule);
        let at_once = triggers::all(&self.rules.at_once(), self.records, self.now_ms);
        Doubt {
            is_blind: self.is_blind(),
            observed_ms: self.records.observed_ms,
            bad: triggers::bad_servers(self.rules, self.records, self.now_ms),
            at_once: at_once.iter().map(key).collect(),
            there: there.iter().map(key).collect(),
        }
    }
}

/// The time for which an instance has watched before it can tell that a reason of this rule is gone: the rule judges what has happened in such a time.
fn memory_ms(rule: RuleName) -> u64 {
    match rule {
        RuleName::Disk | RuleName::Unbalanced => signal::DAY_MS,
        RuleName::Filling => signal::GROWTH_MS,
        _ => 0,
    }
}

/// The reasons that may be there although this instance does not find them: another one may have watched for longer.
struct Doubt {
    /// The instance sees too little, or has watched for too short a time.
    is_blind: bool,
    observed_ms: u64,
    /// Servers that look bad: nothing else is known of them.
    bad: BTreeSet<String>,
    /// Subjects and rules of the reasons that are there if they need not have lasted, and of those that are there.
    at_once: BTreeSet<(String, RuleName)>,
    there: BTreeSet<(String, RuleName)>,
}

impl Doubt {
    fn may_be_there(&self, intent: &Intent) -> bool {
        let is_young = |rule| self.observed_ms < memory_ms(rule);
        let mut reasons = intent.reasons.iter().map(|it| it.rule);
        self.is_blind
            || self.bad.contains(&intent.subject)
            || reasons
                .any(|it| is_young(it) || self.at_once.contains(&(intent.subject.clone(), it)))
    }

    /// A reason is there. Of an intent that was not found it belongs to another one.
    fn is_there(&self, intent: &Intent) -> bool {
        let mut reasons = intent.reasons.iter().map(|it| it.rule);
        reasons.any(|it| self.there.contains(&(intent.subject.clone(), it)))
    }

    /// A reason may be there, and none is found.
    fn is_unjudged(&self, intent: &Intent) -> bool {
        self.may_be_there(intent) && !self.is_there(intent)
    }
}

/// Tells if this is a reason of an intent.
fn is_reason(intent: &Intent, trigger: &Trigger) -> bool {
    let mut reasons = intent.reasons.iter();
    intent.subject == trigger.subject && reasons.any(|it| it.rule == trigger.reason.rule)
}

/// The result of an evaluation for the instance that acts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Decision {
    /// Intents to write, each with one winner.
    pub writes: Vec<Intent>,
    /// The number of the intent to carry out now, or to go on with.
    pub act: Option<u64>,
}

/// Tells if two changes move the same servers in the same domains. Their costs may differ.
fn is_alike(one: Option<&Change>, other: Option<&Change>) -> bool {
    let places = |change: &Change| {
        let domains = change.domains.iter().map(|it| it.domain.clone());
        let domains: BTreeSet<String> = domains.collect();
        (change.server.clone(), change.with.clone(), domains)
    };
    one.map(places) == other.map(places)
}

/// Evaluates, and decides what is to be written and which change is to be carried out. An instance without the lease, and one that only observes, writes
/// nothing.
pub fn decide(
    rules: &Rules,
    records: &Records,
    journal: &Journal,
    actor: Actor,
    now_ms: u64,
) -> Decision {
    if !actor.holds_lease || actor.level == Level::Observe {
        return Decision::default();
    }
    let mut all = journal.clone();
    for intent in evaluate(rules, records, journal, now_ms) {
        all.put(intent);
    }
    let mut changes: Vec<Intent> = all
        .open()
        .filter(|it| it.change.is_some())
        .cloned()
        .collect();
    // What was begun is finished first, then the greatest risk.
    changes.sort_by_key(|it| (!it.state.is_begun(), it.rule(), it.number));
    let mut act = None;
    for mut intent in changes {
        if let State::Failed { next_ms, .. } = &intent.state
            && next_ms.is_none_or(|next_ms| next_ms > now_ms)
        {
            continue;
        }
        let world = guard::World {
            rules,
            records,
            journal: &all,
            now_ms,
        };
        let holds = world.holds(&intent, actor);
        if holds.is_empty() {
            act = act.or(Some(intent.number));
        } else if !intent.state.is_begun() {
            let waits_for = holds.iter().map(ToString::to_string).collect();
            let waiting = State::Waiting { waits_for };
            intent.advance(waiting, now_ms).expect("it was not begun");
            all.put(intent);
        }
    }
    let known = |it: &Intent| journal.intents.iter().any(|known| known == it);
    all.intents.retain(|it| !known(it));
    Decision {
        writes: all.intents,
        act,
    }
}

#[cfg(test)]
mod tests;
