use super::*;
use crate::exit::Code;
use areo_client::units::parse_time;
use std::fs;
use std::time::Duration;

/// A working directory and an environment for one test.
fn places(directory: &Path, variables: &[(&str, &str)]) -> Places {
    let os = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
    Places {
        variables: variables.iter().map(os).collect(),
        directory: directory.to_owned(),
    }
}

fn message(result: Outcome<Settings>) -> String {
    let failure = result.expect_err("refused");
    assert_eq!(failure.code, Code::Usage);
    failure.message
}

#[test]
fn flags_win_over_environment_over_file_over_default() {
    let directory = tempfile::tempdir().unwrap();
    let timeout = |flag: Option<Duration>, places: &Places| {
        let settings = Settings::load(None, places).unwrap();
        settings.get(flag, "timeout", parse_time).unwrap()
    };
    let seconds = |s| Some(Duration::from_secs(s));
    let bare = places(directory.path(), &[]);
    assert_eq!(timeout(None, &bare), None, "then the caller's default");
    fs::write(directory.path().join("areo.toml"), "timeout = '1s'\n").unwrap();
    assert_eq!(timeout(None, &bare), seconds(1));
    let environment = places(directory.path(), &[("AREO_TIMEOUT", "2s")]);
    assert_eq!(timeout(None, &environment), seconds(2));
    assert_eq!(timeout(seconds(3), &environment), seconds(3));
}

#[test]
fn one_file_is_read_the_nearest() {
    let directory = tempfile::tempdir().unwrap();
    let (here, xdg) = (directory.path().join("here"), directory.path().join("xdg"));
    fs::create_dir_all(&here).unwrap();
    fs::create_dir_all(xdg.join("areo")).unwrap();
    let named = directory.path().join("named.toml");
    fs::write(xdg.join("areo/config.toml"), "domain = 'xdg'").unwrap();
    let xdg = xdg.to_str().unwrap();
    let domain = |flag: Option<&Path>, variables: &[(&str, &str)]| {
        let settings = Settings::load(flag, &places(&here, variables)).unwrap();
        settings.get(None, "domain", text).unwrap()
    };
    assert_eq!(domain(None, &[]), None);
    let variables = [("XDG_CONFIG_HOME", xdg)];
    assert_eq!(domain(None, &variables).as_deref(), Some("xdg"));
    assert_eq!(domain(None, &[("HOME", "/nonexistent")]), None);
    // A relative `HOME` would lead to a file below the working directory.
    let relative = tempfile::tempdir_in(".").unwrap();
    let below = Path::new(relative.path().file_name().unwrap());
    fs::create_dir_all(below.join(".config/areo")).unwrap();
    fs::write(below.join(".config/areo/config.toml"), "domain = 'x'").unwrap();
    for home in [below.to_str().unwrap(), ""] {
        assert_eq!(domain(None, &[("HOME", home)]), None);
    }
    fs::write(here.join("areo.toml"), "domain = 'here'").unwrap();
    assert_eq!(domain(None, &variables).as_deref(), Some("here"));
    fs::write(&named, "domain = 'named'").unwrap();
    let by_variable = [("AREO_CONFIG", named.to_str().unwrap())];
    assert_eq!(domain(None, &by_variable).as_deref(), Some("named"));
    assert_eq!(domain(Some(&named), &variables).as_deref(), Some("named"));
    assert_eq!(domain(Some(Path::new("")), &by_variable), None, "none");
    let missing = directory.path().join("missing.toml");
    let refused = message(Settings::load(Some(&missing), &places(&here, &[])));
    assert!(refused.contains("missing.toml: no such file"), "{refused}");
}

#[test]
fn unknown_keys_name_the_nearest() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |text: &str| {
        fs::write(directory.path().join("areo.toml"), text).unwrap();
        message(Settings::load(None, &places(directory.path(), &[])))
    };
    for (text, unknown, nearest) in [
        ("timeuot = '5s'", "'timeuot'", "'timeout'"),
        ("[upp]\nservers = 5", "'upp.servers'", "'up.servers'"),
        ("[up]\nserver = 5", "'up.server'", "'up.servers'"),
        ("[serve]\nlisten = 5", "'serve.listen'", "'server.listen'"),
        (
            "[up.servers]\ncount = 5",
            "'up.servers.count'",
            "'up.servers'",
        ),
        ("up.max_objects = 5", "'up.max_objects'", "'max-object'"),
    ] {
        let refused = refused(text);
        assert!(refused.contains(unknown), "{text}: {refused}");
        let (_, named) = refused.split_once("the nearest is ").expect("names one");
        assert!(named.starts_with(nearest), "{text}: {refused}");
    }
    fs::remove_file(directory.path().join("areo.toml")).unwrap();
    let variables = [("AREO_TIMOUT", "5s"), ("OTHER", "x")];
    let refused = message(Settings::load(None, &places(directory.path(), &variables)));
    assert!(refused.contains("AREO_TIMOUT is not known"), "{refused}");
    assert!(refused.ends_with("AREO_TIMEOUT"), "{refused}");
}

#[test]
fn variables_of_others_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let load =
        |variables: &[(&str, &str)]| Settings::load(None, &places(directory.path(), variables));
    let url = "tcp://10.0.0.7:7400";
    for (name, value) in [
        ("AREO_SERVICE_HOST", "10.0.0.7"),
        ("AREO_SERVICE_PORT", "7400"),
        ("AREO_SERVICE_PORT_ADMIN", "7490"),
        ("AREO_PORT", url),
        ("AREO_UP_PORT", url),
        ("AREO_PORT_7400_TCP", url),
        ("AREO_PORT_7400_TCP_PROTO", "tcp"),
        ("AREO_PORT_7400_TCP_PORT", "7400"),
        ("AREO_PORT_7400_UDP_ADDR", "10.0.0.7"),
        ("AREO_STORE_0_SERVICE_HOST", "10.0.0.7"),
        ("AREO_STORE_0_PORT_7400_TCP_ADDR", "10.0.0.7"),
        ("AREO_NAME", "/web/areo"),
        ("AREO_ENV_PATH", "/bin"),
        ("AREO_TIMOUT", ""),
    ] {
        load(&[(name, value)]).unwrap_or_else(|refused| panic!("{name}: {refused}"));
    }
    for (name, value) in [
        ("AREO_PORT", "7400"),
        ("AREO_PORT_NUMBER", "7400"),
        ("AREO_NAME", "s1"),
        ("AREO_SERVER_HOST", "x"),
    ] {
        let refused = message(load(&[(name, value)]));
        assert!(refused.contains(name), "{refused}");
    }
    let settings = load(&[("AREO_UP_PORT", url), ("AREO_CLUSTER", "")]).unwrap();
    assert_eq!(settings.get(None, "up.port", number::<u16>), Ok(None));
    assert_eq!(settings.get(None, "cluster", text), Ok(None), "not set");
}

#[test]
fn every_key_can_be_said_in_file_and_environment() {
    for key in KEYS {
        let directory = tempfile::tempdir().unwrap();
        let bare = places(directory.path(), &[]);
        for spelled in [(*key).to_owned(), key.replace('-', "_")] {
            let file = directory.path().join("areo.toml");
            fs::write(file, format!("{spelled} = 1")).unwrap();
            let settings = Settings::load(None, &bare).unwrap();
            let value = settings.get(None, key, number::<u32>);
            assert_eq!(value, Ok(Some(1)), "{spelled}");
        }
        let variable = variable_of(key);
        let is_usual =
            |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(variable.bytes().all(is_usual), "{variable}");
        let environment = places(directory.path(), &[(&variable, "2")]);
        let settings = Settings::load(None, &environment).unwrap();
        assert_eq!(settings.get(None, key, number::<u32>), Ok(Some(2)));
    }
}

#[test]
fn wrong_values_say_where_they_stand() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("areo.toml");
    let variables = [("AREO_UP_RESTART", "perhaps"), ("AREO_UP_K", "many")];
    fs::write(&file, "timeout = 5").unwrap();
    let settings = Settings::load(None, &places(directory.path(), &variables)).unwrap();
    let refused = settings.get(None, "timeout", parse_time).unwrap_err();
    assert!(refused.message.starts_with("timeout in "), "{refused}");
    assert!(refused.message.contains("'5' is not a time"), "{refused}");
    let refused = settings.switch(false, "up.restart").unwrap_err();
    assert_eq!(
        refused.message,
        "AREO_UP_RESTART: 'perhaps' is neither true nor false"
    );
    assert_eq!(settings.switch(true, "up.restart"), Ok(true));
    let refused = settings.get(None, "up.k", number::<u8>).unwrap_err();
    assert_eq!(
        refused.message,
        "AREO_UP_K: 'many' is not a number in range"
    );
    fs::write(&file, "domain = 'a'\ntimeout = = 3\n").unwrap();
    let refused = message(Settings::load(None, &places(directory.path(), &[])));
    assert!(refused.contains("areo.toml, line 2: "), "{refused}");
    assert!(!refused.contains('\n'), "one sentence: {refused}");
}

#[test]
fn a_list_is_its_values_with_commas_between() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("areo.toml");
    fs::write(&file, "cluster = ['a:1', \"b:2\"]\nhardware-id = [7]\n").unwrap();
    let settings = Settings::load(None, &places(directory.path(), &[])).unwrap();
    assert_eq!(
        settings.get(None, "cluster", text).unwrap().as_deref(),
        Some("a:1,b:2")
    );
    assert_eq!(
        settings.get(None, "hardware-id", number::<u32>).unwrap(),
        Some(7)
    );
}
