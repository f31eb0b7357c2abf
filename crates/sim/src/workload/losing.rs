//! After everything else: a domain of its own of any kind whose members name what they have lost. Of one object so many elements rot that
//! too few are left (`[X-40 named-loss]`, `[W-18 lost-version]`). Reads of it say so by name, and never show an older version; all else
//! goes on, a change of the domain as well, until the object is written over, removed, or left unreadable.

use super::apart::{Begun, name};
use super::large::hash;
use super::operation::One;
use super::{PATIENT, Workload, configuration, moving, options_of};
use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::history::Kind;
use crate::world::server_of;
use crate::world::waiting::{mend, pass, start_all};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::element::Value;
use areo_core::env::Env;
use areo_core::error::LostVersion;
use areo_core::hash::stable_hash;
use areo_core::object::{DomainId, Metadata};
use areo_core::reconfig::change::Change;
use areo_core::reconfig::{ReconfigError, ReconfigOutcome};
use areo_core::tag::Tag;
use bytes::Bytes;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The number of the domain to the history.
const DOMAIN: usize = moving::ROOT + 2;
const KEYS: usize = 3;
/// The one that is lost.
const LOST: usize = 0;
/// Words of a value for each fragment of it, of 64 bytes in full: each has something that can rot, also the last one.
const WORDS: usize = 40;
/// Reads of each client while others change the domain and write.
const READS: usize = 4;

/// A way for a person to have done with an object that is lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WayOut {
    WriteOver,
    Remove,
    Leave,
}

/// The state of the object that is lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Lost,
    /// A client has begun to have done with it.
    Begun,
    Done,
}

/// The object that is lost.
struct Loss {
    tag: Tag,
    way: WayOut,
    stage: Cell<Stage>,
}

/// The result of a read of the object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// A version, which the history has judged.
    Version,
    /// An error that names the object and the lost version, and nothing else.
    Lost,
    /// The mark of a client that left it unreadable.
    Mark,
    /// Any other result.
    Nothing,
}

impl Loss {
    /// The version that a read finds after the client has done with the object.
    fn in_its_place(&self) -> Seen {
        match self.way {
            WayOut::Leave => Seen::Mark,
            WayOut::WriteOver | WayOut::Remove => Seen::Version,
        }
    }
}

/// Makes an object of a domain unreadable, and judges later operations.
pub(crate) fn lose(work: &Rc<Workload>) {
    let world = &work.world;
    let Some((c, next)) = work.to_lose() else {
        return;
    };
    let clients = work.begin(DOMAIN, &c);
    work.each(&clients[..1], Workload::write_each);
    pass(world, Duration::from_secs(1));
    if world.violation().is_some() {
        return;
    }
    let ways = [WayOut::WriteOver, WayOut::Remove, WayOut::Leave];
    let object = (DOMAIN, format!("key-{LOST}"));
    let loss = Rc::new(Loss {
        tag: work.history.borrow().version(&object, 0),
        way: ways[world.random().index(ways.len())],
        stage: Cell::new(Stage::Lost),
    });
    world.cease_to_judge();
    world.plan().note(Fault::ObjectLost);
    let sound = world.lose_elements(&c, &name(LOST), loss.tag);
    start_all(world);
    work.meet_lost_without_one(&c, &loss, &sound);
    // Clients that begin now remember no version of it, and no value.
    let clients = work.begin(DOMAIN, &c);
    let it_is_lost = loss.clone();
    work.each(&clients, async move |work, it| {
        work.meet_lost(it, &it_is_lost).await;
    });
    let meanwhile = loss.clone();
    work.each(&clients, async move |work, it| match it.process {
        0 => work.change_past(it, next.descriptor(), &meanwhile).await,
        1 => work.have_done(it, &meanwhile).await,
        _ => work.read_meanwhile(it, &meanwhile).await,
    });
    work.each(&clients[..1], async move |work, it| {
        work.end_change_past(it, &loss).await;
    });
    if world.violation().is_some() {
        return;
    }
    pass(world, Duration::from_secs(1));
    work.each(&clients, async |work, it| work.go_on(it, 0..KEYS).await);
    pass(world, Duration::from_secs(5));
    mend(world);
    if world.violation().is_none() {
        world.judge_anew();
    }
}

impl Workload {
    /// A domain of servers with sound disks, and another configuration of it of the same kind.
    fn to_lose(&self) -> Option<(Arc<Configuration>, Arc<Configuration>)> {
        let random = self.world.random();
        let sound = self.world.sound_servers();
        if sound.len() < 2 {
            return None;
        }
        let n = 2 + random.index(sound.len() - 1);
        let k = u8::try_from(1 + random.index(n - 1)).expect("few servers");
        let dap = match random.index(6) {
            0 => Dap::Abd,
            1 => Dap::AbdPublished,
            2 => Dap::Ec { k },
            3 => Dap::Cas { k },
            4 => Dap::CasGc { k },
            _ => Dap::Conditional { k },
        };
        let domain = DomainId(u128::from(random.draw()) << 64 | u128::from(random.draw()));
        let drawn = || {
            let members = Cluster::members(random, sound.clone(), n, &[]);
            let members = self.world.ids(&members);
            let plain = configuration(domain, members, dap, self.shape.copy_bytes);
            Configuration::new(Descriptor {
                delta: self.shape.delta,
                options: options_of(&plain, self.shape.options),
                ..plain.descriptor().clone()
            })
            .expect("a valid descriptor")
        };
        let (c, next) = (drawn(), drawn());
        let wanted = self.world.want(c.members()) && self.world.want(next.members());
        wanted.then_some((c, next))
    }

    /// Creates the domain, and writes each key some times.
    async fn write_each(&self, begun: &Begun) {
        if !self.found(begun, "lost").await {
            return;
        }
        for key in (0..KEYS).cycle().take(3 * KEYS) {
            let one = self.one(begun, key);
            let end = one.put_value(self.any_words(begun.c.dap().k())).await;
            self.must_end("put", begun, &end);
        }
    }

    /// A value of which no part is in another one, and its hash.
    fn any_words(&self, k: u8) -> (Value, u64) {
        let mut words = Vec::new();
        for _ in 1..WORDS * usize::from(k) {
            words.extend(self.world.random().draw().to_le_bytes());
        }
        let hash = stable_hash(&words);
        (Value::new(Bytes::new(), words.into()), hash)
    }

    /// Each client meets the lost object, before another one has done anything about it.
    async fn meet_lost(&self, begun: &Begun, loss: &Loss) {
        let one = |key| self.one(begun, key);
        self.see(begun, loss).await;
        for key in LOST + 1..KEYS {
            self.must_end("get", begun, &one(key).get().await);
        }
        self.must_end("list", begun, &one(LOST).list().await);
        self.must_end("put", begun, &one(LOST + 1).put().await);
    }

    /// Clients meet the lost object while one member is away that may have an element. Where it would make the others' enough, they need not
    /// hear that the object is lost; nor where no fragment comes, because a member may have a copy.
    fn meet_lost_without_one(
        self: &Rc<Self>,
        c: &Arc<Configuration>,
        loss: &Rc<Loss>,
        sound: &[usize],
    ) {
        if c.quorums().quorum() == c.n() || !self.world.random().chance(500) {
            return;
        }
        let away = server_of(c.members()[self.world.random().index(c.n())]);
        let comes = sound.iter().any(|server| *server != away);
        let is_proved = comes && sound.len() + 1 < usize::from(c.dap().k());
        let life = self.world.stand_still(away);
        let (clients, loss) = (self.begin(DOMAIN, c), loss.clone());
        self.each(&clients, async move |work, it| {
            let seen = work.one(it, LOST).see(loss.tag).await;
            if seen != Seen::Lost && (is_proved || seen != Seen::Nothing) {
                work.stuck(
                    "a read of a lost object beside a member that is away",
                    it.process,
                );
            }
            for key in LOST + 1..KEYS {
                work.must_end("get", it, &work.one(it, key).get().await);
            }
            work.must_end("list", it, &work.one(it, LOST).list().await);
            work.must_end("put", it, &work.one(it, LOST + 1).put().await);
        });
        self.world.resume(away, life);
        start_all(&self.world);
    }

    /// Reads while others write and change the domain.
    async fn read_meanwhile(&self, begun: &Begun, loss: &Loss) {
        for _ in 0..READS {
            self.see(begun, loss).await;
            for key in LOST + 1..KEYS {
                self.must_end("get", begun, &self.one(begun, key).get().await);
            }
            self.must_end("list", begun, &self.one(begun, LOST).list().await);
            self.pause(begun).await;
        }
    }

    /// Reads the lost object: a read that ends before a client begins to replace it must name it, and one that begins
    /// afterwards must find its replacement.
    async fn see(&self, begun: &Begun, loss: &Loss) {
        let before = loss.stage.get();
        let seen = self.one(begun, LOST).see(loss.tag).await;
        let is_right = match (before, loss.stage.get()) {
            (_, Stage::Lost) => seen == Seen::Lost,
            (Stage::Done, _) => seen == loss.in_its_place(),
            _ => seen == Seen::Lost || seen == loss.in_its_place(),
        };
        if !is_right {
            self.stuck("a read of a lost object, as it is to end,", begun.process);
        }
    }

    /// Begins a change that meets the lost object: it stays pending and names it, and nothing else, or ends where a client has begun to have
    /// done with it.
    async fn change_past(&self, begun: &Begun, wanted: &Descriptor, loss: &Loss) {
        self.pause(begun).await;
        let one = self.one(begun, LOST);
        one.client.env.goes_over_many();
        let Ok(change) = Change::new(&begun.c, wanted) else {
            return;
        };
        let (approves, progress) = (async |_: &Change| true, |_| ());
        let domain = one.domain();
        let moved = domain.reconfigure(&self.root, &change, &approves, &progress);
        match moved.await {
            // The drawn configuration may be the one that there is.
            Ok(ReconfigOutcome::Unchanged(_)) => {}
            Ok(_) if loss.stage.get() > Stage::Lost => {}
            Err(ReconfigError::Pending(failed)) if names(failed.lost_versions(), loss.tag) => {}
            ended => {
                self.world.remark(&format!("{ended:?}"));
                self.stuck("a change past a lost object", begun.process);
            }
        }
    }

    /// The client has done with the object.
    async fn have_done(&self, begun: &Begun, loss: &Loss) {
        self.pause(begun).await;
        let one = self.one(begun, LOST);
        loss.stage.set(Stage::Begun);
        match loss.way {
            WayOut::WriteOver => self.must_end("put", begun, &one.put().await),
            WayOut::Remove => self.must_end("delete", begun, &one.delete().await),
            WayOut::Leave => {
                let (domain, name) = (one.domain(), one.name());
                if domain.leave_unreadable(&name, loss.tag).await != Ok(true) {
                    self.stuck("leaving an object", begun.process);
                }
            }
        }
        loss.stage.set(Stage::Done);
    }

    /// The change ends, now that a client has done with the object.
    async fn end_change_past(&self, begun: &Begun, loss: &Loss) {
        let one = self.one(begun, LOST);
        one.client.env.goes_over_many();
        let resumed = one.domain().resume(&self.root, &|_| ()).await;
        if let Err(error) = resumed {
            self.world.remark(&format!("{error:?}"));
            return self.stuck("reconfig --resume past a lost object", begun.process);
        }
        self.see(begun, loss).await;
        // The history knows no mark.
        if loss.way == WayOut::Leave {
            self.must_end("put", begun, &self.one(begun, LOST).put().await);
        }
    }

    async fn pause(&self, begun: &Begun) {
        let most = 1 << self.world.random().between(0, 18);
        let time = Duration::from_micros(self.world.random().below(most));
        self.env(begun.process, PATIENT).sleep(time).await;
    }
}

fn names(lost: &[LostVersion], tag: Tag) -> bool {
    let is_it = |it: &LostVersion| it.name == name(LOST) && it.tag == tag;
    !lost.is_empty() && lost.iter().all(is_it)
}

impl One<'_> {
    /// Reads the object. `lost`: the version that may be named.
    async fn see(&self, lost: Tag) -> Seen {
        let operation = self.begin(Kind::Read, None);
        let found = self.domain().read_large(&self.name()).await;
        let (now, ended) = (self.work.world.now(), self.ended());
        let is_mark = |value: &Value| {
            let metadata = Metadata::decode(&value.metadata);
            metadata.is_ok_and(|it| it.lost.is_some())
        };
        let seen = match &found {
            Ok(found) if found.value.as_ref().is_some_and(is_mark) => Seen::Mark,
            Ok(found) => {
                self.end(Some(found.tag), |history| {
                    history.end_read(&ended, &operation, self.shown(found.tag), hash(found));
                });
                return Seen::Version;
            }
            Err(failed) if names(failed.lost_versions(), lost) => Seen::Lost,
            Err(_) => Seen::Nothing,
        };
        self.end(None, |history| history.end_failed(now, &operation));
        seen
    }
}
