//! Arguments that cannot be parsed, and the sentences about them.

use crate::exit::{Code, Failure};
use crate::output::{self, visible};
use clap::Parser;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use std::process::ExitCode;

/// Parses the arguments of this process, or prints why they cannot be: for `--help` and `--version` that is no error.
///
/// # Errors
/// The end of the process.
pub fn parse<C: Parser>(program: &str) -> Result<C, ExitCode> {
    C::try_parse().map_err(|error| report::<C>(program, error))
}

fn report<C: Parser>(program: &str, mut error: clap::Error) -> ExitCode {
    if error.use_stderr() && asked_for_json() {
        return Failure::new(Code::Usage, sentence(&error)).report(program, true);
    }
    if error.use_stderr() {
        error = of_visible_words::<C>(std::env::args_os(), error);
    }
    if tip(&error).is_some() {
        return Failure::new(Code::Usage, sentence(&error)).report(program, false);
    }
    match output::styled(&error.render(), error.use_stderr()) {
        Ok(()) => ExitCode::from(u8::try_from(error.exit_code()).expect("clap exits with 0 or 2")),
        Err(failure) => failure.report(program, asked_for_json()),
    }
}

/// An error of the parser in which no word of the user commands a terminal. The arguments are parsed again in visible words, because an error
/// quotes them in many places.
fn of_visible_words<C: Parser>(
    words: impl Iterator<Item = std::ffi::OsString>,
    error: clap::Error,
) -> clap::Error {
    let shown = |word: std::ffi::OsString| masked(&visible(&word.to_string_lossy()));
    let words: Vec<String> = words.map(shown).collect();
    let mut shown = C::try_parse_from(&words).err().unwrap_or(error);
    advise(&mut shown, &words);
    shown
}

/// The text without the secrets of access keys and join tokens: errors are copied into logs and tickets.
fn masked(text: &str) -> String {
    let mut rest = text;
    let mut out = String::with_capacity(text.len());
    while let Some((begin, mark)) = first_mark(rest) {
        let (before, from) = rest.split_at(begin + mark.len());
        let is_of_token = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let end = from.find(|c| !is_of_token(c)).unwrap_or(from.len());
        let (token, after) = from.split_at(end);
        out.push_str(before);
        if let Some((ids, _)) = token.rsplit_once('.') {
            out.push_str(ids);
            out.push('.');
        }
        out.push_str("***");
        rest = after;
    }
    out + rest
}

/// The first beginning of an access key or a join token, and its place.
fn first_mark(text: &str) -> Option<(usize, &'static str)> {
    let marks = ["areokey1.", "areo1."];
    let found = marks.into_iter();
    let found = found.filter_map(|mark| Some((text.find(mark)?, mark)));
    found.min()
}

/// True if `--json` is among the arguments of this process, whether they can be parsed or not.
pub(crate) fn asked_for_json() -> bool {
    std::env::args_os()
        .take_while(|argument| argument != "--")
        .any(|argument| argument == "--json")
}

/// Takes advice away that is wrong. The parser takes each unknown option for a value that begins with `-`; of these words only one
/// with more than letters may be a key.
fn advise(error: &mut clap::Error, words: &[String]) {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    let is_named = |word: &&String| word.starts_with(option.as_str());
    let is_key = words.iter().find(is_named).is_some_and(|word| {
        !word.starts_with("--") && word.chars().skip(1).any(|c| !c.is_alphanumeric())
    });
    let takes_key = usage(error).contains("KEY");
    let is_recursive = matches!(option.as_str(), "-r" | "-R" | "--recursive");
    let mut tips = match error.get(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips.clone(),
        _ => Vec::new(),
    };
    tips.retain(|tip| is_key || !tip.to_string().contains("as a value"));
    if is_recursive && takes_key {
        let tip = "an object holds one file: `areo cp -r` copies folders";
        tips.push(StyledStr::from(tip));
    }
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
}

fn usage(error: &clap::Error) -> String {
    match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    }
}

/// The commands above an unknown one, such as `server`.
fn parents(error: &clap::Error) -> Vec<String> {
    let usage = usage(error);
    let words = usage.split_whitespace().skip(2);
    let parents = words.take_while(|word| !word.starts_with(['[', '<']));
    parents.map(str::to_owned).collect()
}

/// Advice for a command of other programs that is none of ours.
fn tip(error: &clap::Error) -> Option<&'static str> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let parents = parents(error).join(" ");
    Some(match name.as_str() {
        "mv" | "rename" if parents == "domain" => {
            "a domain keeps its name: `areo backup OLD DIR` and `areo restore DIR --as NEW` copy it"
        }
        "mv" | "rename" if parents == "server" => {
            "a server keeps its name: `areo server replace OLD` gives its place to one of another name"
        }
        _ if !parents.is_empty() => return None,
        "copy" | "sync" | "upload" | "download" => {
            "`areo cp -r FOLDER areo://DOMAIN/PREFIX` copies a folder, `areo put KEY FILE` writes a file, `areo get KEY FILE` reads one"
        }
        "mv" | "rename" => "`areo get` it, `areo put` it under the other key, then `areo rm` it",
        "cat" => "`areo get KEY` prints a value",
        "list" | "dir" => "`areo ls` lists objects",
        "mb" | "mkdir" => "`areo domain create NAME` makes a domain; keys need no directories",
        "rb" | "rmdir" => "`areo domain rm NAME` removes a domain; keys need no directories",
        "man" | "info" => "`areo help` and `areo help COMMAND` explain the commands",
        "start" | "serve" | "run" => {
            "`areo up` runs a cluster on this machine, `areo server` one server"
        }
        _ => return None,
    })
}

/// The first paragraph of clap's message, on one line.
pub(crate) fn sentence(error: &clap::Error) -> String {
    masked(&unmasked(error))
}

fn unmasked(error: &clap::Error) -> String {
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) {
        let name = [parents(error), vec![name.clone()]].concat().join(" ");
        return match tip(error) {
            Some(tip) => format!("there is no command '{name}': {tip}"),
            None => format!("there is no command '{name}'"),
        };
    }
    let text = error.to_string();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let line: Vec<&str> = paragraph.lines().map(str::trim).collect();
    let line = line.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;

    fn shown(words: &[&str]) -> String {
        let words = || std::iter::once("areo").chain(words.iter().copied());
        let error = Cli::try_parse_from(words()).unwrap_err();
        let shown = of_visible_words::<Cli>(words().map(Into::into), error);
        match tip(&shown) {
            Some(_) => sentence(&shown),
            None => shown.to_string(),
        }
    }

    #[test]
    fn an_error_shows_no_secret() {
        let token = format!(
            "areo1.{}.0000000000000009.{}",
            "a".repeat(64),
            "5e".repeat(32)
        );
        let key = format!("areokey1.0000000000000007.{}", "5e".repeat(32));
        for words in [
            &["token", "revoke", &token][..],
            &["key", &key],
            &["ls", "--cluster", "a", "--timeout", &key],
            &["frobnicate", &format!("'{token}',{key}")],
        ] {
            let words: Vec<&str> = words.to_vec();
            let error = Cli::try_parse_from(std::iter::once("areo").chain(words.clone()));
            let json = sentence(&error.unwrap_err());
            for text in [shown(&words), json] {
                assert!(!text.contains("5e5e"), "{text}");
            }
        }
        assert!(shown(&["token", "revoke", &token]).contains(".0000000000000009.***"));
        assert_eq!(
            masked("areo1.x y areokey1.a.b"),
            "areo1.*** y areokey1.a.***"
        );
        assert_eq!(masked("areo up"), "areo up");
    }

    #[test]
    fn advice_fits_the_command() {
        for (noun, does) in [
            ("server", "server replace OLD"),
            ("domain", "restore DIR --as NEW"),
            ("key", ""),
        ] {
            let text = shown(&[noun, "rename", "a"]);
            assert!(!text.contains("areo get") && text.contains(does), "{text}");
        }
        assert!(shown(&["rename", "a"]).contains("`areo put` it under"));
        let nested = Cli::try_parse_from(["areo", "repair", "mv", "a"]).unwrap_err();
        assert_eq!(sentence(&nested), "there is no command 'repair mv'");
        for words in [
            &["put", "-r", "a", "b"][..],
            &["get", "-R", "a"],
            &["rm", "--recursive", "a"],
            &["rm", "--prefix", "x"],
            &["ls", "-0"],
        ] {
            let text = shown(words);
            assert!(!text.contains("as a value"), "{text}");
            let is_recursive = !["rm --prefix x", "ls -0"].contains(&&*words.join(" "));
            assert_eq!(text.contains("one file"), is_recursive, "{text}");
        }
        let text = shown(&["get", "-notes.txt"]);
        assert!(text.contains("-- -n"), "a key: {text}");
    }

    #[test]
    fn words_of_the_user_command_no_terminal() {
        for words in [
            &["get", "a", "--timeout", "5\n\x1b[8mareo: ok"][..],
            &["trace", "x\nareo: ok\x1b[8m"],
            &["ls", "--a\nareo: ok\x1b[8m"],
            &["no\nareo: ok\x1b[8m"],
        ] {
            let text = shown(words);
            assert!(!text.contains("\nareo: ok"), "{text}");
            assert!(!text.contains("\x1b[8m"), "{text}");
            assert!(
                text.contains("\\nareo: ok") || text.contains("\\u{1b}[8mareo"),
                "{text}"
            );
        }
    }
}
