//! The order of durability and acknowledgement, decided here and nowhere else: requests change the server's state in
//! memory, what they changed becomes durable as one batch, then their replies are released, and with them what the server says
//! to others. A reply to a query, too, waits for everything it reflects (`[C-3 durable-first]`, `[X-10 durable-replies]`); one that
//! reflects nothing but what is durable waits for no batch.
//!
//! Pure: whoever owns a shard carries the steps to the disk, so that a simulator can crash between the two.

use crate::config::{ConfigurationId, ServerId};
use crate::element::{Element, Form, Handle, ReplyElement};
use crate::instant::{Instant, PastMoment};
use crate::message::{
    Access, Answer, Body, CellRequest, DomainStanding, Enrolment, Note, Refusal, Reply, Request,
    ServerRecord, Transferred,
};
use crate::object::{DomainId, Metadata, Name};
use crate::server::record::{ElementHeader, Header, Step};
use crate::server::{Identity, Read, Server};
use crate::tag::Tag;

/// The place of records, once a batch is durable.
pub trait Heap {
    /// The element of this record; with an empty payload if that is not wanted.
    ///
    /// # Errors
    /// [`LostRecord`] if the record does not match its checksums or cannot be read.
    fn element(&self, handle: Handle, payload: bool) -> Result<Element, LostRecord>;
}

/// A record that cannot be read as it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostRecord;

/// One server with its batch. `C` names a caller: whom a reply goes to.
pub struct Shard<C> {
    server: Server,
    replies: Vec<DeferredReply<C>>,
    reads: Vec<Read>,
    /// Notes of the closed batch to other servers.
    sends: Vec<(ServerId, Note)>,
    /// Versions whose records turned out to be damaged.
    damaged: Vec<Tag>,
    /// The batch's steps were taken, and are not durable yet.
    committing: bool,
}

/// Replies and notes that leave a server when a batch is durable.
pub struct ReleasedBatch<C> {
    /// Replies, each to its caller.
    pub replies: Vec<(C, Result<Reply, Refusal>)>,
    /// Notes of its own accord, each to another server.
    pub sends: Vec<(ServerId, Note)>,
    /// Servers of which it knows something new: where they are may have changed.
    pub met: Vec<ServerRecord>,
    /// Changes were posted in configurations that it leads ([`Server::posted`]).
    pub posted: bool,
}

impl<C> Default for ReleasedBatch<C> {
    fn default() -> ReleasedBatch<C> {
        ReleasedBatch {
            replies: Vec::new(),
            sends: Vec::new(),
            met: Vec::new(),
            posted: false,
        }
    }
}

struct DeferredReply<C> {
    caller: C,
    reply: Result<Reply, Refusal>,
    /// The end of the shard's reads that belong to it: from the end of the previous one's to here.
    reads_end: usize,
}

impl<C> Shard<C> {
    /// A shard of a server with nothing in it.
    pub fn new(identity: Identity) -> Shard<C> {
        Shard {
            server: Server::new(identity),
            replies: Vec::new(),
            reads: Vec::new(),
            sends: Vec::new(),
            damaged: Vec::new(),
            committing: false,
        }
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Recovers one record ([`Server::recover`]).
    pub fn recover(&mut self, header: Header, damaged: bool) -> Handle {
        assert!(
            self.replies.is_empty(),
            "records come back before any request"
        );
        self.server.recover(header, damaged)
    }

    /// Recovery ends ([`Server::recovered`]). No caller waits for a reply yet, so that superseded records are freed
    /// at once.
    pub fn recovered(&mut self, unreadable: bool) {
        assert!(self.replies.is_empty(), "no reply names what goes now");
        self.server.recovered(unreadable);
        self.server.unpin();
    }

    /// Steps that are not in a batch yet: what recovery and time ask for, before any request of the next batch. Whoever
    /// closes a batch must have room for them, too.
    pub fn owed(&self) -> &[Step] {
        self.server.steps()
    }

    /// True if [`Shard::tick`] has something to do.
    pub fn is_due(&self, now: Instant) -> bool {
        self.server.is_due(now)
    }

    /// [`Server::serve`] for the shard's server.
    pub fn serve(&mut self) {
        self.server.serve();
    }

    /// The process stood still: until [`Shard::serve`] it answers for no object, and what waits for a batch gets no answer at all
    /// (`[X-32 stood-still]`). A refusal would say that nothing was done. Returns who waited.
    pub fn suspend(&mut self) -> Vec<C> {
        self.server.suspend();
        self.reads.clear();
        self.sends.clear();
        assert!(!self.server.is_serving(), "until it is confirmed again");
        let waited = std::mem::take(&mut self.replies).into_iter();
        waited.map(|deferred| deferred.caller).collect()
    }

    /// Since the last call something was put into a batch that the server must not lose.
    pub fn take_growth(&mut self) -> bool {
        self.server.take_growth()
    }

    /// The server has gone over the objects of these domains, of all its domains or some: its status includes the
    /// findings. `proven_ms` is 0 for a domain that it went over to the last object.
    pub fn gone_over(&mut self, now: Instant, domains: &[DomainStanding], is_all: bool) {
        self.server.gone_over(now, domains, is_all);
    }

    /// Adds objects and bytes that the server has moved as the leader of the domain. `None`: it has made the changes,
    /// or begins again.
    pub fn leads(&mut self, domain: DomainId, moved: Option<Transferred>) {
        self.server.leads(domain, moved);
    }

    /// All records that were there at that moment have been verified since. `None`: it is not known.
    pub fn verified(&mut self, since: Option<PastMoment>) {
        self.server.verified(since);
    }

    /// Before a request is received, and while its batch is open: puts elements that are held here already in place of the
    /// adoptions that it asks for (`[X-17 adopted-elements]`). Those that stay are answered with [`Answer::Needed`]. Returns
    /// how many it put.
    pub fn adopt(&self, request: &mut Request, heap: &impl Heap) -> usize {
        assert!(
            !self.committing,
            "the store has what the server speaks of before the batch"
        );
        let Some((c, adoptable)) = self.server.adoptable(request) else {
            return 0;
        };
        let Request::Configured {
            body: Body::Access(accesses),
            ..
        } = request
        else {
            unreachable!("only accesses adopt")
        };
        let mut adopted = 0;
        for source in adoptable {
            // One that is damaged is found by whoever is to answer with it.
            let Ok(element) = heap.element(source.handle, true) else {
                continue;
            };
            let access = source.access;
            if let Some(put) = source.put(&c, element) {
                accesses[access].1 = put;
                adopted += 1;
            }
        }
        adopted
    }

    /// True if the request changes nothing, and its reply reflects nothing but what is durable: [`Shard::answer`] is for it.
    pub fn is_settled(&self, request: &Request) -> bool {
        self.server.is_settled(request)
    }

    /// Answers a request that [is settled](Shard::is_settled) at once, beside the batches. What it reads from `heap` stays there
    /// at least until the next batch is closed.
    ///
    /// # Errors
    /// The server refuses the request.
    pub fn answer(
        &mut self,
        now: Instant,
        request: Request,
        heap: &impl Heap,
    ) -> Result<Reply, Refusal> {
        let steps = self.server.steps().len();
        let mut reads = Vec::new();
        let mut reply = self.server.receive(now, request, &mut reads);
        assert_eq!(self.server.steps().len(), steps, "a read changes nothing");
        self.carry(&mut reply, reads, heap);
        reply
    }

    /// Takes a request into the batch.
    pub fn receive(&mut self, now: Instant, caller: C, request: Request) {
        assert!(
            !self.committing,
            "the batch is closed until its replies are released"
        );
        let before = self.reads.len();
        let reply = self.server.receive(now, request, &mut self.reads);
        let read = self.reads.len() - before;
        assert!(reply.is_ok() || read == 0, "a refusal reads nothing");
        self.replies.push(DeferredReply {
            caller,
            reply,
            reads_end: self.reads.len(),
        });
    }

    /// Takes a note into the batch.
    pub fn note(&mut self, now: Instant, note: Note) {
        assert!(
            !self.committing,
            "the batch is closed until its replies are released"
        );
        self.server.note(now, note);
    }

    /// Elements that [`Shard::tick`] records anew: the length of the name of each, and its own.
    pub fn renamed(&self) -> impl Iterator<Item = (usize, u64)> {
        self.server.renamed()
    }

    /// Runs the work that is due at this time ([`Server::tick`]).
    pub fn tick(&mut self, now: Instant, heap: &impl Heap) {
        assert!(
            !self.committing,
            "the batch is closed until its replies are released"
        );
        // Before it speaks: it says that it has carried it out.
        self.server
            .carry_out(now, |handle| heap.element(handle, true).ok());
        self.server.tick(now);
    }

    /// A record turned out to be damaged while nobody needed it; `is_damaged` says which one that is.
    pub fn damaged(&mut self, header: &ElementHeader, is_damaged: impl Fn(Handle) -> bool) {
        let (key, name, tag) = (header.key, &header.name, header.tag);
        if self.server.damage(key, name, tag, is_damaged) {
            self.damaged.push(header.tag);
        }
    }

    /// The versions whose records turned out to be damaged since this was last asked: by a read, or by [`Shard::damaged`]. Each once.
    pub fn take_damaged(&mut self) -> Vec<Tag> {
        std::mem::take(&mut self.damaged)
    }

    /// The element of this version is not one of the version's value, although its checksum is right: it counts as damaged.
    pub fn distrust(&mut self, key: ConfigurationId, name: &Name, tag: Tag) {
        self.server.damage(key, name, tag, |_| true);
    }

    /// [`Server::drop_tombstones`] for the shard's server.
    pub fn drop_tombstones(
        &mut self,
        key: ConfigurationId,
        names: &[Name],
        may_return: impl Fn(u64) -> bool,
    ) -> Vec<Name> {
        self.server.drop_tombstones(key, names, may_return)
    }

    /// Closes the batch: these steps must be durable, in this order, before [`Shard::release`].
    pub fn close(&mut self) -> Vec<Step> {
        assert!(!self.committing, "one batch at a time");
        self.committing = true;
        assert!(self.sends.is_empty(), "they left with the batch before");
        self.sends = self.server.take_sends();
        self.server.take_steps()
    }

    /// The batch is durable: hands out its replies, with the elements that they carry read from `heap`, and its sends.
    pub fn release(&mut self, heap: &impl Heap) -> ReleasedBatch<C> {
        assert!(
            self.committing,
            "a batch is released once, after it was closed"
        );
        self.committing = false;
        let mut reads = std::mem::take(&mut self.reads).into_iter();
        let mut taken = 0;
        let mut replies = Vec::with_capacity(self.replies.len());
        for DeferredReply {
            caller,
            mut reply,
            reads_end,
        } in std::mem::take(&mut self.replies)
        {
            assert!(
                taken <= reads_end,
                "replies are in the order of their reads"
            );
            self.carry(&mut reply, reads.by_ref().take(reads_end - taken), heap);
            taken = reads_end;
            replies.push((caller, reply));
        }
        assert!(reads.next().is_none(), "each read is of a reply");
        self.server.unpin();
        ReleasedBatch {
            replies,
            sends: std::mem::take(&mut self.sends),
            met: self.server.take_news(),
            posted: self.server.take_posted(),
        }
    }

    /// Puts the elements that a reply carries into it, read from `heap`.
    fn carry(
        &mut self,
        reply: &mut Result<Reply, Refusal>,
        reads: impl IntoIterator<Item = Read>,
        heap: &impl Heap,
    ) {
        for read in reads {
            let answers = reply.as_mut().ok().and_then(Reply::answers_mut);
            let answers = answers.expect("only accesses read elements");
            if let Err(lost) = carry(&mut answers[read.answer], heap) {
                let is_lost = |handle| handle == lost;
                if self.server.damage(read.key, &read.name, read.tag, is_lost) {
                    self.damaged.push(read.tag);
                }
                let lost = self.server.lost(read.key, &read.name);
                lose(&mut answers[read.answer], &read, lost);
            }
        }
    }
}

/// Puts the element in place of its handle; fails with the handle of a record that cannot be read.
fn carry(answer: &mut Answer, heap: &impl Heap) -> Result<(), Handle> {
    let carried = match answer {
        Answer::Held(held) => held.element.as_mut().map(|(_, carried)| carried),
        Answer::Ranked(ranked) => ranked.element.as_mut().map(|(_, carried)| carried),
        Answer::Fetched(carried) => Some(carried),
        _ => None,
    };
    if let Some(ReplyElement::Stored { handle, payload }) = carried {
        let element = heap.element(*handle, *payload);
        let element = element.map_err(|LostRecord| *handle)?;
        *carried.expect("it was matched") = ReplyElement::Whole(element);
    }
    Ok(())
}

/// Takes the element that cannot be read from the answer. `lost`: the version that the object names as lost, so that this answer does, too
/// (`[X-40 named-loss]`): where a quorum is all members, one that refuses keeps out a reader for whom enough elements are left.
fn lose(answer: &mut Answer, read: &Read, lost: Option<Tag>) {
    *answer = match std::mem::replace(answer, Answer::Refused(Refusal::Damaged)) {
        _ if lost != Some(read.tag) => return,
        Answer::Held(mut held) => {
            let Some(largest) = held.stored.last_mut().filter(|it| it.0 == read.tag) else {
                return;
            };
            assert!(largest.1 != Form::Trimmed, "its element was here");
            (largest.1, held.element) = (Form::Trimmed, None);
            Answer::Held(held)
        }
        Answer::Fetched(_) if read.acknowledges => Answer::Stored,
        _ => return,
    };
}

/// True if handling the request needs room in the store, or asks for some.
pub fn writes(request: &Request) -> bool {
    match request {
        Request::Know(_) => true,
        Request::Directory | Request::Status | Request::View => false,
        Request::Latest { known, .. } => known.is_some(),
        Request::Configured {
            descriptor,
            successors,
            body,
            ..
        } => {
            descriptor.is_some()
                || !successors.is_empty()
                || match body {
                    Body::Access(accesses) => accesses.iter().any(|(_, access)| match access {
                        Access::Put { .. }
                        | Access::Keep { .. }
                        | Access::Adopt(_)
                        | Access::Fence { .. }
                        | Access::Finalize { .. }
                        | Access::Accept(_)
                        | Access::Drop(_) => true,
                        Access::Rank { ballot, .. } => ballot.is_some(),
                        Access::Query { announced, .. } => announced.is_some(),
                        Access::Fetch { .. } => false,
                    }),
                    Body::Cell { step, .. } => !matches!(step, CellRequest::Query),
                    Body::Register { step, .. } => *step != Enrolment::Ask,
                    Body::List(_) | Body::Cells { .. } | Body::ReadConfig | Body::Servers => false,
                }
        }
    }
}

/// True if the request writes, and what it records is small and frees more, or of the whole domain: deleting, deciding, settling an upload by its
/// manifest, and moving away. A full disk has room for these yet, or it could not be emptied.
pub fn frees(request: &Request) -> bool {
    accesses(request).all(is_small) && writes(request)
}

/// True if the request writes nothing but what [`frees`], or brings versions that other servers hold to this one. A write-back ends what keeps
/// several versions of an object at every server, and a read that cannot write back cannot return what it found: a full disk has some room for it
/// yet.
pub fn catches_up(request: &Request) -> bool {
    let is_held_elsewhere = |access: &Access| match access {
        Access::Put { write_back, .. } => *write_back,
        Access::Accept(proposal) => proposal.settles,
        Access::Keep { .. } => true,
        _ => false,
    };
    accesses(request).all(|access| is_held_elsewhere(access) || is_small(access)) && writes(request)
}

/// The accesses to objects that the request consists of.
fn accesses(request: &Request) -> impl Iterator<Item = &Access> {
    let accesses = match request {
        Request::Configured {
            body: Body::Access(accesses),
            ..
        } => accesses.as_slice(),
        _ => &[],
    };
    accesses.iter().map(|(_, access)| access)
}

/// True if the access records little.
fn is_small(access: &Access) -> bool {
    match access {
        Access::Put { element, .. } | Access::Keep { element, .. } => {
            element.deleted || is_manifest(element)
        }
        Access::Accept(proposal) => proposal.is_small(),
        Access::Query { announced, .. } => announced.is_none(),
        Access::Rank { .. }
        | Access::Fetch { .. }
        | Access::Fence { .. }
        | Access::Finalize { .. }
        | Access::Drop(_) => true,
        Access::Adopt(_) => false,
    }
}

/// Until a commit that was decided is put, neither its blocks nor those before them can be swept (`[X-22 upload-fate]`).
fn is_manifest(element: &Element) -> bool {
    let stands_for = |metadata: Metadata| metadata.blocks.is_some();
    element.payload.is_empty() && Metadata::decode(&element.metadata).is_ok_and(stands_for)
}
