//! Waiting at rest: for a time, for servers to serve, and for every element to be where it belongs.

use super::World;
use std::time::Duration;

/// Time that servers may take at rest to fetch the elements that they lack: some rounds, and the wait after a failed
/// attempt.
pub(crate) const MENDED_AFTER: Duration = Duration::from_mins(2);

/// Waits until every server serves.
pub(crate) fn start_all(world: &World) {
    let patience = world.now().plus(Duration::from_mins(1));
    while ((0..world.cluster().servers).any(|server| !world.is_serving(server))
        || world.is_any_superseded())
        && world.violation().is_none()
    {
        if world.now() > patience {
            return world.violate("liveness: a server does not start".to_owned());
        }
        pass(world, Duration::from_millis(100));
    }
}

/// Servers fetch the elements that they lack; after a while every one has its element of every object.
pub(crate) fn mend(world: &World) {
    let patience = world.now().plus(MENDED_AFTER);
    while let Some(below) = world.below()
        && world.violation().is_none()
    {
        if world.now() > patience {
            return world.violate(below);
        }
        pass(world, Duration::from_millis(200));
    }
}

pub(crate) fn pass(world: &World, time: Duration) {
    let until = world.now().plus(time);
    while world.now() < until && world.violation().is_none() {
        assert!(world.step(), "servers look after their stores for ever");
    }
}
