//! The level of a cluster (`[X-46 cluster-level]`, decision record 0088).
//!
//! A program knows levels up to one of its own. Clients and servers use what comes with a level where the cluster is *finalized* up to it. That
//! takes two steps, because a server may start between a look at all servers and the decision. First a quorum stops registering starts of
//! older programs. A second look then finds servers that were faster.

use super::Root;
use crate::config::ServerId;
use crate::dap::registered;
use crate::env::Env;
use crate::error::Unavailable;
use crate::gather::Visit;
use crate::message::{Levels, ServerRecord};
use std::collections::BTreeMap;

/// The end of [`Root::finalize`] without an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finalization {
    /// The cluster is finalized up to this level.
    Finalized {
        level: u32,
        /// The level up to which it was finalized before.
        before: u32,
    },
    /// The last starts of these servers were of programs that do not know the level.
    Behind {
        level: u32,
        /// The register takes no start of such a program any more.
        is_required: bool,
        servers: Vec<ServerRecord>,
    },
}

impl<E: Env> Root<E> {
    /// Finalizes the cluster up to the largest level that one of its servers knows, if every server that is not forgotten knows it. A server
    /// that is away counts by its last start. A caller repeats it after an error; two callers at once do no harm.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time: a part may be done.
    pub async fn finalize(&self) -> Result<Finalization, Unavailable> {
        let servers = self.servers().await?;
        let before = Levels::of(servers.values());
        let known = started(&servers).map(|it| it.program.level).max();
        let level = known.unwrap_or(0).max(before.required);
        if let Some(behind) = behind(&servers, level, before.required) {
            return Ok(behind);
        }
        let finalized = before.finalized;
        let required = Levels {
            required: level,
            finalized,
        };
        self.raise(&servers, required).await?;
        // A member without the mark may register an older program after it has answered.
        let servers = self.servers_requiring(level).await?;
        if let Some(behind) = behind(&servers, level, level) {
            return Ok(behind);
        }
        let finalized = Levels {
            finalized: level,
            ..required
        };
        self.raise(&servers, finalized).await?;
        let before = before.finalized;
        Ok(Finalization::Finalized { level, before })
    }

    /// Raises the levels at a quorum of each configuration on the way, with the record of any server.
    async fn raise(
        &self,
        servers: &BTreeMap<ServerId, ServerRecord>,
        levels: Levels,
    ) -> Result<(), Unavailable> {
        assert!(
            levels.finalized <= levels.required,
            "nothing older starts where more may be used"
        );
        // The servers that answered are registered.
        let Some(record) = servers.values().next() else {
            return Ok(());
        };
        let levels = record.levels.join(levels);
        let record = ServerRecord {
            levels,
            ..record.clone()
        };
        let env = &self.domain.client.env;
        let raise = async |at: &Visit| registered::hand_on(env, at, record.clone()).await;
        self.domain.walk().to_the_end(raise).await.map(drop)
    }
}

/// Servers that may start again.
fn started(servers: &BTreeMap<ServerId, ServerRecord>) -> impl Iterator<Item = &ServerRecord> {
    servers.values().filter(|record| !record.is_forgotten())
}

fn behind(
    servers: &BTreeMap<ServerId, ServerRecord>,
    level: u32,
    required: u32,
) -> Option<Finalization> {
    let behind = started(servers).filter(|record| record.program.level < level);
    let servers: Vec<ServerRecord> = behind.cloned().collect();
    (!servers.is_empty()).then_some(Finalization::Behind {
        level,
        is_required: required >= level,
        servers,
    })
}
