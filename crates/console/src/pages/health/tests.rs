use super::*;
use crate::pages::tests::status;
use areo_steward::intent::Intent;
use areo_steward::journal::Journal;

const INTENT: &str = r#"{"number":3,"subject":"<i>s2","reasons":[{"rule":"dead","sentence":"3 of 3 other servers have not reached s2 for 900 s",
    "evidence":[{"signal":"reachable","observer":"s1","value":901.0,"threshold":900.0}]}],
    "change":{"server":"s2","with":"s4","domains":[{"domain":"d","f":{"before":1,"after":1},"survivable":{"before":0,"after":1}}],
    "objects":3,"bytes":10},"remedy":"areo server replace s2 --with s4","approved":false,"found":2,"missing":0,
    "state":"waiting","waits_for":["approval: `areo autopilot approve 3`"],"since_ms":1,"history":[]}"#;

fn view(edit: impl FnOnce(&mut Intent)) -> View {
    let mut intent: Intent = serde_json::from_str(INTENT).unwrap();
    edit(&mut intent);
    let journal = Journal {
        intents: vec![intent],
        paused: false,
    };
    let autopilot = autopilot::View {
        began: true,
        ..autopilot::View::of(None, journal)
    };
    View {
        form_token: "proof".into(),
        ..View::of(&Start::default(), &status(1, 2), autopilot)
    }
}

#[test]
fn an_open_intent_is_explained_and_can_be_approved() {
    let drawn = Health::default().draw(&view(|_| {})).into_string();
    for part in [
        "3 of 3 other servers have not reached s2 for 900 s (rule dead)",
        "waits for: approval",
        "action=\"/health/approve\"",
        "value=\"proof\"",
        "Approve intent 3",
        "Pause the autopilot",
        "operations fail",
        "&lt;i&gt;s2",
    ] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
    assert!(
        !drawn.contains("<i>") && !drawn.contains("/health/retry"),
        "{drawn}"
    );
    let json = serde_json::to_value(view(|_| {})).unwrap();
    assert_eq!(json["autopilot"]["intents"][0]["state"], "waiting");
    assert_eq!(json["autopilot"]["open"], 1);
    assert!(
        !json.to_string().contains("proof"),
        "a token of forms is no figure"
    );
}

#[test]
fn advice_and_finished_intents_have_nothing_to_approve() {
    let advice = view(|it| it.change = None);
    let drawn = Health::default().draw(&advice).into_string();
    assert!(!drawn.contains("/health/approve"), "{drawn}");
    let done = view(|it| {
        let proof = "s4 has all objects of d".into();
        it.state = areo_steward::intent::State::Done { proof };
    });
    let drawn = Health::default().draw(&done).into_string();
    assert!(drawn.contains("Nothing is open"), "{drawn}");
    assert!(!drawn.contains("/health/approve"), "{drawn}");
}

#[test]
fn what_failed_can_be_tried_again() {
    let failed = view(|it| {
        it.state = areo_steward::intent::State::Failed {
            step: "d".into(),
            error: "no quorum".into(),
            tries: 3,
            next_ms: None,
        };
    });
    let drawn = Health::default().draw(&failed).into_string();
    assert!(drawn.contains("action=\"/health/retry\""), "{drawn}");
    assert!(drawn.contains("try 3 failed at 'd': no quorum"), "{drawn}");
    assert!(!drawn.contains("/health/approve"), "it was begun: {drawn}");
}

#[test]
fn ten_thousand_domains_are_shown_a_page_at_a_time() {
    let none = || autopilot::View::of(None, Journal::default());
    for serving in [5, 2] {
        let page = Health::default();
        let view = View::of(&page.0, &status(10_000, serving), none());
        let drawn = page.draw(&view).into_string();
        let forms = redundancy::forms("proof", &view.page.domains).into_string();
        let bytes = drawn.len() + forms.len();
        assert!(bytes <= 100_000, "{bytes} bytes");
        assert!(drawn.contains("/health?after=d00098"), "{drawn}");
        let json = serde_json::to_value(view).unwrap();
        assert_eq!(json["next"], "/health.json?after=d00098");
    }
}
