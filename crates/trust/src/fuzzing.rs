//! Promises for any bytes that a stranger sends or a disk returns. Each function takes one input, panics if a promise is
//! broken, and returns whether the input was good.
//!
//! The targets in `fuzz/` call these, and so does a test that needs nothing but a stable toolchain (`crates/trust/tests/fuzz.rs`).

use std::collections::{BTreeMap, BTreeSet};

use areo_core::config::ServerId;
use bytes::Bytes;
use rustls::pki_types::CertificateDer;

use crate::certificate::{self, ServerIdentity, Usage};
use crate::grant::{Grant, Grants};
use crate::id::KeyId;
use crate::key::{AccessKey, KeyRecord};
use crate::operator::OperatorCertificate;
use crate::protocol::{Ask, TrustAnswer};
use crate::registry::{Entry, Foundation};
use crate::roots::{Root, Roots};
use crate::secret::{self, SECRET_BYTES, Secret};
use crate::ticket::{Holder, SIGNATURE_BYTES, Signer, Ticket, Verifier};
use crate::token::{JoinToken, TokenRecord};

/// The clock of all targets, in seconds since 1970.
pub const NOW_SECONDS: u64 = 1_800_000_000;
/// The cluster of all targets.
pub const CLUSTER: u128 = 0xc1;
/// The purpose of sealed inputs.
pub const PURPOSE: &str = "fuzzing";

/// The key of sealed inputs.
pub fn sealing_key() -> Secret {
    Secret::new(vec![9; SECRET_BYTES])
}

/// A token, a key or a grant as text: a parsed text is written as the same text, but for space and the order of
/// verbs.
pub fn credential(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else {
        return false;
    };
    let token = JoinToken::parse(text).map(|token| token.expose_text());
    let key = AccessKey::parse(text).map(|key| key.expose_text());
    let grant = text.parse::<Grant>();
    for error in [token.as_ref().err(), key.as_ref().err()]
        .into_iter()
        .flatten()
    {
        let sentence = error.to_string();
        assert!(
            !sentence.is_empty() && sentence.lines().count() == 1,
            "{sentence}"
        );
    }
    let texts = [token.as_ref().ok(), key.as_ref().ok()]
        .into_iter()
        .flatten();
    for again in texts {
        assert_eq!(again.as_str(), text.trim());
    }
    match &grant {
        Ok(grant) => assert_eq!(grant.to_string().parse().as_ref(), Ok(grant)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    token.is_ok() || key.is_ok() || grant.is_ok()
}

/// A ticket, as it is and with its signature mended, so that the signed part is read, too.
pub fn ticket(input: &[u8]) -> bool {
    let verifier = verifier();
    let mended = mended_ticket(input);
    assert!(verifier.verify(input, NOW_SECONDS).is_err() || input == mended);
    let Ok(ticket) = verifier.verify(&mended, NOW_SECONDS) else {
        return false;
    };
    let again = Signer::of_fuzzing().sign(&ticket);
    assert_eq!(verifier.verify(&again, NOW_SECONDS), Ok(ticket));
    true
}

/// The verifier of the tickets that [`mended_ticket`] signs.
pub fn verifier() -> Verifier {
    Verifier {
        cluster: CLUSTER,
        signers: vec![Signer::of_fuzzing().public()],
        revoked: BTreeSet::new(),
        least: BTreeMap::new(),
    }
}

/// The ticket with a signature that is good.
pub fn mended_ticket(ticket: &[u8]) -> Bytes {
    let fields = ticket.get(SIGNATURE_BYTES..).unwrap_or_default();
    Signer::of_fuzzing().sign_anything(fields)
}

/// A ticket with the key of its holder, which is one and the same in every run.
pub fn held_ticket() -> (Bytes, Holder) {
    let holder = Holder::of_fuzzing();
    let grants = Grants::default();
    let ticket = Ticket::new(CLUSTER, KeyId(4), grants, holder.public(), NOW_SECONDS);
    (Signer::of_fuzzing().sign(&ticket), holder)
}

/// Records that the cluster keeps: the record of a token or of a key, the list of roots, a foundation, a change, a sealed secret.
pub fn trust_record(input: &[u8]) -> bool {
    let token = TokenRecord::decode(input);
    if let Ok(record) = &token {
        assert_eq!(TokenRecord::decode(&record.encode()).as_ref(), Ok(record));
    }
    let key = KeyRecord::decode(&Secret::new(input.to_vec()));
    if let Ok(record) = &key {
        assert_eq!(KeyRecord::decode(&record.encode()).as_ref(), Ok(record));
    }
    let roots = Roots::decode(input);
    if let Ok(roots) = &roots {
        assert_eq!(Roots::decode(&roots.encode()).as_ref(), Ok(roots));
    }
    let bytes = Secret::new(input.to_vec());
    let foundation = Foundation::decode(&bytes);
    if let Ok(record) = &foundation {
        assert_eq!(Foundation::decode(&record.encode()).as_ref(), Ok(record));
    }
    let change = Entry::decode(&bytes);
    if let Ok(change) = &change {
        assert_eq!(Entry::decode(&change.encode()).as_ref(), Ok(change));
    }
    let opened = secret::open(&sealing_key(), PURPOSE, input).is_ok();
    token.is_ok() || key.is_ok() || roots.is_ok() || foundation.is_ok() || change.is_ok() || opened
}

/// A request about trust, and an answer: a decoded message survives being written and read again.
pub fn trust_message(input: &[u8]) -> bool {
    let ask = Ask::decode(input);
    match &ask {
        Ok(ask) => assert_eq!(Ask::decode(&ask.encode()).as_ref(), Ok(ask)),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
    let answer = TrustAnswer::decode(input);
    match &answer {
        Ok(answer) => assert_eq!(TrustAnswer::decode(&answer.encode()).as_ref(), Ok(answer)),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
    ask.is_ok() || answer.is_ok()
}

/// The files of an operator's certificate: none counts as a server's but the one that the root issued, and a refusal is one line.
///
/// The input is one file, as an operator may have certificate and key in one.
pub fn operator_file(root: &Root, issued: &[u8], input: &[u8]) -> bool {
    let key = Secret::new(input.to_vec());
    let read = match OperatorCertificate::read(input, &key) {
        Ok(read) => read,
        Err(error) => {
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
            return false;
        }
    };
    let roots = Roots::new(root.clone());
    let server = ServerId(1);
    let needed = ServerIdentity {
        cluster: CLUSTER,
        server,
    };
    let validity = read.validity(&roots);
    assert!(validity.from_seconds <= validity.until_seconds);
    match read.judge(needed, &roots, NOW_SECONDS) {
        Ok(()) => assert_eq!(
            read.chain()[0].as_ref(),
            issued,
            "another certificate counts"
        ),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
    true
}

/// Bytes as PEM, for tests of files.
pub fn pem(label: &str, der: &[u8]) -> String {
    crate::pem::write(label, der)
}

/// A certificate: as one that a stranger shows, which never counts unless `root` issued these very bytes, and as a root.
pub fn certificate(root: &Root, issued: &[u8], input: &[u8]) -> bool {
    let shown = CertificateDer::from(input);
    let roots = std::slice::from_ref(root);
    let chain = [root.certificate().clone()];
    for usage in [Usage::Server, Usage::Client] {
        let verified = certificate::verify(roots, &shown, &chain, usage, NOW_SECONDS);
        assert!(
            verified.is_err() || input == issued,
            "a changed certificate counts"
        );
    }
    let named = certificate::identity(&shown).is_ok();
    named | Root::from_der(input).is_ok()
}
