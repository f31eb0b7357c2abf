//! Promises for the hello of any caller: a ticket lets in its holder, and no one else.
//!
//! The target in `fuzz/` calls this, and so does a test that needs nothing but a stable toolchain (`crates/net/tests/fuzz.rs`).

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use areo_core::config::ServerId;
use areo_trust::fuzzing::{CLUSTER, NOW_SECONDS, held_ticket, mended_ticket, verifier};
use areo_trust::ticket::{Possession, SIGNATURE_BYTES};
use areo_trust::tls::{BINDING_BYTES, TimeProvider};
use areo_wire::checksum::crc32c;
use areo_wire::hello::{self, Channel, Field, Hello, Role};
use tokio_rustls::rustls::pki_types::UnixTime;

use crate::encryption::{Origin, Tls};

/// The server that is called.
const SERVER: ServerId = ServerId(9);
/// The session of TLS.
const BINDING: [u8; BINDING_BYTES] = [6; BINDING_BYTES];
const CHECKSUM_BYTES: usize = 4;

/// A clock that stands still.
#[derive(Debug)]
struct Stopped;

impl TimeProvider for Stopped {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(NOW_SECONDS)))
    }
}

/// The end of a server that judges tickets, and the proof that it takes.
static CALLED: LazyLock<(Tls, [u8; SIGNATURE_BYTES])> = LazyLock::new(|| {
    let tls = Tls::of_prover(Arc::new(Stopped));
    tls.verify_by(verifier());
    (tls, proof())
});

fn proof() -> [u8; SIGNATURE_BYTES] {
    let possession = Possession {
        cluster: CLUSTER,
        server: SERVER,
        binding: BINDING,
    };
    held_ticket().1.prove(&possession)
}

/// Hellos of a caller with a ticket that counts, one of them with a field of a later version.
pub fn good_hellos() -> [Vec<u8>; 2] {
    let (ticket, proof) = (held_ticket().0, proof());
    let calls = Hello::new(Role::Client, Channel::Calls, 7);
    let mut bulk = Hello::new(Role::Client, Channel::Bulk, 7);
    let value = b"later".to_vec();
    bulk.fields.push(Field { kind: 9, value });
    [calls, bulk].map(|hello| hello::encode_hello(&hello.with_ticket(&ticket, &proof)))
}

/// A hello over TLS, with length and checksum mended. A ticket lets the caller in if the proof is that of its holder,
/// for this server and session, and no other bytes do. It is judged as it is, and with its signature mended, so that
/// the signed part is read, too.
///
/// # Panics
/// A promise is broken.
pub fn admission(input: &[u8]) -> bool {
    let Some(hello) = read(input) else {
        return false;
    };
    let is_in = is_admitted(&hello);
    let Some((ticket, proof)) = hello.ticket() else {
        assert!(!is_in, "without a ticket a caller is anonymous");
        return true;
    };
    let mended = Hello::new(hello.role, hello.channel, hello.own_id);
    let mended = is_admitted(&mended.with_ticket(&mended_ticket(ticket), proof));
    assert!(mended || !is_in, "mending takes nothing");
    is_in || mended
}

fn is_admitted(hello: &Hello) -> bool {
    let (tls, good) = &*CALLED;
    match tls.admit(hello, Origin::Anonymous, (SERVER, BINDING)) {
        Ok(origin @ Origin::Key(_)) => {
            let proof = hello.ticket().map(|(_, proof)| proof);
            assert_eq!(proof, Some(&good[..]), "another proof counts");
            assert!(!origin.may_be(SERVER), "a key is no server");
            true
        }
        Ok(origin) => {
            assert_eq!((origin, hello.ticket()), (Origin::Anonymous, None));
            false
        }
        Err(refused) => {
            let (_, sentence) = refused.refusal();
            let sentence = sentence.expect("a ticket is refused with a sentence");
            assert_eq!(sentence.lines().count(), 1, "{sentence}");
            assert!(hello::reason_field(&sentence).is_some(), "{sentence}");
            false
        }
    }
}

fn read(input: &[u8]) -> Option<Hello> {
    let mut message = input.to_vec();
    let content = message.len().checked_sub(CHECKSUM_BYTES)?;
    let length = u16::try_from(message.len()).ok()?;
    message
        .get_mut(4..6)?
        .copy_from_slice(&length.to_le_bytes());
    let checksum = crc32c(&message[..content]);
    message[content..].copy_from_slice(&checksum.to_le_bytes());
    hello::decode_hello(&message).ok()
}
