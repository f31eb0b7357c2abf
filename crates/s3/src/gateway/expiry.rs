//! `x-amz-expiration`: the time at which a lifecycle rule removes an object.
//!
//! A read does not wait for rules. It shows those that were read last, and has them read again in the background when they are some seconds old: the first reads of a bucket show nothing.

use super::callers::Remembered;
use super::kept::Kept;
use super::lifecycle;
use super::read::time_of;
use crate::wire::xml::lifecycle::LifecycleRule;
use areo_client::{Domain, Metadata};
use http::HeaderName;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The header that names the time of an object's deletion by a rule.
pub(super) const EXPIRATION: HeaderName = HeaderName::from_static("x-amz-expiration");
/// The age at which rules are read again.
const LASTS: Duration = Duration::from_secs(5);
/// Buckets whose rules are remembered at most.
const BUCKETS: usize = 1024;

/// Rules with the time at which they were asked for.
type AskedRules = (Instant, Arc<[LifecycleRule]>);

/// The rules of buckets, as they were read last.
#[derive(Clone, Debug)]
pub(super) struct KnownRules(Arc<Mutex<Remembered<String, AskedRules>>>);

impl KnownRules {
    pub(super) fn new() -> KnownRules {
        KnownRules(Arc::new(Mutex::new(Remembered::new(BUCKETS))))
    }

    /// The rules of a bucket, by the id of its domain.
    pub(super) fn of(&self, domain: &Domain) -> Arc<[LifecycleRule]> {
        let id = domain.id();
        let mut known = self.0.lock().expect("no holder of the lock panics");
        let remembered = known.get(&id).cloned();
        let rules = remembered.as_ref().map(|(_, rules)| Arc::clone(rules));
        let rules = rules.unwrap_or_default();
        if remembered.is_some_and(|(asked, _)| asked.elapsed() < LASTS) {
            return rules;
        }
        // Others that come meanwhile do not ask.
        known.keep(id.clone(), (Instant::now(), Arc::clone(&rules)));
        drop(known);
        let (this, domain) = (self.clone(), domain.clone());
        tokio::spawn(async move {
            let asked = Instant::now();
            if let Ok(rules) = lifecycle::rules(&domain).await {
                let mut known = this.0.lock().expect("no holder of the lock panics");
                known.keep(id, (asked, rules.into()));
            }
        });
        rules
    }
}

/// The value of the header, if a rule removes the object: the one that ends first counts.
pub(super) fn header(
    rules: &[LifecycleRule],
    (key, length): (&str, u64),
    metadata: &Metadata,
) -> Option<String> {
    let written_at_ms = metadata.written_at_ms?;
    let tags = Kept::of(metadata).tags;
    let fitting = rules.iter().filter(|rule| {
        let fits = rule.filter.has(key, length) && rule.filter.has_tags(&tags);
        rule.is_enabled && fits
    });
    let ends = fitting.filter_map(|rule| Some((rule.expiration?.due_ms(written_at_ms), rule)));
    let (due_ms, rule) = ends.min_by_key(|(due_ms, _)| *due_ms)?;
    let due = httpdate::fmt_http_date(time_of(u64::try_from(due_ms).ok()));
    let id = rule.id.as_deref().unwrap_or_default();
    let id = utf8_percent_encode(id, NON_ALPHANUMERIC);
    Some(format!("expiry-date=\"{due}\", rule-id=\"{id}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::xml::lifecycle::{Expiration, LifecycleFilter};

    #[test]
    fn the_rule_that_ends_first_is_shown() {
        let rule = |id: &str, prefix: &str, days| LifecycleRule {
            id: Some(id.into()),
            is_enabled: true,
            filter: LifecycleFilter {
                prefix: prefix.into(),
                ..LifecycleFilter::default()
            },
            expiration: Some(Expiration::Days(days)),
            abort_days: None,
        };
        let metadata = Metadata {
            written_at_ms: Some(1_389_781_800_000),
            ..Metadata::default()
        };
        let off = LifecycleRule {
            is_enabled: false,
            ..rule("off", "", 1)
        };
        let rules = [rule("later", "", 9), rule("a rule", "logs/", 3), off];
        let shown = |key| header(&rules, (key, 1), &metadata);
        let first = "expiry-date=\"Sun, 19 Jan 2014 00:00:00 GMT\", rule-id=\"a%20rule\"";
        assert_eq!(shown("logs/a").as_deref(), Some(first));
        let later = "expiry-date=\"Sat, 25 Jan 2014 00:00:00 GMT\", rule-id=\"later\"";
        assert_eq!(shown("a").as_deref(), Some(later));
        assert_eq!(header(&rules[2..], ("a", 1), &metadata), None);
        assert_eq!(header(&rules, ("a", 1), &Metadata::default()), None);
    }
}
