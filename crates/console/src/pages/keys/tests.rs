use super::*;

fn key(name: &str) -> KeyInfo {
    KeyInfo {
        grants: vec!["read:default".into()],
        id: "0000000000000007".into(),
        name: name.into(),
        revoked_seconds: None,
        state: "good",
    }
}

#[test]
fn the_name_of_a_key_is_text() {
    let view = View {
        keys: vec![key("<script>alert(1)</script>")],
        audit: vec![AuditInfo {
            about: "0000000000000007 <b>".into(),
            address: "127.0.0.1:1".into(),
            by: "key 0000000000000007".into(),
            change: 3,
            seconds: 0,
            what: "key-created",
        }],
    };
    let drawn = Keys {}.draw(&view).into_string();
    assert!(
        !drawn.contains("<script") && !drawn.contains("<b>"),
        "{drawn}"
    );
    assert!(drawn.contains("<td>key &lt;script&gt;alert(1)&lt;/script&gt;</td>"));
}

#[test]
fn grants_are_lines() {
    let grants = parse_grants(" read,list:default\r\n\r\nstatus\r\n").expect("two grants");
    let texts: Vec<String> = grants.all().iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["read,list:default", "status"]);
    for (text, sentence) in [
        ("", "a key needs a grant"),
        ("read", "'read' counts in a domain"),
        ("status\nfly", "'fly' is no verb"),
    ] {
        let trouble = parse_grants(text).expect_err("no grants");
        assert!(trouble.sentence.contains(sentence), "{}", trouble.sentence);
    }
}

#[test]
fn a_key_names_the_commands_for_its_state() {
    let page = key::KeyPage {
        id: "0000000000000007".into(),
    };
    let commands = |key: &KeyInfo| {
        let commands = page.commands(key).into_iter();
        commands.map(|it| it.to_string()).collect::<Vec<_>>()
    };
    let mut key = key("backup");
    assert_eq!(
        commands(&key),
        [
            "key grant --grant read:default 0000000000000007",
            "key rotate 0000000000000007",
            "key revoke 0000000000000007"
        ]
    );
    key.state = "rotating";
    assert_eq!(commands(&key)[1], "key retire 0000000000000007");
    key.state = "revoked";
    assert_eq!(commands(&key), ["key ls"]);
}
