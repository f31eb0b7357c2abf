use super::*;

const RESTARTS: u128 = 3 * limits::REGISTERED_SERVERS as u128;

fn record(id: u128, address: &str, generation: Option<u64>) -> ServerRecord {
    ServerRecord {
        incarnation: 1,
        start: id as u64,
        generation,
        ..ServerRecord::at_address(ServerId(id), address.to_owned())
    }
}

fn content(registry: &Registry) -> Vec<ServerRecord> {
    registry.records().cloned().collect()
}

fn joined<'a>(records: impl IntoIterator<Item = &'a ServerRecord>) -> Registry {
    let (mut registry, mut ledger) = (Registry::default(), Ledger::default());
    for record in records {
        let known = registry.know(record.clone(), &mut ledger);
        assert!(known.is_ok(), "{known:?}");
    }
    registry
}

#[test]
fn servers_in_memory_take_the_place_of_those_before_them_at_their_address() {
    let (mut registry, mut ledger) = (Registry::default(), Ledger::default());
    let mut enrol = |step, record: &ServerRecord| registry.enrol(step, record.clone(), &mut ledger);
    // The ids are random: an earlier one may be larger.
    let id = |start: u128| start ^ 0x155;
    for start in 0..RESTARTS {
        let generation = start as u64;
        if generation > 1 {
            let registered = generation - 1;
            let unaware = record(id(start), "host:1", Some(0));
            let outdated = Ok(Reply::Outdated { registered });
            assert_eq!(enrol(Enrolment::Ask, &unaware), outdated);
            assert_eq!(enrol(Enrolment::Register, &unaware), outdated);
        }
        let next = record(id(start), "host:1", Some(generation));
        for step in [Enrolment::Ask, Enrolment::Register, Enrolment::Register] {
            assert_eq!(enrol(step, &next), Ok(Reply::Registered), "{start}");
        }
    }
    let last = record(id(RESTARTS - 1), "host:1", Some(RESTARTS as u64 - 1));
    assert_eq!(content(&registry), [last]);
}

/// `[X-31 log-position]`: two members of the root domain would keep each other busy, and each renewal would be said to all servers.
#[test]
fn a_position_is_no_news_and_no_growth() {
    let (mut registry, mut ledger) = (Registry::default(), Ledger::default());
    let at = |position| ServerRecord {
        position: Some(position),
        ..record(1, "host:1", None)
    };
    let own = record(2, "host:2", None);
    for record in [at(1), own.clone()] {
        assert!(registry.know(record, &mut ledger).is_ok());
    }
    assert!(ledger.take_growth());
    assert_eq!(registry.take_news().len(), 2);
    assert_eq!(registry.introduce(own.id, 1).len(), 1);
    for position in [4, 4, 3] {
        assert!(registry.know(at(position), &mut ledger).is_ok());
    }
    assert!(!ledger.take_growth(), "it is kept all the same");
    assert_eq!(content(&registry), [at(4), own.clone()]);
    assert_eq!(registry.take_news(), []);
    assert_eq!(registry.introduce(own.id, 1), []);
    let next = ServerRecord {
        incarnation: 2,
        ..at(5)
    };
    assert!(registry.know(next, &mut ledger).is_ok());
    assert!(ledger.take_growth());
    assert_eq!(registry.introduce(own.id, 1).len(), 1);
}

/// Only a server that keeps a log asks for its last known record.
#[test]
fn a_start_is_told_the_last_record_of_its_server() {
    let (mut registry, mut ledger) = (Registry::default(), Ledger::default());
    let first = ServerRecord {
        position: Some(3),
        ..record(1, "host:1", None)
    };
    let next = ServerRecord {
        incarnation: 2,
        ..first.clone()
    };
    let mut enrol = |step, record: &ServerRecord| registry.enrol(step, record.clone(), &mut ledger);
    assert_eq!(enrol(Enrolment::Ask, &next), Ok(Reply::Registered));
    assert_eq!(enrol(Enrolment::Register, &first), Ok(Reply::Registered));
    let admissible = Reply::Admissible(Box::new(first));
    assert_eq!(enrol(Enrolment::Ask, &next), Ok(admissible));
    let without = ServerRecord {
        position: None,
        ..next
    };
    assert_eq!(enrol(Enrolment::Ask, &without), Ok(Reply::Registered));
}

#[test]
fn a_server_with_a_directory_is_replaced_by_none_at_its_address() {
    let durable = [record(1, "host:1", None), record(2, "host:1", None)];
    let in_memory = [
        record(3, "host:1", Some(7)),
        record(4, "host:1", Some(8)),
        record(5, "host:2", Some(0)),
    ];
    let registry = joined(durable.iter().chain(&in_memory));
    let kept: Vec<u128> = registry.records().map(|record| record.id.0).collect();
    assert_eq!(kept, [1, 2, 4, 5]);
}

#[test]
fn of_forgotten_servers_that_in_memory_is_replaced_by_the_next() {
    let (mut registry, mut ledger) = (Registry::default(), Ledger::default());
    let mut register = |record| registry.enrol(Enrolment::Register, record, &mut ledger);
    for forgotten in [record(1, "host:1", None), record(9, "host:1", Some(3))] {
        assert_eq!(register(forgotten.forgotten()), Ok(Reply::Registered));
        let outdated = register(forgotten);
        assert!(
            matches!(outdated, Ok(Reply::Outdated { .. })),
            "{outdated:?}"
        );
    }
    let next = record(2, "host:1", Some(4));
    assert_eq!(register(next.clone()), Ok(Reply::Registered));
    let kept = content(&registry);
    assert_eq!(kept, [record(1, "host:1", None).forgotten(), next]);
}

#[test]
fn a_full_register_says_so() {
    let (mut registry, mut ledger) = (Registry::default(), Ledger::default());
    let mut enrol = |step, record| registry.enrol(step, record, &mut ledger);
    let steps = [Enrolment::Ask, Enrolment::Register, Enrolment::HandOn];
    for id in 1..=limits::REGISTERED_SERVERS as u128 {
        let generation = (id % 2 == 0).then_some(0);
        let next = record(id, &format!("host:{id}"), generation);
        assert_eq!(enrol(Enrolment::Register, next), Ok(Reply::Registered));
    }
    for step in steps {
        for generation in [None, Some(0)] {
            let another = record(u128::MAX, "host:0", generation);
            assert_eq!(enrol(step, another), Err(Refusal::RegisterFull), "{step:?}");
        }
        // Those that it has room for: a later start, and a later server in memory.
        let later = ServerRecord {
            incarnation: 2,
            ..record(1, "host:0", None)
        };
        assert!(enrol(step, later).is_ok());
        assert!(enrol(step, record(u128::MAX, "host:2", Some(1))).is_ok());
    }
}

/// Records of few servers at few addresses, such as honest servers make: a server in memory has one address, and with a larger
/// generation the same start.
fn some() -> Vec<ServerRecord> {
    let mut records = Vec::new();
    for (id, address) in [(1, "a"), (2, "a"), (3, "b")] {
        for generation in [0, 1] {
            records.push(record(id, address, Some(generation)));
        }
    }
    for (incarnation, start, resumed) in [(1, 5, false), (1, 6, false), (1, 5, true), (2, 7, false)]
    {
        records.push(ServerRecord {
            incarnation,
            start,
            resumed,
            ..record(4, "a", None)
        });
    }
    for (id, generation, start) in [(1, Some(0), 1), (4, None, 5)] {
        for changes in [
            [("zone", "a"), ("class", "x")],
            [("zone", "b"), ("note", "")],
        ] {
            let mut labelled = record(id, "a", generation);
            labelled.start = start;
            labelled.labels = labelled.labels.changed(changes);
            records.push(labelled);
        }
    }
    records.push(record(2, "a", Some(0)).forgotten());
    records.push(record(4, "a", None).forgotten());
    records
}

#[test]
fn what_is_known_does_not_depend_on_the_order_or_on_repetition() {
    let records = some();
    let mut seen = 0;
    for a in &records {
        for b in &records {
            for c in &records {
                let orders = [
                    [a, b, c],
                    [a, c, b],
                    [b, a, c],
                    [b, c, a],
                    [c, a, b],
                    [c, b, a],
                ];
                let expected = content(&joined(orders[0]));
                for order in orders {
                    assert_eq!(content(&joined(order)), expected, "{order:?}");
                    let repeated = order.iter().chain(&order).copied();
                    assert_eq!(content(&joined(repeated)), expected, "{order:?}");
                }
                // Two registers that tell each other all, as in a transfer.
                let (mut left, right) = (joined([a, b]), joined([c]));
                let mut ledger = Ledger::default();
                for record in content(&right) {
                    assert!(left.know(record, &mut ledger).is_ok());
                }
                assert_eq!(content(&left), expected);
                seen += 1;
            }
        }
    }
    assert_eq!(seen, records.len().pow(3));
}

#[test]
fn records_found_again_in_any_order_are_the_register_that_was() {
    let records = some();
    for a in &records {
        for b in &records {
            for c in &records {
                let (mut registry, mut ledger) = (Registry::default(), Ledger::default());
                // The last record of a key states all that the earlier ones did.
                let was = joined([a, b, c]);
                let mut found: Vec<ServerRecord> = [a, b, c].map(Clone::clone).into();
                found.extend(content(&was));
                for record in found.iter().rev() {
                    let handle = ledger.draw();
                    registry.recover(record.clone(), handle, &mut ledger);
                }
                let ranks: Vec<_> = registry.records().map(rank).collect();
                let were: Vec<_> = was.records().map(rank).collect();
                assert_eq!(ranks, were, "{a:?} {b:?} {c:?}");
            }
        }
    }
}

#[test]
fn clients_keep_what_registers_keep() {
    let records = some();
    for a in &records {
        for b in &records {
            for c in &records {
                let mut known = BTreeMap::new();
                for record in [a, b, c] {
                    crate::dap::registered::merge(&mut known, record.clone());
                }
                let mut kept = content(&joined([a, b, c]));
                kept.sort_by_key(|record| record.id);
                let known: Vec<ServerRecord> = known.into_values().collect();
                assert_eq!(known, kept);
            }
        }
    }
}

/// Every request of a server looks for the record of its sender.
#[test]
fn each_server_is_found_by_its_id_and_one_that_was_replaced_is_not() {
    let (mut registry, mut ledger) = (Registry::default(), Ledger::default());
    let at = |position| ServerRecord {
        position: Some(position),
        ..record(1, "host:1", None)
    };
    let records = [
        at(1),
        at(2),
        record(2, "host:2", Some(0)),
        record(4, "host:4", Some(0)),
        record(3, "host:2", Some(1)),
        record(5, "host:1", None),
        record(5, "host:1", None).forgotten(),
        // It has moved, and another one is where it was.
        record(4, "host:6", Some(0)),
        record(6, "host:4", Some(1)),
    ];
    for record in records {
        assert!(registry.know(record, &mut ledger).is_ok());
        let known = content(&registry);
        let ids: BTreeSet<ServerId> = known.iter().map(|record| record.id).collect();
        let found = (0..9).filter_map(|id| registry.record(ServerId(id)));
        let found: Vec<_> = found.collect();
        assert!(found.iter().all(|record| known.contains(record)));
        let found: BTreeSet<ServerId> = found.iter().map(|record| record.id).collect();
        assert_eq!(found, ids);
    }
    assert_eq!(registry.record(ServerId(2)), None, "replaced");
    let forgotten = registry.record(ServerId(5));
    assert!(forgotten.is_some_and(ServerRecord::is_forgotten));
}
