//! Commands that do what a page or a change does, as a person types them into a shell.

use std::fmt;

/// A command without the name of the program before it. Words are quoted for a shell, and no argument is taken for an option.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// The verb and options, quoted.
    words: Vec<String>,
    arguments: Vec<String>,
}

impl Command {
    /// A command of this verb, which may have fixed options.
    pub(crate) fn new(verb: &str) -> Command {
        Command {
            words: vec![verb.to_owned()],
            arguments: Vec::new(),
        }
    }

    /// Adds an option with its value.
    pub(crate) fn option(mut self, name: &str, value: &str) -> Command {
        let separator = if value.starts_with('-') { '=' } else { ' ' };
        self.words
            .push(format!("{name}{separator}{}", quoted(value)));
        self
    }

    /// Adds an option with its value, unless that is empty.
    pub(crate) fn given(self, name: &str, value: &str) -> Command {
        if value.is_empty() {
            self
        } else {
            self.option(name, value)
        }
    }

    /// Adds an option without a value, if it is set.
    pub(crate) fn switch(mut self, name: &str, is_set: bool) -> Command {
        self.words.extend(is_set.then(|| name.to_owned()));
        self
    }

    /// Adds a word that is no option.
    pub(crate) fn argument(mut self, word: &str) -> Command {
        self.arguments.push(word.to_owned());
        self
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words.join(" "))?;
        if self.arguments.iter().any(|it| it.starts_with('-')) {
            f.write_str(" --")?;
        }
        let mut arguments = self.arguments.iter();
        arguments.try_for_each(|it| write!(f, " {}", quoted(it)))
    }
}

/// A word of a command as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:=,@+".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_a_word_as_it_was() {
        for (word, read) in [
            ("a/b-1.txt", "a/b-1.txt"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$(x)", "'$(x)'"),
            ("it's", "'it'\\''s'"),
            ("~a", "'~a'"),
        ] {
            assert_eq!(quoted(word), read);
        }
    }

    #[test]
    fn no_argument_is_taken_for_an_option() {
        let command = |key: &str| {
            let get = Command::new("get").option("--domain", "a b");
            get.given("--after", "").argument(key).to_string()
        };
        assert_eq!(command("k"), "get --domain 'a b' k");
        assert_eq!(command("--help"), "get --domain 'a b' -- --help");
        let ls = Command::new("ls").option("--after", "-x");
        let ls = ls.switch("--long", true).switch("--short", false);
        assert_eq!(ls.to_string(), "ls --after=-x --long");
    }
}
