//! Notes of clients and servers.

use super::World;
use super::network::{Body, Content};
use crate::invariant::Observation;
use areo_core::config::ServerId;
use areo_core::message::Note;
use areo_wire::codec;

impl World {
    /// Sends a note. False: the server cannot be reached now, and the note is lost unless the sender keeps it.
    pub(super) fn send_note(&self, client: usize, to: ServerId, body: Body) -> bool {
        let up = self.find(to).filter(|server| self.is_up(*server));
        let Some(server) = up.filter(|_| self.reaches(client, to)) else {
            return false;
        };
        self.send(client, server, Content::Note(body));
        true
    }

    /// Sends what a server says without a request, and what it could not send before.
    pub(super) fn send_notes(&self, server: usize, sends: Vec<(ServerId, Note)>) {
        let caller = self.caller_of(server);
        let mut notes = {
            let machines = &mut *self.0.machines.borrow_mut();
            for (_, note) in &sends {
                self.observe(machines, &Observation::Told { server, note });
            }
            let node = machines.list[server].node();
            let node = node.expect("only a server that is up says something");
            node.outgoing(self.clock(caller), sends)
        };
        notes.retain(|it| {
            let codec::EncodedMessage { body, payload } = codec::encode_note(&it.note);
            !self.send_note(caller, it.to, Body { body, payload })
        });
        let machines = &mut *self.0.machines.borrow_mut();
        let node = machines.list[server].node();
        let node = node.expect("sending ends no server");
        node.keep_unsent(self.clock(caller), notes);
    }
}
