//! Shows the invariants every message that leaves a server.

use super::{Caller, Machines, Subject};
use crate::invariant::Observation;
use crate::truth::ObjectId;
use crate::world::World;
use areo_core::config::ConfigurationId;
use areo_core::message::{Answer, CellReply, Refusal, Reply};
use areo_core::tag::Tag;
use bytes::Bytes;

impl World {
    fn note_fence(&self, object: ObjectId, fence: Tag) {
        if !fence.is_initial() {
            let watch = &mut *self.0.watch.borrow_mut();
            let fences = watch.fences.entry(object).or_default();
            fences.insert(fence.number);
        }
    }

    /// Shows the answers for later configurations (`[R-20 answers-for-later]`).
    fn show_later(
        &self,
        machines: &Machines,
        (server, object): (usize, ObjectId),
        answers: &[Answer],
    ) {
        let mut at = None;
        for answer in answers {
            match (answer, at) {
                (
                    Answer::Later {
                        configuration,
                        successors,
                    },
                    _,
                ) => {
                    at = Some(*configuration);
                    let at = configuration;
                    let shown = Observation::SuccessorsShown {
                        server,
                        at,
                        successors,
                    };
                    self.observe(machines, &shown);
                }
                (Answer::Held(held), Some(key)) => {
                    let object = {
                        let objects = &mut self.0.watch.borrow_mut().objects;
                        let name = Bytes::copy_from_slice(objects.name(object));
                        objects.number(key, &name)
                    };
                    self.note_fence(object, held.fence);
                    let shown = Observation::Shown {
                        server,
                        object,
                        held,
                    };
                    self.observe(machines, &shown);
                }
                _ => {}
            }
        }
    }

    /// Shows the invariants what leaves a server.
    pub(super) fn show(
        &self,
        machines: &Machines,
        server: usize,
        Caller { at, subject, .. }: &Caller,
        reply: &Result<Reply, Refusal>,
    ) {
        if let Ok(Reply::Next { successors, .. }) = reply {
            let at = at.as_ref();
            let at = at.expect("what comes next is said of a configuration");
            let shown = Observation::SuccessorsShown {
                server,
                at,
                successors,
            };
            self.observe(machines, &shown);
        }
        // The sequence that the server knows, and what it was sent: one of them was not decided.
        if *reply == Err(Refusal::Forked) {
            self.violate(format!("decided_once: server {server} refused a fork"));
        }
        // What is withheld shows nothing.
        let reply = match reply {
            Ok(Reply::Next { reply, .. }) => reply.as_deref(),
            reply => reply.as_ref().ok(),
        };
        match (subject, reply) {
            (Subject::Objects(about), Some(Reply::Access(answers))) => {
                for (about, answer) in about.iter().zip(answers) {
                    let object = about.object;
                    let observation = match (answer, about.version) {
                        (Answer::Held(held), _) => {
                            self.note_fence(object, held.fence);
                            Observation::Shown {
                                server,
                                object,
                                held,
                            }
                        }
                        (Answer::Ranked(ranked), _) => Observation::Ranked {
                            server,
                            object,
                            ranked,
                        },
                        (Answer::Fetched(_), Some(tag)) => Observation::Fetched {
                            server,
                            object,
                            tag,
                        },
                        (Answer::Stored, Some(tag)) => Observation::Acknowledged {
                            server,
                            object,
                            tag,
                        },
                        _ => continue,
                    };
                    self.observe(machines, &observation);
                }
                if let Some(about) = about.first() {
                    self.show_later(machines, (server, about.object), answers);
                }
            }
            (Subject::Cell(key, cell), Some(Reply::Cell(reply))) => {
                self.show_cell(machines, server, (*key, cell), reply);
            }
            (_, Some(Reply::Latest(Some(c)))) => {
                self.observe(machines, &Observation::FinalShown { server, c });
            }
            _ => {}
        }
    }

    fn show_cell(
        &self,
        machines: &Machines,
        server: usize,
        (key, cell): (ConfigurationId, &Bytes),
        reply: &CellReply,
    ) {
        let observation = match reply {
            CellReply::Decided(value) => Observation::CellShown {
                server,
                key,
                cell,
                value,
            },
            CellReply::Promised {
                accepted: Some((ballot, _)),
            }
            | CellReply::Closed {
                accepted: Some((ballot, _)),
            } => Observation::AcceptanceShown {
                server,
                key,
                cell,
                ballot: *ballot,
            },
            _ => return,
        };
        self.observe(machines, &observation);
    }
}
