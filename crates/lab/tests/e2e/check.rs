//! Histories are judged from the command line.

use crate::lab;

const GOOD: &str = concat!(
    r#"{"t":1,"client":"a","op":1,"event":"invoke","kind":"write","domain":"d","key":"k","value":"x"}"#,
    "\n",
    r#"{"t":2,"client":"a","op":1,"event":"ok","kind":"write","domain":"d","key":"k"}"#,
    "\n",
    r#"{"t":3,"client":"b","op":1,"event":"invoke","kind":"read","domain":"d","key":"k"}"#,
    "\n",
    r#"{"t":4,"client":"b","op":1,"event":"ok","kind":"read","domain":"d","key":"k","value":"x"}"#,
    "\n",
);

#[test]
fn a_history_passes_or_its_violation_is_shown() {
    let passed = lab(&["check", "-"], GOOD.as_bytes()).done();
    assert!(passed.text().contains("linearizable"), "{}", passed.text());

    let lost = GOOD.replace(r#""key":"k","value":"x"}"#, r#""key":"k","value":null}"#);
    let lost = lost.replacen(r#""key":"k","value":null}"#, r#""key":"k","value":"x"}"#, 1);
    let violated = lab(&["check", "-"], lost.as_bytes());
    assert_eq!(violated.code, 1, "{violated:?}");
    assert!(violated.text().contains("absent"), "{}", violated.text());
    let json = lab(&["check", "-", "--json"], lost.as_bytes());
    assert_eq!(json.objects()[0]["verdict"], "violated");

    lab(&["check", "no-such-file"], b"").refused(2, &["no-such-file"]);
    lab(&["check", "-"], b"not a history").refused(1, &["line 1"]);
}
