//! Objects that expire, and uploads that are given up.

use super::tagging::OF_OBJECT;
use super::tree::{Element, digits, malformed, read};
use super::writer::{Writer, document};
use crate::wire::error::{Code, S3Error};
use crate::wire::parse::{check_tags, checked_key};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Rules of a configuration.
const RULES: usize = 1000;
/// Characters of the id of a rule.
const ID_CHARACTERS: usize = 255;

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A rule of `LifecycleConfiguration`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LifecycleRule {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// True if it counts.
    pub is_enabled: bool,
    /// The objects and uploads that it counts for.
    pub filter: LifecycleFilter,
    /// The time after which an object is deleted.
    pub expiration: Option<Expiration>,
    /// Days after which an upload that was begun is aborted, 1 or more.
    pub abort_days: Option<u32>,
}

/// The objects that a rule counts for: those that fit all of it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LifecycleFilter {
    /// Their keys begin so.
    pub prefix: String,
    /// Objects with all of these tags.
    pub tags: Vec<(String, String)>,
    /// Objects with more bytes than this.
    pub larger_than: Option<u64>,
    /// Objects with fewer bytes than this.
    pub smaller_than: Option<u64>,
}

/// The time after which an object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiration {
    /// The first midnight UTC after this number of days since the write; 1 or more.
    Days(u32),
    /// A midnight UTC, in milliseconds since 1970.
    Date(i64),
}

impl Expiration {
    /// The time from which an object that was written at this time may be deleted. Both are in milliseconds since 1970.
    pub fn due_ms(self, written_at_ms: u64) -> i64 {
        match self {
            Expiration::Days(days) => days_after_ms(written_at_ms, days),
            Expiration::Date(ms) => ms,
        }
    }
}

/// The first midnight UTC after the end of `days` days, in milliseconds since 1970.
pub fn days_after_ms(ms: u64, days: u32) -> i64 {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    let end = ms.saturating_add(i64::from(days).saturating_mul(DAY_MS));
    (end / DAY_MS).saturating_add(1).saturating_mul(DAY_MS)
}

impl LifecycleFilter {
    /// True if an object of this key and length fits, as far as its tags are not asked for.
    pub fn has(&self, key: &str, length: u64) -> bool {
        key.starts_with(&self.prefix)
            && self.larger_than.is_none_or(|bytes| length > bytes)
            && self.smaller_than.is_none_or(|bytes| length < bytes)
    }

    /// True if an object with these tags fits, as far as its key and its length are not asked for.
    pub fn has_tags(&self, tags: &[(String, String)]) -> bool {
        self.tags.iter().all(|tag| tags.contains(tag))
    }

    /// True if it asks for more than the beginning of the key.
    fn is_of_objects(&self) -> bool {
        !self.tags.is_empty() || self.larger_than.is_some() || self.smaller_than.is_some()
    }

    /// Conditions that stand in elements of their own.
    fn conditions(&self) -> usize {
        let others = [
            !self.prefix.is_empty(),
            self.larger_than.is_some(),
            self.smaller_than.is_some(),
        ];
        self.tags.len() + others.iter().filter(|it| **it).count()
    }
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
    let filter = match (filter, older) {
        (Some(listed), None) => filter_of(listed)?,
        (None, Some(prefix)) => LifecycleFilter {
            prefix: checked_key(prefix)?,
            ..LifecycleFilter::default()
        },
        (Some(_), Some(_)) => return Err(malformed("a rule has Filter and Prefix: send one")),
        (None, None) => return Err(malformed("a rule needs a Filter, which may be empty")),
    };
    let expiration = expiration(&mut listed)?;
    let abort = "AbortIncompleteMultipartUpload";
    let abort_days = days(&mut listed, abort, "DaysAfterInitiation")?;
    listed.finish()?;
    if expiration.is_none() && abort_days.is_none() {
        return Err(malformed(format!("a rule needs Expiration or {abort}")));
    }
    if abort_days.is_some() && filter.is_of_objects() {
        let sentence =
            format!("{abort} cannot be specified with tags or sizes: an upload has none");
        return Err(S3Error::new(Code::InvalidRequest, sentence));
    }
    if id.as_deref().unwrap_or_default().chars().count() > ID_CHARACTERS {
        let sentence = format!("the ID of a rule has more than {ID_CHARACTERS} characters");
        return Err(malformed(sentence));
    }
    Ok(LifecycleRule {
        id,
        is_enabled,
        filter,
        expiration,
        abort_days,
    })
}

/// A filter: empty, with one condition, or with several in `And`.
fn filter_of(mut listed: Element) -> Result<LifecycleFilter, S3Error> {
    let is_and = match listed.take("And")? {
        Some(several) => {
            listed.finish()?;
            listed = several;
            true
        }
        None => false,
    };
    let has_prefix = listed.take_text("Prefix")?;
    let size = |listed: &mut Element, name: &str| -> Result<Option<u64>, S3Error> {
        let text = listed.take_text(name)?;
        let parsed = text.map(|text| {
            let number = text.trim().parse::<u64>();
            number.map_err(|_| malformed(format!("{name} is a number of bytes")))
        });
        parsed.transpose()
    };
    let larger_than = size(&mut listed, "ObjectSizeGreaterThan")?;
    let smaller_than = size(&mut listed, "ObjectSizeLessThan")?;
    let tags = listed.take_all("Tag").into_iter().map(|mut tag| {
        let pair = (tag.need_text("Key")?, tag.need_text("Value")?);
        tag.finish()?;
        Ok(pair)
    });
    let tags = tags.collect::<Result<Vec<_>, S3Error>>()?;
    listed.finish()?;
    check_tags(&tags, OF_OBJECT)?;
    let sizes = larger_than.iter().chain(&smaller_than).count();
    let conditions = usize::from(has_prefix.is_some()) + sizes + tags.len();
    if !is_and && conditions > 1 {
        return Err(malformed("a Filter has one condition, or And with several"));
    }
    if let (Some(more), Some(less)) = (larger_than, smaller_than)
        && more.saturating_add(1) >= less
    {
        let sentence =
            "no object is larger than ObjectSizeGreaterThan and smaller than ObjectSizeLessThan";
        return Err(S3Error::new(Code::InvalidRequest, sentence));
    }
    Ok(LifecycleFilter {
        prefix: checked_key(has_prefix.unwrap_or_default())?,
        tags,
        larger_than,
        smaller_than,
    })
}

fn expiration(listed: &mut Element) -> Result<Option<Expiration>, S3Error> {
    let Some(mut action) = listed.take("Expiration")? else {
        return Ok(None);
    };
    let (days, date) = (action.take_text("Days")?, action.take_text("Date")?);
    // Deleting the marks of versions is another element.
    action.finish()?;
    match (days, date) {
        (Some(text), None) => Ok(Some(Expiration::Days(at_least_one("Days", &text)?))),
        (None, Some(text)) => Ok(Some(Expiration::Date(midnight(text.trim())?))),
        _ => Err(malformed("an Expiration has Days or Date")),
    }
}

/// A midnight UTC, in milliseconds since 1970.
fn midnight(text: &str) -> Result<i64, S3Error> {
    let date = OffsetDateTime::parse(text, &Rfc3339);
    let date = date.map_err(|_| malformed("Date is a time such as 2027-01-01T00:00:00Z"))?;
    match i64::try_from(date.unix_timestamp_nanos() / 1_000_000) {
        Ok(ms) if ms >= 0 && ms % DAY_MS == 0 && date.nanosecond() == 0 => Ok(ms),
        _ => Err(S3Error::new(
            Code::InvalidArgument,
            "'Date' must be at midnight GMT",
        )),
    }
}

fn days(listed: &mut Element, action: &str, name: &str) -> Result<Option<u32>, S3Error> {
    let Some(mut action) = listed.take(action)? else {
        return Ok(None);
    };
    let text = action.take_text(name)?;
    action.finish()?;
    let text = text.ok_or_else(|| malformed(format!("an action needs {name}")))?;
    at_least_one(name, &text).map(Some)
}

fn at_least_one(name: &str, text: &str) -> Result<u32, S3Error> {
    match digits(name, text)? {
        0 => {
            let sentence = format!("{name} 0 is not valid: it is 1 or more");
            Err(S3Error::new(Code::InvalidArgument, sentence))
        }
        days => Ok(days),
    }
}

/// Writes a `LifecycleConfiguration` document.
pub fn lifecycle(rules: &[LifecycleRule]) -> String {
    document("LifecycleConfiguration", |writer| {
        for rule in rules {
            writer.within("Rule", |writer| {
                writer.optional("ID", rule.id.as_ref());
                writer.within("Filter", |writer| write_filter(writer, &rule.filter));
                let status = if rule.is_enabled {
                    "Enabled"
                } else {
                    "Disabled"
                };
                writer.element("Status", status);
                if let Some(expiration) = rule.expiration {
                    writer.within("Expiration", |writer| match expiration {
                        Expiration::Days(days) => writer.element("Days", days),
                        Expiration::Date(ms) => writer.time("Date", ms),
                    });
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

fn write_filter(writer: &mut Writer, filter: &LifecycleFilter) {
    match filter.conditions() {
        0 => writer.element("Prefix", ""),
        1 => write_conditions(writer, filter),
        _ => writer.within("And", |writer| write_conditions(writer, filter)),
    }
}

fn write_conditions(writer: &mut Writer, filter: &LifecycleFilter) {
    if !filter.prefix.is_empty() {
        writer.element("Prefix", &filter.prefix);
    }
    for (name, value) in &filter.tags {
        writer.within("Tag", |writer| {
            writer.element("Key", name);
            writer.element("Value", value);
        });
    }
    writer.optional("ObjectSizeGreaterThan", filter.larger_than);
    writer.optional("ObjectSizeLessThan", filter.smaller_than);
}
