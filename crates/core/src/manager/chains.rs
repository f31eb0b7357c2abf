//! Chains of decided-once cells in the root domain: a register with one winner per generation (`docs/spec` `[X-41 chain]`).
//!
//! A chain has a name, and a cell for each generation: `chain/NAME/00000000`, `chain/NAME/00000001`, and so on. A client reads on
//! until a generation is not decided, and proposes that one; of several that do, one wins, and the others read again. A generation is proposed only
//! by a client that knows the one before it to be decided, so that there are no gaps. What was decided stays decided while the root
//! domain changes its members (`[X-20 decided-once]`).
//!
//! | | rounds |
//! |---|---|
//! | [`Chain::at`] | 1 |
//! | [`Chain::append`] | 2 undisturbed |
//! | [`Chain::page`] | 1 for 100 generations |
//!
//! Old generations are never dropped: a server that forgot what was decided would let a slow proposer decide it anew. Each costs every
//! member of the root domain its value and some 100 bytes in memory and on disk, and a change of the members three rounds.

use super::Root;
use super::domains::check_domain_name;
use crate::dsm::Domain;
use crate::env::Env;
use crate::error::Unavailable;
use crate::limits;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt;

/// The beginning of the names of cells of chains.
pub const CHAIN_CELLS: &str = "chain/";
const GENERATION_DIGITS: usize = 8;
const _: () = assert!(
    CHAIN_CELLS.len() + limits::NAME_BYTES + 1 + GENERATION_DIGITS <= limits::CELL_NAME_BYTES,
    "the cell has a name that is taken"
);

/// A chain of the root domain. All that is known of it is read when it is asked for.
pub struct Chain<E> {
    domain: Domain<E>,
    /// The names of its cells begin so.
    prefix: Bytes,
}

/// A generation of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub generation: u32,
    /// The value that was decided.
    pub value: Bytes,
}

/// A page of a chain, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkPage {
    /// Generations that are decided.
    pub links: Vec<Link>,
    /// The next page begins after this generation. `None`: this is the last page.
    pub end: Option<u32>,
}

/// The outcome of a proposal of a next generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// The proposed value is this generation.
    Won { generation: u32 },
    /// Another proposer was faster, with this generation: read the chain again.
    Lost(Link),
}

/// A next generation that could not be proposed, or whose outcome is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendError {
    /// No quorum of the root domain in time. The value may be decided all the same.
    Unavailable(Unavailable),
    /// The value is longer than a cell's.
    TooLarge {
        /// Length of the value.
        bytes: usize,
    },
    /// The chain has all generations that can be numbered.
    Full,
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AppendError::Unavailable(unavailable) => unavailable.fmt(f),
            AppendError::TooLarge { bytes } => write!(
                f,
                "a generation of a chain has at most {} bytes, and this one has {bytes}",
                limits::CELL_BYTES
            ),
            AppendError::Full => write!(f, "the chain has 2^32 generations and takes no more"),
        }
    }
}

impl std::error::Error for AppendError {}

impl<E: Env> Root<E> {
    /// The chain of this name.
    ///
    /// # Panics
    /// If no domain could have the name.
    pub fn chain(&self, name: &str) -> Chain<E> {
        assert!(
            check_domain_name(name).is_ok(),
            "chains have names of the program"
        );
        Chain {
            domain: self.domain.clone(),
            prefix: format!("{CHAIN_CELLS}{name}/").into(),
        }
    }
}

impl<E: Env> Chain<E> {
    /// One generation, if it is decided. Finishes what another proposer left undecided. `None`: no append of it had been acknowledged
    /// when this began.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn at(&self, generation: u32) -> Result<Option<Bytes>, Unavailable> {
        self.domain.learn(&self.cell(generation)).await
    }

    /// Appends a value if the latest generation is still `after`, which the caller has read; `None`: if there is none.
    ///
    /// A value that two proposers have in common is won by both: values name their proposers.
    ///
    /// # Errors
    /// [`AppendError`].
    pub async fn append(&self, after: Option<u32>, value: &Bytes) -> Result<Appended, AppendError> {
        assert!(!value.is_empty(), "a value names its proposer");
        let bytes = value.len();
        if bytes > limits::CELL_BYTES {
            return Err(AppendError::TooLarge { bytes });
        }
        let generation = match after {
            None => 0,
            Some(after) => after.checked_add(1).ok_or(AppendError::Full)?,
        };
        let decided = self.domain.decide(&self.cell(generation), value).await;
        let decided = decided.map_err(AppendError::Unavailable)?;
        Ok(match decided == *value {
            true => Appended::Won { generation },
            false => Appended::Lost(Link {
                generation,
                value: decided,
            }),
        })
    }

    /// The generations after `after` that are decided, or from the first one on, as many as a page has. It contains all that were
    /// appended and acknowledged before, up to its end.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn page(&self, after: Option<u32>) -> Result<LinkPage, Unavailable> {
        let (listed, truncated) = self.listed(after).await?;
        assert!(
            after < listed.keys().next().copied() || listed.is_empty(),
            "a page is after the one before it"
        );
        let end = listed.keys().next_back().copied().filter(|_| truncated);
        let mut links = Vec::with_capacity(listed.len());
        for (generation, decided) in listed {
            let value = match decided {
                Some(value) => Some(value),
                None => self.at(generation).await?,
            };
            links.extend(value.map(|value| Link { generation, value }));
        }
        Ok(LinkPage { links, end })
    }

    /// One page of the cells that a quorum has heard of, with the values that are known to be decided; and whether
    /// there are more.
    async fn listed(
        &self,
        after: Option<u32>,
    ) -> Result<(BTreeMap<u32, Option<Bytes>>, bool), Unavailable> {
        let after = after.map_or_else(Bytes::new, |after| self.cell(after));
        let page = self.domain.cells(&self.prefix, &after).await?;
        let number =
            |(cell, value): (Bytes, Option<Bytes>)| Some((self.generation_of(&cell)?, value));
        let listed = page.cells.into_iter().filter_map(number);
        Ok((listed.collect(), page.truncated))
    }

    fn cell(&self, generation: u32) -> Bytes {
        let number = format!("{generation:0GENERATION_DIGITS$x}");
        [&self.prefix[..], number.as_bytes()].concat().into()
    }

    /// The number of a cell of this chain. Other names under its prefix are not of this version.
    fn generation_of(&self, cell: &[u8]) -> Option<u32> {
        let number = std::str::from_utf8(cell.strip_prefix(&self.prefix[..])?).ok()?;
        let generation = u32::from_str_radix(number, 16).ok()?;
        (self.cell(generation) == cell).then_some(generation)
    }
}
