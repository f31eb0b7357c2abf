use super::*;
use areo_core::tag::Writer;

/// Found by seed 1453 of the commit that draws conditional deletions: a writer of `cas` had finalized its version at one member, whose disk
/// rotted, so that neither readers nor the repair of the others could know of it.
#[test]
fn a_member_that_abstains_finalizes_nothing() {
    let writer = Writer {
        counter: 1,
        ..Writer::default()
    };
    let (mut truth, tag) = (Truth::default(), Tag::first(writer));
    truth.joined.marks.entry(0).or_default().stable = tag;
    assert!(truth.finalizes(0, tag) && !truth.finalizes(1, tag));
    truth.suffer(Harm::LacksHints);
    assert!(truth.finalizes(0, tag));
    truth.suffer(Harm::Rotten);
    assert!(!truth.finalizes(0, tag));
}
