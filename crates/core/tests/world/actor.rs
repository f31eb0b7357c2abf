//! A client of the tiny world, with operations that can be run or spawned: each has its own deadline.

use super::{World, WorldEnv, name, value};
use areo_core::config::Configuration;
use areo_core::dap::FoundVersion;
use areo_core::dsm::coverable::{self, CoverableOutcome};
use areo_core::dsm::listing::Page;
use areo_core::dsm::{Client, Domain, atomic};
use areo_core::element::Value;
use areo_core::error::{Unavailable, WriteError};
use areo_core::manager::{self, DeleteError, Deletion, Registration};
use areo_core::message::{Enrolment, ListRequest, ServerRecord};
use areo_core::object::Kind;
use areo_core::tag::Tag;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone)]
pub struct Actor {
    world: World,
    client: Client<WorldEnv>,
    pub c: Arc<Configuration>,
    /// The time by which its time of day is ahead.
    ahead: Duration,
}

impl Actor {
    pub(super) fn new(world: &World, c: &Arc<Configuration>) -> Actor {
        Actor {
            world: world.clone(),
            client: Client::new(world.env()),
            c: c.clone(),
            ahead: Duration::ZERO,
        }
    }

    /// This actor with a time of day that is ahead by this time.
    pub fn ahead(&self, ahead: Duration) -> Actor {
        Actor {
            ahead,
            ..self.clone()
        }
    }

    /// This actor, with writes that leave the blocks of replaced versions to a sweep.
    pub fn keeping_replaced(&self) -> Actor {
        Actor {
            client: self.client.keeping_replaced(),
            ..self.clone()
        }
    }

    /// This actor, with reconfigurations that wait for a leader.
    pub fn waiting_for_leaders(&self, patience: Duration) -> Actor {
        Actor {
            client: self.client.waiting_for_leaders(patience),
            ..self.clone()
        }
    }

    /// A client for one operation.
    pub fn client(&self) -> Client<WorldEnv> {
        self.client.with(self.world.env().ahead(self.ahead))
    }

    /// A handle on the domain, for one operation.
    pub fn domain(&self) -> Domain<WorldEnv> {
        self.client().domain(&self.c)
    }

    pub fn write(
        &self,
        key: &str,
        text: &str,
    ) -> impl Future<Output = Result<Tag, WriteError>> + use<> {
        self.write_value(key, value(text))
    }

    pub fn write_value(
        &self,
        key: &str,
        value: Value,
    ) -> impl Future<Output = Result<Tag, WriteError>> + use<> {
        let (domain, name) = (self.domain(), name(key));
        async move { domain.put(&name, &value).await }
    }

    pub fn cover(
        &self,
        key: &str,
        text: &str,
        version: Tag,
    ) -> impl Future<Output = Result<CoverableOutcome, WriteError>> + use<> {
        let (domain, name, value) = (self.domain(), name(key), value(text));
        async move { domain.put_if(&name, &value, Some(version)).await }
    }

    pub fn read(
        &self,
        key: &str,
    ) -> impl Future<Output = Result<FoundVersion, Unavailable>> + use<> {
        let (domain, name) = (self.domain(), name(key));
        async move { domain.read(&name, None).await }
    }

    pub fn stat(
        &self,
        key: &str,
    ) -> impl Future<Output = Result<FoundVersion, Unavailable>> + use<> {
        let (domain, name) = (self.domain(), name(key));
        async move { domain.stat(&name).await }
    }

    pub fn delete(&self, key: &str) -> impl Future<Output = Result<Deletion, DeleteError>> + use<> {
        let (domain, name) = (self.domain(), name(key));
        async move { domain.delete(&name, Bytes::new()).await }
    }

    pub fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: u16,
    ) -> impl Future<Output = Result<Page, Unavailable>> + use<> {
        self.list_by(ListRequest {
            after: after.into(),
            limit,
            ..ListRequest::new(Kind::User, prefix)
        })
    }

    /// The keys of all objects, of which there are not many.
    pub fn keys(&self) -> Vec<String> {
        let listed = self.world.run(self.list("", "", 100)).expect("a quorum");
        listed.entries.into_iter().map(|entry| entry.key).collect()
    }

    pub fn list_by(
        &self,
        request: ListRequest,
    ) -> impl Future<Output = Result<Page, Unavailable>> + use<> {
        let domain = self.domain();
        async move { domain.list_objects(&request).await }
    }

    /// Writes, which must succeed.
    pub fn put(&self, key: &str, text: &str) -> Tag {
        self.world
            .run(self.write(key, text))
            .expect("the write succeeds")
    }

    /// Writes the version after `version`, which must succeed.
    pub fn change(&self, key: &str, text: &str, version: Tag) -> Tag {
        match self.world.run(self.cover(key, text, version)) {
            Ok(CoverableOutcome::Changed(tag)) => tag,
            other => panic!("{other:?}: {version} is the newest"),
        }
    }

    /// Reads, which must succeed: version and text, `None` if there is no value.
    pub fn get(&self, key: &str) -> (Tag, Option<String>) {
        let found = self.world.run(self.read(key)).expect("the read succeeds");
        (found.tag, found.value.as_ref().map(super::text))
    }

    /// Registers a start in the root domain, whose last configuration this client knows.
    pub fn registering(
        &self,
        record: ServerRecord,
    ) -> impl Future<Output = Result<Registration, Unavailable>> + use<> {
        let (client, root) = (self.client(), self.c.clone());
        async move {
            client
                .root(&root)
                .register(Enrolment::Register, &record)
                .await
        }
    }

    pub fn register(&self, record: ServerRecord) -> Registration {
        let registered = self.world.run(self.registering(record));
        registered.expect("a quorum answers")
    }
}
