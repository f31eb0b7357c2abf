//! Documents that are kept and given back: tags, CORS, lifecycle.

use super::super::cors::{CorsRule, cors, read_cors};
use super::super::delete::{DeleteFailure, deleted, read_delete};
use super::super::lifecycle::{
    Expiration, LifecycleFilter, LifecycleRule, days_after_ms, lifecycle, read_lifecycle,
};
use super::super::tagging::{read_tagging, tagging};
use super::super::tree::read;
use super::is;
use crate::wire::error::{Code, S3Error};
use proptest::option::of;
use proptest::prelude::*;

#[test]
fn rules_of_cors_are_given_back() {
    let text = "<CORSConfiguration>
           <CORSRule>
             <ID>one</ID><AllowedOrigin>http://*.example</AllowedOrigin><AllowedMethod>PUT</AllowedMethod><AllowedMethod>GET</AllowedMethod>
             <AllowedHeader>x-amz-*</AllowedHeader><ExposeHeader>ETag</ExposeHeader><MaxAgeSeconds>3000</MaxAgeSeconds>
           </CORSRule>
           <CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>
         </CORSConfiguration>";
    let rules = read_cors(text.as_bytes()).unwrap();
    is(&cors(&rules), text);
    let (first, second) = (&rules[0], &rules[1]);
    let names =
        |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
    let allows = |origin, method, headers: &[&str]| first.allows(origin, method, &names(headers));
    assert!(allows("http://a.example", "PUT", &[]));
    assert!(allows(
        "http://.example",
        "GET",
        &["x-amz-date", "X-Amz-ACL"]
    ));
    assert!(!allows("http://a.example.org", "PUT", &[]));
    assert!(!allows("https://a.example", "PUT", &[]));
    assert!(!allows("http://a.example", "DELETE", &[]));
    assert!(!allows(
        "http://a.example",
        "PUT",
        &["x-amz-date", "content-type"]
    ));
    assert!(second.allows("null", "GET", &[]) && second.allows_every_origin());
    assert!(!second.allows("null", "GET", &names(&["a"])) && !first.allows_every_origin());
    // The star stands for characters that the rest of the pattern does not have.
    let rule = CorsRule {
        origins: names(&["aba*aba"]),
        methods: names(&["GET"]),
        ..CorsRule::default()
    };
    assert!(!rule.allows("aba", "GET", &[]) && rule.allows("abaaba", "GET", &[]));
}

#[test]
fn rules_of_cors_have_bounds() {
    let code = |rule: &str| {
        let text = format!("<CORSConfiguration>{rule}</CORSConfiguration>");
        read_cors(text.as_bytes()).expect_err(rule).code
    };
    let rule = |content: &str| {
        format!(
            "<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod>{content}</CORSRule>"
        )
    };
    let rows = [
        (String::new(), Code::MalformedXML),
        (rule("").repeat(101), Code::MalformedXML),
        (
            "<CORSRule><AllowedMethod>GET</AllowedMethod></CORSRule>".into(),
            Code::MalformedXML,
        ),
        (
            "<CORSRule><AllowedOrigin>*</AllowedOrigin></CORSRule>".into(),
            Code::MalformedXML,
        ),
        (
            rule("<MaxAgeSeconds>-1</MaxAgeSeconds>"),
            Code::MalformedXML,
        ),
        (
            rule("<MaxAgeSeconds>4294967296</MaxAgeSeconds>"),
            Code::MalformedXML,
        ),
        (
            rule(&format!("<ID>{}</ID>", "i".repeat(256))),
            Code::MalformedXML,
        ),
        (
            rule("<AllowedMethod>PATCH</AllowedMethod>"),
            Code::InvalidRequest,
        ),
        (
            rule("<AllowedOrigin>*.*</AllowedOrigin>"),
            Code::InvalidRequest,
        ),
        (
            rule("<AllowedHeader>**</AllowedHeader>"),
            Code::InvalidRequest,
        ),
        (rule("<AllowCredentials/>"), Code::NotImplemented),
    ];
    for (text, expected) in rows {
        assert_eq!(code(&text), expected, "{text}");
    }
}

#[test]
fn rules_of_lifecycle_are_given_back() {
    let text = "<LifecycleConfiguration>
           <Rule>
             <ID>logs</ID><Filter><Prefix>logs/</Prefix></Filter><Status>Enabled</Status><Expiration><Days>365</Days></Expiration>
             <AbortIncompleteMultipartUpload><DaysAfterInitiation>7</DaysAfterInitiation></AbortIncompleteMultipartUpload>
           </Rule>
           <Rule><Filter><Prefix></Prefix></Filter><Status>Disabled</Status><Expiration><Days>1</Days></Expiration></Rule>
         </LifecycleConfiguration>";
    let rules = read_lifecycle(text.as_bytes()).unwrap();
    is(&lifecycle(&rules), text);
    let forms = ["<Filter/>", "<Filter><Prefix/></Filter>", "<Prefix/>"];
    for filter in forms {
        let rule =
            format!("{filter}<Status>Disabled</Status><Expiration><Days>1</Days></Expiration>");
        let text = format!("<LifecycleConfiguration><Rule>{rule}</Rule></LifecycleConfiguration>");
        assert_eq!(
            read_lifecycle(text.as_bytes()).unwrap(),
            rules[1..],
            "{filter}"
        );
    }
}

const ENABLED: &str = "<Status>Enabled</Status>";
const EXPIRES: &str = "<Expiration><Days>1</Days></Expiration>";

fn refused_rules(rules: &str) -> Code {
    let text = format!("<LifecycleConfiguration>{rules}</LifecycleConfiguration>");
    read_lifecycle(text.as_bytes()).expect_err(rules).code
}

fn rule(content: &str) -> String {
    format!("<Rule><Filter/>{ENABLED}{content}</Rule>")
}

#[test]
fn rules_of_lifecycle_that_are_none_are_refused() {
    let rows = [
        String::new(),
        rule(EXPIRES).repeat(1001),
        rule(""),
        format!("<Rule>{ENABLED}{EXPIRES}</Rule>"),
        format!("<Rule><Filter/>{EXPIRES}</Rule>"),
        format!("<Rule><Filter/><Status>enabled</Status>{EXPIRES}</Rule>"),
        rule(&format!("<Prefix>a</Prefix>{EXPIRES}")),
        rule("<Expiration/>"),
        rule("<Expiration><Days>a</Days></Expiration>"),
        rule(&format!("<ID>{}</ID>{EXPIRES}", "i".repeat(256))),
    ];
    for text in rows {
        assert_eq!(refused_rules(&text), Code::MalformedXML, "{text}");
    }
    let zero = rule("<Expiration><Days>0</Days></Expiration>");
    assert_eq!(refused_rules(&zero), Code::InvalidArgument);
    let twice = rule(&format!("<ID>a</ID>{EXPIRES}")).repeat(2);
    assert_eq!(refused_rules(&twice), Code::InvalidArgument);
    let long = "p".repeat(1025);
    let long = format!("<Rule><Prefix>{long}</Prefix>{ENABLED}{EXPIRES}</Rule>");
    assert_eq!(refused_rules(&long), Code::KeyTooLongError);
}

#[test]
fn other_rules_of_lifecycle_are_not_implemented() {
    let contents = [
        "<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>"
            .to_owned(),
        format!("{EXPIRES}<Transition/>"),
        format!("{EXPIRES}<NoncurrentVersionExpiration/>"),
    ];
    for content in contents {
        let code = refused_rules(&rule(&content));
        assert_eq!(code, Code::NotImplemented, "{content}");
    }
}

const LARGE: &str = "<ObjectSizeGreaterThan>5</ObjectSizeGreaterThan>";

#[test]
fn filters_of_lifecycle_are_given_back() {
    let tag = "<Tag><Key>a</Key><Value>b</Value></Tag>";
    let rules = |filter: &str| {
        let rule = "<Expiration><Date>2027-01-01T00:00:00.000Z</Date></Expiration>";
        let rule = format!("<Rule><Filter>{filter}</Filter>{ENABLED}{rule}</Rule>");
        format!("<LifecycleConfiguration>{rule}</LifecycleConfiguration>")
    };
    let all = format!(
        "<And><Prefix>p/</Prefix>{tag}<Tag><Key>c</Key><Value></Value></Tag>{LARGE}<ObjectSizeLessThan>7</ObjectSizeLessThan></And>"
    );
    for filter in [tag, LARGE, &all] {
        let text = rules(filter);
        is(&lifecycle(&read_lifecycle(text.as_bytes()).unwrap()), &text);
    }
    let read = read_lifecycle(rules(&all).as_bytes()).unwrap();
    assert_eq!(
        read[0].expiration,
        Some(Expiration::Date(1_798_761_600_000))
    );
    let filter = &read[0].filter;
    assert!(filter.has("p/x", 6));
    assert!(!filter.has("q/p/", 6) && !filter.has("p/x", 5) && !filter.has("p/x", 7));
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let tags = [pair("c", ""), pair("d", "e"), pair("a", "b")];
    assert!(filter.has_tags(&tags) && !filter.has_tags(&tags[..2]));
    assert!(!filter.has_tags(&[pair("c", ""), pair("a", "other")]));

    let abort = "<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>";
    for (filter, action, code) in [
        (format!("{tag}{LARGE}"), EXPIRES, Code::MalformedXML),
        (
            format!("<And>{tag}</And>{LARGE}"),
            EXPIRES,
            Code::NotImplemented,
        ),
        ("<Tag/>".into(), EXPIRES, Code::MalformedXML),
        (tag.into(), abort, Code::InvalidRequest),
        (LARGE.into(), abort, Code::InvalidRequest),
        (format!("<And>{tag}{tag}</And>"), EXPIRES, Code::InvalidTag),
        (
            "<ObjectSizeLessThan>-1</ObjectSizeLessThan>".into(),
            EXPIRES,
            Code::MalformedXML,
        ),
        (
            format!("<And>{LARGE}<ObjectSizeLessThan>6</ObjectSizeLessThan></And>"),
            EXPIRES,
            Code::InvalidRequest,
        ),
    ] {
        let rule = format!("<Rule><Filter>{filter}</Filter>{ENABLED}{action}</Rule>");
        assert_eq!(refused_rules(&rule), code, "{rule}");
    }
    for (date, code) in [
        ("2027-01-01T00:00:01Z", Code::InvalidArgument),
        ("2027-01-01T00:00:00+01:00", Code::InvalidArgument),
        ("1960-01-01T00:00:00Z", Code::InvalidArgument),
        ("tomorrow", Code::MalformedXML),
    ] {
        let text = rule(&format!("<Expiration><Date>{date}</Date></Expiration>"));
        assert_eq!(refused_rules(&text), code, "{date}");
    }
    let both = rule("<Expiration><Days>1</Days><Date>2027-01-01T00:00:00Z</Date></Expiration>");
    assert_eq!(refused_rules(&both), Code::MalformedXML);
}

/// The example of the reference: written on the 15th at 10:30, three days, deleted at the beginning of the 19th.
#[test]
fn days_end_at_the_next_midnight() {
    const DAY_MS: i64 = 86_400_000;
    let (day, time) = (16_085 * DAY_MS, 10 * 3_600_000 + 30 * 60_000);
    let written = u64::try_from(day + time).unwrap();
    assert_eq!(days_after_ms(written, 3), day + 4 * DAY_MS);
    assert_eq!(Expiration::Days(3).due_ms(written), day + 4 * DAY_MS);
    assert_eq!(Expiration::Date(DAY_MS).due_ms(written), DAY_MS);
    for (written, days) in [(day, 1), (day + DAY_MS - 1, 1), (day + 1, 400)] {
        let due = days_after_ms(u64::try_from(written).unwrap(), days);
        let age = due - written;
        assert_eq!(due % DAY_MS, 0);
        assert!(
            age >= i64::from(days) * DAY_MS,
            "never earlier than promised"
        );
        assert!(age <= i64::from(days + 1) * DAY_MS);
    }
    assert!(days_after_ms(u64::MAX, u32::MAX) > 0);
}

fn texts(count: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[^*]{1,12}", count)
}

prop_compose! {
    fn cors_rule()(
        id in of(".{0,40}"), origins in texts(1..3), methods in prop::collection::vec("GET|PUT|HEAD", 1..3),
        headers in texts(0..3), exposed in texts(0..3), max_age_s in of(any::<u32>()),
    ) -> CorsRule {
        CorsRule { id, origins, methods, headers, exposed, max_age_s }
    }
}

prop_compose! {
    fn lifecycle_rule()(
        is_enabled in any::<bool>(), prefix in "\\PC{0,60}|[\0- ]{0,5}", days in 1..u32::MAX, abort_days in of(1..u32::MAX),
    ) -> LifecycleRule {
        let filter = LifecycleFilter { prefix, ..LifecycleFilter::default() };
        LifecycleRule { id: None, is_enabled, filter, expiration: Some(Expiration::Days(days)), abort_days }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        rules in prop::collection::vec(cors_rule(), 1..4),
        mut expiring in prop::collection::vec(lifecycle_rule(), 1..4),
        names in prop::collection::btree_set("(?s).{0,30}", 0..5), value in "(?s).{0,30}",
    ) {
        prop_assert_eq!(read_cors(cors(&rules).as_bytes()), Ok(rules));
        for (at, rule) in expiring.iter_mut().enumerate() {
            rule.id = Some(format!("{at}\0\t\"&<"));
        }
        prop_assert_eq!(read_lifecycle(lifecycle(&expiring).as_bytes()), Ok(expiring));
        let kept = |name: &String| !name.is_empty();
        let tags: Vec<_> = names.into_iter().filter(kept).map(|name| (name, value.clone())).collect();
        prop_assert_eq!(read_tagging(tagging(&tags).as_bytes(), 10), Ok(tags));
    }

    #[test]
    fn every_text_can_be_read_again(key in "(?s).{0,30}", message in "(?s).{0,30}") {
        let failure = DeleteFailure { key: key.clone(), error: S3Error::new(Code::InternalError, message.clone()) };
        let mut root = read(deleted(&[], &[failure]).as_bytes(), "DeleteResult").unwrap();
        let mut error = root.take("Error").unwrap().unwrap();
        prop_assert_eq!(error.take_text("Key").unwrap(), Some(key));
        prop_assert_eq!(error.take_text("Message").unwrap(), Some(message));
    }

    #[test]
    fn no_document_panics(body in prop::collection::vec(prop_oneof![
        prop::sample::select(vec!["<Delete>", "</Delete>", "<Object>", "</Object>", "<Key>", "</Key>", "<ETag>a</ETag>", "<Quiet/>", "&", "&#x",
            ";", "<![CDATA[", "]]>", "<!--", "-->", "<?xml ", "?>", "<!DOCTYPE", "<", ">", "\"", "="]).prop_map(str::to_owned),
        ".{0,4}",
    ], 0..20)) {
        let text = body.concat();
        if let Err(refusal) = read_delete(text.as_bytes()) {
            prop_assert!(!refusal.message.is_empty());
        }
    }
}
