//! Data files of one server that rot or go missing.

use super::World;
use super::trouble::ROTTEN;
use crate::fault::Fault;
use crate::truth::Harm;
use areo_store::Disk;

impl World {
    /// Flips a bit of a segment, somewhere in what was written and proven.
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
}
