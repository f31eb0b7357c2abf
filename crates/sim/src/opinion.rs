//! The second opinion on a history: that of `crates/check`, which knows nothing of the simulator and reads what is
//! written down. Every verdict but *holds* breaks a rule, because a history that was not judged proves nothing.

use areo_check::{History, Verdict, judge};

/// Returns the judge's objection to the history (JSON lines); `None` if everything in it was judged and holds.
pub(crate) fn against(lines: &str) -> Option<String> {
    let history = match History::read(lines.as_bytes()) {
        Ok(history) => history,
        Err(error) => return Some(format!("history: {error}")),
    };
    let report = judge(&history);
    match report.verdict {
        Verdict::Holds => None,
        Verdict::Violated => Some(format!("check: {report}")),
        Verdict::Unjudged => Some(format!("not judged: the judge gave up: {report}")),
        Verdict::Nothing => Some(format!("not judged: there is nothing to judge: {report}")),
    }
}

#[cfg(test)]
mod tests {
    use super::against;

    /// One write of each value, one after the other, and a read of the last one.
    fn history(values: impl Iterator<Item = u64>) -> String {
        let mut lines = Vec::new();
        let mut line = |event: &str, kind: &str, value: String| {
            let (time, operation) = (lines.len() + 1, lines.len() / 2);
            lines.push(format!(
                "{{\"t\":{time},\"client\":\"c\",\"op\":{operation},\"event\":\"{event}\",\"kind\":\"{kind}\",\
                 \"domain\":\"d\",\"key\":\"k\",\"value\":{value}}}\n"
            ));
        };
        let mut last = 0;
        for value in values {
            last = value;
            line("invoke", "write", format!("\"{value}\""));
            line("ok", "write", "null".to_owned());
        }
        line("invoke", "read", "null".to_owned());
        line("ok", "read", format!("\"{last}\""));
        lines.concat()
    }

    #[test]
    fn what_holds_is_not_held_against_anything() {
        assert_eq!(against(&history(0..100)), None);
        // Few operations are searched although a value was written twice.
        assert_eq!(against(&history([1, 2, 1].into_iter())), None);
    }

    #[test]
    fn what_the_judge_gives_up_is_not_taken_for_what_holds() {
        let twice = (0..99).map(|write| write % 98);
        let sentence = against(&history(twice)).expect("more than it searches");
        assert!(
            sentence.starts_with("not judged: the judge gave up"),
            "{sentence}"
        );
        assert!(sentence.contains("a value was written twice"), "{sentence}");
    }

    #[test]
    fn an_empty_history_is_not_taken_for_one_that_holds() {
        let sentence = against("").expect("nothing was judged");
        assert!(
            sentence.starts_with("not judged: there is nothing"),
            "{sentence}"
        );
    }

    #[test]
    fn a_broken_rule_and_an_unreadable_line_have_their_own_sentences() {
        let of_write_and_read = history([1].into_iter());
        let stale = of_write_and_read.replacen("\"value\":\"1\"", "\"value\":\"2\"", 1);
        for (lines, rule) in [(stale.as_str(), "check:"), ("{", "history:")] {
            let sentence = against(lines).expect("it does not hold");
            assert!(sentence.starts_with(rule), "{sentence}");
        }
    }
}
