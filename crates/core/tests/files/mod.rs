//! Files as lists of blocks, over whole clusters of the tiny world (`docs/spec` 4.2 to 4.5).

mod cost;
mod crashes;
mod editor;
mod edits;
mod removal;
mod together;

use crate::paper::reconfiguration::reconfigure;
use crate::world::{Actor, World, successor};
use areo_core::config::Dap;
use areo_core::reconfig::{ReconfigError, ReconfigOutcome};
use std::cell::RefCell;
use std::rc::Rc;

/// Moves the domain to the servers from `first` on, at the same time as everything else.
fn reconfigured(
    world: &World,
    by: &Actor,
    first: usize,
    dap: Dap,
) -> Rc<RefCell<Option<Result<ReconfigOutcome, ReconfigError>>>> {
    let (client, known) = (by.client(), by.c.clone());
    let next = successor(&known, first, 5, dap);
    world.spawn(reconfigure(client, &known, &next))
}
