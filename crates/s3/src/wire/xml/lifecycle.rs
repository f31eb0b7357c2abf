//! Objects that expire, and uploads that are given up.

use super::tree::{Element, digits, malformed, read};
use super::writer::document;
use crate::wire::error::{Code, S3Error};
use crate::wire::parse::checked_key;

/// Rules of a configuration.
const RULES: usize = 1000;
/// Characters of the id of a rule.
const ID_CHARACTERS: usize = 255;

/// A rule of `LifecycleConfiguration`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LifecycleRule {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// True if it counts.
    pub is_enabled: bool,
    /// It counts for keys that begin so.
    pub prefix: String,
    /// Days after which an object is deleted, 1 or more.
    pub expiration_days: Option<u32>,
    /// Days after which an upload that was begun is aborted, 1 or more.
    pub abort_days: Option<u32>,
}

/// Reads `LifecycleConfiguration`: 1 to 1000 rules, each with at least one of the two actions.
///
/// # Errors
/// [`Code::MalformedXML`], [`Code::InvalidArgument`]: days are 0, or two rules have one id, [`Code::NotImplemented`]: a rule has another filter or action.
pub fn read_lifecycle(body: &[u8]) -> Result<Vec<LifecycleRule>, S3Error> {
    let mut root = read(body, "LifecycleConfiguration")?;
    let listed = root.take_all("Rule");
    root.finish()?;
    if listed.is_empty() || listed.len() > RULES {
        let sentence = format!("{} rules are listed: send 1 to {RULES}", listed.len());
        return Err(malformed(sentence));
    }
    let rules = listed.into_iter().map(rule);
    let rules = rules.collect::<Result<Vec<_>, _>>()?;
    let mut ids: Vec<&String> = rules.iter().filter_map(|rule| rule.id.as_ref()).collect();
    ids.sort_unstable();
    match ids.is_sorted_by(|a, b| a < b) {
        true => Ok(rules),
        false => Err(S3Error::new(
            Code::InvalidArgument,
            "two rules have one ID: give each its own",
        )),
    }
}

fn rule(mut listed: Element) -> Result<LifecycleRule, S3Error> {
    let id = listed.take_text("ID")?.filter(|id| !id.is_empty());
    let is_enabled = match listed.need_text("Status")?.trim() {
        "Enabled" => true,
        "Disabled" => false,
        _ => return Err(malformed("the Status of a rule is Enabled or Disabled")),
    };
    let filter = listed.take("Filter")?;
    // The older form has the prefix in the rule itself.
    let older = listed.take_text("Prefix")?;
    let prefix = match (filter, older) {
        (Some(mut filter), None) => {
            let prefix = filter.take_text("Prefix")?;
            filter.finish()?;
            prefix.unwrap_or_default()
        }
        (None, Some(prefix)) => prefix,
        (Some(_), Some(_)) => return Err(malformed("a rule has Filter and Prefix: send one")),
        (None, None) => return Err(malformed("a rule needs a Filter, which may be empty")),
    };
    let expiration_days = days(&mut listed, "Expiration", "Days")?;
    let abort = "AbortIncompleteMultipartUpload";
    let abort_days = days(&mut listed, abort, "DaysAfterInitiation")?;
    listed.finish()?;
    if expiration_days.is_none() && abort_days.is_none() {
        return Err(malformed(format!("a rule needs Expiration or {abort}")));
    }
    if id.as_deref().unwrap_or_default().chars().count() > ID_CHARACTERS {
        let sentence = format!("the ID of a rule has more than {ID_CHARACTERS} characters");
        return Err(malformed(sentence));
    }
    Ok(LifecycleRule {
        id,
        is_enabled,
        prefix: checked_key(prefix)?,
        expiration_days,
        abort_days,
    })
}

fn days(listed: &mut Element, action: &str, name: &str) -> Result<Option<u32>, S3Error> {
    let Some(mut action) = listed.take(action)? else {
        return Ok(None);
    };
    let text = action.take_text(name)?;
    // A date, and deleting the marks of versions, are other elements.
    action.finish()?;
    let text = text.ok_or_else(|| malformed(format!("an action needs {name}")))?;
    match digits(name, &text)? {
        0 => {
            let sentence = format!("{name} 0 is not valid: it is 1 or more");
            Err(S3Error::new(Code::InvalidArgument, sentence))
        }
        days => Ok(Some(days)),
    }
}

/// `LifecycleConfiguration`.
pub fn lifecycle(rules: &[LifecycleRule]) -> String {
    document("LifecycleConfiguration", |writer| {
        for rule in rules {
            writer.within("Rule", |writer| {
                writer.optional("ID", rule.id.as_ref());
                writer.within("Filter", |writer| writer.element("Prefix", &rule.prefix));
                let status = if rule.is_enabled {
                    "Enabled"
                } else {
                    "Disabled"
                };
                writer.element("Status", status);
                if let Some(days) = rule.expiration_days {
                    writer.within("Expiration", |writer| writer.element("Days", days));
                }
                if let Some(days) = rule.abort_days {
                    writer.within("AbortIncompleteMultipartUpload", |writer| {
                        writer.element("DaysAfterInitiation", days);
                    });
                }
            });
        }
    })
}
