//! `ETag`s in conditions, quoted and unquoted.

use super::error::{Code, S3Error};

/// The condition of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteCondition {
    /// `If-None-Match: *`: there is no object.
    Absent,
    /// `If-Match: ETAG`: the object has this one, which stands here without quotation marks.
    Match(String),
    /// `If-Match: *`: there is an object.
    Present,
}

/// `*`, or `ETag`s without their quotation marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ETagList {
    /// `*`: any existing object.
    Any,
    /// An object with one of these.
    Of(Vec<String>),
}

impl ETagList {
    /// True if an object with this `ETag` is among those that are meant. Weak ones (`W/"..."`) are compared like strong ones.
    pub fn contains(&self, etag: &str) -> bool {
        match self {
            ETagList::Any => true,
            ETagList::Of(listed) => listed.iter().any(|one| one == etag),
        }
    }

    /// Reads the value of `If-Match` or `If-None-Match` of a read.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`]: it has a quotation mark without another one, or is empty.
    pub fn parse(text: &str) -> Result<ETagList, S3Error> {
        if text.trim() == "*" {
            return Ok(ETagList::Any);
        }
        let listed = text.split(',').map(|one| bare(one.trim()));
        let listed = listed.collect::<Result<Vec<_>, _>>()?;
        Ok(ETagList::Of(listed))
    }
}

impl WriteCondition {
    /// The condition in the values of `If-Match` and `If-None-Match` of a write.
    ///
    /// # Errors
    /// [`Code::NotImplemented`]: both are there, or `If-None-Match` has something else than `*`; [`Code::InvalidArgument`]: an `ETag` cannot be read.
    pub fn parse(
        if_match: Option<&str>,
        if_none_match: Option<&str>,
    ) -> Result<Option<WriteCondition>, S3Error> {
        let refused = |sentence: &str| Err(S3Error::new(Code::NotImplemented, sentence));
        match (if_match.map(str::trim), if_none_match.map(str::trim)) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => {
                refused("a write has either If-Match or If-None-Match: send one of the two")
            }
            (None, Some("*")) => Ok(Some(WriteCondition::Absent)),
            (None, Some(_)) => refused(
                "a write can be made on `If-None-Match: *` (no object) or on `If-Match: ETAG`, not on another If-None-Match",
            ),
            (Some("*"), None) => Ok(Some(WriteCondition::Present)),
            (Some(one), None) if one.contains(',') => {
                refused("a write can be made on one ETag: name one in If-Match")
            }
            (Some(one), None) => Ok(Some(WriteCondition::Match(bare(one)?))),
        }
    }
}

/// An `ETag` without its quotation marks, and without the sign of a weak one.
pub(super) fn bare(text: &str) -> Result<String, S3Error> {
    let strong = text.strip_prefix("W/").unwrap_or(text);
    let inside = match strong.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"'),
        None => Some(strong),
    };
    match inside {
        Some(inside) if !inside.is_empty() && !inside.contains('"') => Ok(inside.to_owned()),
        _ => Err(S3Error::new(
            Code::InvalidArgument,
            format!("'{}' is no ETag", text.escape_debug()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_and_unquoted_etags_are_one() {
        for text in ["abc", "\"abc\"", "W/\"abc\"", " \"abc\" "] {
            let list = ETagList::parse(text).unwrap();
            assert!(list.contains("abc") && !list.contains("ab"), "{text}");
            let condition = WriteCondition::parse(Some(text), None).unwrap();
            assert_eq!(condition, Some(WriteCondition::Match("abc".into())));
        }
        assert!(ETagList::parse("\"a\", b").unwrap().contains("b"));
        assert_eq!(ETagList::parse("*"), Ok(ETagList::Any));
        for text in ["\"abc", "", "\"\"", "a\"b"] {
            assert!(ETagList::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_condition_that_is_not_understood_is_refused() {
        let code = |a, b| WriteCondition::parse(a, b).unwrap_err().code;
        assert_eq!(code(Some("a"), Some("*")), Code::NotImplemented);
        assert_eq!(code(None, Some("\"a\"")), Code::NotImplemented);
        assert_eq!(code(Some("a, b"), None), Code::NotImplemented);
        assert_eq!(code(Some("\"a"), None), Code::InvalidArgument);
        let parsed = |a, b| WriteCondition::parse(a, b).unwrap();
        assert_eq!(parsed(None, None), None);
        assert_eq!(parsed(None, Some(" * ")), Some(WriteCondition::Absent));
        assert_eq!(parsed(Some("*"), None), Some(WriteCondition::Present));
    }
}
