//! An intent in sentences, as the command line and the console show it.

use crate::intent::{Intent, State};
use crate::rules::Rules;

impl Intent {
    /// The intent for people, a line each: what and why, what was seen, what it waits for. Lines about a line before are indented.
    pub fn explain(&self) -> Vec<String> {
        let rules = Rules::built_in();
        let what = match &self.change {
            Some(change) => change.to_string(),
            None => format!("advice: {}", self.remedy),
        };
        let mut lines = vec![format!(
            "intent {}, {}: {what}",
            self.number,
            self.state.word()
        )];
        for reason in &self.reasons {
            lines.push(format!(
                "  because {} (rule {})",
                reason.sentence,
                reason.rule.word()
            ));
            lines.push(format!("    {}", rules.sentence(reason.rule)));
            lines.extend(reason.evidence.iter().map(|it| {
                format!(
                    "    {}: {} at {}, threshold {}",
                    it.signal, it.value, it.observer, it.threshold
                )
            }));
        }
        if let Some(change) = &self.change {
            lines.extend(change.domains.iter().map(|it| {
                let (domain, now, after) = (&it.domain, it.survivable.before, it.survivable.after);
                format!(
                    "  '{domain}' survives {now} crashes now and {after} afterwards (f {})",
                    it.f.after
                )
            }));
        }
        match &self.state {
            State::Waiting { waits_for } => {
                lines.extend(waits_for.iter().map(|it| format!("  waits for: {it}")));
            }
            State::Running { step, done, total } => {
                lines.push(format!("  at '{step}', {done} of {total} domains done"));
            }
            State::Done { proof } => lines.push(format!("  {proof}")),
            State::Failed {
                step,
                error,
                tries,
                next_ms,
            } => {
                lines.push(format!("  try {tries} failed at '{step}': {error}"));
                if next_ms.is_none() {
                    lines.push(format!(
                        "  `areo autopilot retry {}` tries again",
                        self.number
                    ));
                }
            }
            State::Declined => lines.push(format!(
                "  nothing like it is proposed while its reason lasts; by hand: {}",
                self.remedy
            )),
            State::Superseded { by } => lines.push(format!("  {by}")),
            State::Proposed => {}
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_is_explained_in_sentences() {
        let text = r#"{"number":3,"subject":"s2","reasons":[{"rule":"dead","sentence":"3 of 3 other servers have not reached s2 for 900 s",
            "evidence":[{"signal":"reachable","observer":"s1","value":901.0,"threshold":900.0}]}],
            "change":{"server":"s2","with":"s4","domains":[{"domain":"d","f":{"before":1,"after":1},"survivable":{"before":0,"after":1}}],
            "objects":3,"bytes":10},"remedy":"areo server replace s2 --with s4","approved":false,"found":2,"missing":0,
            "state":"waiting","waits_for":["approval: `areo autopilot approve 3`"],"since_ms":1,"history":[]}"#;
        let intent: Intent = serde_json::from_str(text).unwrap();
        assert_eq!(
            intent.explain(),
            [
                "intent 3, waiting: replace s2 by s4",
                "  because 3 of 3 other servers have not reached s2 for 900 s (rule dead)",
                "    A server that a majority of the other servers does not reach is replaced by a spare: each further crash would find less redundancy.",
                "    reachable: 901 at s1, threshold 900",
                "  'd' survives 0 crashes now and 1 afterwards (f 1)",
                "  waits for: approval: `areo autopilot approve 3`",
            ]
        );
    }
}
