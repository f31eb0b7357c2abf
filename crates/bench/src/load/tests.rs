use super::*;
use crate::target::{About, Answer, CallError, Cost, TargetError, TargetName};
use areo_client::Counts;
use tokio::task::LocalSet;

/// The time that the clients of [`Slow`] notice that it was killed.
const PAUSE: Duration = Duration::from_millis(150);

/// A store without servers that takes its time, and a client of it.
#[derive(Clone)]
struct Slow {
    about: About,
    takes: Duration,
    /// The next operation takes this instead.
    once: Rc<Cell<Option<Duration>>>,
    length: usize,
    counter: Rc<Cell<u64>>,
    increment: Increment,
    /// The objects that a listing shows.
    listed: u64,
    /// Time of a put that the caller attributes to other work.
    aside: Duration,
}

/// The result of an increment of a counter with this value, and the rise of the counter.
type Increment = fn(u64) -> (Result<Cost, CallError>, u64);

impl Slow {
    fn new(takes: Duration, length: usize) -> Slow {
        Slow {
            about: About {
                target: TargetName::Areo,
                version: String::new(),
                servers: 0,
                keeps: String::new(),
                durability: String::new(),
                connections: String::new(),
            },
            takes,
            once: Rc::default(),
            length,
            counter: Rc::default(),
            increment: |_| (Ok(Cost::default()), 1),
            listed: 10,
            aside: Duration::ZERO,
        }
    }
}

/// Another reconfigurer is faster every second time.
struct SlowReconfigurer(Duration, u64);

impl Reconfigurer for SlowReconfigurer {
    fn reconfigure(&mut self) -> Answer<'_, bool, String> {
        Box::pin(async {
            sleep(self.0).await;
            self.1 += 1;
            Ok(self.1 % 2 == 1)
        })
    }
}

impl Target for Slow {
    fn about(&self) -> &About {
        &self.about
    }

    fn caller(&self) -> Answer<'_, Box<dyn Caller>, TargetError> {
        Box::pin(async { Ok(Box::new(self.clone()) as Box<dyn Caller>) })
    }

    fn reconfigurer(&self) -> Option<Box<dyn Reconfigurer>> {
        Some(Box::new(SlowReconfigurer(self.takes, 0)))
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn stored(&self) -> u64 {
        0
    }

    fn kill(&mut self) -> Answer<'_, String, TargetError> {
        self.once.set(Some(PAUSE));
        Box::pin(async { Ok("nobody".to_owned()) })
    }
}

impl Caller for Slow {
    fn put<'a>(&'a mut self, _key: &'a str, _value: Bytes) -> Answer<'a, Cost, CallError> {
        Box::pin(async {
            sleep(self.once.take().unwrap_or(self.takes)).await;
            let counts = Counts {
                rounds: 2,
                configurations: 1,
                ..Counts::default()
            };
            Ok(Cost {
                counts,
                aside: self.aside,
                ..Cost::default()
            })
        })
    }

    fn get<'a>(&'a mut self, key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), CallError> {
        Box::pin(async {
            sleep(self.takes).await;
            let value = match key.starts_with("counter") {
                true => counter::value(self.counter.get()),
                false => vec![0; self.length].into(),
            };
            Ok((Some(value), Cost::default()))
        })
    }

    fn put_if<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, CallError> {
        assert!(key.starts_with("own-16-") && value.len() == 16);
        self.put(key, value)
    }

    fn list<'a>(&'a mut self, folder: Option<&'a str>) -> Answer<'a, (u64, Cost), CallError> {
        Box::pin(async move {
            sleep(self.takes).await;
            let entries = match folder {
                None => 1,
                Some("object-16") => self.listed,
                Some(other) => panic!("{other} is no folder of these objects"),
            };
            Ok((entries, Cost::default()))
        })
    }

    fn increment<'a>(&'a mut self, _key: &'a str) -> Answer<'a, Cost, CallError> {
        Box::pin(async {
            sleep(self.takes).await;
            let (ended, by) = (self.increment)(self.counter.get());
            self.counter.set(self.counter.get() + by);
            ended
        })
    }
}

fn plan(readers: usize, writers: usize, pace: Pace) -> Plan {
    Plan {
        readers,
        writers,
        objects: 10,
        size: 16,
        pace,
        warm_up: Duration::from_millis(20),
        time: Duration::from_millis(400),
        seed: 1,
        ..Plan::default()
    }
}

fn measure(target: &Slow, plan: &Plan) -> Measurement {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    let work = async {
        fill(target, (plan.size, plan.objects), None).await.unwrap();
        run(target, plan, None).await.unwrap()
    };
    runtime.block_on(LocalSet::new().run_until(work))
}

const CLOSED: Pace = Pace::up_to(Duration::ZERO);

#[test]
fn clients_of_a_closed_loop_have_one_operation_each() {
    let slow = Slow::new(Duration::from_millis(10), 16);
    let measured = measure(&slow, &plan(1, 2, CLOSED));
    // Three clients of at most one operation in 10 ms each.
    assert!(
        measured.operations > 0 && measured.operations <= 120,
        "{measured:?}"
    );
    assert!(measured.get.unwrap().p50_us >= 10_000.0);
    let (gets, puts) = (measured.get.unwrap().count, measured.put.unwrap().count);
    // One of each client may end too late to count.
    assert!((measured.operations..=measured.operations + 3).contains(&(gets + puts)));
    assert_eq!(measured.missed, 0);
    let rounds = measured.rounds.unwrap() * (gets + puts) as f64;
    assert!((rounds - 2.0 * puts as f64).abs() < 1e-6);
}

/// The end of a load whose clients run all the operations of the plan.
fn finished(slow: &Slow, plan: &Plan) -> LoadEnd {
    let callers = (0..plan.clients()).map(|_| Box::new(slow.clone()) as AnyCaller);
    let callers = callers.collect();
    let work = async { Load::of(callers, plan, None).finish().await };
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    runtime.block_on(LocalSet::new().run_until(work))
}

#[test]
fn counted_operations_are_kept_without_what_was_done_aside() {
    let mut slow = Slow::new(Duration::from_millis(10), 16);
    slow.aside = Duration::from_hours(1);
    let counted = Plan {
        operations: Some(3),
        keeps_samples: true,
        ..plan(1, 2, CLOSED)
    };
    let ended = finished(&slow, &counted);
    assert_eq!((ended.samples.len(), ended.failures.count), (9, 0));
    for client in 0..3 {
        let own = ended.samples.iter().filter(|it| it.client == client);
        let own: Vec<&Sample> = own.collect();
        assert!(own.len() == 3 && own.is_sorted_by_key(|it| it.begun));
        for sample in own {
            match client {
                0 => assert!(sample.took + sample.cost.aside >= slow.takes, "{sample:?}"),
                _ => assert_eq!(sample.took, Duration::ZERO),
            }
            assert_eq!(sample.operation == Operation::Get, client == 0);
        }
    }
    slow.length = 17;
    let unlike = |look| Plan {
        look,
        ..counted.clone()
    };
    let unlike = |look| finished(&slow, &unlike(look)).failures.count;
    assert_eq!([Look::Not, Look::Length].map(unlike), [0, 3]);
    let unkept = Plan {
        keeps_samples: false,
        ..counted
    };
    assert!(finished(&slow, &unkept).samples.is_empty());
}

#[test]
fn operations_at_equal_times_do_not_catch_up() {
    let slow = Slow::new(Duration::ZERO, 16);
    let every = Plan {
        operations: Some(6),
        keeps_samples: true,
        pace: Pace::Every {
            period: Duration::from_millis(20),
        },
        ..plan(0, 1, CLOSED)
    };
    let begun = || -> Vec<Duration> {
        let samples = finished(&slow, &every).samples;
        samples.iter().map(|sample| sample.begun).collect()
    };
    let (quick, five) = (begun(), Duration::from_millis(100));
    assert!(quick.len() == 6 && quick[5] >= five, "{quick:?}");
    // The first one lasts for five of those times. The next one begins at once, and four times are left.
    slow.once.set(Some(five));
    let late = begun();
    let all = five + Duration::from_millis(80);
    assert!(late[5] >= late[0] + all, "{late:?}");
}

#[test]
fn what_waits_for_a_slow_operation_counts_as_slow() {
    let slow = Slow::new(Duration::ZERO, 16);
    let pause = Duration::from_millis(200);
    let mut open = plan(0, 1, Pace::Open { per_second: 500.0 });
    open.warm_up = Duration::ZERO;
    let measured = {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        slow.once.set(Some(pause));
        runtime.block_on(LocalSet::new().run_until(run(&slow, &open, None)))
    };
    let put = measured.unwrap().put.unwrap();
    // The first one takes 200 ms; the hundred that were due meanwhile begin when it ends. A closed loop would have one slow
    // operation among all.
    assert!(put.max_us >= 200_000.0, "{put:?}");
    assert!(put.p90_us >= 100_000.0, "{put:?}");
}

#[test]
fn what_was_due_and_did_not_begin_is_counted() {
    // One client that takes at least 20 ms for each of 200 operations that are due in 400 ms.
    let slow = Slow::new(Duration::from_millis(20), 16);
    let measured = measure(&slow, &plan(0, 1, Pace::Open { per_second: 500.0 }));
    assert!(
        measured.operations <= 20 && measured.missed >= 180,
        "{measured:?}"
    );
    // The first operation, which was due before anything was measured, takes longer than everything.
    let slow = Slow::new(Duration::ZERO, 16);
    let mut open = plan(0, 1, Pace::Open { per_second: 500.0 });
    open.warm_up = Duration::from_millis(20);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    slow.once.set(Some(Duration::from_secs(1)));
    let measured = runtime.block_on(LocalSet::new().run_until(run(&slow, &open, None)));
    let measured = measured.unwrap();
    assert!(
        measured.operations == 0 && measured.missed >= 200,
        "{measured:?}"
    );
}

#[test]
fn values_of_a_wrong_length_are_failures() {
    let slow = Slow::new(Duration::ZERO, 17);
    let measured = measure(&slow, &plan(1, 0, CLOSED));
    assert!(measured.operations == 0 && measured.failed > 0);
    assert!(
        measured.failures[0].ends_with("has 17 bytes, not 16"),
        "{measured:?}"
    );
}

#[test]
fn a_pause_of_the_store_is_noticed_as_one() {
    let mut slow = Slow::new(Duration::from_millis(1), 16);
    let (plan, half) = (plan(0, 1, CLOSED), Duration::from_millis(200));
    let work = async {
        let load = Load::start(&slow, &plan, None).await.unwrap();
        sleep(plan.warm_up).await;
        load.enter(Phase::Still);
        sleep(half).await;
        load.enter(Phase::Disturbed);
        slow.kill().await.unwrap();
        sleep(half).await;
        load.stop_within(GIVEN_UP).await
    };
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    let ended = runtime.block_on(LocalSet::new().run_until(work));
    assert!(ended.disturbed.longest_gap() >= PAUSE && ended.failures.count == 0);
    assert!(ended.still.time() >= half && ended.disturbed.time() >= half);
    assert!(ended.steps.len() >= 40, "{:?}", ended.steps);
    assert!(ended.steps.iter().sum::<u64>() <= 10 * ended.steps.len() as u64);
}

#[test]
fn a_disturbance_has_what_it_has_part_in() {
    let shared = Shared::new(Vec::new(), 1, Instant::now());
    let long = Duration::from_secs(100);
    let pause = || {
        let (last, phase) = shared.last.get();
        let earlier = last.checked_sub(long).expect("the clock runs for longer");
        shared.last.set((earlier, phase));
    };
    let succeeded = || shared.succeeded(Instant::now());
    shared.enter(Phase::Still);
    succeeded();
    shared.enter(Phase::Disturbed);
    shared.enter(Phase::Still);
    assert!(shared.disturbed.borrow().longest_gap().is_zero());
    // A time without a success began in peace, and ends in a disturbance.
    shared.enter(Phase::Disturbed);
    pause();
    succeeded();
    assert!(shared.disturbed.take().longest_gap() >= long);
    // It began in a disturbance, and ends in peace.
    shared.enter(Phase::Still);
    pause();
    succeeded();
    assert!(shared.disturbed.take().longest_gap() >= long);
    assert!(shared.still.borrow().longest_gap() < long);
    // It does not end.
    pause();
    shared.enter(Phase::Unmeasured);
    assert!(shared.still.borrow().longest_gap() >= long);
    // So with operations; what was due before anything was measured belongs to no phase.
    let (due, is) = (
        Instant::now(),
        |due, begun, tally: Option<&RefCell<Tally>>| {
            let found = shared.tally_of(due, begun).map(std::ptr::from_ref);
            assert_eq!(found, tally.map(std::ptr::from_ref));
        },
    );
    is(due, Phase::Still, Some(&shared.still));
    is(due, Phase::Disturbed, Some(&shared.disturbed));
    shared.enter(Phase::Disturbed);
    is(due, Phase::Still, Some(&shared.disturbed));
    is(due.checked_sub(long).unwrap(), Phase::Still, None);
}

#[test]
fn mixed_clients_do_both_and_every_byte_is_looked_at() {
    let slow = Slow::new(Duration::from_millis(1), 16);
    let mut plan = plan(0, 0, CLOSED);
    plan.mixed = 2;
    let measured = measure(&slow, &plan);
    assert!(measured.get.unwrap().count > 0 && measured.put.unwrap().count > 0);
    assert_eq!(measured.failed, 0);
    // The store returns zeros.
    plan.look = Look::Bytes;
    let measured = measure(&slow, &plan);
    assert!(measured.get.is_none() && measured.failed > 0);
    assert!(measured.failures[0].contains("was read as no value of ours"));
}

#[test]
fn reconfigurations_are_those_that_came_about_in_the_time() {
    let slow = Slow::new(Duration::from_millis(1), 16);
    let mut plan = plan(1, 0, CLOSED);
    assert_eq!(measure(&slow, &plan).reconfigurations, 0);
    plan.reconfigurers = 2;
    plan.between_changes = Duration::from_millis(1);
    let measured = measure(&slow, &plan);
    // Two clients of at most one attempt in a millisecond each, of which half are theirs.
    assert!(
        (1..=420).contains(&measured.reconfigurations),
        "{measured:?}"
    );
    assert!(measured.operations > 0 && measured.failed == 0);
}

#[test]
fn a_counter_that_loses_or_doubles_an_increment_is_a_failure() {
    let counted = |increment: Increment| {
        let mut slow = Slow::new(Duration::from_millis(1), 16);
        slow.increment = increment;
        let mut plan = plan(0, 0, CLOSED);
        plan.others = Some((Operation::Increment, 3));
        let measured = measure(&slow, &plan);
        let counter = measured.counter.unwrap();
        assert_eq!(counter.count, slow.counter.get());
        measured
    };
    let right = counted(|_| (Ok(Cost::default()), 1));
    let counter = right.counter.unwrap();
    assert_eq!((counter.done, counter.unknown), (counter.count, 0));
    assert_eq!(right.failed, 0, "{right:?}");
    assert!(right.increment.unwrap().count > 0 && right.put.is_none());
    let (least, most) = (right.least_of_a_client, right.most_of_a_client);
    assert!(least > 0 && least <= most && 3 * most >= right.operations);
    let lost = counted(|count| (Ok(Cost::default()), u64::from(count < 5)));
    assert!(lost.failures[0].contains("are lost"), "{lost:?}");
    let doubled = counted(|count| (Ok(Cost::default()), if count == 5 { 2 } else { 1 }));
    assert!(doubled.failures[0].contains("succeeded"), "{doubled:?}");
    let unknown = counted(|_| (Err(CallError::Unknown("cut".into())), 0));
    assert_eq!(unknown.failures[0], "cut", "it may have had no effect");
    let unknown = counted(|_| (Err(CallError::Unknown("cut".into())), 1));
    assert_eq!(unknown.failures[0], "cut", "it may have had one");
    let refused = counted(|_| (Err(CallError::NotApplied("no".into())), 1));
    assert!(refused.failures[0].contains("0 increments"), "{refused:?}");
}

#[test]
fn clients_put_objects_of_their_own_on_a_condition() {
    let slow = Slow::new(Duration::from_millis(1), 16);
    let mut plan = plan(0, 0, CLOSED);
    plan.others = Some((Operation::PutIf, 2));
    let measured = measure(&slow, &plan);
    assert!(measured.put.unwrap().count > 0 && measured.counter.is_none());
    assert_eq!(measured.failed, 0);
}

#[test]
fn a_listing_without_one_of_the_objects_is_a_failure() {
    let listed = |listed: u64, does: Operation| {
        let mut slow = Slow::new(Duration::from_millis(1), 16);
        slow.listed = listed;
        let mut plan = plan(0, 0, CLOSED);
        plan.others = Some((does, 2));
        measure(&slow, &plan)
    };
    for does in [Operation::List, Operation::ListFolder] {
        let whole = listed(10, does);
        assert_eq!(whole.failed, 0, "{whole:?}");
        assert!(whole.list.unwrap().count > 0 && whole.get.is_none());
    }
    let short = listed(9, Operation::List);
    assert_eq!(short.operations, 0);
    assert_eq!(short.failures[0], "a listing shows 9 objects of 10");
}
