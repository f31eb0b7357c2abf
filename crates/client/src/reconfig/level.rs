//! What the root domain remembers of the programs of all servers: the level up to which the cluster is finalized.

use crate::cluster::ServerInfo;
use crate::error::Error;
use crate::session::Context;
use areo_core::manager::Finalization;

/// The level up to which a cluster is finalized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelChange {
    /// The level after the change.
    pub level: u32,
    /// The level before the change.
    pub before: u32,
}

/// The reason why a cluster was not finalized.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FinalizeError {
    /// The last starts of some servers were of programs that do not know the level.
    #[error(
        "level {level} is not known to {}: start each of them with the program of the others, or forget it (`areo server forget`){}",
        old(.servers),
        no_way_back(*.is_required)
    )]
    Behind {
        /// The largest level that a server knows.
        level: u32,
        /// The cluster registers no start of such a program any more.
        is_required: bool,
        /// Servers with such starts, in no order.
        servers: Vec<ServerInfo>,
    },
    /// No quorum answered, or the key lacks a grant.
    #[error("{error}")]
    Other {
        /// The error of the operation.
        error: Error,
    },
}

fn old(servers: &[ServerInfo]) -> String {
    let old = |server: &ServerInfo| match server.version.as_str() {
        "" => format!("{} (an older version)", server.name),
        version => format!("{} (areo {version})", server.name),
    };
    servers.iter().map(old).collect::<Vec<_>>().join(", ")
}

fn no_way_back(is_required: bool) -> &'static str {
    if is_required {
        "; no program that does not know it starts any more"
    } else {
        ""
    }
}

/// Finalizes the cluster, and reads the register again for this client.
pub(crate) async fn finalize(context: &Context) -> Result<LevelChange, FinalizeError> {
    let other = |error| FinalizeError::Other { error };
    context.find_root().await;
    let finalized = context.root_handle().finalize().await;
    let finalized = finalized.map_err(|failed| other(context.unknown(&failed)))?;
    // The outcome stands, also if the register cannot be read again.
    drop(context.servers().await);
    match finalized {
        Finalization::Finalized { level, before } => Ok(LevelChange { level, before }),
        Finalization::Behind {
            level,
            is_required,
            servers,
        } => Err(FinalizeError::Behind {
            level,
            is_required,
            servers: servers.iter().map(ServerInfo::from).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::names;

    #[test]
    fn servers_that_are_behind_are_named_with_their_versions() {
        let mut servers = names(&["s2", "s10"]).sorted();
        servers[1].version = "0.1.0".into();
        let error = |is_required| FinalizeError::Behind {
            level: 2,
            is_required,
            servers: servers.clone(),
        };
        let sentence = "level 2 is not known to s2 (an older version), s10 (areo 0.1.0): start each of them with the program of the others, \
                        or forget it (`areo server forget`)";
        assert_eq!(error(false).to_string(), sentence);
        let more = "; no program that does not know it starts any more";
        assert_eq!(error(true).to_string(), format!("{sentence}{more}"));
    }
}
