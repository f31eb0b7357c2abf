//! `cargo xtask deploy`: the files of `deploy/compose` and `deploy/kubernetes`, read by the tools that they are for, by `deploy/check.sh`.

use crate::workspace::Workspace;
use std::process::{Command, Stdio};

/// Installs the tools that are missing, and runs them.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let mut checking = Command::new("bash");
    checking
        .arg(workspace.root().join("deploy/check.sh"))
        .stdin(Stdio::null());
    let status = checking.status();
    let status = status.map_err(|error| format!("cannot start bash: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err("the file named above is wrong, or its tool could not be installed".into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    fn read(path: &str) -> String {
        fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Every file below `deploy/` with its text.
    fn deployed() -> Vec<(String, String)> {
        let mut folders = vec![root().join("deploy")];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => files.push((
                        path.display().to_string(),
                        fs::read_to_string(&path).unwrap(),
                    )),
                }
            }
        }
        files
    }

    /// The words of a text that begin so, of letters, digits and `others`.
    fn words<'a>(
        text: &'a str,
        begin: &'a str,
        others: &'a [char],
    ) -> impl Iterator<Item = &'a str> {
        let is_outside = |c: char| !c.is_ascii_alphanumeric() && !others.contains(&c);
        text.split(is_outside)
            .filter(move |word| word.starts_with(begin) && word.len() > begin.len())
    }

    /// The settings of `areo`, as its configuration lists them.
    fn settings() -> BTreeSet<String> {
        let source = read("crates/areo/src/config.rs");
        let (_, list) = source.split_once("KEYS: &[&str] = &[").unwrap();
        let (list, _) = list.split_once("];").unwrap();
        let settings = list.split('"').skip(1).step_by(2).map(str::to_owned);
        settings.collect()
    }

    #[test]
    fn each_variable_that_is_deployed_is_a_setting() {
        let variable = |setting: &String| {
            let name = setting.replace(['.', '-'], "_").to_ascii_uppercase();
            format!("AREO_{name}")
        };
        let known: BTreeSet<String> = settings().iter().map(variable).collect();
        let mut seen = BTreeSet::new();
        for (path, text) in deployed() {
            for word in words(&text, "AREO_", &['_']) {
                assert!(known.contains(word), "{path}: {word} is no setting");
                seen.insert(word.to_owned());
            }
        }
        assert!(seen.len() >= 8, "{seen:?}");
    }

    #[test]
    fn each_key_of_the_settings_file_is_a_setting() {
        let known = settings();
        let mut table = String::new();
        let mut keys = 0;
        for line in read("deploy/areo.toml").lines() {
            if let Some(name) = line.strip_prefix('[') {
                table = format!("{}.", name.trim_end_matches(']'));
            }
            let Some((key, _)) = line.trim_start_matches('#').split_once(" = ") else {
                continue;
            };
            if !key.contains(' ') {
                assert!(known.contains(&format!("{table}{key}")), "{table}{key}");
                keys += 1;
            }
        }
        assert!(keys >= 4, "{keys}");
    }

    #[test]
    fn each_option_of_a_container_exists() {
        let arguments =
            ["server", "s3", "global"].map(|it| read(&format!("crates/areo/src/args/{it}.rs")));
        let arguments = arguments.concat();
        let mut seen = BTreeSet::new();
        for path in [
            "compose/compose.yaml",
            "kubernetes/cluster/servers.yaml",
            "kubernetes/cluster/gateways.yaml",
            "kubernetes/first/kustomization.yaml",
        ] {
            let text = read(&format!("deploy/{path}"));
            let lines = text.lines().filter(|line| !line.contains("prometheus"));
            for line in lines.filter(|line| !line.trim_start().starts_with('#')) {
                for option in words(line, "--", &['-']).filter(|option| !option.starts_with("---"))
                {
                    let field = format!(" {}:", option[2..].replace('-', "_"));
                    assert!(arguments.contains(&field), "{path}: there is no {option}");
                    seen.insert(option.to_owned());
                }
            }
        }
        let expected = ["--init", "--join", "--metrics", "--tls", "--token"];
        assert!(seen.iter().map(String::as_str).eq(expected), "{seen:?}");
    }

    #[test]
    fn each_list_of_servers_names_all_of_them() {
        let servers = read("deploy/kubernetes/cluster/servers.yaml");
        assert!(servers.contains("replicas: 5\n"));
        let pods: Vec<String> = (0..5).map(|i| format!("areo-{i}.areo:7400")).collect();
        assert!(servers.contains(&format!("- {}\n", pods.join(","))));
        let gateways = read("deploy/kubernetes/cluster/gateways.yaml");
        assert!(gateways.contains(&format!("\"{}\"", pods.join(","))));

        let compose = read("deploy/compose/compose.yaml");
        let at = |first: u16| -> Vec<String> {
            (first..first + 5)
                .map(|port| format!("127.0.0.1:{port}"))
                .collect()
        };
        assert!(compose.contains(&format!("&all \"{}\"", at(7400).join(","))));
        for address in at(7400) {
            let listening = format!("AREO_SERVER_LISTEN: \"{address}\"");
            assert_eq!(compose.matches(&listening).count(), 1, "{address}");
        }
        let scraped = read("deploy/compose/prometheus.yml");
        for address in at(7490).into_iter().chain(["127.0.0.1:7489".to_owned()]) {
            assert!(scraped.contains(&format!("\"{address}\"")), "{address}");
        }
    }

    #[test]
    fn each_alert_says_what_to_do_and_names_codes_that_exist() {
        let rules = read("deploy/prometheus/alerts.yml");
        let alerts: BTreeSet<&str> = rules
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- alert: "))
            .collect();
        let document = read("docs/operations.md");
        let rows = document
            .lines()
            .filter_map(|line| line.strip_prefix("| `Areo")?.split_once('`'));
        let rows: BTreeSet<String> = rows.map(|(name, _)| format!("Areo{name}")).collect();
        assert!(
            alerts.len() >= 20 && rows.iter().map(String::as_str).eq(alerts.clone()),
            "{alerts:?} {rows:?}"
        );

        let codes = read("crates/s3/src/wire/error.rs");
        let mut named = 0;
        for rest in rules.split("code=~\"").skip(1) {
            let (list, _) = rest.split_once('"').unwrap();
            for code in list.split('|') {
                assert!(
                    codes.contains(&format!("    {code} = ")),
                    "there is no code {code}"
                );
                named += 1;
            }
        }
        assert_eq!(named, 7);
    }
}
