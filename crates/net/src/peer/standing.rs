//! The state of the connection to a server, and the places where it is shown.

use std::cell::{Cell, OnceCell};

use super::Status;
use crate::metrics::LinkMetrics;

/// A status that other threads may read.
pub(crate) struct Standing {
    status: Cell<Status>,
    shown: OnceCell<LinkMetrics>,
    over: Cell<bool>,
}

impl Standing {
    pub(crate) fn new() -> Standing {
        Standing {
            status: Cell::new(Status::Idle),
            shown: OnceCell::new(),
            over: Cell::new(false),
        }
    }

    pub(crate) fn get(&self) -> Status {
        self.status.get()
    }

    pub(crate) fn set(&self, status: Status) {
        self.status.set(status);
        if let Some(shown) = self.shown.get()
            && !self.over.get()
        {
            shown.set(Some(status));
        }
    }

    /// Shows the status there from now on. The first call counts.
    pub(crate) fn show(&self, shown: impl FnOnce() -> LinkMetrics) {
        self.shown.get_or_init(shown);
        self.set(self.get());
    }

    /// Shows nothing from now on, also of connections that still go on.
    pub(crate) fn end(&self) {
        self.over.set(true);
        if let Some(shown) = self.shown.get() {
            shown.set(None);
        }
    }
}
