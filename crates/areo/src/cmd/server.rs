//! `areo server`: one server in the foreground; taking one out of the cluster; the health of one.

mod departure;
mod forget;
mod health;
mod keep;
mod label;

use crate::args::{self, DurabilityWord, LogWord, NUMBER, RootWord, ServerVerb, parse_max_object};
use crate::config::{self, Settings};
use crate::exit::{Code, Failure, Outcome};
use crate::log;
use crate::outside;
use crate::program::LEVEL;
use crate::session::{self, Session, Target, is_address};
use areo_client::cluster_file::{self, ClusterFile};
use areo_client::units::parse_size;
use areo_client::{ServerId, Successor, limits};
use areo_server::{
    CertificateFiles, ClusterIdentity, Durability, KeepAdministrator, Options, Program, ServeError,
    Start, advertised_admin, has_identity,
};
use areo_telemetry::Recorder;
use areo_trust::token::JoinToken;
use rustix::fs::Mode;
use rustix::process::{Signal, getpid, kill_process, umask};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DEFAULT_LISTEN: &str = "127.0.0.1:7400";
/// Bytes of objects that a server reads in a second, at most, to repair itself.
pub(super) const REPAIR_RATE: u64 = 32 << 20;
/// Bytes of its records that a server verifies in a second, at most: 3 TiB in 30 days.
pub(super) const SCRUB_RATE: u64 = 1280 << 10;
/// The time for which all domains must work without a server whose log lacks records before another one takes its place: a person who
/// put files in the wrong place notices. Shorter in tests.
const REPLACED_AFTER: Duration = match cfg!(debug_assertions) {
    true => Duration::from_millis(1500),
    false => Duration::from_mins(1),
};
/// The file by which the administrator reaches the cluster, in the data directory of its first server.
const CLUSTER_FILE: &str = "cluster.toml";
/// A token is shorter.
const MAX_TOKEN_BYTES: u64 = 4096;
/// The admin port of a server is so far above its own.
pub(super) const ADMIN_ABOVE: u16 = 90;

pub(super) use label::{show_labels, show_state};

pub(super) fn run(session: &Session, mut args: args::Server, recorder: Recorder) -> Outcome {
    match args.verb.take() {
        None => serve(session, args, recorder),
        Some(ServerVerb::Replace { departure, with }) => {
            let successor = with.map_or(Successor::Free, Successor::Server);
            departure::run(session, &departure, &successor)
        }
        Some(ServerVerb::Drain { departure }) => {
            departure::run(session, &departure, &Successor::FreeOrNone)
        }
        Some(ServerVerb::Keep { server }) => keep::run(session, &server),
        Some(ServerVerb::Ls) => label::ls(session),
        Some(ServerVerb::Label { server, changes }) => label::label(session, &server, &changes),
        Some(ServerVerb::Maintain(args)) => label::maintain(session, &args),
        Some(ServerVerb::Forget { server }) => forget::run(session, &server),
        Some(ServerVerb::Health(question)) => health::run(session, question),
    }
}

fn serve(session: &Session, args: args::Server, recorder: Recorder) -> Outcome {
    let word = session
        .settings
        .get(args.log, "log", config::word)?
        .unwrap_or(LogWord::Text);
    make_files_private();
    let supervised = args.supervised;
    log::of_server(session.out, word, &recorder);
    let options = options(session, args, recorder)?;
    if supervised {
        stop_with_supervisor()?;
    }
    areo_server::run(&options).map_err(|error| failure(&error))
}

/// Files that this process makes from now on are for its user alone, under any umask.
pub(super) fn make_files_private() {
    umask(Mode::RWXG | Mode::RWXO);
}

fn options(session: &Session, args: args::Server, recorder: Recorder) -> Outcome<Options> {
    let settings = &session.settings;
    let data = settings
        .get(args.data, "server.data", config::path)?
        .ok_or_else(|| Failure::usage("where is the server to keep its data? pass --data DIR"))?;
    let listen = settings.get(args.listen, "server.listen", config::text)?;
    let listen = listen.unwrap_or_else(|| DEFAULT_LISTEN.into());
    let admin = match settings.get(args.admin, "server.admin", config::text)? {
        Some(admin) => admin,
        None => default_admin(&listen)?,
    };
    let durability = settings.get(args.durability, "server.durability", config::word)?;
    let max_object = settings.get(args.max_object, "max-object", parse_max_object)?;
    let repair_rate = settings.get(args.repair_rate, "repair-rate", parse_size)?;
    let scrub_rate = settings.get(args.scrub_rate, "scrub-rate", parse_size)?;
    let origin = Origin::of(settings, (args.init, args.join), &data)?;
    let seeds = seeds(session.named_target()?, origin.joined(), &listen);
    let advertise = settings.get(args.advertise, "server.advertise", config::text)?;
    let files = (args.cert, args.cert_key);
    let certificate = certificate(settings, files, ("server.cert", "server.cert-key"))?;
    let address = advertise.as_ref().unwrap_or(&listen);
    let max_object = max_object.unwrap_or(limits::DEFAULT_VALUE_BYTES);
    let durability = durability.unwrap_or(DurabilityWord::Fsync);
    let start = match origin {
        Origin::Init => Start::Init {
            fixed_root: args.root == Some(RootWord::Fixed),
            administrator: AdministratorFile {
                path: data.join(CLUSTER_FILE),
                memory: durability == DurabilityWord::Memory,
                max_object,
                admin: advertised_admin(address, &admin),
                address: address.clone(),
            }
            .keep(),
        },
        Origin::Existing => Start::Existing,
        Origin::Join(seeds) => Start::Join {
            // It is needed once, and may be gone by the next start.
            token: match has_identity(&data) {
                true => None,
                false => match token(settings, args.token.as_deref())? {
                    Some(token) => Some(token),
                    None => super::trust::token_for_a_join(session, &seeds)?,
                },
            },
            seeds,
        },
    };
    if start == Start::Existing && matches!(data.try_exists(), Ok(false)) {
        // The server would make the directory before it finds that there is nothing in it.
        return Err(failure(&ServeError::NotInitialised { path: data }));
    }
    Ok(Options {
        data,
        program: program(),
        advertise,
        admin,
        start,
        durability: durability_of(durability),
        name: settings.get(args.name, "server.name", config::text)?,
        max_value_bytes: max_object,
        repair_bytes_per_s: repair_rate.unwrap_or(REPAIR_RATE),
        scrub_bytes_per_s: scrub_rate.unwrap_or(SCRUB_RATE),
        tls: args.tls,
        // AREO_SERVER_CERT is for a server that a person starts: it cannot name each server of `areo up`.
        certificate: certificate.filter(|_| !args.supervised),
        replaced_after: REPLACED_AFTER,
        decide_outside: Some(outside::way),
        recorder,
        seeds,
        listen,
    })
}

/// This program, as the cluster registers it.
fn program() -> Program {
    Program {
        version: NUMBER.into(),
        level: LEVEL,
    }
}

fn durability_of(word: DurabilityWord) -> Durability {
    match word {
        DurabilityWord::Fsync => Durability::Fsync,
        DurabilityWord::Memory => Durability::Memory,
    }
}

/// The origin of the cluster of a server.
#[derive(PartialEq, Eq, Debug)]
enum Origin {
    /// The server begins it.
    Init,
    /// One of these servers has it.
    Join(Vec<String>),
    /// The data directory says which it is.
    Existing,
}

impl Origin {
    /// The origin that flags say, else the settings. Settings stay when the server is started again: they count only where the directory has no
    /// identity yet.
    fn of(settings: &Settings, flags: (bool, Vec<String>), data: &Path) -> Outcome<Origin> {
        let origin = match flags {
            (true, _) => Origin::Init,
            (false, join) if !join.is_empty() => Origin::Join(join),
            (false, _) => {
                let init = settings.switch(false, "server.init")?;
                let join = settings.get(None, "server.join", config::text)?;
                match (init, join) {
                    (true, Some(_)) => {
                        return Err(Failure::usage(
                            "both server.init and server.join are set: a server begins a cluster, or joins one",
                        ));
                    }
                    (true, None) if !has_identity(data) => Origin::Init,
                    (false, Some(join)) => {
                        let addresses = join.split(',').map(str::trim);
                        Origin::Join(addresses.map(str::to_owned).collect())
                    }
                    (_, None) => Origin::Existing,
                }
            }
        };
        check_joined(origin.joined())?;
        Ok(origin)
    }

    /// The servers to ask, if there are such.
    fn joined(&self) -> &[String] {
        match self {
            Origin::Join(join) => join,
            Origin::Init | Origin::Existing => &[],
        }
    }
}

/// The file in the data directory by which the administrator of a new cluster reaches it.
struct AdministratorFile {
    path: PathBuf,
    memory: bool,
    max_object: u64,
    address: String,
    admin: String,
}

impl AdministratorFile {
    fn keep(self) -> KeepAdministrator {
        KeepAdministrator::new(move |made| self.write(made))
    }

    fn write(&self, made: &ClusterIdentity) -> Result<(), String> {
        let server = |(id, name): &(ServerId, String)| cluster_file::Server {
            name: name.clone(),
            id: id.0,
            address: self.address.clone(),
            admin: self.admin.clone(),
        };
        let servers = made.servers.iter().map(server).collect();
        let file = ClusterFile::new(made.cluster, self.memory, self.max_object, servers);
        let file = file.with_key(made.administrator.clone());
        let written = session::write_cluster_file(&file, &self.path);
        written.map_err(|failure| failure.message)
    }
}

/// The token that lets this server in, if one is given. Arguments are seen by every user of a machine: it is in a file, or in the environment.
fn token(settings: &Settings, file: Option<&Path>) -> Outcome<Option<JoinToken>> {
    let Some(file) = file else {
        return settings.get(None, "token", config::token);
    };
    if JoinToken::parse(&file.to_string_lossy()).is_ok() {
        return Err(Failure::usage(
            "a token among the arguments can be seen by every user of this machine, and this one is to be revoked (`areo token revoke`): \
             pass the name of a file, or `-` for standard input, or set AREO_TOKEN",
        ));
    }
    let text = match file.as_os_str().as_encoded_bytes() {
        b"-" => std::io::read_to_string(std::io::stdin().take(MAX_TOKEN_BYTES)),
        _ => std::fs::read_to_string(file),
    };
    let text = text.map_err(|error| Failure::file("read the token from", file, &error))?;
    let token = config::token(&text);
    token.map(Some).map_err(Failure::usage)
}

/// The files with a certificate of the operator's own PKI: both, or none.
pub(super) fn certificate(
    settings: &Settings,
    (certificate, key): (Option<PathBuf>, Option<PathBuf>),
    (certificate_setting, key_setting): (&'static str, &'static str),
) -> Outcome<Option<CertificateFiles>> {
    let certificate = settings.get(certificate, certificate_setting, config::path)?;
    let key = settings.get(key, key_setting, config::path)?;
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(CertificateFiles { certificate, key })),
        (Some(_), None) => Err(Failure::usage(
            "a certificate needs its private key: pass --cert-key FILE as well",
        )),
        (None, Some(_)) => Err(Failure::usage(
            "a private key needs its certificate: pass --cert FILE as well",
        )),
    }
}

/// The addresses of other servers: those of the named cluster, and those to join.
fn seeds(target: Option<Target>, join: &[String], listen: &str) -> Vec<String> {
    let named = target.map(|target| target.addresses()).unwrap_or_default();
    let mut addresses: Vec<String> = Vec::new();
    for address in named.iter().chain(join) {
        if address != listen && !addresses.contains(address) {
            addresses.push(address.clone());
        }
    }
    addresses
}

fn check_joined(addresses: &[String]) -> Outcome {
    match addresses.iter().find(|it| !is_address(it)) {
        None => Ok(()),
        Some(wrong) => Err(Failure::usage(format!(
            "'{wrong}' is no address to join: those are written HOST:PORT"
        ))),
    }
}

/// The address of the admin port by default: this host, and a port 90 above.
fn default_admin(listen: &str) -> Outcome<String> {
    let above = |(host, port): (&str, &str)| {
        let port = port.parse::<u16>().ok()?.checked_add(ADMIN_ABOVE)?;
        Some((host.to_owned(), port))
    };
    let Some((_, port)) = listen.rsplit_once(':').and_then(above) else {
        return Err(Failure::usage(format!(
            "'{listen}' is no address to listen on: those are written HOST:PORT, as in {DEFAULT_LISTEN}, and without --admin a port 90 above must exist"
        )));
    };
    // Health and administration are for this machine, unless the user says otherwise.
    Ok(format!("127.0.0.1:{port}"))
}

fn failure(error: &ServeError) -> Failure {
    let code = match error.exit_code() {
        2 => Code::Usage,
        5 => Code::Unavailable,
        6 => Code::Unauthorised,
        7 => Code::Corrupted,
        _ => Code::Other,
    };
    Failure::new(code, error.to_string())
}

/// Drains when standard input ends. `areo up` holds the other end of it, and the system closes that however `areo up`
/// ends, so that no server is left behind.
pub(super) fn stop_with_supervisor() -> Outcome {
    let wait = || {
        let mut nothing = [0; 64];
        while std::io::stdin()
            .read(&mut nothing)
            .is_ok_and(|bytes| bytes > 0)
        {}
        kill_process(getpid(), Signal::TERM).expect("a process may signal itself");
    };
    let thread = std::thread::Builder::new()
        .name("supervisor".into())
        .spawn(wait);
    let system = |error: std::io::Error| Failure::other(format!("cannot start a thread: {error}"));
    thread.map(drop).map_err(system)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: (&str, &str) = ("server.cert", "server.cert-key");

    #[test]
    fn a_certificate_has_its_key() {
        let variables = |names: &[&str]| {
            let named = names.iter().map(|name| ((*name).into(), "file".into()));
            let mut settings = Settings::default();
            settings
                .read_environment(&named.collect::<Vec<_>>())
                .unwrap();
            settings
        };
        let both = variables(&["AREO_SERVER_CERT", "AREO_SERVER_CERT_KEY"]);
        let found = certificate(&both, (Some("flag".into()), None), NAMES).unwrap();
        let expected = CertificateFiles {
            certificate: "flag".into(),
            key: "file".into(),
        };
        assert_eq!(found, Some(expected));
        assert_eq!(
            certificate(&Settings::default(), (None, None), NAMES),
            Ok(None)
        );
        for (name, missing) in [
            ("AREO_SERVER_CERT", "--cert-key FILE"),
            ("AREO_SERVER_CERT_KEY", "--cert FILE"),
        ] {
            let refused = certificate(&variables(&[name]), (None, None), NAMES).unwrap_err();
            assert_eq!(refused.code, Code::Usage);
            assert!(refused.message.contains(missing), "{}", refused.message);
        }
    }

    #[test]
    fn the_admin_port_is_90_above_on_loopback() {
        for (listen, admin) in [
            ("127.0.0.1:7400", "127.0.0.1:7490"),
            ("0.0.0.0:7401", "127.0.0.1:7491"),
            ("[::1]:1", "127.0.0.1:91"),
        ] {
            assert_eq!(default_admin(listen).as_deref(), Ok(admin));
        }
        for wrong in ["", "7400", "localhost", "localhost:x", "localhost:65500"] {
            let refused = default_admin(wrong).unwrap_err();
            assert_eq!(refused.code, Code::Usage, "{wrong}");
        }
    }

    #[test]
    fn seeds_are_the_other_servers() {
        let server = |i: u16| cluster_file::Server {
            name: format!("s{i}"),
            id: i.into(),
            address: format!("127.0.0.1:{i}"),
            admin: String::new(),
        };
        let file = ClusterFile::new(1, false, 1, (1..4).map(server).collect());
        let file = Some(Target::File("f".into(), file));
        let join = ["127.0.0.1:3".to_owned(), "a:4".to_owned()];
        let found = seeds(file, &join, "127.0.0.1:2");
        assert_eq!(found, ["127.0.0.1:1", "127.0.0.1:3", "a:4"]);
        assert_eq!(seeds(None, &join, "a:4"), ["127.0.0.1:3"]);
        assert!(seeds(None, &[], "a:4").is_empty());
    }
}
