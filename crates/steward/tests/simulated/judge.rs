//! The rules that no run may break, judged by the state of the model and not by what instances know.

use crate::reached::Reached;
use crate::run::{BETWEEN_MS, OBSERVER_MS};
use crate::world::{Domain, LAG_MS, Server, World};
use areo_steward::intent::{Change, Intent, State};
use areo_steward::rules::RuleName;

/// True if something has held since this time, for longer than instances need to know.
fn is_known(since_ms: Option<u64>, now_ms: u64) -> bool {
    since_ms.is_some_and(|ms| now_ms - ms > LAG_MS)
}

/// An instance begins to work on a domain.
pub(crate) fn works(world: &World) {
    assert!(
        !is_known(world.paused_ms, world.now_ms),
        "it works although it is paused"
    );
}

/// A change takes effect: `with` takes the place of `server` in the domain with this number.
pub(crate) fn replaces(world: &mut World, domain: usize, server: &str, with: &str) {
    let before = &world.domains[domain];
    let (f_before, survivable) = (before.f(), world.survivable(before));
    let members = world.members_after(before, server, with);
    let name = before.name.clone();
    world.domains[domain].members = members;
    world.domains[domain].is_half_changed = false;
    world.domains[domain].whole.remove(with);
    world.seen.domains_changed += 1;
    let after = &world.domains[domain];
    let about = format!("'{name}' after {server} went and {with} came, from f = {f_before}");
    assert!(after.f() >= 1, "no crash is tolerated in {about}");
    // Servers may have crashed since the change was begun.
    let begun_ms = world
        .begun_ms
        .get(server)
        .copied()
        .expect("a change is written before it is begun");
    if world.changed_ms + LAG_MS < begun_ms {
        assert!(
            world.survivable(after) >= survivable,
            "fewer crashes are survived in {about}"
        );
    }
}

/// An intent is written over the one that was there.
pub(crate) fn writes(world: &mut World, by: &Reached, before: Option<&Intent>, intent: &Intent) {
    let was_begun = before.is_some_and(|it| it.state.is_begun());
    match &intent.state {
        State::Running { .. } if !was_begun => begins(world, by, intent),
        State::Done { .. } => ends(world, intent),
        State::Failed { .. } => world.seen.tries_failed += 1,
        State::Superseded { .. } => world.seen.superseded += 1,
        _ => {}
    }
}

/// Neither of the two servers is in maintenance.
fn maintains(world: &World, by: &Reached, change: &Change) {
    let now_ms = world.now_ms;
    for name in [&change.server, &change.with] {
        let server = world.server(name);
        assert!(
            !server.is_known_to_be_maintained(now_ms, by.ahead_ms),
            "{change} begins while people work at {name}"
        );
    }
}

fn begins(world: &mut World, by: &Reached, intent: &Intent) {
    let now_ms = world.now_ms;
    let change = intent.change.as_ref().expect("advice is not carried out");
    assert!(
        !is_known(world.paused_ms, now_ms),
        "{change} begins although it is paused"
    );
    assert!(
        now_ms - by.born_ms >= OBSERVER_MS,
        "{change} begins by an instance that has just begun to watch"
    );
    assert!(
        !world.is_broken_for(LAG_MS),
        "{change} begins while a third of the servers is down"
    );
    maintains(world, by, change);
    for domain in world.domains.iter().filter(|it| it.has(&change.server)) {
        let (goes, comes) = (world.server(&change.server), world.server(&change.with));
        let is_no_more = goes.zone == comes.zone || domain.has(&comes.name);
        assert!(
            is_no_more || world.neighbours(domain, comes) < domain.f(),
            "{change} brings too many members of '{}' into one zone",
            domain.name
        );
        assert!(
            !is_known(domain.operator_ms, now_ms),
            "an operator changes '{}': {change}",
            domain.name
        );
    }
    let begun = world
        .intents
        .values()
        .map(|(_, it)| it)
        .filter(|it| it.state.is_begun());
    for other in begun.filter(|it| it.number != intent.number) {
        let is_of_both = |name: &str| other.domains().any(|it| it == name);
        let both = intent.domains().find(|it| is_of_both(it));
        assert!(both.is_none(), "two changes of {both:?}: {change}");
    }
    if let Some(last_ms) = world.last_begun_ms.filter(|_| world.one_clock) {
        assert!(
            now_ms - last_ms >= BETWEEN_MS,
            "{change} begins {} ms after another one",
            now_ms - last_ms
        );
    }
    world.last_begun_ms = Some(now_ms);
    world.begun_ms.insert(change.server.clone(), now_ms);
    world.seen.changes += 1;
    world.seen.crowded += u64::from(intent.rule() == RuleName::Zone);
    // Instances die, and operators pause, in the middle of a change.
    match world.random.below(10) {
        0 | 1 if world.has_faults => {
            world.doomed = Some((by.task, now_ms + world.random.below(60_000)));
        }
        2..6 if world.has_faults => world.paused_ms = Some(now_ms),
        _ => {}
    }
    let server = world.server_mut(&change.server);
    server.replaced += 1;
    assert!(
        server.replaced <= server.reasons,
        "{change} for the {}th time, with {} reasons",
        server.replaced,
        server.reasons
    );
}

fn ends(world: &World, intent: &Intent) {
    let change = intent.change.as_ref().expect("advice is never done");
    for domain in &world.domains {
        assert!(
            !domain.has(&change.server),
            "'{}' still has a member that went: {change}",
            domain.name
        );
        let is_whole = !domain.has(&change.with) || domain.whole.contains(&change.with);
        let is_of_it = intent.domains().any(|it| it == domain.name);
        assert!(
            is_whole || !is_of_it,
            "'{}' is not whole: {change}",
            domain.name
        );
    }
}

/// The work that is left undone although spares allow it; `None`: all is whole.
pub(crate) fn left(world: &World) -> Option<String> {
    if world.is_broken_for(0) {
        return None;
    }
    let down = world.servers.iter().filter(|it| !it.is_up);
    let mut to_replace = down.filter_map(|it| Some((&it.name, fitting(world, &it.name)?)));
    if let Some((server, with)) = to_replace.next() {
        let open = world.intents.values().map(|(_, it)| it);
        let open: Vec<_> = open.filter(|it| !it.state.is_final()).collect();
        let shown = world.shown();
        return Some(format!(
            "{server} is down, {with} fits, and nothing was done in {shown}: {open:#?}"
        ));
    }
    let is_stuck = |intent: &&Intent| {
        let is_of_it = |name: &str| intent.domains().any(|it| it == name);
        let mut domains = world.domains.iter().filter(|it| is_of_it(&it.name));
        intent.state.is_begun() && domains.all(|it| world.has_quorum(it))
    };
    let stuck = world.intents.values().map(|(_, it)| it).find(is_stuck)?;
    let shown = world.shown();
    Some(format!("a change never ended in {shown}: {stuck:#?}"))
}

/// A spare that can take the place of this server in all of its domains.
fn fitting(world: &World, server: &str) -> Option<String> {
    let domains = || world.domains.iter().filter(|it| it.has(server));
    let is_free = |it: &Server| domains().all(|domain| domain.grows() || !domain.has(&it.name));
    let has_room = |it: &Server| {
        let zone = &world.server(server).zone;
        let crowds =
            |domain: &Domain| !domain.has(&it.name) && world.neighbours(domain, it) >= domain.f();
        it.zone == *zone || !domains().any(crowds)
    };
    let is_sound = |it: &Server| it.is_up && !it.leaving && !it.to_empty && it.io_errors == 0;
    let keeps = |it: &Server| {
        domains().all(|domain| {
            let members = world.members_after(domain, server, &it.name);
            members.len().saturating_sub(domain.k) / 2 >= domain.f()
        })
    };
    let is_reachable = domains().all(|it| world.has_quorum(it)) && domains().next().is_some();
    let mut spares = world.servers.iter().filter(|_| is_reachable);
    let spare = spares.find(|it| is_sound(it) && is_free(it) && keeps(it) && has_room(it))?;
    Some(spare.name.clone())
}
