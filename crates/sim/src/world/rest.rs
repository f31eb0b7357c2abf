//! The bounds for servers at rest: a bound for each kind of record (`docs/simulator.md`, "What may grow").

use super::machine::{Machines, SEGMENT_BYTES};
use super::{Watch, World, server_of};
use crate::invariant;
use crate::truth::{Identity, KeptRecord, ObjectId, Truth, domain_of};
use areo_core::config::{Collect, ConfigurationId, Dap, ServerId};
use areo_core::consensus::fate;
use areo_core::dap;
use areo_core::dsm::large;
use areo_core::object::{Kind, Name};
use areo_core::tag::{ClientId, Tag, Writer};
use areo_node::Durable;
use areo_store::records::MemoryRecords;
use std::collections::{BTreeMap, BTreeSet};

/// Dead bytes that a store may hold beside as many as are alive: the segment being written, the one before it, and small
/// segments that are not merged yet.
const MOST_DEAD_BYTES: u64 = 3 * SEGMENT_BYTES;

/// State that the bounds at rest are checked against.
struct Rest<'a> {
    machines: &'a Machines,
    watch: &'a Watch,
    /// Uploads whose manifest is the newest version of its object at some server.
    live: BTreeSet<Writer>,
    /// Blocks of uploads of which some server holds a tombstone, by configuration and name.
    removed: BTreeSet<(ConfigurationId, &'a [u8])>,
    /// Cells of uploads that were aborted.
    aborted: BTreeSet<(ConfigurationId, &'a [u8])>,
    /// Entries that a register may have: one for each server that stays for ever, and one for each address of a server in memory.
    registered: usize,
}

impl World {
    /// Checks that servers store one version of each object at rest (`[X-3 unconfirmed-cap]`): all versions were
    /// confirmed and have been quiet. A removal of an upload's blocks that no object needs may have ended half way:
    /// those blocks are checked after the sweep.
    pub(crate) fn crowded(&self) -> Option<String> {
        let machines = &*self.0.machines.borrow();
        let watch = &*self.0.watch.borrow();
        let rest = Rest::of(machines, watch);
        sound(machines).find_map(|(server, truth)| {
            let object = rest.crowded_objects(truth).find(|it| rest.needs(*it))?;
            let object = watch.objects.describe(object);
            Some(format!(
                "at_rest: server {server} still stores several versions of {object}"
            ))
        })
    }

    /// Checks that every member of a domain's last configuration holds its element of every version that is at a
    /// quorum, at rest (`[X-25 full-redundancy]`). Members whose disks are damaged or gone are not checked, nor is a
    /// domain that is being reconfigured.
    pub(crate) fn below(&self) -> Option<String> {
        let machines = &*self.0.machines.borrow();
        let watch = &*self.0.watch.borrow();
        let truths = machines.truths();
        let of = |member: ServerId| {
            let truth = &truths[server_of(member)];
            truth.is_of(member).then_some(truth)
        };
        let pointers = truths.iter().flat_map(Truth::records);
        let left: BTreeSet<ConfigurationId> = pointers.filter_map(left_by).collect();
        let is_judged = |object: &usize| {
            let key = watch.objects.key(*object);
            let is_final = key.index == invariant::final_index(truths, domain_of(&key));
            is_final && !left.contains(&key)
        };
        let objects = (0..watch.objects.len()).filter(is_judged);
        objects.into_iter().find_map(|object| {
            let c = watch.shapes.get(&watch.objects.key(object))?;
            let held = |tag: Tag| {
                let holds =
                    |member: &&ServerId| of(**member).is_some_and(|it| it.holds(object, tag));
                c.members().iter().filter(holds).count()
            };
            // Where a round finalizes versions, a writer may have left one at a quorum that no read returns.
            let is_said = |tag: Tag| {
                let mut members = c.members().iter().filter_map(|member| of(*member));
                !dap::has_durable_marks(c) || members.any(|truth| truth.finalizes(object, tag))
            };
            let newest = c.members().iter().filter_map(|member| of(*member));
            let newest = newest.flat_map(|truth| truth.tags(object));
            let complete = newest
                .filter(|tag| held(*tag) >= c.quorums().quorum() && is_said(*tag))
                .max()?;
            let lacks = |member: &&ServerId| {
                let truth = of(**member).filter(|truth| truth.is_sound() && !truth.unreadable);
                // A member that has nothing of a removed block may have dropped its tombstone ([X-30 dropped-tombstones]).
                let may_lack = |truth: &Truth| {
                    let is_block = upload_of(watch.objects.name(object)).is_some();
                    let is_removed = || truths.iter().any(|truth| truth.is_deleted(object));
                    is_block && truth.newest(object).is_initial() && is_removed()
                };
                truth.is_some_and(|truth| truth.newest(object) < complete && !may_lack(truth))
            };
            let lacking = server_of(*c.members().iter().find(lacks)?);
            let object = watch.objects.describe(object);
            Some(format!(
                "redundancy: server {lacking} still lacks {object} {complete}, which is at a quorum"
            ))
        })
    }

    /// After a sweep that heard from every server each one holds no more than its bound (decision record 0021).
    pub(crate) fn overgrown(&self) -> Option<String> {
        let machines = &*self.0.machines.borrow();
        let watch = &*self.0.watch.borrow();
        let rest = Rest::of(machines, watch);
        let rules = [
            Rest::repeated,
            Rest::crowded,
            Rest::unused,
            Rest::superseded,
            Rest::swept,
            Rest::fates,
            Rest::registered,
            Rest::promised,
        ];
        sound(machines).find_map(|(server, truth)| {
            let broken = rules.iter().find_map(|rule| rule(&rest, server, truth))?;
            Some(format!("growth: server {server} {broken}"))
        })
    }
}

impl Watch {
    /// True if a server holds the object's tombstone. Where a round finalizes versions the tombstone must be
    /// finalized: another one may never become so (`[CAS-8 finalized-listing]`).
    fn is_removed(&self, truth: &Truth, object: usize) -> bool {
        let c = self.shapes.get(&self.objects.key(object));
        match c.is_some_and(|c| dap::has_durable_marks(c)) {
            true => truth.has_tombstone(object, truth.mark(object)),
            false => truth.is_deleted(object),
        }
    }

    /// True if the server may not keep several versions of the object. Of finalized versions CAS keeps all and CASGC
    /// the last one; versions above the mark stay (`[CAS-6 finalized-trimming]`).
    fn bounds_versions(&self, truth: &Truth, object: usize) -> bool {
        let c = self.shapes.get(&self.objects.key(object));
        match c.map(|c| c.dap()) {
            // What CASSS knows to be complete is judged by what the server shows.
            Some(Dap::Cas { .. } | Dap::CasSs { .. }) => false,
            Some(Dap::CasGc { .. }) => truth.versions_upto(object, truth.mark(object)) > 1,
            _ => true,
        }
    }
}

/// Servers whose disks can be judged.
fn sound(machines: &Machines) -> impl Iterator<Item = (usize, &Truth)> {
    let truths = machines.truths().iter().enumerate();
    truths.filter(|(_, truth)| !truth.is_rotten() && !truth.unreadable)
}

/// The configuration that a pointer leads on from.
fn left_by(kept: &KeptRecord) -> Option<ConfigurationId> {
    match kept {
        KeptRecord::Pointer { key, .. } => Some(*key),
        _ => None,
    }
}

/// True if no later configuration of the domain is known to be final anywhere.
fn is_current(truths: &[Truth], key: &ConfigurationId) -> bool {
    key.index >= invariant::final_index(truths, domain_of(key))
}

impl<'a> Rest<'a> {
    fn of(machines: &'a Machines, watch: &'a Watch) -> Rest<'a> {
        let (mut live, mut removed) = (BTreeSet::new(), BTreeSet::new());
        for truth in machines.truths().iter().map(Truth::own) {
            for (object, newest) in truth.all_newest() {
                let name = watch.objects.name(object);
                if name.first() != Some(&(Kind::Block as u8)) {
                    live.insert(newest.writer);
                    // What readers see may be below what a writer has left half way ([CAS-7 no-cap]).
                    live.insert(truth.mark(object).writer);
                } else if watch.is_removed(truth, object) {
                    removed.insert((watch.objects.key(object), name));
                }
            }
        }
        let truths = machines.truths().iter().map(Truth::own);
        let aborted = truths.flat_map(Truth::records).filter_map(aborted);
        let in_memory = machines.list.iter().filter(|it| it.platter.in_memory);
        let addresses: u64 = in_memory.map(|it| it.moves + 1).sum();
        Rest {
            machines,
            watch,
            live,
            removed,
            aborted: aborted.collect(),
            registered: machines.losses.registered + addresses as usize,
        }
    }

    /// Objects of which a server stores too many versions.
    fn crowded_objects(&self, truth: &Truth) -> impl Iterator<Item = ObjectId> {
        let (truths, watch) = (self.machines.truths(), self.watch);
        // Where a later configuration is final no client confirms anything any more.
        let is_judged = move |object: &ObjectId| {
            let is_current = is_current(truths, &watch.objects.key(*object));
            is_current && watch.bounds_versions(truth, *object)
        };
        truth.crowded().filter(is_judged)
    }

    /// True if the object is no block of an upload, or a block that a manifest may name.
    fn needs(&self, object: ObjectId) -> bool {
        let upload = upload_of(self.watch.objects.name(object));
        upload.is_none_or(|upload| self.live.contains(&upload))
    }

    /// Checks that one version of each object is stored.
    fn crowded(&self, _: usize, truth: &Truth) -> Option<String> {
        let object = self.crowded_objects(truth).next()?;
        let object = self.watch.objects.describe(object);
        Some(format!("stores several versions of {object}"))
    }

    /// Checks that each subject has one record.
    fn repeated(&self, _: usize, truth: &Truth) -> Option<String> {
        let mut seen: BTreeSet<Identity> = BTreeSet::new();
        let mut records = truth.records();
        let twice = records.find(|kept| !seen.insert(kept.identity()))?;
        let (what, key) = (twice.identity(), twice.key(&self.watch.objects));
        Some(format!("keeps two records of {what:?}, of {key:?}"))
    }

    /// The store holds the records that the server needs, and about as much that is dead at most.
    fn unused(&self, server: usize, truth: &Truth) -> Option<String> {
        let usage = match self.machines.list[server].keep()? {
            Durable::Disk(records) => records.usage(),
            Durable::Memory(records) => return unused_in_memory(records, truth),
        };
        let needed = truth.records().count() as u64;
        if usage.records != needed {
            return Some(format!("needs {needed} records, its store has {usage:?}"));
        }
        let is_reclaimed = usage.dead_bytes <= usage.live_bytes + MOST_DEAD_BYTES;
        (!is_reclaimed).then(|| format!("does not reclaim its store: {usage:?}"))
    }

    /// Checks that nothing is left of a configuration with a final successor, except what its options keep
    /// (`[A-11 drop-when-final]`).
    fn superseded(&self, _: usize, truth: &Truth) -> Option<String> {
        let is_left = |kept: &&KeptRecord| {
            let Some(key) = kept.key(&self.watch.objects) else {
                return false;
            };
            let is_superseded = key.index < truth.final_index(domain_of(&key));
            let shape = self.watch.shapes.get(&key);
            is_superseded
                && match shape.map(|c| c.options().collect) {
                    Some(Collect::Off) => false,
                    Some(Collect::Paper) => {
                        let is_needed = matches!(
                            kept,
                            KeptRecord::Configuration { .. } | KeptRecord::Pointer { .. }
                        );
                        truth.is_left(&key) && !is_needed
                    }
                    Some(Collect::On) | None => true,
                }
        };
        let left = truth.records().find(is_left)?;
        let what = left.identity();
        Some(format!(
            "keeps {what:?} of a configuration that has a final successor"
        ))
    }

    /// Checks that an upload without a live manifest has left no block that a sweep can find, and no cell, except the
    /// cell of an aborted upload (decision record 0021).
    fn swept(&self, _: usize, truth: &Truth) -> Option<String> {
        let truths = self.machines.truths();
        truth.records().find_map(|kept| match kept {
            KeptRecord::Cell {
                key,
                cell,
                acceptor,
            } if cell.starts_with(large::PREFIX.as_bytes()) && is_current(truths, key) => {
                let committed = acceptor.accepted.as_ref();
                let committed = committed.and_then(|(_, value)| large::committed(value));
                let is_live = committed.is_some_and(|(_, tag)| self.live.contains(&tag.writer));
                // Without a value and with blocks that were never removed the upload is under way, for all that is known.
                let first = [&[Kind::Block as u8], &cell[..], b"-00000000"].concat();
                let is_undecided =
                    acceptor.accepted.is_none() && !self.removed.contains(&(*key, &first[..]));
                let is_needed =
                    is_live || is_undecided || self.aborted.contains(&(*key, &cell[..]));
                let cell = String::from_utf8_lossy(cell);
                (!is_needed).then(|| format!("keeps the cell {cell}: {acceptor:?}"))
            }
            KeptRecord::Element {
                object,
                deleted: false,
                ..
            } => {
                let (key, name) = (
                    self.watch.objects.key(*object),
                    self.watch.objects.name(*object),
                );
                let upload = upload_of(name).filter(|_| is_current(truths, &key))?;
                let is_needed = self.live.contains(&upload) || self.removed.contains(&(key, name));
                let object = self.watch.objects.describe(*object);
                (!is_needed).then(|| format!("keeps {object}, which no object needs"))
            }
            _ => None,
        })
    }

    /// No fate is kept of a version below the newest, which is confirmed (`[X-3 unconfirmed-cap]`).
    fn fates(&self, _: usize, truth: &Truth) -> Option<String> {
        let truths = self.machines.truths();
        let mut fates: BTreeMap<ConfigurationId, BTreeSet<&[u8]>> = BTreeMap::new();
        for kept in truth.records() {
            if let KeptRecord::Cell { key, cell, .. } = kept
                && fate::is_fate(cell)
                && is_current(truths, key)
            {
                fates.entry(*key).or_default().insert(cell);
            }
        }
        if fates.is_empty() {
            return None;
        }
        truth.all_newest().find_map(|(object, newest)| {
            let key = self.watch.objects.key(object);
            let (fates, c) = (fates.get(&key)?, self.watch.shapes.get(&key)?);
            let name = Name::from_bytes(self.watch.objects.name(object).to_vec().into()).ok()?;
            let [first, end] = [Tag::INITIAL, newest].map(|tag| fate::cell(c, &name, tag));
            let old = fates.range(&first[..]..&end[..]).next()?;
            let old = String::from_utf8_lossy(old);
            Some(format!("keeps {old}, and holds {newest}"))
        })
    }

    /// A promise for a name of which nothing is there is in the floor of its bucket (`[W-16 ballot-floor]`).
    fn promised(&self, _: usize, truth: &Truth) -> Option<String> {
        let left: BTreeSet<_> = truth.records().filter_map(left_by).collect();
        let truths = self.machines.truths();
        let is_left = |kept: &&KeptRecord| match kept {
            KeptRecord::Register { object, register } => {
                let key = self.watch.objects.key(*object);
                register.is_foldable() && is_current(truths, &key) && !left.contains(&key)
            }
            _ => false,
        };
        let kept = truth.records().find(is_left)?;
        Some(format!("keeps {kept:?}, of which nothing is there"))
    }

    /// The registry has one entry for each server that it keeps for ever, and for each address of servers in memory
    /// (`[X-28 memory-replaced]`).
    fn registered(&self, server: usize, truth: &Truth) -> Option<String> {
        let is_server = |kept: &&KeptRecord| matches!(kept, KeptRecord::Server { .. });
        let entries = truth.records().filter(is_server).count();
        let known = self.machines.list[server].registered_servers();
        let most = self.registered;
        (entries > most || known > most).then(|| {
            format!("has {entries} entries of its registry on disk and {known} in memory, of {most} servers and addresses")
        })
    }
}

/// Memory holds the elements that the server needs, and no other.
fn unused_in_memory(records: &MemoryRecords, truth: &Truth) -> Option<String> {
    let is_element = |kept: &&KeptRecord| matches!(kept, KeptRecord::Element { .. });
    let needed = truth.records().filter(is_element).count();
    let kept = records.elements();
    (kept != needed).then(|| format!("needs {needed} elements, its memory has {kept}"))
}

/// The cell, if it decided that its upload is aborted.
fn aborted(kept: &KeptRecord) -> Option<(ConfigurationId, &[u8])> {
    let KeptRecord::Cell {
        key,
        cell,
        acceptor,
    } = kept
    else {
        return None;
    };
    let is_upload = cell.starts_with(large::PREFIX.as_bytes()) && acceptor.decided;
    let (_, value) = acceptor.accepted.as_ref().filter(|_| is_upload)?;
    large::committed(value)
        .is_none()
        .then_some((*key, &cell[..]))
}

/// The upload that a block of this name belongs to.
fn upload_of(name: &[u8]) -> Option<Writer> {
    let (kind, key) = name.split_first()?;
    let key = std::str::from_utf8(key).ok()?.strip_prefix(large::PREFIX)?;
    let (client, counter) = key.split_once('-')?.0.split_at_checked(16)?;
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    let (client, counter) = (ClientId(number(client)?), number(counter)?);
    (*kind == Kind::Block as u8).then_some(Writer { client, counter })
}
