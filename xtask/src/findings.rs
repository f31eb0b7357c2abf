//! The findings of a check: a place, a rule, a sentence with the remedy.

use std::fmt;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path from the root of the workspace, with `/`.
    pub(crate) path: String,
    /// Line, from 1; 0 when the finding is about the whole file.
    pub(crate) line: usize,
    /// The fault, and the way to mend it.
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.message),
            line => write!(out, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Prints findings in order of place; `Err` with their number if there are any.
pub(crate) fn report(subject: &str, mut findings: Vec<Finding>) -> Result<(), String> {
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => Err(format!("{subject}: 1 finding")),
        count => Err(format!("{subject}: {count} findings")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Finding, report};

    #[test]
    fn any_finding_is_a_failure() {
        assert_eq!(report("tidy", Vec::new()), Ok(()));
        let finding = Finding::new("a.rs", 3, "wrong");
        assert_eq!(finding.to_string(), "a.rs:3: wrong");
        assert_eq!(
            report("tidy", vec![finding.clone()]),
            Err("tidy: 1 finding".to_owned())
        );
        assert_eq!(
            report("tidy", vec![finding.clone(), finding]),
            Err("tidy: 2 findings".to_owned())
        );
    }
}
