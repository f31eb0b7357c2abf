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
use crate::run::{mend, pass, start_all};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::element::Value;
use areo_core::env::Env;
use areo_core::error::LostVersion;
use areo_core::hash::stable_hash;
use areo_core::object::{DomainId, Metadata};
use areo_core::reconfig::ares::AresError;
use areo_core::reconfig::change::Change;
use areo_core::tag::Tag;
use bytes::Bytes;
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

/// The result of a read of the object that is lost, or was.
enum Seen {
    /// A version, which the history has judged.
    Version,
    /// It says that it is lost: the version, or the mark of who left it so.
    Lost,
    /// Neither in time.
    Nothing,
}

/// Makes an object of a domain unreadable, and judges what comes after.
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
    let lost = (DOMAIN, format!("key-{LOST}"));
    let lost = work.history.borrow().version(&lost, 0);
    world.cease_to_judge();
    world.plan().note(Fault::ObjectLost);
    world.lose_elements(&c, &name(LOST), lost);
    start_all(world);
    // Clients that begin now remember no version of it, and no value.
    let clients = work.begin(DOMAIN, &c);
    work.each(&clients, async move |work, it| {
        work.meet_lost(it, lost).await;
    });
    let ways = [WayOut::WriteOver, WayOut::Remove, WayOut::Leave];
    let way = ways[world.random().index(ways.len())];
    work.each(&clients, async move |work, it| match it.process {
        0 => work.change_past(it, next.descriptor(), lost).await,
        1 => work.have_done(it, way, lost).await,
        _ => work.read_meanwhile(it).await,
    });
    work.each(&clients[..1], async move |work, it| {
        work.end_change_past(it, way).await;
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

    /// What each client sees as long as the object is as it is.
    async fn meet_lost(&self, begun: &Begun, lost: Tag) {
        let one = |key| self.one(begun, key);
        match one(LOST).see(Some(lost)).await {
            Seen::Lost => {}
            Seen::Version | Seen::Nothing => {
                self.stuck("an error that names the lost version", begun.process);
            }
        }
        for key in LOST + 1..KEYS {
            self.must_end("get", begun, &one(key).get().await);
        }
        self.must_end("list", begun, &one(LOST).list().await);
        self.must_end("put", begun, &one(LOST + 1).put().await);
    }

    /// Reads while others write and change the domain.
    async fn read_meanwhile(&self, begun: &Begun) {
        for _ in 0..READS {
            if let Seen::Nothing = self.one(begun, LOST).see(None).await {
                self.stuck("a read of what was lost", begun.process);
            }
            for key in LOST + 1..KEYS {
                self.must_end("get", begun, &self.one(begun, key).get().await);
            }
            self.must_end("list", begun, &self.one(begun, LOST).list().await);
            self.pause(begun).await;
        }
    }

    /// Begins a change that meets the lost object: it ends, or stays pending and names it, and nothing else.
    async fn change_past(&self, begun: &Begun, wanted: &Descriptor, lost: Tag) {
        self.pause(begun).await;
        let one = self.one(begun, LOST);
        one.client.env.goes_over_many();
        // The drawn one may be the one that there is.
        let Ok(change) = Change::new(&begun.c, wanted) else {
            return;
        };
        let (approves, progress) = (async |_: &Change| true, |_| ());
        let domain = one.domain();
        let moved = domain.reconfigure(&self.root, &change, &approves, &progress);
        match moved.await {
            Ok(_) => {}
            Err(AresError::Pending(failed)) if names(failed.lost_versions(), lost) => {}
            Err(error) => {
                self.world.remark(&format!("{error:?}"));
                self.stuck("a change past a lost object", begun.process);
            }
        }
    }

    /// A person has done with the object.
    async fn have_done(&self, begun: &Begun, way: WayOut, lost: Tag) {
        self.pause(begun).await;
        let one = self.one(begun, LOST);
        match way {
            WayOut::WriteOver => self.must_end("put", begun, &one.put().await),
            WayOut::Remove => self.must_end("delete", begun, &one.delete().await),
            WayOut::Leave if !one.leave_lost(lost).await => {
                self.stuck("leaving an object", begun.process);
            }
            WayOut::Leave => {}
        }
    }

    /// The change ends, now that a client has done with the object.
    async fn end_change_past(&self, begun: &Begun, way: WayOut) {
        let one = self.one(begun, LOST);
        one.client.env.goes_over_many();
        let resumed = one.domain().resume(&self.root, &|_| ()).await;
        if let Err(error) = resumed {
            self.world.remark(&format!("{error:?}"));
            return self.stuck("reconfig --resume past a lost object", begun.process);
        }
        let seen = self.one(begun, LOST).see(None).await;
        match (way, seen) {
            (WayOut::Leave, Seen::Lost) => {
                self.must_end("put", begun, &self.one(begun, LOST).put().await);
            }
            (WayOut::WriteOver | WayOut::Remove, Seen::Version) => {}
            _ => self.stuck("a read of what a person has done with", begun.process),
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
    /// Reads the object. `lost`: no other version may be named.
    async fn see(&self, lost: Option<Tag>) -> Seen {
        let operation = self.begin(Kind::Read, None);
        let found = self.domain().read_large(&self.name()).await;
        let (now, ended) = (self.work.world.now(), self.ended());
        let is_mark = |value: &Value| {
            let metadata = Metadata::decode(&value.metadata);
            metadata.is_ok_and(|it| it.lost.is_some())
        };
        let seen = match &found {
            Ok(found) if !found.value.as_ref().is_some_and(is_mark) => {
                self.end(Some(found.tag), |history| {
                    history.end_read(&ended, &operation, self.shown(found.tag), hash(found));
                });
                return Seen::Version;
            }
            Ok(_) => Seen::Lost,
            Err(failed) if lost.is_some_and(|lost| names(failed.lost_versions(), lost)) => {
                Seen::Lost
            }
            Err(failed) if lost.is_none() && !failed.lost_versions().is_empty() => Seen::Lost,
            Err(_) => Seen::Nothing,
        };
        self.end(None, |history| history.end_failed(now, &operation));
        seen
    }

    /// Leaves the object unreadable, as `reconfig start --leave-unreadable` does.
    async fn leave_lost(&self, lost: Tag) -> bool {
        let (domain, name) = (self.domain(), self.name());
        if !domain.is_ranked(&name) {
            return domain.leave_lost(&name, lost).await.is_ok();
        }
        let metadata = Metadata {
            lost: Some(lost),
            ..Metadata::default()
        };
        let metadata = metadata.encode().expect("it has no pair");
        let mark = Value::new(metadata, Bytes::new());
        domain.put_if(&name, &mark, Some(lost)).await.is_ok()
    }
}
