//! The recovery of a server from its records, before it answers.

use super::Server;
use super::record::Header;
use crate::config::ConfigurationId;
use crate::element::Handle;
use crate::instant::Instant;

impl Server {
    /// Takes in a record found on disk; the order of records does not matter. The store is to know it by the handle
    /// returned. `damaged`: its payload does not match its checksum. What the header holds should be memory of its own: some
    /// of it stays.
    pub fn recover(&mut self, header: Header, damaged: bool) -> Handle {
        assert!(!self.serving, "records come back before it answers");
        let handle = self.ledger.draw();
        match header {
            Header::Registry(record) => self.registry.recover(record, handle, &mut self.ledger),
            Header::Configuration(configuration) => {
                let state = self.states.entry(configuration.id()).or_default();
                state.describe(configuration, handle, &mut self.ledger);
            }
            Header::Element(element) => {
                self.states
                    .entry(element.key)
                    .or_default()
                    .recover_element(element, handle, damaged);
            }
            Header::Marks { key, name, marks } => {
                let state = self.states.entry(key).or_default();
                state.recover_marks(name, &marks, handle);
            }
            Header::Register {
                key,
                name,
                register,
            } => {
                let state = self.states.entry(key).or_default();
                state.recover_register(&name, *register, handle, &mut self.ledger);
            }
            Header::BallotFloor { key, bucket, floor } => {
                let state = self.states.entry(key).or_default();
                state.recover_floor(bucket, floor, handle, &mut self.ledger);
            }
            Header::Cell {
                key,
                cell,
                acceptor,
            } => {
                let state = self.states.entry(key).or_default();
                state.recover_cell(&cell, acceptor, handle, &mut self.ledger);
            }
            Header::Pointer { key, pointer } => {
                let state = self.states.entry(key).or_default();
                let start = Instant::default();
                state.point(start, (pointer, handle), &mut self.ledger);
            }
            Header::Final(configuration) => {
                self.finals.recover(configuration, handle, &mut self.ledger);
            }
        }
        handle
    }

    /// After the last record: drops what newer records supersede. `unreadable`: records were lost whose keys are
    /// not known.
    pub fn recovered(&mut self, unreadable: bool) {
        self.unreadable = unreadable;
        for (key, state) in &mut self.states {
            state.recovered(*key, &mut self.ledger);
        }
        // What was collected and came back goes again.
        let keys: Vec<ConfigurationId> = self.states.keys().copied().collect();
        for key in keys {
            self.collect(key);
        }
    }
}
