//! The end of a run: everything is mended, everything must succeed, and what was seen must make sense.

use crate::history::{History, Kind};
use crate::reconfiguring::bent::Bug;
use crate::reconfiguring::run::{Notebook, Run, SERVERS, list_all, reconfigure, version};
use crate::world::{Chaos, name};
use areo_core::dsm::Client;
use areo_core::message::ListEntry;
use areo_core::reconfig::ares::Reconfigured;
use areo_core::tag::Tag;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;

impl Notebook {
    pub fn history(&mut self, key: &str) -> &mut History {
        self.histories.get_mut(key).expect("it was begun")
    }

    /// The largest version of each object that an operation has ended with.
    pub fn completed(&self) -> BTreeMap<String, Tag> {
        let largest =
            |(key, history): (&String, &History)| Some((key.clone(), history.largest_completed()?));
        self.histories.iter().filter_map(largest).collect()
    }

    /// A listing shows every object whose write had completed when it began, in that version or a later one, unless a
    /// deletion was begun; and each once (`[X-19 regular-listing]`).
    pub fn judge_listing(&mut self, before: &BTreeMap<String, Tag>, listed: &[ListEntry]) {
        if !listed.is_sorted_by(|a, b| a.key < b.key) {
            self.violations
                .push(format!("not in order, or twice: {listed:?}"));
        }
        for (key, tag) in before.iter().filter(|(_, tag)| !tag.is_initial()) {
            let entry = listed.iter().find(|entry| entry.key == *key);
            let deleted = || self.histories[key].was_deletion_begun();
            let sound = entry.map_or_else(deleted, |entry| entry.tag >= *tag);
            if !sound {
                let violation = format!("{key} is listed as {entry:?}, and had {tag} before");
                self.violations.push(violation);
            }
        }
    }
}

impl Run {
    /// # Errors
    /// What did not succeed, or did not make sense.
    pub fn mend_and_judge(&self) -> Result<(), String> {
        let world = &self.world;
        // One server may be dead for good: every configuration does without it.
        let dead = (world.below(3) == 0).then(|| world.below(SERVERS));
        for number in 0..SERVERS {
            match (world.is_up(number), Some(number) == dead) {
                (false, false) => world.restart(number, false),
                (true, true) => world.crash(number),
                _ => {}
            }
        }
        world.random(Chaos {
            lose: 0,
            duplicate: 0,
            pass_time: 0,
        });
        world.pass(Duration::from_secs(3));
        self.read_everything("mended")?;
        let late = || Client::new(self.client(0, Bug::None).env);
        let next = self.draw_configuration();
        let moved = world.run(reconfigure(late(), self.first.clone(), next));
        // A proposal of before may be the one that is decided.
        if !matches!(
            moved,
            Ok(Reconfigured::Installed(_) | Reconfigured::Lost(_))
        ) {
            return Err(format!("a reconfiguration ended so: {moved:?}"));
        }
        self.read_everything("reconfigured")?;
        let (client, c) = (late(), self.first.clone());
        let cell = Bytes::from_static(b"cell");
        let learned = world.run(async move { client.domain(&c).learn(&cell).await });
        let learned = learned.map_err(|failed| format!("the cell: {failed}"))?;
        let mut notebook = self.notebook.borrow_mut();
        if learned.is_none() && !notebook.decided.is_empty() {
            return Err("what was decided is gone".into());
        }
        notebook.decided.extend(learned);
        if notebook.decided.len() > 1 {
            return Err(format!("decided twice: {:?}", notebook.decided));
        }
        if let Some(violation) = notebook.violations.first() {
            return Err(violation.clone());
        }
        world.assert_one_chain();
        let judged = |(key, history): (&String, &History)| {
            let judged = history.judge();
            judged.map_err(|violation| format!("{key}: {violation}"))
        };
        notebook.histories.iter().try_for_each(judged)
    }

    /// An old client and a new one read and list everything.
    fn read_everything(&self, when: &str) -> Result<(), String> {
        let keys: Vec<String> = self.notebook.borrow().histories.keys().cloned().collect();
        for client in [
            self.client(0, Bug::None),
            Client::new(self.client(0, Bug::None).env),
        ] {
            for key in &keys {
                let id = self.notebook.borrow_mut().history(key).begin(Kind::Read);
                let again = client.with(self.client(0, Bug::None).env);
                let (c, object) = (self.first.clone(), name(key));
                let read = async move { again.domain(&c).read(&object, None).await };
                let found = self.world.run(read);
                let found = found.map_err(|error| format!("{when}, {key}: {error:?}"))?;
                let version = Some(version(found));
                self.notebook
                    .borrow_mut()
                    .history(key)
                    .end_read(id, version);
            }
            let before = self.notebook.borrow().completed();
            let again = client.with(self.client(0, Bug::None).env);
            let listed = self.world.run(list_all(again, self.first.clone(), 3));
            let listed = listed.ok_or(format!("{when}: no listing"))?;
            self.notebook.borrow_mut().judge_listing(&before, &listed);
        }
        Ok(())
    }
}
