use super::*;
use crate::config::testing::{coded, replicated};
use crate::element::Value;
use bytes::Bytes;
use std::sync::Arc;

fn name() -> Name {
    Name::user("k").unwrap()
}

fn elements(c: &Configuration, content: &[u8]) -> Vec<Option<Element>> {
    let content = Bytes::copy_from_slice(content);
    let value = Value::new(Bytes::from_static(b"about"), content);
    let elements = crate::dap::elements(c, &name(), &value);
    elements.into_iter().map(Some).collect()
}

/// A value long enough that no fragment is empty.
const VALUE: &[u8] = &[7; 2000];
/// A value of equal length, so that only the bytes differ.
const OTHER: &[u8] = &[8; 2000];
const SMALL: &[u8] = b"small";

fn configurations() -> [Arc<Configuration>; 6] {
    [
        replicated(3),
        replicated(2),
        coded(5, 3),
        coded(5, 2),
        coded(3, 2),
        coded(9, 5),
    ]
}

#[test]
fn elements_of_one_value_are_sound_whichever_are_there() {
    for c in configurations() {
        for content in [VALUE, SMALL, b""] {
            let all = elements(&c, content);
            for own in 0..c.n() {
                assert_eq!(cross_check(&c, &name(), &all, own), CrossCheck::Sound);
                for missing in (0..c.n()).filter(|at| *at != own) {
                    let mut found = all.clone();
                    found[missing] = None;
                    let is_whole = all[0].as_ref().unwrap().form.is_whole();
                    let needed = if is_whole { 1 } else { c.dap().k() };
                    let expected = match c.n() - 1 > needed.into() {
                        true => CrossCheck::Sound,
                        false => CrossCheck::TooFew,
                    };
                    let checked = cross_check(&c, &name(), &found, own);
                    assert_eq!(checked, expected, "{:?} {content:?}", c.dap());
                }
            }
            let mut found = all.clone();
            found[0] = None;
            let checked = cross_check(&c, &name(), &found, 0);
            assert_eq!(checked, CrossCheck::TooFew, "it has none");
        }
    }
}

/// `[X-29 cross-check]`: an element of another version under this tag, with a checksum that is right.
#[test]
fn an_element_of_another_version_is_known_for_it_and_condemns_no_other() {
    for c in configurations() {
        for wrong in 0..c.n() {
            let mut found = elements(&c, VALUE);
            found[wrong] = elements(&c, OTHER).swap_remove(wrong);
            let checked = |own| cross_check(&c, &name(), &found, own);
            let is_provable = c.n() - 1 > c.dap().k().into();
            let (of_wrong, of_others) = match is_provable {
                true => (CrossCheck::Differs, CrossCheck::Sound),
                false => (CrossCheck::Contradicting, CrossCheck::Contradicting),
            };
            for own in 0..c.n() {
                let expected = if own == wrong { of_wrong } else { of_others };
                assert_eq!(checked(own), expected, "{:?} {wrong} {own}", c.dap());
            }
        }
    }
}

/// Damage that no working server causes neither ends the check nor passes it.
#[test]
fn an_element_that_is_of_no_value_is_judged_like_others() {
    let c = coded(5, 3);
    let damage: [fn(&mut Element); 5] = [
        |it| it.payload = it.payload.slice(1..),
        |it| it.length += 1,
        |it| it.form = Form::Copy,
        |it| it.metadata = Bytes::from_static(b"other"),
        |it| it.length = u64::MAX,
    ];
    for damage in damage {
        let mut found = elements(&c, VALUE);
        damage(found[1].as_mut().unwrap());
        assert_eq!(cross_check(&c, &name(), &found, 1), CrossCheck::Differs);
        assert_eq!(cross_check(&c, &name(), &found, 0), CrossCheck::Sound);
        // Beside a second one nothing is proven.
        damage(found[2].as_mut().unwrap());
        let checked = cross_check(&c, &name(), &found, 0);
        assert_eq!(checked, CrossCheck::Contradicting);
    }
}
