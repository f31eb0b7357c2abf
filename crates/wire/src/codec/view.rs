//! The view of a server, as fields: a later version can say more.

use super::error::DecodeError;
use super::parts::{number, truth};
use areo_core::config::ServerId;
use areo_core::limits;
use areo_core::message::{PeerView, ServerView};
use areo_core::tlv::{self, TlvError};
use bytes::{Bytes, BytesMut};

const PEER: u16 = 1;
const SYNCS: u16 = 2;
const SYNC_US: u16 = 3;
const SYNC_RUNNING_MS: u16 = 4;
const DISK_BYTES: u16 = 5;
const DISK_FREE_BYTES: u16 = 6;
const CORRUPTED: u16 = 7;

/// Bytes of the field of a peer: its id, and 1 if it is connected.
const PEER_BYTES: usize = 16 + 1;

/// A view, as fields.
pub(super) fn fields(view: &ServerView) -> BytesMut {
    // Named one by one, so that a new field cannot be forgotten here.
    let ServerView {
        ref peers,
        syncs,
        sync_us,
        sync_running_ms,
        disk_bytes,
        disk_free_bytes,
        corrupted,
    } = *view;
    assert!(peers.len() <= limits::STANDINGS, "a view is bounded");
    let mut out = BytesMut::with_capacity(6 * (6 + 8) + peers.len() * (6 + PEER_BYTES));
    for peer in peers {
        let mut bytes = [0; PEER_BYTES];
        bytes[..16].copy_from_slice(&peer.server.0.to_le_bytes());
        bytes[16] = peer.is_connected.into();
        tlv::put_field(&mut out, PEER, &bytes);
    }
    let numbers = [
        (SYNCS, Some(syncs)),
        (SYNC_US, Some(sync_us)),
        (SYNC_RUNNING_MS, sync_running_ms),
        (DISK_BYTES, Some(disk_bytes)),
        (DISK_FREE_BYTES, Some(disk_free_bytes)),
        (CORRUPTED, Some(corrupted)),
    ];
    for (kind, value) in numbers {
        if let Some(value) = value {
            tlv::put_field(&mut out, kind, &value.to_le_bytes());
        }
    }
    out
}

/// The reverse of [`fields`]. A number that is missing is 0; a field of a later version is skipped unless it must be understood.
pub(super) fn view(bytes: &Bytes) -> Result<ServerView, DecodeError> {
    let mut view = ServerView::default();
    for field in tlv::fields(bytes) {
        let (kind, value) = field.map_err(DecodeError::Fields)?;
        let count = || number(kind, value).map(u64::from_le_bytes);
        match kind {
            PEER if view.peers.len() == limits::STANDINGS => {
                return Err(DecodeError::Fields(TlvError::Invalid { kind }));
            }
            PEER => view.peers.push(peer(number(kind, value)?)?),
            SYNCS => view.syncs = count()?,
            SYNC_US => view.sync_us = count()?,
            SYNC_RUNNING_MS => view.sync_running_ms = Some(count()?),
            DISK_BYTES => view.disk_bytes = count()?,
            DISK_FREE_BYTES => view.disk_free_bytes = count()?,
            CORRUPTED => view.corrupted = count()?,
            _ => tlv::unknown(kind).map_err(DecodeError::Fields)?,
        }
    }
    Ok(view)
}

fn peer(bytes: [u8; PEER_BYTES]) -> Result<PeerView, DecodeError> {
    let (id, rest) = bytes.split_first_chunk::<16>().expect("it is longer");
    Ok(PeerView {
        server: ServerId(u128::from_le_bytes(*id)),
        is_connected: truth(PEER, rest)?,
    })
}
