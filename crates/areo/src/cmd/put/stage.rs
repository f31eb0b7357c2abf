//! The stage of a write, for the sentence of one that is interrupted.

use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use areo_client::Version;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;

/// The progress of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::cmd) enum Stage {
    /// It looks for the cluster. Nothing was sent.
    #[default]
    Begun,
    /// It reads its source. Blocks may have been sent, which are of no object or file yet.
    Reading,
    /// Servers may have the new version of the object or the file already.
    Sent,
    /// The object is this version.
    Written(Version),
}

/// The stage of one write, known to its parts, of which some run on the client's own thread.
#[derive(Clone, Default, Debug)]
pub(in crate::cmd) struct StageCell(Arc<Mutex<Stage>>);

impl StageCell {
    pub(in crate::cmd) fn get(&self) -> Stage {
        *self.0.lock().expect("no holder of the lock panics")
    }

    pub(in crate::cmd) fn set(&self, stage: Stage) {
        self.replace(stage);
    }

    /// Returns the stage before.
    pub(in crate::cmd) fn replace(&self, stage: Stage) -> Stage {
        std::mem::replace(
            &mut *self.0.lock().expect("no holder of the lock panics"),
            stage,
        )
    }
}

/// Waits for a signal, and then as long as the write may take to end by itself. Returns how the command ends if it does not.
pub(in crate::cmd) async fn given_up(
    mut interrupt: Interrupt,
    stage: &StageCell,
    (what, key): (&str, &str),
) -> Failure {
    interrupt.asked().await;
    sleep(match stage.get() {
        Stage::Begun | Stage::Written(_) => Duration::ZERO,
        // Blocks are taken back.
        Stage::Reading => Duration::from_secs(3),
        // An answer may be on its way.
        Stage::Sent => Duration::from_millis(500),
    })
    .await;
    interrupted(stage.get(), (what, key))
}

/// The end of an interrupted write.
pub(in crate::cmd) fn interrupted(stage: Stage, (what, key): (&str, &str)) -> Failure {
    let became = match stage {
        Stage::Begun | Stage::Reading => "was not applied".to_owned(),
        Stage::Sent => "may have been applied".to_owned(),
        Stage::Written(version) => format!("was applied, as version {version}"),
    };
    Failure::new(
        Code::Interrupted,
        format!("interrupted: the {what} of '{key}' {became}"),
    )
}
