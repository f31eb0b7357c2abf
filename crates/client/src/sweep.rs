//! Blocks that no object needs: how much they are, and their removal (`areo_core::dsm::sweep`).

use crate::domain::Domain;
use crate::error::{Error, Operation};
use crate::known::Session;
use crate::metrics::{Counted, counted};
use crate::object::now_ms;
use crate::span;
use areo_core::dsm::sweep::{self, Ages};
use std::time::Duration;

pub use areo_core::dsm::sweep::{Count, Swept};

/// When blocks that no object needs are old enough to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepOptions {
    /// Those of writes that have not ended, and have sent nothing for so long: an hour by default. A writer that is only
    /// slower than this fails with [`Error::Swept`].
    pub unfinished: Duration,
    /// Those of versions that were replaced, or deleted, so long ago: a minute by default. A reader that is still at them
    /// fails with [`Error::VersionConflict`].
    pub replaced: Duration,
    /// Nobody asked for it: it is done beside something else, and its span says so.
    pub aside: bool,
}

impl Default for SweepOptions {
    fn default() -> SweepOptions {
        SweepOptions {
            unfinished: Duration::from_hours(1),
            replaced: Duration::from_mins(1),
            aside: false,
        }
    }
}

impl Domain {
    /// Removes blocks of large values that no object needs: those that were written over or deleted, and those that a
    /// writer left that ended half way. May be called at any time, and by several at once. It goes over all blocks of the
    /// domain, and has no deadline as long as it gets on.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; what was removed by then stays removed.
    pub async fn sweep(&self, options: SweepOptions) -> Result<Swept, Error> {
        counted!(self.metrics(), Counted::Sweep, self.go_over(Some(options)))
    }

    /// What [`Domain::sweep`] would find; removes nothing.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn orphans(&self) -> Result<Swept, Error> {
        self.go_over(None).await
    }

    async fn go_over(&self, options: Option<SweepOptions>) -> Result<Swept, Error> {
        let ms = |age: Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let ages = Ages {
            now_ms: now_ms().unwrap_or(0),
            unfinished_ms: options.map(|options| ms(options.unfinished)),
            replaced_ms: options.map(|options| ms(options.replaced)),
        };
        // To look how much there is, is not what anybody does either.
        let aside = options.is_none_or(|options| options.aside);
        self.work(move |work| async move {
            let (session, about) = (&work.session, &work.about);
            let swept = sweep::sweep(&session.client, about.known(), &ages);
            let swept = span::watch!(span::sweep(aside), swept);
            swept.map_err(|failed| {
                let c = about.latest(&session.client);
                let asked = Session::asked(Operation::Sweep, Some(&about.name), &c, None);
                session.not_applied(&asked, &failed)
            })
        })
        .await
    }
}
