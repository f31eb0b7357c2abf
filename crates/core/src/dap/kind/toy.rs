//! A toy: every member holds the value, and quorums have all members. It is no kind of any release. It shows that a kind is
//! one file, this one, and one row of the table in `config::dap`.

use super::Kind;
use crate::config::Configuration;
use crate::dap::versions::{Admission, Arrival, Bounds, StoredVersion, Versions};
use crate::dap::{PassedVersions, Scope, abd};
use crate::element::{Element, Handle, Value};
use crate::env::Env;
use crate::message::{HeldVersions, Want};
use crate::object::Name;
use crate::tag::Tag;

/// The rules of the toy.
pub(crate) enum All {}

impl Kind for All {
    // ---- client half ----

    /// Every member has the value; the first one is asked for it.
    fn wants<E: Env>(_: &E, c: &Configuration, _: &Name, scope: Scope, _: u32) -> Vec<Want> {
        let mut wants = vec![Want::Tags; c.n()];
        wants[0] = match scope {
            Scope::Whole => Want::Element,
            Scope::Metadata => Want::Metadata,
            Scope::Version => Want::Tags,
        };
        wants
    }

    /// The largest version that a member holds.
    fn accepted(
        _: &Configuration,
        held: &[&HeldVersions],
        have: Tag,
        _: &PassedVersions,
    ) -> Option<Tag> {
        let stored = held.iter().flat_map(|held| &held.stored);
        stored.map(|(tag, _)| *tag).chain([have]).max()
    }

    fn decode<E: Env>(_: &E, _: &Configuration, mut elements: Vec<Element>) -> Value {
        abd::copy_value(elements.swap_remove(0))
    }

    fn elements(c: &Configuration, _: &Name, value: &Value) -> Vec<Element> {
        vec![abd::copy_element(value); c.n()]
    }

    // ---- server half ----

    /// A larger tag replaces the pair.
    fn admit(versions: &Versions, tag: Tag, _: Arrival, _: Bounds) -> Admission {
        match versions.largest() {
            Some(largest) if largest.tag >= tag => Admission::Acknowledge,
            _ => Admission::Store,
        }
    }

    fn trim(
        versions: &mut Versions,
        _: u16,
        _: bool,
        _: impl FnMut() -> Handle,
    ) -> Vec<StoredVersion> {
        versions.evict(|_, _| true)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Configuration, Dap};
    use crate::consensus::AsDescribed;
    use crate::reconfig::change::Change;
    use crate::reconfig::merged;
    use crate::reconfig::{ReconfigOutcome, Reconfigurer};
    use crate::world::{Message, World, configuration, successor};

    #[test]
    fn a_descriptor_says_it_and_quorums_are_all_members() {
        let c = configuration(4, Dap::All, 1, 8);
        let read = Configuration::decode(c.encoded().clone()).expect("it is a kind here");
        assert_eq!((read.dap(), read.dap().word()), (Dap::All, "all"));
        assert_eq!((c.quorums().quorum(), c.quorums().f()), (4, 0));
        assert_eq!((c.dap().k(), c.dap().is_coded()), (1, false));
    }

    #[test]
    fn it_is_written_and_read_at_all_members_and_outlives_their_crashes() {
        let c = configuration(3, Dap::All, 1, 8);
        let world = World::new(&c, 1);
        let (writer, reader) = (world.actor(&c), world.actor(&c));
        for number in 0..5 {
            let tag = writer.put("k", &format!("version {number}"));
            assert_eq!(reader.get("k"), (tag, Some(format!("version {number}"))));
        }
        for server in 0..3 {
            assert_eq!(world.disk(server, |disk| disk.elements()), 1);
            world.crash(server);
            world.restart(server, true);
        }
        assert_eq!(reader.get("k").1.as_deref(), Some("version 4"));
        // One that does not answer is one too many.
        world.hold(|message: &Message| message.at(&[2]));
        assert!(world.run(writer.write("k", "never")).is_err());
        assert!(world.run(reader.read("k")).is_err());
        world.release();
        world.settle();
        let last = writer.put("k", "again");
        assert_eq!(reader.get("k"), (last, Some("again".into())));
    }

    #[test]
    fn a_domain_moves_to_it_and_away() {
        let first = configuration(3, Dap::Ec { k: 2 }, 1, 8);
        let world = World::of(&first, 9, 1);
        let actor = world.actor(&first);
        let mut last = first.clone();
        for (place, dap) in [
            (3, Dap::All),
            (6, Dap::Abd),
            (0, Dap::All),
            (3, Dap::Ec { k: 2 }),
        ] {
            let text = format!("before {dap} comes, a long value");
            let tag = actor.put("k", &text);
            let next = successor(&last, place, 3, dap);
            let (client, known) = (actor.client(), first.clone());
            let change = Change::new(&last, next.descriptor()).expect("it comes next");
            let done = world.run(async move {
                let by = Reconfigurer {
                    env: &client.env,
                    sequences: client.sequences(),
                    consensus: &AsDescribed(|| client.next_writer()),
                    progress: &|_| {},
                    patience: client.leader_patience(),
                };
                merged::make(&by, &known, &change, &async |_: &Change| true).await
            });
            assert_eq!(done, Ok(ReconfigOutcome::Installed(next.clone())));
            for reader in [&actor, &world.actor(&next)] {
                assert_eq!(reader.get("k"), (tag, Some(text.clone())));
            }
            last = next;
        }
    }
}
