use super::*;
use crate::cluster::tests::names;
use areo_core::config::{InvalidConfiguration, ServerId};

fn create(options: &DomainOptions, servers: &Names) -> Result<Arc<Configuration>, InvalidChoice> {
    first_configuration(options, servers, &BTreeSet::new(), DomainId(7))
}

fn on(servers: &[&str], dap: Dap) -> DomainOptions {
    DomainOptions {
        dap,
        servers: servers.iter().map(ToString::to_string).collect(),
        ..DomainOptions::default()
    }
}

#[test]
fn servers_are_found_by_name_or_id_and_keep_their_order() {
    let five = names(&["s1", "s2", "s3", "s4", "s5"]);
    let id = ServerId(2).to_string();
    let made = create(&on(&["s5", &id, "s1"], Dap::Abd), &five).unwrap();
    assert_eq!(made.members().as_ref(), [5, 2, 1].map(ServerId));
    assert_eq!(made.id().index, 0);
    assert_eq!(made.descriptor().domain, DomainId(7));
    let all = create(&on(&[], Dap::Ec { k: 3 }), &five).unwrap();
    assert_eq!(all.members().as_ref(), [1, 2, 3, 4, 5].map(ServerId));
    assert_eq!(all.descriptor().delta, limits::DEFAULT_DELTA);
    assert_eq!(all.descriptor().copy_bytes, limits::DEFAULT_COPY_BYTES);
}

#[test]
fn an_unknown_server_is_told_with_the_known_ones() {
    let error = create(&on(&["s1", "s9"], Dap::Abd), &names(&["s2", "s1"])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no server 's9': there are s1, s2"
    );
    let error = create(&on(&["s1"], Dap::Abd), &names(&[])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no server 's1': the cluster knows none"
    );
}

#[test]
fn a_name_of_two_servers_is_no_name() {
    let twins = names(&["s1", "s1", "s2"]);
    let error = create(&on(&["s1", "s2"], Dap::Abd), &twins).unwrap_err();
    let ids = vec![ServerId(1), ServerId(2)];
    let name = "s1".to_owned();
    assert_eq!(error, InvalidChoice::AmbiguousServer { name, ids });
}

#[test]
fn members_and_their_addresses_are_distinct() {
    let three = names(&["s1", "s2", "s3"]);
    let id = ServerId(1).to_string();
    let error = create(&on(&["s1", "s2", &id], Dap::Abd), &three).unwrap_err();
    let name = "s1".to_owned();
    assert_eq!(error, InvalidChoice::ServerTwice { name });

    let mut records = three.records().clone();
    let address = "127.0.0.1:7400".to_owned();
    records
        .get_mut(&ServerId(3))
        .unwrap()
        .address
        .clone_from(&address);
    let moved = Names::new(records);
    let (a, b) = ("s1".to_owned(), "s3".to_owned());
    assert_eq!(
        create(&on(&[], Dap::Abd), &moved).unwrap_err(),
        InvalidChoice::SameAddress { a, b, address }
    );
    assert_eq!(sharing(&moved).as_ref(), [1, 3].map(ServerId));
    let gone = BTreeSet::from([ServerId(3)]);
    let options = DomainOptions {
        allow_f0: true,
        ..on(&[], Dap::Abd)
    };
    let made = first_configuration(&options, &moved, &gone, DomainId(7)).unwrap();
    assert_eq!(made.members().as_ref(), [1, 2].map(ServerId));
    let options = DomainOptions {
        allow_f0: true,
        ..on(&["s2", "s3"], Dap::Abd)
    };
    assert!(create(&options, &moved).is_ok(), "without the other one");
}

#[test]
fn no_crash_tolerated_has_to_be_allowed() {
    let five = names(&["s1", "s2", "s3", "s4", "s5"]);
    let options = on(&[], Dap::Ec { k: 4 });
    let error = create(&options, &five).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ec [5,4] tolerates no crash: every quorum needs 5 of 5 servers; take more servers or a smaller k, or allow f = 0 (--allow-f0)"
    );
    let allowed = DomainOptions {
        allow_f0: true,
        ..options
    };
    assert!(create(&allowed, &five).is_ok());
    assert!(matches!(
        create(&on(&["s1", "s2"], Dap::Abd), &five),
        Err(InvalidChoice::NoCrashTolerated { .. })
    ));
}

#[test]
fn kinds_that_finalize_versions_are_refused_without_piggybacking() {
    let five = names(&["s1", "s2", "s3", "s4", "s5"]);
    for (dap, word) in [
        (Dap::Cas { k: 3 }, "cas"),
        (Dap::CasGc { k: 3 }, "casgc"),
        (Dap::CasSs { k: 3 }, "casss"),
    ] {
        assert!(create(&on(&[], dap), &five).is_ok());
        let plain = DomainOptions {
            experimental: "piggyback=off".parse().unwrap(),
            ..on(&[], dap)
        };
        let sentence = create(&plain, &five).unwrap_err().to_string();
        assert_eq!(
            sentence,
            format!(
                "{word} needs piggybacking: leave piggyback=off and protocol=ares out, or take --dap ec"
            )
        );
    }
}

#[test]
fn impossible_shapes_are_told_as_such() {
    let five = names(&["s1", "s2", "s3", "s4", "s5"]);
    for k in [0, 6] {
        let options = DomainOptions {
            allow_f0: true,
            ..on(&[], Dap::Ec { k })
        };
        let members = 5;
        let error = InvalidConfiguration::DataFragments { k, members };
        assert_eq!(
            create(&options, &five).unwrap_err(),
            InvalidChoice::InvalidShape { error }
        );
    }
    assert!(matches!(
        create(&on(&[], Dap::Abd), &names(&[])),
        Err(InvalidChoice::InvalidShape { .. })
    ));
}
