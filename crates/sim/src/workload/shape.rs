//! The part of a seed that draws domains: members, kinds and options.

use crate::cluster::Cluster;
use crate::random::Random;
use crate::world::World;
use areo_core::config::{self, Collect, Configuration, Dap, Thrift};
use areo_core::dap;

/// Salt of the draw of thrifty calls.
const THRIFT: u64 = 0x7417;
const CONTACT: u64 = 0xc047;

/// Draws the options of a domain; mostly the defaults.
pub(super) fn drawn_options(random: &Random) -> config::Options {
    let collect = match random.index(6) {
        0 => Collect::Off,
        1 => Collect::Paper,
        _ => Collect::On,
    };
    let piggyback = random.index(4) > 0;
    let thrift = match random.beside(THRIFT) % 8 {
        0 => Thrift::Queries,
        1 => Thrift::Calls,
        _ => Thrift::Off,
    };
    config::Options {
        piggyback,
        collect,
        thrift,
        single_contact: random.beside(CONTACT).is_multiple_of(4),
    }
}

/// The options of a configuration: a kind whose versions a round finalizes is offered with piggybacking only.
pub(super) fn options_of(c: &Configuration, drawn: config::Options) -> config::Options {
    let piggyback = drawn.piggyback || dap::needs_piggyback(c);
    config::Options { piggyback, ..drawn }
}

/// The servers of a domain's first configuration, and how they keep it: often the usual five, four or three.
pub(super) fn drawn_members(world: &World, is_coded: bool) -> (Vec<usize>, Dap) {
    let (random, cluster) = (world.random(), world.cluster());
    let all: Vec<usize> = (0..cluster.servers).collect();
    if cluster.is_usual() && random.chance(500) {
        let (n, k) = [(5, 3), (5, 3), (4, 2)][random.index(3)];
        return match is_coded {
            true => (
                all[cluster.servers - n..].to_vec(),
                Cluster::coded(random, k),
            ),
            false => (vec![0, 2, 4], Dap::Abd),
        };
    }
    let (n, dap) = cluster.shape(random, cluster.servers, is_coded);
    (Cluster::members(random, all, n, &[]), dap)
}

/// The drawn shape of the conditional domain: replicated or coded.
pub(super) fn drawn_conditional(world: &World) -> (Vec<usize>, Dap) {
    let is_coded = world.random().chance(500);
    let (members, dap) = drawn_members(world, is_coded);
    (members, conditional(dap))
}

/// The conditional kind that keeps values alike.
pub(super) fn conditional(dap: Dap) -> Dap {
    Dap::Conditional { k: dap.k() }
}
