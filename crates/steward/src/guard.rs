//! Guards keep an intent from being carried out. They are judged when an intent is planned, and again when it is about to be carried out.

use crate::intent::{Change, Intent};
use crate::journal::Journal;
use crate::records::Records;
use crate::rule::bad_servers;
use crate::rule::changes::{Choice, lowers};
use crate::rules::{RuleName, Rules};
use serde::{Deserialize, Serialize};

const DAY_MS: u64 = 24 * 3600 * 1000;

/// The part of the work that an instance does by itself.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// It shows what it would propose, and writes nothing.
    Observe,
    /// It proposes, and carries out what an operator approves.
    #[default]
    Advise,
    /// It carries out what its rules let it.
    Act,
}

/// The instance that is about to act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Actor {
    /// The part of the work that it does by itself.
    pub level: Level,
    /// It holds the lease now.
    pub holds_lease: bool,
}

/// The knowledge that guards judge.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// The thresholds of rules and guards.
    pub rules: &'a Rules,
    /// The cluster as it is now.
    pub records: &'a Records,
    /// The journal as it was just read.
    pub journal: &'a Journal,
    /// The time as of now.
    pub now_ms: u64,
}

/// A reason why an intent is not carried out. A sentence has no number that changes with time: it would be written again and again.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the sentences say it")]
pub enum Hold {
    #[error("another instance holds the lease")]
    Lease,
    #[error("the autopilot is paused: `areo autopilot pause --off` ends that")]
    Paused,
    #[error("more than a third of the servers look bad: it is the network, or the observer")]
    Network,
    #[error("approval: `areo autopilot approve {number}`")]
    Approval { number: u64 },
    #[error("this instance has watched for less than {seconds} s")]
    Young { seconds: u64 },
    #[error("its reason was not found in {evaluations} evaluations one after the other")]
    Hysteresis { evaluations: u32 },
    #[error("a change of '{domain}' is pending that an operator began")]
    Operator { domain: String },
    #[error("an operator takes {server} out")]
    Leaving { server: String },
    #[error("intent {number} changes '{domain}', too")]
    Busy { domain: String, number: u64 },
    #[error(
        "{server} is in maintenance until {until}: `areo server maintain {server} --end` ends that"
    )]
    Maintenance { server: String, until: String },
    #[error("the last change was less than {seconds} s ago")]
    Soon { seconds: u64 },
    #[error("a slow server was replaced less than {seconds} s ago")]
    Again { seconds: u64 },
    #[error("'{domain}' would tolerate no crash, or survive fewer crashes than now")]
    Lowers { domain: String },
    #[error("{why}")]
    Unfit { why: String },
    #[error("the bytes that changes in the background may move in a day are used up")]
    Budget,
}

/// The domain of this change that another open change touches, and the number of that one.
pub(crate) fn busy(change: &Change, journal: &Journal, but: Option<u64>) -> Option<Hold> {
    let mut others = journal.wanted().filter(|it| Some(it.number) != but);
    others.find_map(|other| {
        let domain = other
            .domains()
            .find(|name| change.domains.iter().any(|it| it.domain == *name))?;
        Some(Hold::Busy {
            domain: domain.into(),
            number: other.number,
        })
    })
}

impl World<'_> {
    /// More than a third of the servers look bad. Of one in maintenance people know why it does.
    pub(crate) fn is_broken(&self) -> bool {
        let bad = bad_servers(self.rules, self.records, self.now_ms);
        let within = self.records.within();
        let counted: Vec<_> = within.filter(|it| it.maintenance.is_none()).collect();
        let bad = counted.iter().filter(|it| bad.contains(&it.name));
        bad.count() * 3 > counted.len()
    }

    /// All reasons why this intent is not to be carried out now. A change that was begun is finished: only the lease, the switch and a network that is
    /// broken hold it.
    pub fn holds(&self, intent: &Intent, actor: Actor) -> Vec<Hold> {
        let Some(change) = &intent.change else {
            return vec![Hold::Approval {
                number: intent.number,
            }];
        };
        let mut holds: Vec<Hold> = self.of_all(actor).into_iter().flatten().collect();
        if intent.state.is_begun() {
            return holds;
        }
        let planned = [
            self.approval(intent, actor),
            self.young(),
            self.hysteresis(intent),
            self.leaving(change),
            self.maintained(change),
            busy_before(change, intent, self.journal),
            self.soon(intent),
            self.again(intent),
            self.lowered(intent, change),
            self.fit(intent, change),
            self.budget(intent, change),
        ];
        holds.extend(planned.into_iter().flatten());
        holds.extend(self.pending(change));
        holds
    }

    fn of_all(&self, actor: Actor) -> [Option<Hold>; 3] {
        [
            (!actor.holds_lease).then_some(Hold::Lease),
            self.journal.paused.then_some(Hold::Paused),
            self.is_broken().then_some(Hold::Network),
        ]
    }

    pub(crate) fn young(&self) -> Option<Hold> {
        let seconds = self.rules.guards.observer_seconds;
        let is_young = self.records.observed_ms < seconds.saturating_mul(1000);
        is_young.then_some(Hold::Young { seconds })
    }

    fn approval(&self, intent: &Intent, actor: Actor) -> Option<Hold> {
        let mut reasons = intent.reasons.iter();
        let acts = actor.level == Level::Act && reasons.any(|it| self.rules.acts(it.rule));
        let is_free = acts || intent.approved && actor.level != Level::Observe;
        (!is_free).then_some(Hold::Approval {
            number: intent.number,
        })
    }

    fn hysteresis(&self, intent: &Intent) -> Option<Hold> {
        let evaluations = self.rules.guards.hysteresis;
        (intent.found < evaluations).then_some(Hold::Hysteresis { evaluations })
    }

    /// Changes of the domains that nothing in the journal began.
    fn pending(&self, change: &Change) -> Vec<Hold> {
        let pending = self.records.domains.iter().filter(|it| it.is_pending);
        let touched = pending.filter(|it| it.has(&change.server) || it.has(&change.with));
        touched
            .map(|it| Hold::Operator {
                domain: it.name.clone(),
            })
            .collect()
    }

    fn leaving(&self, change: &Change) -> Option<Hold> {
        let record = self.records.server(&change.server);
        let is_leaving = record.is_none_or(|it| it.leaving);
        is_leaving.then(|| Hold::Leaving {
            server: change.server.clone(),
        })
    }

    fn maintained(&self, change: &Change) -> Option<Hold> {
        let record = self.records.server(&change.server)?;
        record.maintenance.as_ref().map(|until| Hold::Maintenance {
            server: change.server.clone(),
            until: until.clone(),
        })
    }

    fn soon(&self, intent: &Intent) -> Option<Hold> {
        let seconds = self.rules.guards.between_changes_seconds;
        let others = self.others(intent);
        let is_soon = others
            .last_change_ms()
            .is_some_and(|ms| self.is_within(ms, seconds));
        (seconds > 0 && is_soon).then_some(Hold::Soon { seconds })
    }

    fn again(&self, intent: &Intent) -> Option<Hold> {
        let seconds = self.rules.slow.again_seconds;
        let mut others = self.others(intent);
        others.intents.retain(|it| it.rule() == RuleName::Slow);
        let is_again = others
            .last_change_ms()
            .is_some_and(|ms| self.is_within(ms, seconds));
        (intent.rule() == RuleName::Slow && is_again).then_some(Hold::Again { seconds })
    }

    fn others(&self, intent: &Intent) -> Journal {
        let mut others = self.journal.clone();
        others.intents.retain(|it| it.number != intent.number);
        others
    }

    fn is_within(&self, ms: u64, seconds: u64) -> bool {
        self.now_ms.saturating_sub(ms) < seconds.saturating_mul(1000)
    }

    fn choice(&self, rule: RuleName) -> Choice<'_> {
        Choice {
            rules: self.rules,
            records: self.records,
            now_ms: self.now_ms,
            rule,
        }
    }

    /// The effect of the change is computed again: members may have died since it was planned.
    fn lowered(&self, intent: &Intent, change: &Change) -> Option<Hold> {
        let now = self
            .choice(intent.rule())
            .change(&change.server, &change.with);
        let lowered = now.domains.iter().find(|it| lowers(it))?;
        Some(Hold::Lowers {
            domain: lowered.domain.clone(),
        })
    }

    fn fit(&self, intent: &Intent, change: &Change) -> Option<Hold> {
        let why = self
            .choice(intent.rule())
            .unfit(&change.server, &change.with)?;
        Some(Hold::Unfit { why })
    }

    fn budget(&self, intent: &Intent, change: &Change) -> Option<Hold> {
        let since_ms = self.now_ms.saturating_sub(DAY_MS);
        let moved = self
            .journal
            .background_bytes_since(since_ms)
            .saturating_add(change.bytes);
        let is_over = moved > self.rules.guards.background_bytes_per_day;
        (intent.rule().is_background() && is_over).then_some(Hold::Budget)
    }
}

/// Holds a change back while another open one of its domain goes first: the one that was begun, then the one with the smaller number.
fn busy_before(change: &Change, intent: &Intent, journal: &Journal) -> Option<Hold> {
    let mut before = journal.clone();
    before
        .intents
        .retain(|it| it.state.is_begun() || it.number < intent.number);
    busy(change, &before, Some(intent.number))
}

#[cfg(test)]
mod tests;
