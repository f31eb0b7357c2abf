//! Requests that pages of other origins may make.

use super::tree::{Element, digits, malformed, read};
use super::writer::document;
use crate::wire::error::{Code, S3Error};

/// Rules of a configuration.
const RULES: usize = 100;
/// Characters of the id of a rule.
const ID_CHARACTERS: usize = 255;
/// Methods that a rule can allow.
const METHODS: &[&str] = &["GET", "PUT", "POST", "DELETE", "HEAD"];

/// A rule of `CORSConfiguration`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CorsRule {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// Origins, at least one. `*` in one of them stands for any characters.
    pub origins: Vec<String>,
    /// Methods, at least one.
    pub methods: Vec<String>,
    /// Headers of the request. `*` in one of them stands for any characters.
    pub headers: Vec<String>,
    /// Headers of the response that the page may see.
    pub exposed: Vec<String>,
    /// Seconds for which a browser may keep the answer.
    pub max_age_s: Option<u32>,
}

impl CorsRule {
    /// True if a page of this origin may send this method with these headers, whose letters may be large or small.
    pub fn allows(&self, origin: &str, method: &str, headers: &[String]) -> bool {
        let origins = &self.origins;
        let is_header = |name: &String| {
            let name = name.to_ascii_lowercase();
            let allowed = |one: &String| fits(&one.to_ascii_lowercase(), &name);
            self.headers.iter().any(allowed)
        };
        origins.iter().any(|one| fits(one, origin))
            && self.methods.iter().any(|one| one == method)
            && headers.iter().all(is_header)
    }

    /// True if every origin is allowed, so that the answer can be `*`.
    pub fn allows_every_origin(&self) -> bool {
        self.origins.iter().any(|one| one == "*")
    }
}

/// True if the text is the pattern, whose `*`, of which it has at most one, stands for any characters.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, end)) => text
            .strip_prefix(start)
            .is_some_and(|rest| rest.ends_with(end)),
    }
}

/// Reads `CORSConfiguration`: 1 to 100 rules.
///
/// # Errors
/// [`Code::MalformedXML`], or [`Code::InvalidRequest`]: a rule allows a method that does not exist, or has two `*` in one name.
pub fn read_cors(body: &[u8]) -> Result<Vec<CorsRule>, S3Error> {
    let mut root = read(body, "CORSConfiguration")?;
    let listed = root.take_all("CORSRule");
    root.finish()?;
    if listed.is_empty() || listed.len() > RULES {
        let sentence = format!("{} rules are listed: send 1 to {RULES}", listed.len());
        return Err(malformed(sentence));
    }
    listed.into_iter().map(rule).collect()
}

fn rule(mut listed: Element) -> Result<CorsRule, S3Error> {
    let max_age = listed.take_text("MaxAgeSeconds")?;
    let rule = CorsRule {
        id: listed.take_text("ID")?,
        origins: listed.take_texts("AllowedOrigin")?,
        methods: listed.take_texts("AllowedMethod")?,
        headers: listed.take_texts("AllowedHeader")?,
        exposed: listed.take_texts("ExposeHeader")?,
        max_age_s: max_age
            .map(|text| digits("MaxAgeSeconds", &text))
            .transpose()?,
    };
    listed.finish()?;
    let id = rule.id.as_deref().unwrap_or_default();
    if id.chars().count() > ID_CHARACTERS {
        let sentence = format!("the ID of a rule has more than {ID_CHARACTERS} characters");
        return Err(malformed(sentence));
    }
    if rule.origins.is_empty() || rule.methods.is_empty() {
        return Err(malformed("a rule needs AllowedOrigin and AllowedMethod"));
    }
    let refused = |sentence: String| Err(S3Error::new(Code::InvalidRequest, sentence));
    let is_known = |method: &&String| METHODS.contains(&method.as_str());
    if let Some(method) = rule.methods.iter().find(|method| !is_known(method)) {
        let method = method.escape_debug();
        let methods = METHODS.join(", ");
        return refused(format!("AllowedMethod '{method}' is none of {methods}"));
    }
    let mut patterns = rule.origins.iter().chain(&rule.headers);
    match patterns.find(|pattern| pattern.matches('*').count() > 1) {
        Some(pattern) => refused(format!("'{}' has more than one *", pattern.escape_debug())),
        None => Ok(rule),
    }
}

/// Writes a `CORSConfiguration` document.
pub fn cors(rules: &[CorsRule]) -> String {
    document("CORSConfiguration", |writer| {
        for rule in rules {
            writer.within("CORSRule", |writer| {
                writer.optional("ID", rule.id.as_ref());
                let lists = [
                    ("AllowedOrigin", &rule.origins),
                    ("AllowedMethod", &rule.methods),
                    ("AllowedHeader", &rule.headers),
                    ("ExposeHeader", &rule.exposed),
                ];
                for (name, texts) in lists {
                    for text in texts {
                        writer.element(name, text);
                    }
                }
                writer.optional("MaxAgeSeconds", rule.max_age_s);
            });
        }
    })
}
