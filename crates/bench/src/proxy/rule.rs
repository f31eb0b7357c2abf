//! The rules for links.

use crate::random::Random;
use areo_wire::hello::{Hello, Role};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::watch;

/// Number of groups of callers, by their ids.
pub(crate) const GROUPS: usize = 16;

/// The group of all servers, where callers are grouped by their sites.
const SERVERS: usize = GROUPS - 1;

/// Direction of bytes on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    ToServer,
    ToCaller,
}

/// The effect of a rule on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// Bytes wait until the rule is lifted, as they do in a network that lost its way.
    Hold,
    /// Connections are closed, and new ones too.
    Close,
    /// Bytes arrive later, and those behind them wait for them: one piece at a time is on its way.
    Delay(Duration),
    /// Each piece of bytes arrives later by this time, in order. Any number of pieces may be on their way.
    Latency(Duration),
    /// One piece in `one_in` arrives later by `time`. All later pieces of its connection wait for it, as they do when
    /// TCP retransmits a packet.
    Stall {
        /// One delayed piece in this number, at least 1.
        one_in: u64,
        /// The delay of that piece.
        time: Duration,
    },
    /// Bytes pass at this rate per second at most.
    Slow(u64),
    /// The next bytes are cut short, and then the connection is reset: in the middle of a frame.
    Reset,
}

/// An effect on some links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    /// A bit for each server that the rule concerns.
    pub(crate) servers: u64,
    /// Groups of callers, as bits.
    pub(crate) callers: u64,
    /// One direction; `None`: both.
    pub(crate) direction: Option<Direction>,
    pub(crate) effect: Effect,
}

/// A rule in force.
pub(crate) struct Active {
    rule: Rule,
    touched: Cell<u64>,
}

impl Active {
    /// Number of pieces of data, or connections, that the rule had an effect on.
    pub(crate) fn touched(&self) -> u64 {
        self.touched.get()
    }
}

/// All rules together, for one piece of data on one link.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Manner {
    pub(crate) held: bool,
    pub(crate) closed: bool,
    pub(crate) reset: bool,
    pub(crate) delay: Duration,
    /// On top of it, with others on their way at the same time.
    pub(crate) latency: Duration,
}

/// The site of each caller, if the proxy groups callers by site.
#[derive(Default)]
struct Sites {
    newcomers: Cell<Option<usize>>,
    known: RefCell<BTreeMap<u128, usize>>,
}

pub(crate) struct Rules {
    active: RefCell<Vec<Rc<Active>>>,
    sites: Sites,
    changes: watch::Sender<u64>,
    ended: Cell<bool>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            active: RefCell::default(),
            sites: Sites::default(),
            changes: watch::Sender::new(0),
            ended: Cell::new(false),
        }
    }
}

impl Rules {
    pub(crate) fn add(&self, rule: Rule) -> Rc<Active> {
        let touched = Cell::new(0);
        let active = Rc::new(Active { rule, touched });
        self.active.borrow_mut().push(active.clone());
        self.changed();
        active
    }

    pub(crate) fn remove(&self, active: &Rc<Active>) {
        self.active
            .borrow_mut()
            .retain(|one| !Rc::ptr_eq(one, active));
        self.changed();
    }

    /// Closes every connection for good.
    pub(crate) fn end(&self) {
        self.ended.set(true);
        self.changed();
    }

    /// Clients that are new to the proxy are at this site from now on, and in the group of its number. All servers are in a
    /// group of their own then.
    pub(crate) fn newcomers_are_at(&self, site: usize) {
        assert!(site < SERVERS);
        self.sites.newcomers.set(Some(site));
    }

    /// The group of a connection that is encrypted, by the port of its caller.
    pub(crate) fn group_of(&self, port: u16) -> usize {
        match self.sites.newcomers.get() {
            None => usize::from(port) % GROUPS,
            Some(site) => site,
        }
    }

    /// The group of a caller.
    pub(crate) fn group(&self, hello: &Hello) -> usize {
        match self.sites.newcomers.get() {
            // Ids are random; the lowest bits are as good as any.
            None => (hello.own_id % GROUPS as u128) as usize,
            Some(_) if hello.role == Role::Server => SERVERS,
            Some(site) => {
                let mut known = self.sites.known.borrow_mut();
                *known.entry(hello.own_id).or_insert(site)
            }
        }
    }

    fn changed(&self) {
        self.changes.send_modify(|version| *version += 1);
    }

    /// Hears of every change from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The treatment of a piece of `bytes` bytes on this link; counts the piece. With 0 bytes it is only a question.
    pub(crate) fn manner(
        &self,
        (group, server): (usize, usize),
        direction: Direction,
        bytes: usize,
    ) -> Manner {
        let mut manner = Manner {
            closed: self.ended.get(),
            ..Manner::default()
        };
        for active in &*self.active.borrow() {
            let rule = active.rule;
            let concerns = rule.servers >> server & 1 == 1
                && rule.callers >> group & 1 == 1
                && rule.direction.is_none_or(|only| only == direction);
            if !concerns {
                continue;
            }
            match rule.effect {
                Effect::Hold => manner.held = true,
                Effect::Close => manner.closed = true,
                Effect::Reset => manner.reset = true,
                Effect::Delay(time) => manner.delay += time,
                Effect::Latency(time) => manner.latency += time,
                Effect::Stall { one_in, time } => {
                    let drawn = Random::new(active.touched.get()).below(one_in);
                    if drawn == 0 {
                        manner.latency += time;
                    }
                }
                Effect::Slow(rate) => {
                    manner.delay += Duration::from_secs_f64(bytes as f64 / rate as f64);
                }
            }
            // A connection that is closed is touched whether bytes were on their way or not.
            let counts = bytes > 0 || rule.effect == Effect::Close;
            active.touched.set(active.touched.get() + u64::from(counts));
        }
        manner
    }
}
