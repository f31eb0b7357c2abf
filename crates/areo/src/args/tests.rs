use super::*;
use clap::CommandFactory;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("areo").chain(line.split_whitespace()))
}

fn refused(line: &str) -> String {
    sentence(&parse(line).expect_err(line))
}

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

/// The help names every command that exists, and no other.
#[test]
fn the_help_names_every_command() {
    let help = Cli::command().render_help().to_string();
    let commands = Cli::command();
    let names: Vec<&str> = commands
        .get_subcommands()
        // Those of which the screen has no room: of `version` people try `--version`, and `key`, `cp` and `repair` name the others.
        .filter(|command| !command.is_hide_set())
        .map(clap::Command::get_name)
        .collect();
    assert_eq!(
        names,
        [
            "up", "server", "put", "get", "ls", "stat", "rm", "cp", "file", "repair", "domain",
            "reconfig", "s3", "key", "status", "trace"
        ]
    );
    for name in names {
        assert!(help.contains(&format!("\n  {name}")), "{name}: {help}");
    }
    for command in Cli::command().get_subcommands() {
        assert!(command.get_about().is_some(), "{}", command.get_name());
        for argument in command.get_arguments().filter(|a| !a.is_hide_set()) {
            let name = (command.get_name(), argument.get_id().as_str());
            assert!(argument.get_help().is_some(), "{name:?}");
        }
    }
}

#[test]
fn global_flags_stand_anywhere() {
    for line in [
        "--timeout 2s --domain photos --json get a --cluster x:1",
        "get a --timeout 2s --domain photos --json --cluster x:1",
    ] {
        let global = parse(line).unwrap().global;
        assert_eq!(global.common.timeout, Some(Duration::from_secs(2)));
        assert_eq!(global.domain.as_deref(), Some("photos"));
        assert_eq!(global.cluster.as_deref(), Some("x:1"));
        assert!(global.common.json);
    }
    let global = parse("ls --config=").unwrap().global;
    assert_eq!(global.common.config, Some(PathBuf::new()), "read no file");
}

#[test]
fn keys_are_checked_before_anything_is_asked() {
    let get = |key: &OsStr| Cli::try_parse_from([OsStr::new("areo"), OsStr::new("get"), key]);
    let longest = "k".repeat(1024);
    for key in ["a", "a/b c", "ä", "-", longest.as_str()] {
        let Command::Get(parsed) = get(OsStr::new(key)).unwrap().command else {
            panic!("get is get");
        };
        assert_eq!(parsed.key, key);
    }
    let too_long = "k".repeat(1025);
    for (key, why) in [
        (
            OsStr::new(""),
            "the key is empty: keys have 1 to 1024 bytes of UTF-8",
        ),
        (
            OsStr::new(&too_long),
            "the key has 1025 bytes: keys have 1 to 1024 bytes of UTF-8",
        ),
        (
            OsStr::from_bytes(b"a\xff"),
            "the key is not UTF-8: keys have 1 to 1024 bytes of UTF-8",
        ),
    ] {
        let error = get(key).unwrap_err();
        assert_eq!((sentence(&error).as_str(), error.exit_code()), (why, 2));
    }
}

#[test]
fn errors_are_one_sentence() {
    for (line, why) in [
        ("put", "required arguments were not provided: <KEY>"),
        ("pit a", "there is no command 'pit'"),
        ("sync a b", "there is no command 'sync': `areo cp -r FOLDER"),
        ("cp a", "<TARGET>"),
        ("cp a areo://b/c --delete", "--recursive"),
        ("backup", "required arguments were not provided"),
        ("backup a b c", "unexpected value 'c'"),
        ("restore", "<DIR>"),
        ("restore d --check --run 1", "cannot be used with"),
        ("restore d --run 0", "0 is not in 1.."),
        ("man", "`areo help`"),
        ("rm", "<KEY>"),
        ("get a f -o g", "cannot be used with"),
        ("get a f --version-only", "cannot be used with"),
        ("get a --timeout 5", "'5' is not a time"),
        ("get a --timeout 0s", "no time"),
        ("up --max-object 2GiB", "more than 1GiB"),
        (
            "up --dap raid",
            "[possible values: abd, ec, conditional, cas, casgc, casss]",
        ),
        ("put a --meta colour", "NAME=VALUE"),
        ("put a --meta =blue", "NAME=VALUE"),
        ("file push a b --min 1KiB", "4KiB to 64MiB"),
        ("file push a b --max 65MiB", "4KiB to 64MiB"),
        ("file push a", "<PATH>"),
        ("put a --if-version latest", "'latest' is not a version"),
        ("get a -o f --version-only", "cannot be used with"),
        ("server --init --join a:1", "cannot be used with"),
        ("server --join a:1 --root fixed", "cannot be used with"),
        ("server --join a:1 --tls", "cannot be used with"),
        ("server --init --token f", "cannot be used with"),
        ("ls -v -q", "cannot be used with"),
    ] {
        let sentence = refused(line);
        assert!(sentence.contains(why), "{line}: {sentence}");
        assert!(
            !sentence.contains('\n') && !sentence.starts_with("error"),
            "{sentence}"
        );
    }
}

#[test]
fn lists_and_pairs_are_split() {
    let Command::Domain(Domain::Create(create)) =
        parse("domain create photos --servers a,b,c --k 2 --copy-limit 4KiB --delta 9")
            .unwrap()
            .command
    else {
        panic!("domain create is domain create");
    };
    assert_eq!(create.servers, ["a", "b", "c"]);
    assert_eq!((create.dap, create.k), (None, Some(2)));
    assert_eq!((create.copy_limit, create.delta), (Some(4096), Some(9)));
    assert_eq!(create.consensus, None);
    let sentence = refused("domain create photos --consensus raft=a:1");
    assert!(sentence.contains("etcd=HOST:PORT"), "{sentence}");
    let Command::Put(put) = parse("put a f --meta x=1 --meta y=2=3").unwrap().command else {
        panic!("put is put");
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(put.meta, [pair("x", "1"), pair("y", "2=3")]);
}

#[test]
fn experimental_settings_are_one_option_and_the_last_word_wins() {
    let wanted = |line: &str| {
        let line = format!("reconfig start photos {line}");
        let Command::Reconfig(Reconfig::Start(start)) = parse(&line).unwrap().command else {
            panic!("reconfig start is reconfig start");
        };
        start.change.change().experimental.settings()
    };
    assert!(wanted("").is_empty());
    let mixed = wanted("--experimental protocol=ares --experimental collect=paper");
    assert_eq!(mixed, ["piggyback=off", "collect=paper"]);
    for command in [
        "reconfig start photos",
        "reconfig plan photos",
        "domain create photos",
    ] {
        for setting in ["piggyback", "ec=published", "collect=never"] {
            let sentence = refused(&format!("{command} --experimental {setting}"));
            assert!(sentence.contains("experimental setting"), "{sentence}");
        }
    }
}

#[test]
fn what_papers_compare_with_is_no_choice_that_is_shown() {
    let create = |dap: &str| parse(&format!("domain create photos --dap {dap}"));
    assert!(create("ec-published").is_ok() && create("ec-optimized").is_ok());
    assert!(create("cas").is_ok() && create("casgc").is_ok() && create("casss").is_ok());
    let sentence = refused("domain create photos --dap paxos");
    assert!(!sentence.contains("ec-published"), "{sentence}");
}

#[test]
fn what_is_resumed_is_not_changed() {
    for flag in ["--k 2", "--add s6", "--experimental protocol=ares"] {
        let sentence = refused(&format!("reconfig start photos --resume {flag}"));
        assert!(sentence.contains("cannot be used with"), "{sentence}");
    }
}

#[test]
fn completions_know_every_command() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "areo", &mut script);
        let script = String::from_utf8(script).expect("scripts are text");
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
}
