//! Configuration: flags over environment (`AREO_*`) over one TOML file over defaults.
//!
//! The file is the one given by `--config` or `AREO_CONFIG`, else `./areo.toml`, else `areo/config.toml` in
//! `$XDG_CONFIG_HOME` (`~/.config`). An empty name means none: of these two, empty is not the same as unset. Its keys are those of [`KEYS`]; a key with a dot is in
//! the table before the dot. In the environment, `up.max-object` is `AREO_UP_MAX_OBJECT`. A key that is not known is an
//! error, in the environment too: a mistyped variable that is silently ignored costs an afternoon. An empty variable of a key
//! is one that is not set, and those that a container engine makes for a service called `areo` are not meant for this program.

use crate::exit::{Failure, Outcome, plain};
use areo_trust::key::AccessKey;
use areo_trust::token::JoinToken;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// All keys of a configuration file.
pub(crate) const KEYS: &[&str] = &[
    "cluster",
    "key",
    "token",
    "domain",
    "timeout",
    "hardware-id",
    "json",
    "log",
    "max-object",
    "repair-rate",
    "scrub-rate",
    "block-size",
    "up.servers",
    "up.data",
    "up.port",
    "up.dap",
    "up.k",
    "up.durability",
    "up.restart",
    "up.allow-f0",
    "up.s3",
    "server.init",
    "server.join",
    "server.name",
    "server.data",
    "server.listen",
    "server.advertise",
    "server.admin",
    "server.cert",
    "server.cert-key",
    "server.durability",
    "console.listen",
    "console.name",
    "console.cert",
    "console.cert-key",
    "console.tls",
    "console.session",
    "s3.listen",
    "s3.region",
    "s3.domain-name",
    "s3.default-dap",
    "s3.default-k",
    "s3.cert",
    "s3.cert-key",
    "s3.tls",
    "s3.tls-name",
    "s3.connections",
    "s3.lifecycle-every",
];

/// The prefix of every variable of this program.
const PREFIX: &str = "AREO_";
/// Names the file; the only variable that is no key.
const FILE_VARIABLE: &str = "AREO_CONFIG";

/// The settings of environment and file.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, Value>,
}

struct Value {
    text: String,
    /// The origin of the value, for errors.
    origin: String,
}

/// Shows no value: some are secrets.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value of {}", self.origin)
    }
}

/// The places to look for settings that flags do not give.
pub(crate) struct Places {
    /// Environment variables of the process.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// Working directory of the process.
    pub(crate) directory: PathBuf,
}

impl Places {
    /// The places of this process.
    pub(crate) fn of_process() -> Places {
        Places {
            variables: std::env::vars_os().collect(),
            directory: PathBuf::new(),
        }
    }

    fn variable(&self, name: &str) -> Option<PathBuf> {
        let found = self.variables.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| PathBuf::from(value))
    }

    /// The file, and whether it was asked for by name.
    fn file(&self, flag: Option<&Path>) -> Option<(PathBuf, bool)> {
        let named = flag.map(Path::to_owned);
        if let Some(named) = named.or_else(|| self.variable(FILE_VARIABLE)) {
            return (!named.as_os_str().is_empty()).then_some((named, true));
        }
        // Others lead to the working directory, whose files may be of other users.
        let absolute = |path: &PathBuf| path.is_absolute();
        let home = || Some(self.variable("HOME").filter(absolute)?.join(".config"));
        let xdg = self.variable("XDG_CONFIG_HOME").filter(absolute);
        let user = xdg.or_else(home).map(|c| c.join("areo/config.toml"));
        let mut places = [Some(self.directory.join("areo.toml")), user].into_iter();
        let found = places.find_map(|place| place.filter(|path| path.exists()));
        found.map(|path| (path, false))
    }
}

impl Settings {
    /// Reads file and environment.
    ///
    /// # Errors
    /// [`Code::Usage`](crate::exit::Code::Usage): a file that was asked for is not there, is no TOML, or a key is not
    /// known.
    pub(crate) fn load(flag: Option<&Path>, places: &Places) -> Outcome<Settings> {
        let mut settings = Settings::default();
        if let Some((path, asked)) = places.file(flag) {
            match std::fs::read_to_string(&path) {
                Ok(text) => settings.read_file(&path, &text)?,
                Err(error) if error.kind() == ErrorKind::NotFound && !asked => {}
                Err(error) => {
                    let (path, why) = (path.display(), plain(&error));
                    let message = format!("cannot read the configuration file {path}: {why}");
                    return Err(Failure::usage(message));
                }
            }
        }
        settings.read_environment(&places.variables)?;
        Ok(settings)
    }

    /// Takes in a file.
    pub(crate) fn read_file(&mut self, path: &Path, text: &str) -> Outcome {
        let path = path.display();
        let table = text.parse::<toml::Table>().map_err(|error| {
            let before = error.span().map_or("", |span| &text[..span.start]);
            let line = before.matches('\n').count() + 1;
            let why = error.message().replace('\n', ", ");
            Failure::usage(format!("{path}, line {line}: {why}"))
        })?;
        let mut leaves = Vec::new();
        flatten("", &toml::Value::Table(table), &mut leaves);
        for (name, text) in leaves {
            let spelled = name.replace('_', "-");
            let Some(key) = KEYS.iter().find(|key| **key == spelled) else {
                let nearest = nearest(&spelled, KEYS.iter().copied());
                return Err(Failure::usage(format!(
                    "{path}: '{name}' is not a known key; the nearest is '{nearest}'"
                )));
            };
            let origin = format!("{name} in {path}");
            self.values.insert(key, Value { text, origin });
        }
        Ok(())
    }

    /// Takes in the variables that are ours.
    pub(crate) fn read_environment(&mut self, variables: &[(OsString, OsString)]) -> Outcome {
        for (name, value) in variables {
            let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
                continue;
            };
            if name == FILE_VARIABLE || value.is_empty() || is_of_a_service(name, value) {
                continue;
            }
            let Some(key) = KEYS.iter().find(|key| variable_of(key) == name) else {
                let known = KEYS.iter().map(|key| variable_of(key));
                let nearest = nearest(name, known.chain([FILE_VARIABLE.to_owned()]));
                return Err(Failure::usage(format!(
                    "the environment variable {name} is not known; the nearest is {nearest}"
                )));
            };
            let Some(text) = value.to_str() else {
                let message = format!("the environment variable {name} is not UTF-8");
                return Err(Failure::usage(message));
            };
            let (text, origin) = (text.to_owned(), name.to_owned());
            self.values.insert(key, Value { text, origin });
        }
        Ok(())
    }

    /// The value of `key`: `flag` if it was given, else what environment or file say.
    ///
    /// # Errors
    /// [`Code::Usage`](crate::exit::Code::Usage): what they say is not such a value.
    pub(crate) fn get<T>(
        &self,
        flag: Option<T>,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Outcome<Option<T>> {
        assert!(KEYS.contains(&key), "'{key}' is a key");
        if flag.is_some() {
            return Ok(flag);
        }
        let Some(value) = self.values.get(key) else {
            return Ok(None);
        };
        let parsed = parse(&value.text).map_err(|why| {
            let origin = &value.origin;
            Failure::usage(format!("{origin}: {why}"))
        })?;
        Ok(Some(parsed))
    }

    /// True if a switch is on: given as a flag, or `true` in environment or file.
    ///
    /// # Errors
    /// [`Code::Usage`](crate::exit::Code::Usage): neither `true` nor `false`.
    pub(crate) fn switch(&self, flag: bool, key: &'static str) -> Outcome<bool> {
        let on = self.get(flag.then_some(true), key, |text| match text {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(format!("'{text}' is neither true nor false")),
        })?;
        Ok(on.unwrap_or(false))
    }

    /// The values of an option, or of its setting, where commas separate them.
    ///
    /// # Errors
    /// The setting is no text.
    pub(crate) fn list(&self, values: &[String], key: &'static str) -> Outcome<Vec<String>> {
        let values = (!values.is_empty()).then(|| values.join(","));
        let values = self.get(values, key, text)?.unwrap_or_default();
        let values = values.split(',').map(str::trim);
        Ok(values
            .filter(|value| !value.is_empty())
            .map(str::to_owned)
            .collect())
    }
}

/// The value of one of a closed list of words.
///
/// # Errors
/// A sentence that lists the words.
pub(crate) fn word<T: clap::ValueEnum>(text: &str) -> Result<T, String> {
    T::from_str(text, true).map_err(|_| {
        let words = T::value_variants().iter().filter_map(T::to_possible_value);
        let words: Vec<String> = words.map(|word| word.get_name().to_owned()).collect();
        format!("'{text}' is none of {}", words.join(", "))
    })
}

/// A whole number.
///
/// # Errors
/// A sentence.
pub(crate) fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    let parsed = text.parse();
    parsed.map_err(|_| format!("'{text}' is not a number in range"))
}

/// Any text.
///
/// # Errors
/// None.
#[allow(clippy::unnecessary_wraps)] // The shape that `Settings::get` asks for.
pub(crate) fn text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// An access key. The sentence shows nothing of it.
///
/// # Errors
/// A sentence.
pub(crate) fn key(text: &str) -> Result<AccessKey, String> {
    AccessKey::parse(text).map_err(|error| error.to_string())
}

/// A join token. The sentence shows nothing of it.
///
/// # Errors
/// A sentence.
pub(crate) fn token(text: &str) -> Result<JoinToken, String> {
    JoinToken::parse(text).map_err(|error| error.to_string())
}

/// A path.
///
/// # Errors
/// It is empty.
pub(crate) fn path(text: &str) -> Result<PathBuf, String> {
    match text {
        "" => Err("an empty path names nothing".into()),
        path => Ok(path.into()),
    }
}

/// True if a container engine made the variable for a service whose name begins with this program's name: Kubernetes for each
/// service of a namespace (`AREO_SERVICE_HOST`, `AREO_PORT=tcp://...`, `AREO_PORT_7400_TCP_ADDR`), Docker for each link
/// (`AREO_NAME=/web/areo`, `AREO_ENV_...`).
fn is_of_a_service(name: &str, value: &OsStr) -> bool {
    let name = &name[PREFIX.len() - 1..];
    let value = value.to_string_lossy();
    let is_url = ["tcp://", "udp://", "sctp://"]
        .iter()
        .any(|scheme| value.starts_with(scheme));
    let of_port = name.split_once("_PORT_").map(|(_, of_port)| of_port);
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || name.contains("_ENV_")
        || of_port.is_some_and(|of_port| of_port.starts_with(|c: char| c.is_ascii_digit()))
        || (name.ends_with("_PORT") && is_url)
        || (name == "_NAME" && value.starts_with('/'))
}

fn variable_of(key: &str) -> String {
    let name = key.replace(['.', '-'], "_");
    format!("{PREFIX}{}", name.to_ascii_uppercase())
}

/// Keys with their values as text; an array as its values with commas between.
fn flatten(prefix: &str, value: &toml::Value, leaves: &mut Vec<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                let dot = if prefix.is_empty() { "" } else { "." };
                flatten(&format!("{prefix}{dot}{name}"), value, leaves);
            }
        }
        toml::Value::String(text) => leaves.push((prefix.into(), text.clone())),
        toml::Value::Array(values) => {
            let text = values.iter().map(|value| match value.as_str() {
                Some(text) => text.to_owned(),
                None => value.to_string(),
            });
            leaves.push((prefix.into(), text.collect::<Vec<_>>().join(",")));
        }
        other => leaves.push((prefix.into(), other.to_string())),
    }
}

/// The known name that takes the fewest edits to get to.
fn nearest<T: AsRef<str>>(name: &str, known: impl Iterator<Item = T>) -> String {
    let nearest = known.min_by_key(|known| strsim::osa_distance(name, known.as_ref()));
    let nearest = nearest.expect("some names are known");
    nearest.as_ref().to_owned()
}

#[cfg(test)]
mod tests;
