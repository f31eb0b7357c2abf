//! The configurations that cannot be, or should not.

use crate::reconfig_kind::ReconfigKind;
use crate::shape::Shape;
use areo_core::config::{Configuration, Descriptor, InvalidConfiguration, ServerId};
use areo_core::dap;
use std::sync::Arc;

/// A configuration that cannot be, or should not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidChoice {
    /// No server of the cluster has this name or id.
    #[error("there is no server '{name}': {}", there_are(.known))]
    UnknownServer {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// Several servers have this name: say the id of the one that is meant.
    #[error("several servers are called '{name}': say which by its id, {}", one_of(.ids))]
    AmbiguousServer {
        /// The name that several servers have.
        name: String,
        /// Ids of the servers with this name.
        ids: Vec<ServerId>,
    },
    /// A server was named twice.
    #[error("server '{name}' is named twice: every member holds its own element")]
    ServerTwice {
        /// Name of the server that is named twice.
        name: String,
    },
    /// A server that is to be removed is no member.
    #[error("'{name}' cannot be removed, it is no member: there are {}", .members.join(", "))]
    NotAMember {
        /// The name that was asked for.
        name: String,
        /// Names of the configuration's members.
        members: Vec<String>,
    },
    /// A server that is to be added is a member already.
    #[error("server '{name}' cannot be added, it is a member already")]
    MemberAlready {
        /// Name of the server that is a member already.
        name: String,
    },
    /// A server cannot take its own place.
    #[error("server '{name}' cannot take its own place: start another one (`areo server --join`)")]
    ReplacesItself {
        /// Name of the server that would replace itself.
        name: String,
    },
    /// A server that is to go was chosen to come.
    #[error("'{name}' is to go itself: `areo server keep {name}` takes that back")]
    Leaving {
        /// Name of the leaving server.
        name: String,
    },
    /// No server can take the place of one that is to go.
    #[error("no server is free to take the place of '{server}' in '{domain}'{}: start another one (`areo server --join`)", one_less(.fewer.as_deref()))]
    NoFreeServer {
        /// The leaving server.
        server: String,
        /// Name of the domain that it is a member of.
        domain: String,
        /// The reason why the domain cannot go on with one server less, if that was tried.
        fewer: Option<Box<InvalidChoice>>,
    },
    /// Two servers have the same address, so that one of them no longer exists.
    #[error(
        "servers '{a}' and '{b}' have the same address {address}, so one of them no longer exists: name the servers to use"
    )]
    SameAddress {
        /// Name of the one.
        a: String,
        /// Name of the other.
        b: String,
        /// The address that both servers have.
        address: String,
    },
    /// `k` was given for replication, where every server holds the whole value.
    #[error("abd replicates, every server holds the whole value: leave --k out, or take --dap ec")]
    NoFragments {
        /// The `k` asked for.
        k: u8,
    },
    /// The first configuration was to be left off half done.
    #[error(
        "a new domain has nothing that could be left off: `leave-off` is for changes of a domain"
    )]
    NothingToLeaveOff,
    /// One crash would stop the domain (f = 0), and that was not allowed.
    #[error("{shape} tolerates no crash: every quorum needs {} of {} servers; take more servers{}, or allow f = 0 (--allow-f0)", .shape.quorum(), .shape.n(), if .shape.k() > 1 { " or a smaller k" } else { "" })]
    NoCrashTolerated {
        /// The shape whose quorums need too many servers.
        shape: Shape,
    },
    /// The algorithm needs piggybacking, which was turned off.
    #[error("{} needs piggybacking: leave piggyback=off and protocol=ares out, or take --dap ec", .shape.dap())]
    NeedsPiggyback {
        /// The shape with the algorithm that needs piggybacking.
        shape: Shape,
    },
    /// A domain that is reconfigured so is replicated, by SM also of the kind `ec`, and no service outside decides.
    #[error("a domain with --reconfig {reconfig} is {}", in_a_lattice(*.reconfig))]
    NotInALattice {
        /// The way of reconfiguration.
        reconfig: ReconfigKind,
    },
    /// A domain that is reconfigured so begins with more servers.
    #[error(
        "a domain with --reconfig {reconfig} has at least {least} servers: take more, or another way to reconfigure it"
    )]
    TooFewToBegin {
        /// The way of reconfiguration.
        reconfig: ReconfigKind,
        /// The least number of servers.
        least: usize,
    },
    /// A domain that is reconfigured so changes its servers and nothing else.
    #[error(
        "a domain with --reconfig {reconfig} changes its servers and nothing else: create another domain, and copy the objects"
    )]
    ServersOnly {
        /// The way of reconfiguration.
        reconfig: ReconfigKind,
    },
    /// Together with changes that others made at the same time this one would leave too few servers.
    #[error("with changes that others made at the same time {members} servers would be left, at least {least} must be: add servers, {}", if *.stays { "then it is made" } else { "and make the change again" })]
    TooFewServers {
        /// The number that would be left.
        members: usize,
        /// The number that there must be.
        least: usize,
        /// Members keep it, and it is made as soon as other changes bring servers.
        stays: bool,
    },
    /// The change alone would leave too few servers in a domain whose changes are merged.
    #[error(
        "{members} servers would be left, and this domain keeps at least {least}: add servers in the same change"
    )]
    TooFewStay {
        /// The number that would be left.
        members: usize,
        /// The number that there must be.
        least: usize,
    },
    /// No such configuration can be.
    #[error("{error}")]
    InvalidShape {
        /// The reason why the descriptor is refused.
        error: InvalidConfiguration,
    },
}

fn there_are(names: &[String]) -> String {
    match names.is_empty() {
        true => "the cluster knows none".to_owned(),
        false => format!("there are {}", names.join(", ")),
    }
}

fn one_of(ids: &[ServerId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    ids.join(" or ")
}

fn one_less(fewer: Option<&InvalidChoice>) -> String {
    match fewer {
        // The option that allows it belongs to another command.
        Some(InvalidChoice::NoCrashTolerated { shape }) => {
            format!(", and one server less is too few ({shape} tolerates no crash)")
        }
        Some(fewer) => format!(", and one server less is too few ({fewer})"),
        None => String::new(),
    }
}

fn in_a_lattice(reconfig: ReconfigKind) -> &'static str {
    match reconfig {
        ReconfigKind::Sm => {
            "replicated or coded by ec, and decides by itself: take --dap abd or --dap ec, and leave --consensus out"
        }
        _ => {
            "replicated and decides by itself: take --dap abd, and leave --k and --consensus out; with --dap ec take --reconfig sm"
        }
    }
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
    match is_plain && dap::needs_piggyback(&configuration) {
        true => Err(InvalidChoice::NeedsPiggyback { shape }),
        false => Ok(configuration),
    }
}
