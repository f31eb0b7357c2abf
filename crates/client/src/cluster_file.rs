//! `cluster.toml`: the servers of a cluster, their addresses, and a key. Clients reach the cluster by it; the directory in the root domain
//! knows more, and later changes.

use crate::units::{exact_size, parse_size};
use areo_trust::key::AccessKey;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The file's version that this program writes and reads.
const VERSION: i64 = 1;
const HEAD: &str = "\
# Written by Areo. Addresses may change, ids do not. Clients need this file, or the address of one server and, where the cluster has keys, a key.
";

/// The contents of a cluster file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClusterFile {
    version: i64,
    /// Id of the cluster.
    #[serde(with = "hexadecimal")]
    pub cluster: u128,
    /// Durability of the servers: `fsync` or `memory`.
    pub durability: String,
    /// Largest value of one object, in bytes.
    #[serde(with = "size")]
    pub max_object: u64,
    /// An access key: who can read the file may do what the key may do.
    #[serde(default, with = "key", skip_serializing_if = "Option::is_none")]
    pub key: Option<AccessKey>,
    /// Servers that were known when the file was written.
    pub servers: Vec<Server>,
}

/// One server of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Server {
    /// Its name for people.
    pub name: String,
    /// Id of the server.
    #[serde(with = "hexadecimal")]
    pub id: u128,
    /// The address at which it serves, `HOST:PORT`.
    pub address: String,
    /// The address of its admin port.
    pub admin: String,
}

impl ClusterFile {
    /// A file without a key. `memory`: the servers keep nothing on disk. `max_object`: bytes of the largest value of one object.
    ///
    /// # Panics
    /// There are no servers.
    pub fn new(cluster: u128, memory: bool, max_object: u64, servers: Vec<Server>) -> Self {
        assert!(!servers.is_empty(), "a cluster has servers");
        let durability = if memory { "memory" } else { "fsync" };
        ClusterFile {
            version: VERSION,
            cluster,
            durability: durability.into(),
            max_object,
            key: None,
            servers,
        }
    }

    /// The file with a key for the cluster, if that has keys.
    #[must_use]
    pub fn with_key(self, key: Option<AccessKey>) -> ClusterFile {
        ClusterFile { key, ..self }
    }

    /// True if the servers keep nothing on disk.
    pub fn memory(&self) -> bool {
        self.durability == "memory"
    }

    /// Addresses of all servers, each once: servers behind a proxy may share one.
    pub fn addresses(&self) -> Vec<String> {
        let mut addresses: Vec<String> = Vec::new();
        for server in &self.servers {
            if !addresses.contains(&server.address) {
                addresses.push(server.address.clone());
            }
        }
        addresses
    }

    /// The file at `path`; `None` if there is none.
    ///
    /// # Errors
    /// [`ClusterFileError`]: it cannot be read, or is no cluster file of this version.
    pub fn read(path: &Path) -> Result<Option<ClusterFile>, ClusterFileError> {
        let foreign = |why| ClusterFileError::Foreign {
            path: path.into(),
            why,
        };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            // A list of addresses is no file, also where it is longer than the name of a file may be.
            Err(error) if error.kind() == ErrorKind::InvalidFilename => return Ok(None),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(foreign("it is not text".into()));
            }
            Err(error) => {
                return Err(ClusterFileError::Unreadable {
                    path: path.into(),
                    why: error.kind().to_string(),
                });
            }
        };
        parse(&text).map(Some).map_err(foreign)
    }

    /// The file as TOML.
    pub fn text(&self) -> String {
        toml::to_string(self).expect("names and numbers are TOML")
    }

    /// Puts the file at `path`, complete or not at all, also if the machine crashes. Its owner alone can read it: it may have a key.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let text = self.text();
        let mut file = tempfile::Builder::new()
            .prefix(".cluster")
            .tempfile_in(parent)?;
        file.write_all(HEAD.as_bytes())?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        File::open(parent)?.sync_all()
    }
}

/// A file by which no cluster is reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterFileError {
    /// The operating system does not let this process read it.
    #[error("cannot read the cluster file {}: {why}", .path.display())]
    Unreadable {
        /// Path of the cluster file.
        path: PathBuf,
        /// The error of the operating system.
        why: String,
    },
    /// Its text is not that of a cluster file of this version.
    #[error("{} is not a cluster file: {why}", .path.display())]
    Foreign {
        /// Path of the cluster file.
        path: PathBuf,
        /// The reason why the text is refused.
        why: String,
    },
}

/// The contents of a file with this text.
///
/// # Errors
/// The reason why it is no cluster file.
pub fn parse(text: &str) -> Result<ClusterFile, String> {
    let one_line = |error: toml::de::Error| error.message().replace('\n', ", ");
    let table = text.parse::<toml::Table>().map_err(one_line)?;
    match table.get("version").and_then(toml::Value::as_integer) {
        Some(VERSION) => {}
        Some(other) => {
            return Err(format!(
                "it has version {other}, this program knows version {VERSION}: use the program that wrote it"
            ));
        }
        None => return Err("it has no version".into()),
    }
    let file = table.try_into::<ClusterFile>().map_err(one_line)?;
    if !["fsync", "memory"].contains(&file.durability.as_str()) {
        let durability = file.durability;
        return Err(format!("durability '{durability}' is not known"));
    }
    if file.servers.is_empty() {
        return Err("it names no servers".into());
    }
    for (position, server) in file.servers.iter().enumerate() {
        let before = &file.servers[..position];
        let same = |s: &Server| s.name == server.name || s.id == server.id;
        if before.iter().any(same) {
            return Err(format!("server {} is there twice", server.name));
        }
    }
    Ok(file)
}

mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(id: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{id:032x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let parsed = digits
            .then(|| u128::from_str_radix(&text, 16).ok())
            .flatten();
        parsed.ok_or_else(|| {
            D::Error::custom(format!("'{text}' is not an id of 32 hexadecimal digits"))
        })
    }
}

mod key {
    use super::AccessKey;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[allow(clippy::ref_option)] // The shape that serde asks for.
    pub(super) fn serialize<S: Serializer>(
        key: &Option<AccessKey>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let key = key.as_ref().expect("none is left out");
        serializer.serialize_str(&key.expose_text())
    }

    /// An error says nothing of the text: it may be most of a secret.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<AccessKey>, D::Error> {
        let text = String::deserialize(from)?;
        AccessKey::parse(&text).map(Some).map_err(D::Error::custom)
    }
}

mod size {
    use super::{exact_size, parse_size};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[allow(clippy::trivially_copy_pass_by_ref)] // The shape that serde asks for.
    pub(super) fn serialize<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&exact_size(*bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        parse_size(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> ClusterFile {
        let server = |i: u16| Server {
            name: format!("s{i}"),
            id: u128::from(i) << 100,
            address: format!("127.0.0.1:{}", 7400 + i),
            admin: format!("127.0.0.1:{}", 7490 + i),
        };
        ClusterFile::new(0xa, false, 64 << 20, (0..3).map(server).collect())
    }

    #[test]
    fn files_survive() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cluster.toml");
        assert_eq!(ClusterFile::read(&path), Ok(None));
        file().write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# Written by Areo"), "{text}");
        assert!(text.contains("max-object = \"64MiB\""), "{text}");
        assert!(text.contains("cluster = \"0000000000000000000000000000000a\""));
        assert_eq!(ClusterFile::read(&path), Ok(Some(file())));
        let left = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(left, 1, "no other file is left behind");
    }

    /// One at whose address another server is by now, or two behind a proxy, made the file useless.
    #[test]
    fn servers_that_share_an_address_are_read() {
        let mut shared = file();
        shared.servers[2].address = shared.servers[0].address.clone();
        assert_eq!(parse(&shared.text()), Ok(shared.clone()));
        assert_eq!(shared.addresses(), ["127.0.0.1:7400", "127.0.0.1:7401"]);
    }

    #[test]
    fn a_file_with_a_key_is_for_its_owner_alone_and_shows_it_nowhere_else() {
        use std::os::unix::fs::PermissionsExt;
        let secret = "5".repeat(64);
        let key = AccessKey::parse(&format!("areokey1.0000000000000007.{secret}")).unwrap();
        let with_key = ClusterFile {
            key: Some(key),
            ..file()
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("app.toml");
        with_key.write(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(ClusterFile::read(&path), Ok(Some(with_key.clone())));
        let shown = format!("{with_key:?}");
        assert!(!shown.contains(&secret[..8]), "{shown}");
        let text = with_key.text();
        for (text, why) in [
            (
                text.replace(&secret, &secret[1..]),
                "the secret of this access key is damaged",
            ),
            (
                text.replace("areokey1", "areo1"),
                "one begins with 'areokey1.'",
            ),
        ] {
            let refused = parse(&text).expect_err(why);
            assert!(refused.contains(why), "{why}: {refused}");
            assert!(!refused.contains(&secret[..8]), "{refused}");
        }
        assert!(!file().text().contains("key"));
    }

    #[test]
    fn a_list_of_many_addresses_is_no_file() {
        let addresses = vec!["127.0.0.1:7400"; 30].join(",");
        assert_eq!(ClusterFile::read(Path::new(&addresses)), Ok(None));
    }

    #[test]
    fn other_files_are_refused_in_one_sentence() {
        let good = toml::to_string(&file()).unwrap();
        for (text, why) in [
            (String::new(), "it has no version"),
            ("= 3".into(), ""),
            (
                good.replace("version = 1", "version = 2"),
                "it has version 2, this program knows version 1",
            ),
            (
                good.replace("fsync", "hope"),
                "durability 'hope' is not known",
            ),
            (good.replace("admin", "admni"), "unknown field `admni`"),
            (good.replace("s1", "s0"), "server s0 is there twice"),
            (good.replace("64MiB", "64M"), "'64M' is not a size"),
            (good.replace("00000a\"", "00000g\""), "is not an id"),
        ] {
            let refused = parse(&text).expect_err(why);
            assert!(refused.contains(why), "{why}: {refused}");
            assert!(!refused.contains('\n'), "one sentence: {refused}");
        }
        assert!(parse(&good).is_ok());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cluster.toml");
        std::fs::write(&path, [0xff]).unwrap();
        let refused = ClusterFile::read(&path).unwrap_err().to_string();
        let wanted = format!("{} is not a cluster file: it is not text", path.display());
        assert_eq!(refused, wanted);
        let refused = ClusterFile::read(directory.path()).unwrap_err().to_string();
        assert!(refused.ends_with(": is a directory"), "{refused}");
    }
}
