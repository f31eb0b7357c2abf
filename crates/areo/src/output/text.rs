//! Texts that others chose, such as keys, without the power to command a terminal or to look like more than one line.

use std::borrow::Cow;
use std::fmt::Write;

/// True if a terminal obeys the character instead of showing it: control characters, line separators, and characters that change
/// the direction of writing, so that a name is read as another one.
fn commands(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text of which every character is seen and none obeyed.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match commands(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

/// A text of ours in which others may stand: line breaks and colours stay.
pub(super) fn composed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let kept = colour(rest).unwrap_or_else(|| match c {
            '\n' => 1,
            _ if commands(c) => 0,
            _ => c.len_utf8(),
        });
        match kept {
            0 => out.extend(c.escape_default()),
            kept => out.push_str(&rest[..kept]),
        }
        rest = &rest[kept.max(c.len_utf8())..];
    }
    out
}

/// The length of a colour or another attribute of letters at the beginning.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters[end..].starts_with('m').then_some(2 + end + 1)
}

/// A text as one field of a line for programs: as it is, or a JSON string where it holds what ends a field or a line, or begins as
/// a JSON string does. So each line is one of either, and which one is seen from its first character.
pub(super) fn field(text: &str) -> Cow<'_, str> {
    match text.starts_with('"') || text.chars().any(commands) {
        true => json(serde_json::Value::from(text).to_string()).into(),
        false => text.into(),
    }
}

/// A line of JSON in which no character commands. In strings alone may such characters stand, and there they may be escaped.
pub(crate) fn json(line: String) -> String {
    if !line.chars().any(commands) {
        return line;
    }
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match commands(c) {
            true => write!(out, "\\u{:04x}", u32::from(c)).expect("a string takes all"),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const NASTY: &str = "k\x1b]0;t\x07\x1b[2J\u{202e}b\u{9b}c\u{2028}\u{2066}\u{200f}\n\r\td";

    #[test]
    fn what_commands_is_shown_and_not_obeyed() {
        assert_eq!(visible("a\tb\x1b[2J\u{9b}ä"), "a\\tb\\u{1b}[2J\\u{9b}ä");
        assert_eq!(visible("gnp\u{202e}exe"), "gnp\\u{202e}exe");
        for text in [visible(NASTY), field(NASTY).into_owned()] {
            assert!(!text.chars().any(commands), "{text}");
        }
    }

    #[test]
    fn lines_and_colours_of_ours_stay() {
        assert_eq!(
            composed("\x1b[1;31mred\x1b[0m\nä"),
            "\x1b[1;31mred\x1b[0m\nä"
        );
        assert_eq!(
            composed("\x1b[2J\x1b]0;x\x07"),
            "\\u{1b}[2J\\u{1b}]0;x\\u{7}"
        );
        for cut in ["\x1b", "\x1b[", "\x1b[1", "a\x1b[;"] {
            assert!(!composed(cut).contains('\x1b'), "{cut:?}");
        }
    }

    #[test]
    fn a_field_is_told_from_its_quoted_form() {
        assert_eq!(field("a b"), "a b");
        assert_eq!(field("back\\slash"), "back\\slash");
        for text in ["new\nline", "tab\there", "\"quoted\"", NASTY] {
            let quoted = field(text);
            assert!(quoted.starts_with('"') && !quoted.contains(['\n', '\t']));
            assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text);
        }
    }
}
