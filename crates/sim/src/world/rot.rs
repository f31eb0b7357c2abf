//! Data files of one server that rot or go missing.

use super::trouble::{ROTTEN, Trouble};
use super::{Event as Happening, World, server_of};
use crate::fault::Fault;
use crate::truth::Harm;
use areo_core::config::Configuration;
use areo_core::element::Form;
use areo_core::object::Name;
use areo_core::tag::Tag;
use areo_store::Disk;
use std::time::Duration;

impl World {
    /// Flips a bit of a segment, somewhere in its written and proven part.
    pub(super) fn flip(&self, server: usize) {
        let machines = &mut *self.0.machines.borrow_mut();
        let machine = &mut machines.list[server];
        if !machine.seal() {
            return;
        }
        // Sealing may have written nothing, so that nobody has noticed yet that the power went.
        let Ok(mut names) = machine.platter.disk.list() else {
            return;
        };
        names.retain(|name| name.starts_with("segment-") && !name.contains(".hint"));
        if names.is_empty() {
            // Nothing was written since the disk was new.
            return;
        }
        let name = &names[self.random().index(names.len())];
        let content = machine.platter.disk.content(name).expect("it was listed");
        let Some(last) = content.iter().rposition(|byte| *byte != 0) else {
            return;
        };
        let (offset, bit) = (self.random().index(last + 1), self.random().below(8));
        machine.platter.disk.flip(name, offset, 1 << bit);
        machines.lose(server);
        machines.truth(server).suffer(Harm::Rotten);
        self.plan().note(Fault::BitFlip);
        self.remark(&format!(
            "server {server}: bit {bit} of byte {offset} of {name} flips"
        ));
    }

    /// Kills the server, and flips a bit of a hint, cuts a file, or takes some away. A lost hint costs no record.
    pub(super) fn harm_file(&self, fault: Fault) {
        self.kill(ROTTEN);
        let machines = &mut *self.0.machines.borrow_mut();
        let disk = &machines.list[ROTTEN].platter.disk;
        let Ok(mut names) = disk.list() else { return };
        let is_of_hints = matches!(fault, Fault::HintFlip | Fault::HintMissing);
        let is_hint = |name: &str| name.contains(".hint");
        names.retain(|name| name.starts_with("segment-"));
        names.retain(|name| is_hint(name) == is_of_hints || fault == Fault::LogMissing);
        names.sort_unstable();
        if names.is_empty() {
            return;
        }
        let name = &names[self.random().index(names.len())];
        let bytes = disk.content(name).expect("it was listed");
        match fault {
            Fault::LogMissing => {
                for name in &names {
                    disk.lose(name);
                }
                if self.random().chance(500) {
                    disk.lose("EXTENT");
                }
            }
            _ if bytes.is_empty() => return,
            Fault::HintFlip => {
                let bit = 1 << self.random().below(8);
                disk.flip(name, self.random().index(bytes.len()), bit);
            }
            Fault::SegmentCut => {
                let length = self.random().index(bytes.len());
                disk.put(name, bytes[..length].to_vec());
            }
            _ => disk.lose(name),
        }
        self.plan().note(fault);
        self.remark(&format!("server {ROTTEN}: {}, {name}", fault.name()));
        machines.lose(ROTTEN);
        machines.truth(ROTTEN).suffer(match fault {
            Fault::HintFlip | Fault::HintMissing => Harm::LacksHints,
            _ => Harm::Rotten,
        });
    }

    /// The first start of the server whose disk may rot is confirmed. In half of the runs that lose logs it loses its log soon, perhaps
    /// before the root domain knows that anything was written.
    pub(super) fn perhaps_lose_log(&self, server: usize, life: u64) {
        let is_first = server == ROTTEN && life == 1 && !self.is_in_memory(server);
        if is_first && self.plan().is_planned(Fault::LogMissing) && self.random().chance(500) {
            let soon = Duration::from_millis(self.random().between(1, 300));
            self.at(soon, Happening::Trouble(Trouble::LogGoes(life)));
        }
    }

    /// The log of the server whose disk may rot is gone, if the server runs still.
    pub(super) fn lose_log(&self, life: u64) {
        let is_same = self.0.machines.borrow().list[ROTTEN].life == life;
        let is_drawn = !self.plan().leaves_out(Fault::LogMissing);
        if is_same && is_drawn && self.is_up(ROTTEN) && self.may_lose(ROTTEN) {
            self.harm_file(Fault::LogMissing);
        }
    }

    /// The elements of this version rot at so many members that too few are left. The members start again. Returns those that have a sound
    /// element still.
    pub(crate) fn lose_elements(&self, c: &Configuration, name: &Name, tag: Tag) -> Vec<usize> {
        assert!(
            self.is_arbitrary(),
            "an invariant would be broken, and rightly so"
        );
        let mut members: Vec<usize> = c.members().iter().map(|it| server_of(*it)).collect();
        let (mut spared, mut sound) = (None, Vec::new());
        while !members.is_empty() {
            let server = members.swap_remove(self.random().index(members.len()));
            self.kill(server);
            let elements = self.open(server).elements(c.id());
            let mut elements = elements.into_iter();
            let of_version = elements.find(|(it, _)| it.name == *name && it.tag == tag);
            let Some((header, element)) = of_version else {
                continue;
            };
            // As many fragments as are not enough; of copies one is.
            let spared = spared.get_or_insert_with(|| match header.form {
                Form::Fragment { k, .. } => self.random().index(usize::from(k)),
                _ => 0,
            });
            if *spared > 0 {
                *spared -= 1;
                sound.push(server);
                continue;
            }
            assert!(!element.payload.is_empty(), "it has something that can rot");
            self.flip_all(server, &element.payload);
            self.remark(&format!("server {server} loses its element of {tag}"));
        }
        sound
    }

    /// Flips a bit of these bytes wherever they are on a disk.
    fn flip_all(&self, server: usize, bytes: &[u8]) {
        let disk = &self.0.machines.borrow().list[server].platter.disk;
        let mut flipped = 0;
        for name in disk.list().expect("the disk works") {
            let content = disk.content(&name).expect("it was listed");
            let mut from = 0;
            while let Some(at) = content[from..]
                .windows(bytes.len())
                .position(|it| it == bytes)
            {
                disk.flip(&name, from + at, 1);
                (flipped, from) = (flipped + 1, from + at + bytes.len());
            }
        }
        assert!(flipped > 0, "the disk has what was read of it");
    }
}
