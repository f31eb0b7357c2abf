//! The part of Rust's grammar that the checks need: code, comments and literals, tests.
//!
//! Not a parser. It errs on the side of seeing code: a construct that it does not know stays visible to the checks.

/// A Rust file with everything that is not code blanked out.
pub(crate) struct Source {
    /// The text with comments, strings and characters replaced by spaces: same length, same lines.
    pub(crate) code: String,
    /// The code with every item under `#[cfg(test)]` blanked out too.
    pub(crate) shipped: String,
    /// Names of `mod name;` items under `#[cfg(test)]`: their files are tests.
    pub(crate) test_modules: Vec<String>,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let code = blank_literals(text);
        let (shipped, test_modules) = blank_tests(&code);
        assert_eq!(
            code.len(),
            text.len(),
            "blanking keeps every byte in its place"
        );
        assert_eq!(
            shipped.len(),
            text.len(),
            "blanking keeps every byte in its place"
        );
        Self {
            code,
            shipped,
            test_modules,
        }
    }
}

/// The line, from 1, of a byte offset.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// Byte offsets at which `word` occurs with no identifier character on either side that would extend it.
pub(crate) fn find_word(text: &str, word: &str) -> Vec<usize> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let starts_open = word.starts_with(is_part);
    let ends_open = word.ends_with(is_part);
    let found = text.match_indices(word).filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !(starts_open && before.is_some_and(is_part) || ends_open && after.is_some_and(is_part))
    });
    found.map(|(at, _)| at).collect()
}

/// Replaces `range` by spaces, keeping line ends.
fn blank(bytes: &mut [u8], range: std::ops::Range<usize>) {
    for byte in &mut bytes[range] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

fn blank_literals(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    let mut at = 0;
    while at < text.len() {
        let end = match literal_end(text, at) {
            Some(end) => {
                blank(&mut out, at..end);
                end
            }
            // Whole words at once: the `r` of `for"` must not look like the start of a raw string.
            None => word_end(text, at),
        };
        assert!(end > at, "the scan moves on");
        at = end;
    }
    String::from_utf8(out).expect("only whole characters were replaced by spaces")
}

fn word_end(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let length = rest.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
    match length {
        Some(0) => at + rest.chars().next().map_or(1, char::len_utf8),
        Some(length) => at + length,
        None => text.len(),
    }
}

/// The end of the comment, string or character that starts at `at`; `None` if none does.
fn literal_end(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    if rest.starts_with("//") {
        return Some(at + rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(at + block_comment_length(rest));
    }
    for prefix in ["", "b", "c"] {
        if rest
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with('"'))
        {
            return Some(at + escaped_length(rest, prefix.len() + 1, b'"'));
        }
    }
    for prefix in ["r", "br", "cr"] {
        if let Some(length) = raw_string_length(rest, prefix) {
            return Some(at + length);
        }
    }
    let quote = usize::from(rest.starts_with("b'"));
    let mut letters = rest[quote..].chars();
    if letters.next() == Some('\'') {
        let first = letters.next()?;
        // `'a'` is a character, `'a` alone a lifetime.
        if first == '\\' || letters.next() == Some('\'') {
            return Some(at + escaped_length(rest, quote + 1, b'\''));
        }
    }
    None
}

fn block_comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Length of a literal whose content starts at `at` and ends at an unescaped `quote`.
fn escaped_length(rest: &str, mut at: usize, quote: u8) -> usize {
    let bytes = rest.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_string_length(rest: &str, prefix: &str) -> Option<usize> {
    let after = rest.strip_prefix(prefix)?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let content = after[hashes..].strip_prefix('"')?;
    let closing = format!("\"{}", "#".repeat(hashes));
    let start = rest.len() - content.len();
    Some(
        content
            .find(&closing)
            .map_or(rest.len(), |found| start + found + closing.len()),
    )
}

/// Blanks out items under an attribute `#[cfg(test)]` (or `#[cfg(all(test, ...))]`), and the whole file under
/// `#![cfg(test)]`; collects the names of modules that such items declare.
fn blank_tests(code: &str) -> (String, Vec<String>) {
    let mut out = code.as_bytes().to_vec();
    let mut modules = Vec::new();
    if code.contains("#![cfg(test)]") {
        blank(&mut out, 0..code.len());
    }
    for start in find_word(code, "#[cfg") {
        let Some(end) = matching(code, start + 1) else {
            continue;
        };
        let condition = &code[start..end];
        if find_word(condition, "test").is_empty() || condition.contains("not(") {
            continue;
        }
        let (item, end) = item_at(code, end);
        if let Some(name) = item.strip_suffix(';').and_then(module_name) {
            modules.push(name.to_owned());
        }
        blank(&mut out, start..end);
    }
    (
        String::from_utf8(out).expect("only whole characters were replaced by spaces"),
        modules,
    )
}

fn module_name(item: &str) -> Option<&str> {
    let (before, name) = item.split_once("mod ")?;
    (before.trim().is_empty() || before.trim_start().starts_with("pub")).then(|| name.trim())
}

/// The offset behind the bracket that closes the one at `open`.
fn matching(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, byte) in code.as_bytes()[open..].iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(open + offset + 1);
        }
    }
    None
}

/// First words of items.
const ITEMS: &str = "pub fn mod use struct enum union impl const static type trait async unsafe extern \
                     macro_rules let";

/// The item that follows an attribute, without further attributes, and the offset behind it.
fn item_at(code: &str, after: usize) -> (&str, usize) {
    let mut start = after;
    loop {
        let rest = &code[start..];
        start += rest.len() - rest.trim_start().len();
        if !code[start..].starts_with("#[") {
            break;
        }
        let Some(end) = matching(code, start + 1) else {
            return ("", code.len());
        };
        start = end;
    }
    // A field, variant or match arm ends at a comma; the commas of an item's generics end nothing.
    let first = &code[start..word_end(code, start.min(code.len().saturating_sub(1)))];
    let is_item = ITEMS.split(' ').any(|keyword| keyword == first);
    let mut at = start;
    while at < code.len() {
        match code.as_bytes()[at] {
            b';' => return (&code[start..=at], at + 1),
            b',' if !is_item => return (&code[start..=at], at + 1),
            b'}' => return (&code[start..at], at),
            b'{' => {
                let end = matching(code, at).unwrap_or(code.len());
                return (&code[start..end], end);
            }
            b'(' | b'[' => at = matching(code, at).unwrap_or(code.len()),
            _ => at += 1,
        }
    }
    (&code[start..], code.len())
}

#[cfg(test)]
mod tests {
    use super::{Source, find_word, line_of};

    #[test]
    fn comments_strings_and_characters_are_not_code() {
        for hidden in [
            "// HIDDEN\n",
            "/* a /* HIDDEN */ HIDDEN */",
            "\"HIDDEN \\\" HIDDEN\"",
            "b\"HIDDEN\"",
            "r\"HIDDEN\\\"",
            "r##\"HIDDEN \"# HIDDEN\"##",
            "br#\"HIDDEN\"#",
            "'\\'' /* HIDDEN */ '\"' /* HIDDEN */",
            "b'\"' /* HIDDEN */",
            "'é' /* HIDDEN */",
        ] {
            let code = Source::new(&format!("seen {hidden} seen")).code;
            assert!(!code.contains("HIDDEN"), "{hidden} -> {code}");
            assert_eq!(code.matches("seen").count(), 2, "{hidden} -> {code}");
        }
        let code = Source::new("fn f<'a>(x: &'a str, r: &'a u8) { for_r(x) }").code;
        assert_eq!(code, "fn f<'a>(x: &'a str, r: &'a u8) { for_r(x) }");
    }

    #[test]
    fn items_under_cfg_test_are_not_shipped() {
        for hidden in [
            "#[cfg(test)]\nmod tests { fn f() { HIDDEN } }",
            "#[cfg(test)] #[allow(x)] fn f<A, B>(a: A) -> [u8; 3] { HIDDEN }",
            "#[cfg(all(test, unix))] use a::{HIDDEN};",
            "struct S { #[cfg(test)] HIDDEN: Vec<u8>, seen: u8 }",
        ] {
            let source = Source::new(&format!("seen {hidden} seen"));
            assert!(
                !source.shipped.contains("HIDDEN"),
                "{hidden} -> {}",
                source.shipped
            );
            assert!(
                source.shipped.ends_with("seen"),
                "{hidden} -> {}",
                source.shipped
            );
            assert!(source.code.contains("HIDDEN"));
        }
        assert!(
            Source::new("#[cfg(not(test))] fn seen() {}")
                .shipped
                .contains("seen")
        );
        assert_eq!(
            Source::new("#![cfg(test)]\nfn hidden() {}").shipped.trim(),
            ""
        );
    }

    #[test]
    fn test_modules_in_files_of_their_own_are_named() {
        let source = Source::new(
            "#[cfg(test)]\nmod tests;\n#[cfg(test)] pub(crate) mod testing;\nmod real;",
        );
        assert_eq!(source.test_modules, ["tests", "testing"]);
    }

    #[test]
    fn words_and_lines() {
        assert_eq!(find_word("todo!() my_todo!() x.todo!()", "todo!"), [0, 21]);
        assert_eq!(find_word("one onee", "one"), [0]);
        assert_eq!((line_of("a\nb", 0), line_of("a\nb", 2)), (1, 2));
    }
}
