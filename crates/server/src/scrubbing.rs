//! The progress of the verification of records, kept in the data directory: a restart goes on where it was.

use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use areo_core::tlv::{self, TlvError};
use areo_node::ScrubProgress;
use areo_store::{Directory, ScrubPlace};
use bytes::BytesMut;

use crate::worker::Worker;

/// The interval at which progress is written.
const PERIOD: Duration = Duration::from_mins(1);

const SEGMENT: u16 = 1;
const OFFSET: u16 = 2;
const ROUND_SINCE_MS: u16 = 3;
const ALL_SINCE_MS: u16 = 4;

/// The progress that an earlier process wrote. `None`: it cannot be read.
pub(crate) fn read(directory: &Directory) -> Option<ScrubProgress> {
    let bytes = directory.read_scrub()?;
    decode(&bytes, now_ms()).ok()
}

/// Writes down how far the worker is, from time to time.
pub(crate) async fn keep(directory: Rc<Directory>, worker: Rc<Worker>) {
    loop {
        tokio::time::sleep(PERIOD).await;
        write(&directory, &worker);
    }
}

/// Writes down how far the worker is.
pub(crate) fn write(directory: &Directory, worker: &Worker) {
    let Some(progress) = worker.scrub_progress() else {
        return;
    };
    if let Err(error) = directory.write_scrub(&encode(&progress, now_ms())) {
        tracing::debug!(%error, "how far verification is was not written down");
    }
}

/// Times are those of the wall clock, because the clock of a process begins with it. One that was set back makes records look
/// younger than they are.
fn encode(progress: &ScrubProgress, now_ms: u64) -> BytesMut {
    let ScrubProgress {
        place,
        round_age,
        all_age,
    } = *progress;
    let mut out = BytesMut::new();
    let mut number = |kind, value: u64| tlv::put_field(&mut out, kind, &value.to_le_bytes());
    number(SEGMENT, place.segment);
    number(OFFSET, place.offset);
    let since = |age: Duration| {
        let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        now_ms.saturating_sub(age_ms)
    };
    if let Some(age) = round_age {
        number(ROUND_SINCE_MS, since(age));
    }
    if let Some(age) = all_age {
        number(ALL_SINCE_MS, since(age));
    }
    out
}

fn decode(bytes: &[u8], now_ms: u64) -> Result<ScrubProgress, TlvError> {
    let mut progress = ScrubProgress {
        place: ScrubPlace::default(),
        round_age: None,
        all_age: None,
    };
    for field in tlv::fields(bytes) {
        let (kind, value) = field?;
        let number = || tlv::number(kind, value).map(u64::from_le_bytes);
        let age = || number().map(|since| Duration::from_millis(now_ms.saturating_sub(since)));
        match kind {
            SEGMENT => progress.place.segment = number()?,
            OFFSET => progress.place.offset = number()?,
            ROUND_SINCE_MS => progress.round_age = Some(age()?),
            ALL_SINCE_MS => progress.all_age = Some(age()?),
            _ => tlv::unknown(kind)?,
        }
    }
    Ok(progress)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_go_on_while_no_process_runs() {
        let place = ScrubPlace {
            segment: 3,
            offset: 4096,
        };
        let seconds = |number| Some(Duration::from_secs(number));
        let before = ScrubProgress {
            place,
            round_age: seconds(10),
            all_age: seconds(300),
        };
        let bytes = encode(&before, 1_000_000);
        let after = ScrubProgress {
            round_age: seconds(70),
            all_age: seconds(360),
            ..before
        };
        assert_eq!(decode(&bytes, 1_060_000), Ok(after));
        // A clock that was set back.
        let young = decode(&bytes, 0).unwrap();
        assert_eq!((young.place, young.all_age), (place, seconds(0)));
        let first = ScrubProgress {
            round_age: None,
            all_age: None,
            ..before
        };
        assert_eq!(decode(&encode(&first, 7), 8), Ok(first));
        assert!(decode(&bytes[..bytes.len() - 1], 0).is_err());
    }
}
