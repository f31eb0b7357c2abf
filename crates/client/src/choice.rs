//! The descriptor that people want: from what they say about a new domain or a change to a configuration, or why not.

mod change;
mod create;
mod invalid;
mod servers;

pub use change::Change;
pub(crate) use change::{is_same_but_for_index, wanted};
pub use create::{CreateDomainError, DomainOptions};
pub(crate) use create::{candidates, first_configuration, sharing};
pub use invalid::InvalidChoice;
pub(crate) use invalid::checked;
pub(crate) use servers::{coming, distinct, member};
