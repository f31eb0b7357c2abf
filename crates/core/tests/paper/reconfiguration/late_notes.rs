//! Notes that arrive when what they speak of has been collected (found by the simulator, seed 859 of its first runs with
//! reconfigurations).

use super::move_to;
use crate::world::{Message, World, configuration, server, successor};
use areo_core::config::{Collect, Configuration, Dap, Descriptor, Options};
use areo_core::message::Note;
use bytes::Bytes;

/// A server that keeps a pointer for each configuration apart still knows the configuration, but none of its cells. A late
/// note must not begin one anew: beside an old record that comes back, recovery could not tell which is the later one.
#[test]
fn a_late_decision_begins_no_cell_anew() {
    let plain = configuration(3, Dap::Abd, 1, 0);
    let c = Configuration::new(Descriptor {
        options: Options {
            collect: Collect::Paper,
            ..Options::default()
        },
        ..plain.descriptor().clone()
    });
    let c = c.expect("a valid descriptor");
    let world = World::of(&c, 6, 1);
    let actor = world.actor(&c);
    let (cell, value) = (Bytes::from_static(b"cell"), Bytes::from_static(b"value"));
    world.hold(Message::is_note);
    let (client, from, name, text) = (actor.client(), c.clone(), cell.clone(), value.clone());
    let decided = world.run(async move { client.domain(&from).decide(&name, &text).await });
    assert_eq!(decided.as_ref(), Ok(&value));
    move_to(&world, &actor, &successor(&c, 3, 3, Dap::Abd));
    world.settle();
    for number in 0..3 {
        let (configuration, cell, value) = (c.id(), cell.clone(), value.clone());
        let note = Note::Decided {
            configuration,
            cell,
            value,
        };
        world.tell(number, note);
        let kept = world.disk(number, |disk| {
            let cells =
                |header: &&_| matches!(header, areo_core::server::record::Header::Cell { .. });
            disk.headers().filter(cells).count()
        });
        assert_eq!(kept, 0, "server {} keeps no cell", server(number));
        world.crash(number);
        world.restart(number, true);
    }
}
