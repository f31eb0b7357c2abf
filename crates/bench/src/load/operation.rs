//! What a client of a load does.

use crate::target::TargetName;
use serde::Serialize;
use std::str::FromStr;

/// What clients do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// They put.
    Put,
    /// They get.
    Get,
    /// Each puts an object of its own on the version that it knows.
    PutIf,
    /// All of them increment one counter.
    Increment,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 4] = [
        Operation::Put,
        Operation::Get,
        Operation::PutIf,
        Operation::Increment,
    ];

    /// As reports have it.
    pub const fn word(self) -> &'static str {
        match self {
            Operation::Put => "put",
            Operation::Get => "get",
            Operation::PutIf => "put-if",
            Operation::Increment => "increment",
        }
    }

    /// Whether a history of it can be judged.
    pub const fn is_recorded(self) -> bool {
        matches!(self, Operation::Put | Operation::Get)
    }

    /// Whether this store is asked to do it.
    pub const fn is_possible_at(self, target: TargetName) -> bool {
        match self {
            Operation::Put | Operation::Get => true,
            Operation::PutIf | Operation::Increment => target.compares_and_sets(),
        }
    }
}

impl FromStr for Operation {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Operation, &'static str> {
        let mut known = Operation::ALL.into_iter();
        let named = known.find(|operation| operation.word() == text);
        named.ok_or("clients put, get, put-if or increment")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_shown() {
        for operation in Operation::ALL {
            assert_eq!(operation.word().parse(), Ok(operation));
            let shown = serde_json::to_value(operation).unwrap();
            assert_eq!(shown, operation.word());
        }
        assert!("delete".parse::<Operation>().is_err());
    }
}
