//! The proof that a page of the session made a form.

use crate::trouble::Trouble;
use axum::http::StatusCode;
use subtle::ConstantTimeEq;

/// True if the texts are equal, in a time that does not tell where they differ.
pub(crate) fn equal(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

/// The refusal of a form that was not made by a page of this session.
pub(crate) fn forged() -> Trouble {
    let sentence = "the form is not of this session: reload the page it is on, and send it again";
    Trouble::new(StatusCode::FORBIDDEN, sentence)
}

/// Compares the token of a form with that of the session.
///
/// # Errors
/// Another page made the form.
pub(crate) fn compare(of_session: &str, given: Option<&str>) -> Result<(), Trouble> {
    let is_ours = given.is_some_and(|given| equal(given, of_session));
    if is_ours { Ok(()) } else { Err(forged()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_carries_the_token_of_its_session() {
        assert_eq!(compare("a1", Some("a1")), Ok(()));
        for given in [None, Some(""), Some("a"), Some("a2"), Some("a1a1")] {
            assert_eq!(compare("a1", given), Err(forged()), "{given:?}");
        }
    }
}
