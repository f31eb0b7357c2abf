//! The state that the two links to a server share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::peer::PeerConfig;

/// The knowledge about the server, shared by its two links.
pub(crate) struct PeerKnowledge {
    pub(crate) address: RefCell<String>,
    /// The highest known incarnation.
    pub(crate) highest_incarnation: Cell<u64>,
    pub(crate) answered: Cell<HelloAnswer>,
}

/// The server that answered the last hello.
#[derive(Clone, Copy, Default)]
pub(crate) struct HelloAnswer {
    pub(crate) server: u128,
    pub(crate) cluster: u128,
    pub(crate) incarnation: u64,
}

impl PeerKnowledge {
    pub(crate) fn new(config: &PeerConfig) -> Rc<PeerKnowledge> {
        Rc::new(PeerKnowledge {
            address: RefCell::new(config.address.clone()),
            highest_incarnation: Cell::new(config.known_incarnation),
            answered: Cell::default(),
        })
    }

    pub(crate) fn learn(&self, incarnation: u64) {
        self.highest_incarnation
            .set(self.highest_incarnation.get().max(incarnation));
    }

    pub(crate) fn set_address(&self, address: String) {
        *self.address.borrow_mut() = address;
    }

    pub(crate) fn snapshot(&self) -> HelloAnswer {
        self.answered.get()
    }
}
