//! Ids of tokens and keys: random, public, 64 bits, 16 lower-case hexadecimal digits.

use std::fmt;

use crate::hexadecimal;
use crate::secret::{self, NoRandomness, RandomSource};

/// A type for ids of one thing, so that an id of a token is not taken for that of a key.
macro_rules! id {
    ($name:ident, $what:literal) => {
        #[doc = $what]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// A new one.
            ///
            /// # Errors
            /// [`NoRandomness`].
            pub fn random(source: &RandomSource) -> Result<$name, NoRandomness> {
                Ok($name(u64::from_be_bytes(secret::random(source)?)))
            }

            /// Reads 16 lower-case hexadecimal digits; none if the text is anything else.
            pub fn parse(text: &str) -> Option<$name> {
                hexadecimal::read(text).map(|bytes| $name(u64::from_be_bytes(bytes)))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:016x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
    };
}

id!(TokenId, "The id of a join token.");
id!(KeyId, "The id of an access key.");
