//! The fault *arbitrary state*: the program is intact, and what it remembers of the objects of one domain is anything. At a drawn
//! subset of servers, up to all of them, records of objects go and others are there, valid and with drawn contents; and notes
//! that no server said are on links. What a process has in memory comes from these: each server that is struck starts again.
//!
//! Now and then a number is one that no execution produces (`[N-1 bounded-numbers]`): on a disk it is damage, for which a server
//! abstains until all members have restarted the object. What is possible stays far from where numbers end. And elements are there whose
//! checksums are wrong.

use super::network::Body;
use super::{World, server_of};
use crate::random::Random;
use crate::truth::KeptRecord;
use areo_core::config::{Configuration, ConfigurationId};
use areo_core::dap::versions::{Fence, Marks};
use areo_core::element::{Element, Form, Handle};
use areo_core::limits;
use areo_core::message::{Gossip, GossipMarks, Note};
use areo_core::object::Name;
use areo_core::server::record::{ElementHeader, Header, Step};
use areo_core::shard::Heap;
use areo_core::tag::{ClientId, Tag, Writer};
use areo_store::MemoryDisk;
use areo_store::records::Records;
use areo_wire::checksum::crc32c;
use areo_wire::codec;
use bytes::Bytes;
use std::collections::BTreeSet;

/// Most versions of an object that appear at a server. Few servers have room for more that no round has finalized.
const APPEARING: u64 = 5;
/// Most notes on links.
const NOTES: u64 = 5;

/// A record that appears on a disk.
struct DrawnRecord {
    header: Header,
    payload: Bytes,
    /// Its checksum is wrong.
    rots: bool,
}

/// The records on one disk.
pub(super) struct Contents {
    records: Records<MemoryDisk>,
    /// The header of each record, by handle.
    found: Vec<Header>,
}

impl World {
    /// Servers that may be members of a domain whose state is to be arbitrary: nothing else is wrong with their disks.
    pub(crate) fn sound_servers(&self) -> Vec<usize> {
        let machines = self.0.machines.borrow();
        let is_sound = |server: &usize| {
            let (machine, truth) = (&machines.list[*server], &machines.truths()[*server]);
            let is_own = !machine.exchange.is_copy() && !machine.platter.in_memory;
            is_own && truth.is_sound() && !truth.unreadable
        };
        let servers = 0..machines.list.len();
        servers.filter(is_sound).collect()
    }

    /// Ends the checks of invariants: the truths that they compare with no longer match the servers.
    pub(crate) fn cease_to_judge(&self) {
        self.0.watch.borrow_mut().is_arbitrary = true;
    }

    /// True if invariants are no longer checked.
    pub(crate) fn is_arbitrary(&self) -> bool {
        self.0.watch.borrow().is_arbitrary
    }

    /// All invariants hold again, of what happens from now on.
    pub(crate) fn judge_anew(&self) {
        let watch = &mut *self.0.watch.borrow_mut();
        assert!(watch.is_arbitrary, "they were not in force");
        watch.invariants = crate::invariant::all();
        watch.is_arbitrary = false;
    }

    /// Makes what some members remember of these objects arbitrary. They start again. Returns how many restarts they may
    /// need: one for numbers that cannot be, and one for each damaged element.
    pub(crate) fn make_arbitrary(&self, c: &Configuration, names: &[Name]) -> u32 {
        assert!(
            self.is_arbitrary(),
            "invariants would be broken, and rightly so"
        );
        let chosen = match self.random().below(3) {
            0 => u64::MAX,
            _ => self.random().draw(),
        };
        let (mut tags, mut rots) = (Vec::new(), 0);
        for member in c.members().iter() {
            let server = server_of(*member);
            if chosen >> server & 1 == 1 && self.is_up(server) {
                self.kill(server);
                rots += self.rewrite(server, (c, names), &mut tags);
                self.remark(&format!("server {server} remembers anything"));
            }
        }
        rots + u32::from(tags.iter().any(|tag| !tag.is_possible()))
    }

    /// Replaces the tag of this server's element of the object by `tag`, on disk. The server starts again.
    pub(crate) fn forge(&self, server: usize, (c, name): (&Configuration, &Name), tag: Tag) {
        assert!(self.is_arbitrary(), "an invariant would be broken");
        self.kill(server);
        let contents = self.open(server);
        let elements = contents.elements(c.id()).into_iter();
        let mut of_object = elements.filter(|(header, _)| header.name == *name);
        let (header, element) = of_object.next().expect("it has an element");
        let forged = DrawnRecord {
            header: Header::Element(ElementHeader { tag, ..header }),
            payload: element.payload,
            rots: false,
        };
        let kept = vec![true; contents.found.len()];
        let truth = contents.write(&kept, vec![forged]);
        self.trust(server, &truth);
        self.remark(&format!("server {server} has a forged record"));
    }

    /// Reads the disk of a server that is down.
    pub(super) fn open(&self, server: usize) -> Contents {
        let (disk, options) = {
            let platter = &self.0.machines.borrow().list[server].platter;
            (platter.disk.clone(), platter.log_options())
        };
        let mut found = Vec::new();
        let recover = |header, _| {
            found.push(header);
            Handle(u32::try_from(found.len() - 1).expect("few records"))
        };
        let opened = Records::open(disk, options, recover);
        let (records, _) = opened.expect("the disk is sound");
        Contents { records, found }
    }

    /// Replaces the truth of a server by these records of its disk, by handle.
    fn trust(&self, server: usize, truth: &[Option<(Header, bool)>]) {
        let machines = &mut *self.0.machines.borrow_mut();
        let objects = &mut self.0.watch.borrow_mut().objects;
        let known = truth.iter().enumerate().filter_map(|(at, header)| {
            let at = u32::try_from(at).expect("few records");
            let (header, rots) = header.as_ref()?;
            Some((at, KeptRecord::of(header, *rots, objects)))
        });
        let known = known.collect();
        // What is missing now went by this.
        let _ = machines.truth(server).recovered(known, false);
    }

    /// Puts notes on links that no server said.
    pub(crate) fn say_anything(&self, c: &Configuration, names: &[Name]) {
        let members = c.members();
        for _ in 0..self.random().below(NOTES + 1) {
            let [from, to] = [(); 2].map(|()| members[self.random().index(members.len())]);
            let objects = names.iter();
            let objects = objects.map(|name| (name.clone(), drawn_gossip(self.random())));
            let gossip = Gossip {
                configuration: c.id(),
                from,
                objects: objects.collect(),
            };
            let codec::EncodedMessage { body, payload } = codec::encode_note(&Note::Gossip(gossip));
            let link = self.caller_of(server_of(from));
            _ = self.send_note(link, to, Body { body, payload });
        }
    }

    /// Rewrites the objects on the disk of a server that is down. `tags`: the tags that were found or drawn so far.
    /// Returns how many of the new records are damaged.
    fn rewrite(
        &self,
        server: usize,
        (c, names): (&Configuration, &[Name]),
        tags: &mut Vec<Tag>,
    ) -> u32 {
        let (key, random) = (c.id(), self.random());
        let contents = self.open(server);
        let sources = contents.elements(key);
        tags.extend(sources.iter().map(|(header, _)| header.tag));
        let mut kept: Vec<bool> = vec![true; contents.found.len()];
        let mut steps = Vec::new();
        for name in names {
            contents.lose_some((key, name), random, &mut kept);
            let tags_kept = contents.tags((key, name), &kept);
            steps.extend(drawn_versions(
                (key, name),
                &sources,
                random,
                (tags, tags_kept),
            ));
            let loses_marks = !contents.found.iter().zip(&kept).any(|(header, kept)| {
                *kept && matches!(header, Header::Marks { key: of, name: it, .. } if *of == key && it == name)
            });
            if loses_marks && random.chance(700) {
                let marks = drawn_marks(random, tags);
                let name = name.clone();
                steps.push(DrawnRecord {
                    header: Header::Marks { key, name, marks },
                    payload: Bytes::new(),
                    rots: false,
                });
            }
        }
        let rots = steps.iter().map(|record| u32::from(record.rots)).sum();
        self.trust(server, &contents.write(&kept, steps));
        rots
    }
}

impl Contents {
    /// The elements of the configuration.
    pub(super) fn elements(&self, key: ConfigurationId) -> Vec<(ElementHeader, Element)> {
        let found = self.found.iter().enumerate();
        let elements = found.filter_map(|(at, header)| match header {
            Header::Element(header) if header.key == key => {
                let handle = Handle(u32::try_from(at).expect("few records"));
                let element = self.records.element(handle, true);
                Some((header.clone(), element.expect("the disk is sound")))
            }
            _ => None,
        });
        elements.collect()
    }

    /// Some records of the object go.
    fn lose_some(&self, (key, name): (ConfigurationId, &Name), random: &Random, kept: &mut [bool]) {
        let (of_elements, of_marks) = (random.below(1000), random.chance(700));
        for (header, kept) in self.found.iter().zip(kept) {
            match header {
                Header::Element(it) if it.key == key && it.name == *name => {
                    *kept = !random.chance(of_elements);
                }
                Header::Marks {
                    key: of, name: it, ..
                } if *of == key && it == name => {
                    *kept = !of_marks;
                }
                _ => {}
            }
        }
    }

    /// The versions of the object that stay.
    fn tags(&self, (key, name): (ConfigurationId, &Name), kept: &[bool]) -> BTreeSet<Tag> {
        let found = self.found.iter().zip(kept);
        let tags = found.filter_map(|(header, kept)| match header {
            Header::Element(it) if *kept && it.key == key && it.name == *name => Some(it.tag),
            _ => None,
        });
        tags.collect()
    }

    /// Frees the records that are not kept, and writes the new ones. Returns the resulting records, by handle, each
    /// with whether it is damaged.
    fn write(mut self, kept: &[bool], coming: Vec<DrawnRecord>) -> Vec<Option<(Header, bool)>> {
        let handle = |at: usize| Handle(u32::try_from(at).expect("few records"));
        let gone = kept.iter().enumerate().filter(|(_, kept)| !**kept);
        let mut steps: Vec<Step> = gone.map(|(at, _)| Step::Free(handle(at))).collect();
        let found = self.found.into_iter().map(|header| Some((header, false)));
        let mut there: Vec<Option<(Header, bool)>> = found.collect();
        for (at, _) in kept.iter().enumerate().filter(|(_, kept)| !**kept) {
            there[at] = None;
        }
        for record in coming {
            let DrawnRecord {
                header,
                payload,
                rots,
            } = record;
            steps.push(Step::Append {
                handle: handle(there.len()),
                header: Box::new(header.clone()),
                checksum: rots.then(|| !crc32c(&payload)),
                payload,
            });
            there.push(Some((header, rots)));
        }
        let bytes = Records::<MemoryDisk>::footprint(&steps);
        if bytes > 0 {
            let reserved = self.records.reserve(bytes);
            reserved.expect("the disk has room");
        }
        self.records.apply(steps);
        self.records.commit().expect("the disk works");
        self.records.close().expect("the disk works");
        there
    }
}

/// Versions of the object that were never written: elements of others, under drawn tags.
fn drawn_versions(
    (key, name): (ConfigurationId, &Name),
    sources: &[(ElementHeader, Element)],
    random: &Random,
    (tags, mut held): (&mut Vec<Tag>, BTreeSet<Tag>),
) -> Vec<DrawnRecord> {
    let mut drawn = Vec::new();
    for _ in 0..random.below(APPEARING + 1) {
        let (tag, floor) = (drawn_tag(random, tags), drawn_tag(random, tags));
        if !held.insert(tag) {
            continue;
        }
        let floor = if random.chance(300) {
            floor
        } else {
            Tag::INITIAL
        };
        let tombstone = ElementHeader {
            key,
            name: name.clone(),
            tag,
            floor,
            form: Form::Copy,
            deleted: true,
            length: 0,
            bytes: 0,
            metadata: Bytes::new(),
        };
        let source = match sources.len() {
            0 => None,
            length if random.chance(850) => Some(&sources[random.index(length)]),
            _ => None,
        };
        let (header, payload) = match source {
            None => (tombstone, Bytes::new()),
            Some((header, element)) => {
                let (name, header) = (name.clone(), header.clone());
                let header = ElementHeader {
                    name,
                    tag,
                    floor,
                    ..header
                };
                (header, element.payload.clone())
            }
        };
        drawn.push(DrawnRecord {
            header: Header::Element(header),
            rots: !payload.is_empty() && random.chance(250),
            payload,
        });
    }
    drawn
}

/// A tag of a write: one that is somewhere, one near that, or any. It is somewhere from now on.
fn drawn_tag(random: &Random, tags: &mut Vec<Tag>) -> Tag {
    let known = match tags.len() {
        0 => Tag::INITIAL,
        length => tags[random.index(length)],
    };
    let writer = Writer {
        client: ClientId(random.draw()),
        counter: 1 + random.below(3),
    };
    let number = match random.below(5) {
        0 | 1 => known.number,
        2 => known.number.saturating_add(random.below(3)),
        3 => random.below(5),
        // Far from where numbers end: what comes after it has room.
        _ => random.below(limits::NUMBER >> random.between(1, 61)),
    };
    let writer = match random.below(2) {
        0 if !known.is_initial() => known.writer,
        _ => writer,
    };
    let number = match random.below(20) {
        0 => limits::NUMBER | random.below(4),
        1 => limits::NUMBER | random.draw(),
        _ => number,
    };
    let tag = Tag { number, writer };
    assert!(!tag.is_initial(), "a write has it");
    tags.push(tag);
    tag
}

/// None, or a tag.
fn perhaps_tag(random: &Random, tags: &mut Vec<Tag>) -> Tag {
    match random.chance(200) {
        true => Tag::INITIAL,
        false => drawn_tag(random, tags),
    }
}

fn drawn_marks(random: &Random, tags: &mut Vec<Tag>) -> Marks {
    let [floor, one, other, upto, spared] = [(); 5].map(|()| perhaps_tag(random, tags));
    let held = [(); 2].map(|()| drawn_tag(random, tags));
    let held = held.into_iter().filter(|tag| *tag <= upto);
    let held: BTreeSet<Tag> = held.collect();
    let fence = (random.chance(250) && !upto.is_initial()).then(|| Fence {
        upto,
        turn: random.between(1, 5),
        spared: if spared <= upto { spared } else { Tag::INITIAL },
        held: held.into_iter().collect(),
    });
    Marks {
        floor,
        stable: one.max(other),
        complete: one.min(other),
        fence,
    }
}

/// Now and then with a number that no execution produces.
fn drawn_gossip(random: &Random) -> GossipMarks {
    let mut tags = [(); 3].map(|()| perhaps_tag(random, &mut Vec::new()));
    tags.sort_unstable();
    let [complete, finalized, mut largest] = tags;
    if random.chance(200) {
        largest.number |= limits::NUMBER;
    }
    GossipMarks {
        largest,
        finalized,
        complete,
    }
}
