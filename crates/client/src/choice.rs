//! Choosing servers and shape of a configuration: from what people say to a descriptor, or why not.

use crate::cluster::Names;
use crate::reconfig_kind::ReconfigKind;
use crate::{InvalidConfiguration, ServerId, Shape};
use areo_core::config::{Configuration, Descriptor};
use areo_core::dap;
use areo_core::message::ServerRecord;
use std::fmt;
use std::sync::Arc;

/// A configuration that cannot be, or should not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidChoice {
    /// No server of the cluster has this name or id.
    UnknownServer {
        /// What was asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// Several servers have this name: say the id of the one that is meant.
    AmbiguousServer {
        /// The name.
        name: String,
        /// Their ids.
        ids: Vec<ServerId>,
    },
    /// A server was named twice.
    ServerTwice {
        /// Its name.
        name: String,
    },
    /// A server that is to be removed is no member.
    NotAMember {
        /// What was asked for.
        name: String,
        /// The members.
        members: Vec<String>,
    },
    /// A server that is to be added is a member already.
    MemberAlready {
        /// Its name.
        name: String,
    },
    /// A server cannot take its own place.
    ReplacesItself {
        /// Its name.
        name: String,
    },
    /// No server can take the place of one that is to go.
    NoFreeServer {
        /// The server that is to go.
        server: String,
        /// The domain.
        domain: String,
        /// Why the domain cannot go on with one server less, if it might.
        fewer: Option<Box<InvalidChoice>>,
    },
    /// Two servers have the same address, so that one of them no longer exists.
    SameAddress {
        /// Name of the one.
        a: String,
        /// Name of the other.
        b: String,
        /// The address.
        address: String,
    },
    /// `k` was given for replication, where every server holds the whole value.
    NoFragments {
        /// The `k` asked for.
        k: u8,
    },
    /// The first configuration was to be left off half done.
    NothingToLeaveOff,
    /// One crash would stop the domain (f = 0), and that was not allowed.
    NoCrashTolerated {
        /// The shape.
        shape: Shape,
    },
    /// The algorithm needs piggybacking, which was turned off.
    NeedsPiggyback {
        /// The shape.
        shape: Shape,
    },
    /// Of a domain that is reconfigured so: it is replicated, by SM also of the kind `ec`, and no service outside decides.
    NotInALattice {
        /// How.
        reconfig: ReconfigKind,
    },
    /// Of a domain that is reconfigured so: it begins with more servers.
    TooFewToBegin {
        /// How.
        reconfig: ReconfigKind,
        /// How many it has at least.
        least: usize,
    },
    /// A domain that is reconfigured so changes its servers and nothing else.
    ServersOnly {
        /// How.
        reconfig: ReconfigKind,
    },
    /// Together with changes that others made at the same time this one would leave too few servers.
    TooFewServers {
        /// How many would be left.
        members: usize,
        /// How many there must be.
        least: usize,
        /// Members keep it, and it is made as soon as other changes bring servers.
        stays: bool,
    },
    /// The change alone would leave too few servers in a domain whose changes are merged.
    TooFewStay {
        /// How many would be left.
        members: usize,
        /// How many there must be.
        least: usize,
    },
    /// No such configuration can be.
    InvalidShape {
        /// Why.
        error: InvalidConfiguration,
    },
}

impl fmt::Display for InvalidChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidChoice::UnknownServer { name, known } if known.is_empty() => {
                write!(f, "there is no server '{name}': the cluster knows none")
            }
            InvalidChoice::UnknownServer { name, known } => {
                let known = known.join(", ");
                write!(f, "there is no server '{name}': there are {known}")
            }
            InvalidChoice::AmbiguousServer { name, ids } => {
                let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "several servers are called '{name}': say which by its id, {}",
                    ids.join(" or ")
                )
            }
            InvalidChoice::ServerTwice { name } => {
                write!(
                    f,
                    "server '{name}' is named twice: every member holds its own element"
                )
            }
            InvalidChoice::NotAMember { name, members } => {
                let members = members.join(", ");
                write!(
                    f,
                    "'{name}' cannot be removed, it is no member: there are {members}"
                )
            }
            InvalidChoice::MemberAlready { name } => {
                write!(f, "server '{name}' cannot be added, it is a member already")
            }
            InvalidChoice::ReplacesItself { name } => write!(
                f,
                "server '{name}' cannot take its own place: start another one (`areo server --join`)"
            ),
            InvalidChoice::NoFreeServer {
                server,
                domain,
                fewer,
            } => no_free_server(f, (server, domain), fewer.as_deref()),
            InvalidChoice::SameAddress { a, b, address } => write!(
                f,
                "servers '{a}' and '{b}' have the same address {address}, so one of them no longer exists: name the servers to use"
            ),
            InvalidChoice::NoFragments { .. } => f.write_str(
                "abd replicates, every server holds the whole value: leave --k out, or take --dap ec",
            ),
            InvalidChoice::NothingToLeaveOff => f.write_str(
                "a new domain has nothing that could be left off: `leave-off` is for changes of a domain",
            ),
            InvalidChoice::NoCrashTolerated { shape } => write!(
                f,
                "{shape} tolerates no crash: every quorum needs {} of {} servers; take more servers{}, or allow f = 0 (--allow-f0)",
                shape.quorum(),
                shape.n(),
                if shape.k() > 1 { " or a smaller k" } else { "" }
            ),
            InvalidChoice::NeedsPiggyback { shape } => write!(
                f,
                "{} needs piggybacking: leave piggyback=off and protocol=ares out, or take --dap ec",
                shape.dap()
            ),
            InvalidChoice::NotInALattice { .. }
            | InvalidChoice::TooFewToBegin { .. }
            | InvalidChoice::ServersOnly { .. }
            | InvalidChoice::TooFewServers { .. }
            | InvalidChoice::TooFewStay { .. } => self.fmt_of_lattice(f),
            InvalidChoice::InvalidShape { error } => error.fmt(f),
        }
    }
}

impl InvalidChoice {
    /// The sentence about a domain whose changes are merged.
    fn fmt_of_lattice(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidChoice::NotInALattice { reconfig } if *reconfig == ReconfigKind::Sm => write!(
                f,
                "a domain with --reconfig {reconfig} is replicated or coded by ec, and decides by itself: take --dap abd or --dap ec, and leave --consensus out"
            ),
            InvalidChoice::NotInALattice { reconfig } => write!(
                f,
                "a domain with --reconfig {reconfig} is replicated and decides by itself: take --dap abd, and leave --k and --consensus out; with --dap ec take --reconfig sm"
            ),
            InvalidChoice::TooFewToBegin { reconfig, least } => write!(
                f,
                "a domain with --reconfig {reconfig} has at least {least} servers: take more, or another way to reconfigure it"
            ),
            InvalidChoice::ServersOnly { reconfig } => write!(
                f,
                "a domain with --reconfig {reconfig} changes its servers and nothing else: create another domain, and copy the objects"
            ),
            InvalidChoice::TooFewStay { members, least } => write!(
                f,
                "{members} servers would be left, and this domain keeps at least {least}: add servers in the same change"
            ),
            InvalidChoice::TooFewServers {
                members,
                least,
                stays,
            } => {
                let then = match stays {
                    true => "then it is made",
                    false => "and make the change again",
                };
                write!(
                    f,
                    "with changes that others made at the same time {members} servers would be left, at least {least} must be: add servers, {then}"
                )
            }
            _ => unreachable!("the others have sentences of their own"),
        }
    }
}

impl std::error::Error for InvalidChoice {}

fn no_free_server(
    f: &mut fmt::Formatter<'_>,
    (server, domain): (&str, &str),
    fewer: Option<&InvalidChoice>,
) -> fmt::Result {
    write!(
        f,
        "no server is free to take the place of '{server}' in '{domain}'"
    )?;
    match fewer {
        // The option that allows it belongs to another command.
        Some(InvalidChoice::NoCrashTolerated { shape }) => {
            write!(
                f,
                ", and one server less is too few ({shape} tolerates no crash)"
            )?;
        }
        Some(fewer) => write!(f, ", and one server less is too few ({fewer})")?,
        None => {}
    }
    f.write_str(": start another one (`areo server --join`)")
}

/// The configuration that the descriptor makes, if its shape may be.
///
/// # Errors
/// [`InvalidChoice`].
pub(crate) fn checked(
    descriptor: Descriptor,
    allow_f0: bool,
) -> Result<Arc<Configuration>, InvalidChoice> {
    let invalid = |error| InvalidChoice::InvalidShape { error };
    let shape = Shape::new(descriptor.dap, descriptor.members.len()).map_err(invalid)?;
    if shape.f() == 0 && !allow_f0 {
        return Err(InvalidChoice::NoCrashTolerated { shape });
    }
    let is_plain = !descriptor.options.piggyback;
    let configuration = Configuration::new(descriptor).map_err(invalid)?;
    match is_plain && dap::finalizes(&configuration) {
        true => Err(InvalidChoice::NeedsPiggyback { shape }),
        false => Ok(configuration),
    }
}

/// The server of this name or id.
///
/// # Errors
/// None has it, or several have.
pub(crate) fn member<'a>(name: &str, names: &'a Names) -> Result<&'a ServerRecord, InvalidChoice> {
    let named: Vec<&ServerRecord> = names
        .servers()
        .filter(|record| record.name == name || record.id.to_string() == name)
        .collect();
    match named.as_slice() {
        [record] => Ok(record),
        [] => Err(InvalidChoice::UnknownServer {
            name: name.into(),
            known: names.sorted().into_iter().map(|s| s.name).collect(),
        }),
        several => Err(InvalidChoice::AmbiguousServer {
            name: name.into(),
            ids: several.iter().map(|record| record.id).collect(),
        }),
    }
}

/// Whether every member is another server.
///
/// # Errors
/// The first two that are not.
pub(crate) fn distinct(members: &[&ServerRecord]) -> Result<(), InvalidChoice> {
    for (position, a) in members.iter().enumerate() {
        for b in &members[position + 1..] {
            if a.id == b.id {
                let name = a.name.clone();
                return Err(InvalidChoice::ServerTwice { name });
            }
            if a.address == b.address {
                return Err(InvalidChoice::SameAddress {
                    a: a.name.clone(),
                    b: b.name.clone(),
                    address: a.address.clone(),
                });
            }
        }
    }
    Ok(())
}
