#![allow(clippy::unwrap_used, reason = "a test")]

use super::*;
use crate::config::testing;

const FREE: Standing = standing(Liveness::Serving, false);
const AWAY: Standing = standing(Liveness::Away, false);
const GONE: Standing = standing(Liveness::Gone, false);
const LEAVING: Standing = standing(Liveness::Serving, true);

const fn standing(liveness: Liveness, is_leaving: bool) -> Standing {
    Standing {
        liveness,
        is_leaving,
    }
}

/// `None`: it is not registered.
const ALL: [Option<Standing>; 7] = [
    None,
    Some(FREE),
    Some(AWAY),
    Some(GONE),
    Some(LEAVING),
    Some(standing(Liveness::Away, true)),
    Some(standing(Liveness::Gone, true)),
];

fn ids(numbers: impl IntoIterator<Item = u128>) -> Vec<ServerId> {
    numbers.into_iter().map(ServerId).collect()
}

/// Every assignment of states to `n` servers.
fn worlds(
    n: usize,
    states: &[Option<Standing>],
) -> impl Iterator<Item = BTreeMap<ServerId, Standing>> {
    let count = states.len().pow(u32::try_from(n).unwrap());
    (0..count).map(move |mut number| {
        let mut servers = BTreeMap::new();
        for id in 1..=n as u128 {
            if let Some(state) = states[number % states.len()] {
                servers.insert(ServerId(id), state);
            }
            number /= states.len();
        }
        servers
    })
}

/// Everything that a change must be, and that there is one where there could be.
fn check(members: &[ServerId], servers: &BTreeMap<ServerId, Standing>) {
    let of = |id: &ServerId| servers.get(id).copied();
    let stays = |id: &&ServerId| of(id).is_some_and(Standing::may_stay);
    let comes = |(id, it): &(&ServerId, &Standing)| it.may_come() && !members.contains(id);
    let serves = |id: &&ServerId| of(id).is_some_and(|it| it.liveness == Liveness::Serving);
    let quorum = |of: &[ServerId]| of.iter().filter(serves).count() > of.len() / 2;
    let (n, staying) = (members.len(), members.iter().filter(stays).count());
    let free = servers.iter().filter(comes).count();
    let Some(next) = next_members(members, servers) else {
        let available = staying + free;
        let size = [5, 3].into_iter().find(|size| *size <= available);
        let grown = size.unwrap_or(n).max(n);
        let empty = (n - staying).saturating_sub(free);
        let left = match grown.is_multiple_of(2) {
            true => grown,
            false => grown - 2 * (empty.min(grown.saturating_sub(3)) / 2),
        };
        // Then a majority of what would be better does not serve.
        let coming = free.min(n - staying) + (grown - n);
        let is_better = coming > 0 || left < n;
        let serving = members.iter().filter(|id| stays(id) && serves(id)).count() + coming;
        assert!(!is_better || serving <= left / 2, "{members:?} {servers:?}");
        return;
    };
    assert_ne!(next, members);
    let mut distinct = next.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), next.len(), "{next:?}");
    let coming = next.iter().filter(|id| !members.contains(id));
    for id in coming {
        assert!(of(id).is_some_and(Standing::may_come), "{id} came");
    }
    for id in members.iter().filter(stays) {
        assert!(next.contains(id), "{id} went");
    }
    assert!(quorum(&next), "{members:?} to {next:?} of {servers:?}");
    assert!(next.len() <= n.max(5), "{next:?}");
    assert!(
        n.is_multiple_of(2) || !next.len().is_multiple_of(2),
        "{next:?}"
    );
    let grows = next.len() > n;
    assert!(!grows || [3, 5].contains(&next.len()), "{next:?}");
    let again = next_members(&next, servers);
    assert_eq!(again, None, "{members:?} to {next:?} of {servers:?}");
}

#[test]
fn every_small_cluster_gets_the_members_that_it_should_have() {
    for n in 1..=4 {
        for servers in worlds(n, &ALL) {
            for members in 1..=n as u128 {
                check(&ids(1..=members), &servers);
                // In the order in which they came.
                check(&ids((1..=members).rev()), &servers);
            }
        }
    }
    for servers in worlds(7, &[Some(FREE), Some(AWAY), Some(GONE)]) {
        for members in [1, 3, 5, 6, 7] {
            check(&ids(1..=members), &servers);
        }
    }
}

fn next(members: &[u128], servers: &[Standing]) -> Option<Vec<u128>> {
    let servers = (1..).map(ServerId).zip(servers.iter().copied()).collect();
    let next = next_members(&ids(members.iter().copied()), &servers)?;
    Some(next.into_iter().map(|id| id.0).collect())
}

#[test]
fn it_grows_to_three_and_to_five_and_to_nothing_else() {
    assert_eq!(next(&[1], &[FREE; 2]), None);
    assert_eq!(next(&[1], &[FREE; 3]), Some(vec![1, 2, 3]));
    assert_eq!(next(&[2], &[FREE; 4]), Some(vec![2, 1, 3]));
    assert_eq!(next(&[1, 2, 3], &[FREE; 4]), None);
    assert_eq!(next(&[1], &[FREE; 5]), Some(vec![1, 2, 3, 4, 5]));
    assert_eq!(next(&[1, 2], &[FREE; 3]), Some(vec![1, 2, 3]));
    assert_eq!(next(&[1, 2, 3, 4, 5], &[FREE; 9]), None);
    assert_eq!(next(&[1, 2, 3, 4, 5, 6, 7], &[FREE; 9]), None);
    // A server that is away does not come, and one that is a member counts.
    assert_eq!(next(&[1], &[FREE, FREE, AWAY]), None);
    assert_eq!(
        next(&[1, 2, 3], &[FREE, FREE, AWAY, FREE, FREE]),
        Some(vec![1, 2, 3, 4, 5])
    );
}

#[test]
fn a_member_that_goes_gives_its_place_to_another_server() {
    for goes in [GONE, LEAVING] {
        assert_eq!(
            next(&[1, 2, 3], &[FREE, goes, FREE, FREE]),
            Some(vec![1, 4, 3])
        );
        assert_eq!(next(&[1, 2, 3], &[FREE, goes, FREE, LEAVING]), None);
        assert_eq!(next(&[2], &[FREE, LEAVING]), Some(vec![1]));
    }
    assert_eq!(next(&[1, 2, 3], &[FREE, AWAY, FREE, FREE]), None);
    // Two that are gone leave no spare: three members have one.
    assert_eq!(
        next(&[1, 2, 3, 4, 5], &[FREE, GONE, FREE, GONE, FREE]),
        Some(vec![1, 3, 5])
    );
    assert_eq!(
        next(&[1, 2, 3, 4, 5], &[FREE, GONE, FREE, FREE, FREE]),
        None
    );
    // Without a quorum of what comes nothing does.
    assert_eq!(next(&[1, 2, 3], &[FREE, AWAY, GONE]), None);
}

#[test]
fn the_sentence_says_what_to_do() {
    let c = testing::replicated(1);
    let record = |id| ServerRecord::at_address(ServerId(id), String::new());
    let servers = [
        record(1),
        record(2),
        record(3).with_leaving(true),
        record(4).forgotten(),
    ];
    let two = NoSpare::of(&c, &servers).unwrap();
    assert_eq!(
        two.to_string(),
        "the root domain is on one server and tolerates no crash: start one more server \
         (`areo server --join`), and it grows to 3 by itself"
    );
    assert_eq!((two.members, two.servers, two.fixed), (1, 2, false));
    assert_eq!(NoSpare::of(&testing::replicated(3), &servers), None);
    let fixed = Configuration::new(Descriptor {
        fixed: true,
        ..c.descriptor().clone()
    });
    let fixed = NoSpare::of(&fixed.unwrap(), &servers).unwrap();
    assert!(
        fixed
            .to_string()
            .contains("areo reconfig start @root --add")
    );
}
