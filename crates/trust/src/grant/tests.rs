use super::*;

fn grants(texts: &[&str]) -> Grants {
    Grants::new(texts.iter().map(|text| text.parse().unwrap()).collect()).unwrap()
}

/// Every need that a request may have, with the grant that is just enough for it.
fn needs() -> Vec<(Need<'static>, String)> {
    let mut needs = Vec::new();
    for verb in DOMAIN_VERBS {
        let word = verb.word();
        needs.push((
            Need::keys(verb, "photos", "2024/a"),
            format!("{word}:photos/2024/a"),
        ));
        needs.push((Need::domain(verb, "photos"), format!("{word}:photos")));
        needs.push((Need::anywhere(verb, "photos"), format!("{word}:photos")));
    }
    for verb in CLUSTER_VERBS {
        needs.push((Need::cluster(verb), verb.word().to_owned()));
    }
    needs
}

#[test]
fn every_grant_but_the_needed_one_is_not_enough() {
    for (need, enough) in needs() {
        assert!(grants(&[&enough]).allow(&need), "{enough}");
        assert_eq!(need.to_string(), enough.replace("/2024/a", ""));
        let all_others = Grants::of_administrator().0.into_iter().map(|mut grant| {
            grant.verbs.0 &= !(1 << need.verb as u16);
            grant
        });
        let mut others: Vec<Grant> = all_others.collect();
        if let Place::Keys { start, .. } = need.place {
            let word = need.verb.word();
            let mut near = vec![
                format!("{word}:photo"),
                format!("{word}:photos2"),
                format!("{word}:photos-*"),
                format!("{word}:photos/2024/ab"),
                format!("{word}:photos/2025/"),
                format!("{word}:photos//2024/a"),
            ];
            if start.is_empty() {
                near.push(format!("{word}:photos/2"));
            }
            others.extend(near.iter().map(|text| text.parse::<Grant>().unwrap()));
        }
        assert!(!Grants(others).allow(&need), "{enough}");
        assert!(!Grants::default().allow(&need), "{enough}");
        assert!(Grants::of_administrator().allow(&need), "{enough}");
    }
}

#[test]
fn a_prefix_is_read_and_given_to_no_key() {
    let prefixed = grants(&["status", "read:photos/2024/"]);
    let anywhere = Need::anywhere(Verb::Read, "photos");
    assert!(prefixed.allow(&anywhere), "it is enough for some keys");
    assert!(!prefixed.allow(&Need::domain(Verb::Read, "photos")));
    let refused = prefixed.demand_whole_domains().unwrap_err().to_string();
    assert!(refused.contains("'read:photos/2024/'"), "{refused}");
    assert!(refused.contains("`areo domain create`"), "{refused}");
    let whole = grants(&["read:photos", "write:logs-*", "list:*", "keys"]);
    assert_eq!(whole.demand_whole_domains(), Ok(()));
}

#[test]
fn a_grant_reaches_as_far_as_its_prefix_and_its_pattern() {
    let key = |start| Need::keys(Verb::Read, "photos", start);
    for (grant, start, is_enough) in [
        ("read:photos/2024/", "2024/a", true),
        ("read:photos/2024/", "2024", false),
        ("read:photos/2024/", "", false),
        ("read:photos", "2024/a", true),
        ("read:photos/", "2024/a", true),
        ("read:ph*", "2024/a", true),
        ("read:*/2024/", "2024/a", true),
        ("read:*/2025/", "2024/a", false),
        ("read:*", "", true),
    ] {
        assert_eq!(
            grants(&[grant]).allow(&key(start)),
            is_enough,
            "{grant} {start}"
        );
    }
}

#[test]
fn servers_make_no_keys_and_let_no_server_in() {
    let servers = Grants::of_server();
    for verb in [Verb::Keys, Verb::Join, Verb::Trace, Verb::Gateway] {
        assert!(!servers.allow(&Need::cluster(verb)), "{}", verb.word());
    }
    assert!(servers.allow(&Need::cluster(Verb::Status)));
    assert!(servers.allow(&Need::keys(Verb::Write, "photos", "a")));
}

/// Each verb by itself, and all of them in one key: a gateway has those of domains, and `status`.
#[test]
fn a_gateway_has_of_the_cluster_verbs_of_a_key_status_alone() {
    for (need, enough) in needs() {
        let is_left = need.verb.is_of_domains() || need.verb == Verb::Status;
        assert_eq!(
            grants(&[&enough]).on_behalf().allow(&need),
            is_left,
            "{enough}"
        );
        let all = Grants::of_administrator().on_behalf();
        assert_eq!(all.allow(&need), is_left, "{enough}");
        assert!(!Grants::default().on_behalf().allow(&need), "{enough}");
    }
    let mixed = grants(&["read:photos", "keys,join", "trace,status", "list:*"]);
    let left = grants(&["read:photos", "status", "list:*"]);
    assert_eq!(mixed.on_behalf(), left);
}

#[test]
fn a_missing_grant_is_named() {
    let need = Need::keys(Verb::Write, "photos", "2024/a");
    let missing = grants(&["read:photos"])
        .demand(KeyId(0xab), &need)
        .unwrap_err();
    assert_eq!(
        missing.to_string(),
        "key 00000000000000ab lacks the grant 'write:photos', and nothing was done: use a key that has it, \
         or have one made with `areo key create NAME --grant write:photos`"
    );
    assert!(
        grants(&["read:photos", "write:photos"])
            .demand(KeyId(1), &need)
            .is_ok()
    );
}

#[test]
fn a_grant_has_one_text() {
    for (text, canonical) in [
        ("write,read:photos", "read,write:photos"),
        ("read,read:photos/", "read:photos"),
        ("admin,delete,list:*", "list,delete,admin:*"),
        ("read:photos-*/a:b*,/", "read:photos-*/a:b*,/"),
        ("trace,status", "status,trace"),
        ("gateway,trace", "trace,gateway"),
    ] {
        let grant: Grant = text.parse().unwrap();
        assert_eq!(grant.to_string(), canonical);
        assert_eq!(canonical.parse(), Ok(grant));
    }
}

#[test]
fn what_is_no_grant_is_refused_with_a_sentence() {
    let long_name = format!("read:{}", "a".repeat(64));
    let long_prefix = format!("read:a/{}", "a".repeat(1025));
    for (text, sentence) in [
        (
            "",
            "'' is no verb of a grant: for a domain there are read, write, list, delete, admin, for the cluster status,",
        ),
        ("reed:photos", "'reed' is no verb"),
        ("Read:photos", "'Read' is no verb"),
        ("read, write:photos", "' write' is no verb"),
        ("read", "'read' counts in a domain: write 'read:DOMAIN'"),
        ("status:photos", "'status' counts for the whole cluster"),
        ("gateway:*", "'gateway' counts for the whole cluster"),
        (
            "read,status:photos",
            "'status' counts for the whole cluster",
        ),
        ("read:", "'' is no domain of a grant"),
        ("read:Photos", "'Photos' is no domain of a grant"),
        ("read:*photos", "'*photos' is no domain of a grant"),
        ("read:**", "'**' is no domain of a grant"),
        (&long_name, "is no domain of a grant"),
        (&long_prefix, "the prefix of a grant has 1025 bytes"),
    ] {
        let error = text.parse::<Grant>().unwrap_err().to_string();
        assert!(error.contains(sentence), "{text}: {error}");
    }
    let many = |count: usize, text: &str| Grants::new(vec![text.parse().unwrap(); count]);
    assert!(many(MAX_GRANTS, "read:photos").is_ok());
    assert!(many(MAX_GRANTS + 1, "read:photos").is_err());
    let prefix = format!("read:photos/{}", "a".repeat(1000));
    let error = many(3, &prefix).unwrap_err().to_string();
    assert!(error.contains("these are 3 with 3036 bytes"), "{error}");
}
