//! Conditional writes with one winner, in domains that are conditional.

use crate::domain::Domain;
use crate::error::{Error, Invalid, LostObject};
use crate::object::{Metadata, Object, PutOptions, now_ms};
use crate::operation::Operation;
use crate::session::{Context, Deadline};
use crate::stream::{StreamError, version_conflict};
use areo_core::dsm::conditional::Condition;
use areo_core::element::Value;
use areo_core::object::Name;
use areo_core::tag::{ClientId, Tag as Version, Writer};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::pin::pin;
use std::time::Duration;
use tokio::io::AsyncRead;

/// Times that [`Domain::update`] tries before it gives up.
const UPDATES: u32 = 64;
/// The longest pause of [`Domain::update`] after its first conflict; twice as long after each further one, up to 64 times.
const UPDATE_PAUSE: Duration = Duration::from_millis(2);

impl Domain {
    /// True if at most one of concurrent conditional writes on one version of an object succeeds here, as far as this handle knows. A domain is
    /// created so, with [`DapKind::Conditional`](crate::DapKind::Conditional), or becomes so, until it becomes `abd` or `ec`. A handle that was
    /// opened before hears of it with its next operation.
    pub fn has_one_winner(&self) -> bool {
        self.known.noted().dap().is_conditional()
    }

    /// Writes the object if `version` is its newest; with `None`, if there is no such object. Of all writes on one version, by any
    /// clients, one succeeds at most, through crashes and while the domain moves. Two rounds when no other write of
    /// the object is under way; a write that another one overtakes pauses and tries again, until it has won or lost.
    ///
    /// # Errors
    /// [`Error::Invalid`] in a domain without one winner; [`Error::VersionConflict`] with the newest version, and then nothing was
    /// written and never will be; otherwise as [`Domain::put`]. After [`Error::Unknown`] the object says what became of it: as soon as
    /// any later write of it has succeeded, a version that is not there never will be.
    pub async fn compare_and_put(
        &self,
        key: &str,
        value: impl Into<Bytes>,
        version: Option<Version>,
        options: PutOptions,
    ) -> Result<Version, Error> {
        self.require_one_winner()?;
        let (value, condition) = (value.into(), on(version));
        let put = self.write(Name::user(key), value, options, Some(condition));
        self.operate(Operation::WriteIf, key, put).await
    }

    /// Puts a value from a source of any length, on a condition.
    ///
    /// # Errors
    /// As [`Domain::compare_and_put`], and those of the source.
    pub async fn compare_and_put_stream(
        &self,
        key: &str,
        source: impl AsyncRead + Unpin,
        version: Option<Version>,
        options: PutOptions,
    ) -> Result<Version, StreamError> {
        self.require_one_winner()?;
        let condition = Some(on(version));
        let put = pin!(self.write_stream(key, source, options, condition, |_, options| options));
        self.operate(Operation::WriteIf, key, put).await
    }

    /// Deletes the object if `version` is its newest, and returns the version of its tombstone. One winner, as with
    /// [`Domain::compare_and_put`].
    ///
    /// # Errors
    /// As [`Domain::compare_and_put`].
    pub async fn compare_and_delete(&self, key: &str, version: Version) -> Result<Version, Error> {
        self.require_one_winner()?;
        let tombstone = tombstone_on(version)?;
        let wish = (Condition::Version(version), 0);
        let delete = self.decide(Operation::Delete, Name::user(key), tombstone, wish);
        self.operate(Operation::Delete, key, delete).await
    }

    /// Deletes the object on a condition, with one winner, for the request of this name ([`PutOptions::request`]), and returns the version of
    /// its tombstone.
    ///
    /// # Errors
    /// As [`Domain::compare_and_put`].
    pub async fn delete_on(
        &self,
        key: &str,
        condition: Condition,
        request: u128,
    ) -> Result<Version, Error> {
        self.require_one_winner()?;
        let tombstone = tombstone()?;
        let wish = (condition, request);
        let delete = self.decide(Operation::Delete, Name::user(key), tombstone, wish);
        self.operate(Operation::Delete, key, delete).await
    }

    /// The version that the request of this name wrote ([`PutOptions::request`]), while fewer than 16 versions came after it. `None`: it wrote none, or
    /// more came after it. In a conditional domain.
    ///
    /// # Errors
    /// As [`Domain::compare_and_put`], but for the conflict.
    pub async fn written_by(&self, key: &str, request: u128) -> Result<Option<Version>, Error> {
        self.require_one_winner()?;
        // No object ever has this version, because no client is 0: nothing is written, and an earlier write of the request is found.
        let no_client = Writer {
            client: ClientId(0),
            counter: 1,
        };
        let nowhere = Condition::Version(Version::first(no_client));
        let wish = (nowhere, request);
        let asked = self.decide(Operation::Stat, Name::user(key), tombstone()?, wish);
        match asked.await {
            Ok(version) => Ok(Some(version)),
            Err(Error::VersionConflict { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes the object if `version` is its newest: with one winner in a conditional domain, otherwise weakly, as
    /// [`Domain::write_if`].
    ///
    /// # Errors
    /// As [`Domain::write_if`].
    pub async fn delete_if(&self, key: &str, version: Version) -> Result<Version, Error> {
        self.operate(Operation::Delete, key, self.delete_covering(key, version))
            .await
    }

    fn delete_covering<'a>(
        &'a self,
        key: &'a str,
        version: Version,
    ) -> BoxFuture<'a, Result<Version, Error>> {
        Box::pin(async move {
            use areo_core::dsm::coverable::CoverableOutcome;
            let tombstone = tombstone_on(version)?;
            let name = Name::user(key)?;
            let delete = move |context: Context| async move {
                let deleted = context
                    .handle()
                    .put_if(context.name(), &tombstone, Some(version))
                    .await;
                deleted.map_err(|error| context.write_error(&error))
            };
            match self
                .run(Deadline::Timeout, Operation::Delete, name, delete)
                .await?
            {
                CoverableOutcome::Changed(version) => Ok(version),
                CoverableOutcome::Unchanged(found) => {
                    Err(version_conflict(&self.known, key, Some(version), found))
                }
            }
        })
    }

    /// Writes in place of a version that cannot be read any more that it is lost, so that a change of the domain can be finished. Reads of the
    /// object say that it is lost until it is written over, or removed. False: another version has come since, or this one can be read
    /// again, and nothing was written.
    ///
    /// # Errors
    /// As [`Domain::compare_and_put`], but for the conflict.
    pub fn leave_unreadable<'a>(
        &'a self,
        object: &'a LostObject,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            let (name, version) = (object.name.clone(), object.version);
            let leave = move |context: Context| async move {
                let domain = context.handle();
                let left = domain.leave_unreadable(context.name(), version).await;
                left.map_err(|error| context.write_error(&error))
            };
            self.run(Deadline::Timeout, Operation::Put, name, leave)
                .await
        })
    }

    /// Changes the object based on its current value: reads it, has `change` make the next value of it (`None`: leave
    /// it as it is), and writes that on the version that was read. If another write was faster it begins again after
    /// a random pause, with a read, 64 times at most. So no change is lost. Returns the resulting version; `None`:
    /// there is no object, and none was made.
    ///
    /// # Errors
    /// As [`Domain::compare_and_put`]; [`Error::VersionConflict`] if others were faster each time.
    pub async fn update<B: Into<Bytes>>(
        &self,
        key: &str,
        mut change: impl FnMut(Option<&Object>) -> Option<B>,
    ) -> Result<Option<Version>, Error> {
        self.require_one_winner()?;
        for attempt in 0.. {
            // The version of a conflict is old after the pause: a write on it would lose against clients that do not pause.
            let current = match self.get(key).await {
                Ok(object) => Some(object),
                Err(Error::NotFound { key: Some(_), .. }) => None,
                Err(error) => return Err(error),
            };
            let version = current.as_ref().map(|object| object.version);
            let Some(next) = change(current.as_ref()) else {
                return Ok(version);
            };
            let put = self.compare_and_put(key, next, version, PutOptions::default());
            match put.await {
                Ok(version) => return Ok(Some(version)),
                Err(Error::VersionConflict { .. }) if attempt + 1 < UPDATES => {
                    self.pause(UPDATE_PAUSE * (1 << attempt.min(6))).await;
                }
                Err(error) => return Err(error),
            }
        }
        unreachable!("the last attempt ends")
    }

    /// A random while, so that clients that met do not meet again.
    fn pause(&self, most: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            use areo_core::env::Env;
            let pause = move |context: Context| async move {
                let env = &context.client.env;
                let most = u64::try_from(most.as_micros()).unwrap_or(u64::MAX).max(1);
                env.sleep(Duration::from_micros(env.random() % most)).await;
            };
            self.run(Deadline::Timeout, Operation::Put, None, pause)
                .await;
        })
    }

    pub(crate) fn require_one_winner(&self) -> Result<(), Error> {
        if self.has_one_winner() {
            return Ok(());
        }
        let domain = self.name().into();
        let reason = Invalid::NotConditional { domain };
        Err(Error::Invalid { reason })
    }
}

/// The condition that this version is the newest one; `None`: that there is no object.
pub(super) fn on(version: Option<Version>) -> Condition {
    version.map_or(Condition::Absent, Condition::Version)
}

/// The tombstone that is written over this version to delete the object.
fn tombstone_on(version: Version) -> Result<Value, Error> {
    if version.is_initial() {
        let reason = Invalid::InitialVersion;
        return Err(Error::Invalid { reason });
    }
    tombstone()
}

fn tombstone() -> Result<Value, Error> {
    let metadata = Metadata {
        written_at_ms: now_ms(),
        ..Metadata::default()
    };
    Ok(Value::tombstone(metadata.encode()?))
}
