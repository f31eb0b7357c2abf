use super::*;
use areo_core::tag::Writer;

fn tag(number: u64) -> Tag {
    let counter = number.min(1);
    Tag {
        number,
        writer: Writer {
            counter,
            ..Writer::default()
        },
    }
}

fn object() -> Object {
    (0, "k".to_owned())
}

/// A history of one object, told in a few words.
#[derive(Default)]
struct Story(History);

impl Story {
    fn begin(&mut self, kind: Kind, value: Option<u64>) -> Operation {
        self.0.begin(Instant(0), (0, kind), &object(), value).0
    }

    fn writes(&mut self, number: u64, value: u64) {
        let write = self.begin(Kind::Write, Some(value));
        self.0.end_write(&Instant(1).into(), &write, tag(number));
    }

    fn reads(&mut self, number: u64, value: Option<u64>) {
        let read = self.begin(Kind::Read, None);
        self.0
            .end_read(&Instant(1).into(), &read, tag(number), value);
    }

    fn lists(&mut self, entries: &[(&str, u64)]) {
        let listing = self.0.begin_listing(0);
        let entry = |(key, number): &(&str, u64)| ListEntry {
            key: (*key).to_owned(),
            tag: tag(*number),
            length: 0,
            etag: None,
            written_at_ms: None,
            age_s: 0,
            deleted: false,
            damaged: false,
            absent: false,
        };
        let entries: Vec<ListEntry> = entries.iter().map(entry).collect();
        self.0.end_listing(&listing, &entries);
    }

    fn broke(&self, what: &str) {
        let violation = self.0.violation();
        assert!(violation.is_some_and(|v| v.contains(what)), "{violation:?}");
    }
}

#[test]
fn what_may_happen_is_let_pass() {
    let mut story = Story::default();
    story.reads(0, None);
    let slow = story.begin(Kind::Write, Some(1));
    story.reads(1, Some(1));
    story.writes(2, 2);
    story.0.end_unknown(Instant(2), &slow);
    story.lists(&[("k", 2)]);
    let delete = story.begin(Kind::Delete, None);
    story.lists(&[]);
    story.0.end_write(&Instant(3).into(), &delete, tag(3));
    story.reads(3, None);
    story.lists(&[]);
    let delete = story.begin(Kind::Delete, None);
    story.0.end_nothing(&Instant(4).into(), &delete);
    assert_eq!(story.0.violation(), None, "{}", story.0.lines());
    assert_eq!(story.0.lines().lines().count(), 14);
}

#[test]
fn a_read_of_something_old_is_caught() {
    let mut story = Story::default();
    story.writes(1, 1);
    story.writes(2, 2);
    story.reads(1, Some(1));
    story.broke("older than");
}

#[test]
fn a_write_below_one_that_had_ended_is_caught() {
    let mut story = Story::default();
    story.writes(2, 2);
    story.writes(1, 1);
    story.broke("not above");
}

#[test]
fn values_that_nobody_wrote_or_that_change_are_caught() {
    let mut story = Story::default();
    story.reads(1, Some(9));
    story.broke("nobody wrote");

    let mut story = Story::default();
    story.begin(Kind::Write, Some(2));
    story.writes(1, 1);
    story.reads(1, Some(2));
    story.broke("another value");
}

#[test]
fn a_deletion_that_overlooks_a_value_is_caught() {
    let mut story = Story::default();
    story.writes(1, 1);
    let delete = story.begin(Kind::Delete, None);
    story.0.end_nothing(&Instant(1).into(), &delete);
    story.broke("nobody deleted");
}

#[test]
fn listings_that_leave_out_or_show_too_much_are_caught() {
    let mut story = Story::default();
    story.writes(1, 1);
    story.lists(&[]);
    story.broke("leaves out");

    let mut story = Story::default();
    story.writes(1, 1);
    story.writes(2, 2);
    story.lists(&[("k", 1)]);
    story.broke("older than");

    let mut story = Story::default();
    story.writes(1, 1);
    let delete = story.begin(Kind::Delete, None);
    story.0.end_write(&Instant(1).into(), &delete, tag(2));
    story.lists(&[("k", 2)]);
    story.broke("tombstone");
}

#[test]
fn writes_that_disregard_their_conditions_are_caught() {
    let created = |number: u64, deleting: bool| {
        let mut story = Story::default();
        story.writes(1, 1);
        if deleting {
            story.begin(Kind::Delete, None);
        }
        let creation = story.begin(Kind::Creation, Some(2));
        story
            .0
            .end_decided(&Instant(1).into(), &creation, tag(number));
        story
    };
    created(2, false).broke("although 1-");
    let slow_deletion = created(3, true);
    assert_eq!(slow_deletion.0.violation(), None);

    let mut story = Story::default();
    let creation = story.begin(Kind::Creation, Some(1));
    story
        .0
        .end_uncovered(&Instant(1).into(), &creation, tag(0), None);
    story.broke("lost, although 0-");

    let mut story = Story::default();
    story.writes(1, 1);
    let kind = Kind::ConditionalDelete(tag(1));
    let deletions = [2, 3].map(|number| (number, story.begin(kind, None)));
    for (number, deletion) in deletions {
        let ended = Instant(number).into();
        story.0.end_decided(&ended, &deletion, tag(number));
    }
    story.broke("a second winner");
    assert!(
        story.0.lines().contains(
            "\"kind\":\"conditional_write\",\"domain\":\"d0\",\"key\":\"k\",\"value\":null"
        )
    );
    story.reads(3, None);
    story.lists(&[]);
}
