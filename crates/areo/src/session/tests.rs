use super::*;
use areo_client::{
    ConfigurationInfo, Damage, Dap, Invalid, InvalidKey, NoQuorum, Operation, Shape, Version,
};

fn session(cluster: Option<&str>) -> Session {
    let global = Global {
        cluster: cluster.map(str::to_owned),
        ..Global::default()
    };
    Session::new(Output::new(false, true, 0), Settings::default(), global)
}

#[test]
fn a_cluster_is_a_file_or_addresses() {
    let addresses = |named: &str| match target(named) {
        Ok(Target::Addresses(addresses)) => addresses,
        other => panic!("{named}: {other:?}"),
    };
    assert_eq!(addresses("a:1"), ["a:1"]);
    assert_eq!(
        addresses("127.0.0.1:7400, [::1]:7401"),
        ["127.0.0.1:7400", "[::1]:7401"]
    );
    for wrong in [
        "",
        "nofile.toml",
        "a:1,",
        "a:0",
        "a:65536",
        ":7400",
        "dir/a:1",
        "http://a:1",
        "a b:1",
        "a:1,b",
    ] {
        let refused = target(wrong).unwrap_err();
        assert_eq!(refused.code, Code::Usage, "{wrong}");
        assert!(refused.message.contains("HOST:PORT"), "{wrong}: {refused}");
    }
    let folder = tempfile::tempdir().unwrap();
    // A file wins over what looks like an address.
    let path = folder.path().join("a:1");
    std::fs::write(&path, "no cluster").unwrap();
    let refused = target(path.to_str().unwrap()).unwrap_err();
    assert!(
        refused.message.contains("is not a cluster file"),
        "{refused}"
    );
}

#[test]
fn without_a_cluster_there_is_advice() {
    let refused = session(None).target().unwrap_err();
    assert_eq!(refused.code, Code::Usage);
    assert!(refused.message.ends_with("run `areo up` or pass --cluster"));
    let named = session(Some("a:1")).target();
    assert_eq!(named, Ok(Target::Addresses(vec!["a:1".into()])));
}

fn call() -> NoQuorum {
    NoQuorum {
        operation: Operation::Put,
        domain: Some("photos".into()),
        key: Some("a".into()),
        configuration: 3,
        shape: Shape::new(Dap::Ec { k: 3 }, 5).unwrap(),
        needed: 4,
        servers: Vec::new(),
        waited: Duration::from_secs(10),
        obstacle: None,
        unauthorised: None,
    }
}

#[test]
fn every_ending_has_its_exit_code() {
    let (domain, key) = (|| String::from("photos"), || String::from("a"));
    let call = || Box::new(call());
    let read = || {
        let operation = Operation::Get;
        Box::new(NoQuorum {
            operation,
            ..*call()
        })
    };
    let damage = Box::new(Damage::Servers { call: call() });
    let not_found = |key| Error::NotFound {
        domain: domain(),
        key,
    };
    let conflict = Error::VersionConflict {
        domain: domain(),
        key: key(),
        expected: Some(Version::INITIAL),
        latest: None,
    };
    let corrupted = Error::Corrupted {
        domain: domain(),
        key: key(),
        damage,
    };
    let error = InvalidKey::Empty;
    let invalid = Error::Invalid {
        reason: Invalid::Key { error },
    };
    for (error, code) in [
        (invalid, 2),
        (not_found(Some("a".into())), 3),
        (not_found(None), 3),
        (Error::Removed { domain: domain() }, 3),
        (conflict, 4),
        (Error::Unavailable { call: call() }, 5),
        (Error::Unauthorised { call: call() }, 6),
        (corrupted, 7),
        (Error::Obstructed { call: call() }, 5),
        (Error::Obstructed { call: read() }, 7),
        (Error::Unknown { call: call() }, 8),
    ] {
        let said = error.to_string();
        let failure = failure(error);
        assert_eq!(failure.code as u8, code, "{said}");
        assert!(failure.message.starts_with(&said), "{failure}");
    }
    let domain = "default".into();
    let missing = failure(Error::NotFound { domain, key: None });
    assert!(
        missing.message.contains("areo domain create default"),
        "{missing}"
    );
    let domain = "photos".into();
    let removed = failure(Error::Removed { domain });
    let advice = "interrupted: `areo domain rm photos` finishes the removal";
    assert!(removed.message.ends_with(advice), "{removed}");
}

#[test]
fn a_domain_that_was_not_created_has_an_exit_code() {
    let shape = Shape::new(Dap::Abd, 2).unwrap();
    let configuration = Box::new(ConfigurationInfo {
        index: 0,
        shape,
        delta: 5,
        copy_bytes: 0,
        experimental: areo_client::experimental::Experimental::default(),
        decided_by: areo_client::Decider::Members,
        reconfig: areo_client::ReconfigKind::default(),
        leader: None,
        members: Vec::new(),
    });
    let name = String::from("photos");
    let unknown = InvalidChoice::UnknownServer {
        name: name.clone(),
        known: Vec::new(),
    };
    let endings = [
        (unknown.into(), 3),
        (InvalidChoice::ServerTwice { name: name.clone() }.into(), 2),
        (InvalidChoice::NoCrashTolerated { shape }.into(), 2),
        (InvalidChoice::NeedsPiggyback { shape }.into(), 2),
        (
            CreateDomainError::Exists {
                name: name.clone(),
                configuration,
            },
            4,
        ),
        (
            CreateDomainError::Unavailable {
                call: Box::new(call()),
            },
            5,
        ),
        (
            CreateDomainError::Unknown {
                call: Box::new(call()),
            },
            8,
        ),
        (
            CreateDomainError::Other {
                error: Error::Unauthorised {
                    call: Box::new(call()),
                },
            },
            6,
        ),
    ];
    for (error, code) in endings {
        let said = error.to_string();
        assert_eq!(creation_failure(error).code as u8, code, "{said}");
    }
}

#[test]
fn a_cluster_that_does_not_answer_is_no_quorum() {
    let error = ConnectError::NoServer {
        cluster: None,
        attempts: Vec::new(),
    };
    let addresses = Target::Addresses(vec!["a:1".into()]);
    assert_eq!(unreachable(&error, &addresses).code, Code::Unavailable);
    let empty = unreachable(&ConnectError::NoAddress, &addresses);
    assert_eq!(empty.code, Code::Usage);
}

#[test]
fn operations_end_with_their_own_outcome() {
    assert_eq!(run(async { Ok(()) }, ""), Ok(()));
    let failed = Failure::other("it did not work");
    let same = failed.clone();
    assert_eq!(
        run(async { Err::<(), _>(same) }, "interrupted"),
        Err(failed)
    );
}
