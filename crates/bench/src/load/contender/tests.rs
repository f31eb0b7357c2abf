use super::*;
use crate::load::History;
use crate::load::history::tests::Memory;
use crate::load::{Load, LoadEnd, Plan, Store};
use crate::target::{Answer, Caller, Conditional};
use areo_check::{Kind, Verdict};
use areo_client::{Metadata, Object, Version};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use tokio::task::LocalSet;

/// The fault of a domain in memory.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    Nothing,
    /// Gets lack a byte.
    Damages,
    /// Puts have no effect.
    Forgets,
    /// Every conditional write wins.
    HasTwoWinners,
    /// An increment that was refused was done.
    CountsWhatItRefuses,
    /// Deletes end with an error that should not happen.
    IsStrange,
    /// Nothing is possible in the end.
    StaysAway,
    /// The domain of this name ceases to be conditional.
    Changes(&'static str),
}

const DOMAINS: [&str; 3] = ["plain", "conditional", "changing"];

/// A domain in memory.
struct Domain {
    name: &'static str,
    fault: Fault,
    objects: RefCell<BTreeMap<String, (Version, Bytes)>>,
    versions: Cell<u64>,
    writes: Cell<u64>,
    is_over: Cell<bool>,
}

struct DomainCaller(Rc<Domain>);

impl DomainCaller {
    async fn takes_time(&self) -> Result<(), CallError> {
        sleep(Duration::from_millis(1)).await;
        match self.0.is_over.get() && self.0.fault == Fault::StaysAway {
            true => Err(CallError::NotApplied("it is away".into())),
            false => Ok(()),
        }
    }

    fn found(&self, key: &str) -> Option<(Version, Bytes)> {
        self.0.objects.borrow().get(key).cloned()
    }

    fn write(&self, key: &str, value: Option<Bytes>) -> Cost {
        self.0.versions.set(self.0.versions.get() + 1);
        let version = format!("{:x}-{:016x}1", self.0.versions.get(), 7);
        let version: Version = version.parse().unwrap();
        let mut objects = self.0.objects.borrow_mut();
        match value {
            Some(value) => drop(objects.insert(key.to_owned(), (version, value))),
            None => drop(objects.remove(key)),
        }
        cost(Some(version))
    }
}

fn cost(version: Option<Version>) -> Cost {
    Cost {
        version,
        ..Cost::default()
    }
}

impl Caller for DomainCaller {
    fn put<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            self.takes_time().await?;
            match self.0.fault {
                Fault::Forgets => Ok(Cost::default()),
                _ => Ok(self.write(key, Some(value))),
            }
        })
    }

    fn get<'a>(&'a mut self, key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), CallError> {
        Box::pin(async move {
            self.takes_time().await?;
            let (version, value) = self.found(key).unzip();
            let lacking = usize::from(self.0.fault == Fault::Damages);
            let value = value.map(|value| value.slice(..value.len() - lacking));
            Ok((value, cost(version)))
        })
    }

    fn delete<'a>(&'a mut self, key: &'a str) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            self.takes_time().await?;
            match self.0.fault {
                Fault::IsStrange => Err(CallError::Unexpected("it is strange".into())),
                _ => Ok(self.write(key, None)),
            }
        })
    }

    fn write_on<'a>(
        &'a mut self,
        key: &'a str,
        value: Option<Bytes>,
        on: Option<Version>,
    ) -> Answer<'a, Conditional, CallError> {
        Box::pin(async move {
            self.takes_time().await?;
            self.0.writes.set(self.0.writes.get() + 1);
            if !self.has_one_winner() {
                return Err(CallError::NotConditional("it has changed".into()));
            }
            let found = self.found(key);
            if self.0.fault == Fault::CountsWhatItRefuses && key.starts_with("counter") {
                self.write(key, value);
                return Err(CallError::NotApplied("no".into()));
            }
            if found.as_ref().map(|(version, _)| *version) == on
                || self.0.fault == Fault::HasTwoWinners
            {
                return Ok(Conditional::Won(self.write(key, value)));
            }
            let latest = found.map(|(version, value)| Object {
                version,
                metadata: Metadata::default(),
                length: value.len() as u64,
                content: vec![value],
            });
            Ok(Conditional::Lost(latest.map(Box::new)))
        })
    }

    fn has_one_winner(&self) -> bool {
        let changed = self.0.fault == Fault::Changes(self.0.name) && self.0.writes.get() >= 20;
        self.0.name != "plain" && !changed
    }

    fn set_timeout(&mut self, _timeout: Duration) {
        self.0.is_over.set(true);
    }
}

/// The verdict on a contest on domains with this fault, how the load ended, and what became of counters.
fn contest(fault: Fault) -> (areo_check::Report, LoadEnd, Vec<String>) {
    let memory = Memory::default();
    let domains = DOMAINS.map(|name| {
        Rc::new(Domain {
            name,
            fault,
            objects: RefCell::default(),
            versions: Cell::new(0),
            writes: Cell::new(0),
            is_over: Cell::new(false),
        })
    });
    let own = domains.clone();
    let connect = move || -> Answer<'static, Vec<Store>, String> {
        let store = |domain: &Rc<Domain>| Store {
            name: domain.name.to_owned(),
            caller: Box::new(DomainCaller(domain.clone())),
        };
        let stores = own.iter().map(store).collect();
        Box::pin(async { Ok(stores) })
    };
    let history = History::new(Box::new(memory.clone()));
    let contest = Contest {
        clients: 4,
        connect: Box::new(connect),
        history: history.clone(),
        changing: "changing",
        deaths: true,
        patience: Duration::from_secs(5),
    };
    let plan = Plan {
        contest: Some(Rc::new(contest)),
        objects: 2,
        size: value::HEAD,
        ..Plan::default()
    };
    let work = async {
        let load = Load::of(Vec::new(), &plan, None);
        sleep(Duration::from_millis(400)).await;
        load.stop().await
    };
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    let ended = runtime.block_on(LocalSet::new().run_until(work));
    let wrong = |((place, key), counted): (&(usize, String), &Increments)| {
        let value = domains[*place].objects.borrow();
        let value = value.get(key).map(|(_, value)| value::recognise(value));
        counted.against(value.as_deref().map_or(0, value::count))
    };
    let wrong = ended.increments.iter().filter_map(wrong).collect();
    history.finish().unwrap();
    (memory.judged(), ended, wrong)
}

#[test]
fn a_contest_does_everything_and_what_is_right_holds() {
    let (judged, ended, wrong) = contest(Fault::Nothing);
    assert_eq!(judged.verdict, Verdict::Holds, "{judged}");
    assert_eq!((ended.failures.first, wrong), (vec![], vec![]));
    assert!(ended.deaths > 0 && ended.in_time);
    let kinds: Vec<Kind> = judged.counts.iter().map(|counts| counts.kind).collect();
    let all = [
        Kind::Read,
        Kind::Write,
        Kind::ConditionalWrite,
        Kind::Delete,
    ];
    assert_eq!(kinds, all);
    assert!(judged.counts.iter().all(|counts| counts.ok > 0), "{judged}");
    // Counters of both domains that have them.
    assert_eq!(ended.increments.len(), 4);
}

#[test]
fn what_is_wrong_in_a_contest_is_seen() {
    for fault in [Fault::Damages, Fault::Forgets, Fault::HasTwoWinners] {
        let (judged, _, _) = contest(fault);
        assert_eq!(judged.verdict, Verdict::Violated, "{fault:?} {judged}");
    }
    let (_, _, wrong) = contest(Fault::CountsWhatItRefuses);
    assert!(wrong[0].contains("0 increments succeeded"), "{wrong:?}");
    let failed = |fault| contest(fault).1.failures.first.join(" ");
    assert!(failed(Fault::IsStrange).contains("nothing explains an error: it is strange"));
    assert!(failed(Fault::StaysAway).contains("after everything was mended: it is away"));
    assert!(failed(Fault::Changes("conditional")).contains("it has changed"));
    assert_eq!(failed(Fault::Changes("changing")), "");
}
