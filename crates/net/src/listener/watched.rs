//! A connection as the sweep of a listener sees it: its caller has to go on with what it has begun.
//!
//! A caller that sends a byte of a frame now and then, or reads a byte of an answer, keeps no place by that. While a frame is
//! unfinished, or answers are unread, the connection falls behind by each second, and catches up by one for each
//! [`LEAST_RATE`] bytes that move. It is closed once it is behind by the time of a stall: so a frame is complete within that time, and its
//! size over the least rate. A pause between two frames takes little of that back: a caller that is nearly always in the middle of a frame
//! would else keep its place by the pauses.

use std::time::Duration;

use areo_wire::hello::Hello;

use super::places::Class;
use crate::connection::{CloseReason, Connection};
use crate::encryption::{Origin, Tls};

/// Bytes a second that a caller has to send of a frame, or to read of answers, in the long run.
pub const LEAST_RATE: u32 = 4 << 10;

/// The longest time for which a caller that has proven nothing stays, the wait for the answer to its proof included.
const STRANGERS_TIME: Duration = Duration::from_secs(15);
/// Seconds behind, in the middle of a frame, from which on others may take the place.
const LAGS_IN_A_FRAME: f64 = 2.0;
/// A second in which nothing is unfinished takes back this part of one: a caller that is mostly in the middle of some frame falls behind.
const TAKEN_BACK: f64 = 1.0 / 8.0;

/// A connection, with the bytes that it had moved at the last look.
pub(super) struct WatchedConnection {
    pub(super) connection: Connection,
    pub(super) hello: Hello,
    pub(super) class: Class,
    origin: Origin,
    /// The time for which its caller has proven nothing.
    unproven: Duration,
    bytes_read: u64,
    bytes_written: u64,
    /// Seconds that it is behind the least rate.
    behind: f64,
}

impl WatchedConnection {
    pub(super) fn new(
        connection: Connection,
        hello: Hello,
        (origin, class): (Origin, Class),
    ) -> WatchedConnection {
        WatchedConnection {
            connection,
            hello,
            class,
            origin,
            unproven: Duration::ZERO,
            bytes_read: 0,
            bytes_written: 0,
            behind: 0.0,
        }
    }

    /// Notes the bytes that have moved since the sweep before. Returns the reason to close the connection, if there
    /// is one.
    pub(super) fn sweep(&mut self, period: Duration, stall: Duration) -> Option<CloseReason> {
        let connection = &self.connection;
        let (read, written) = (connection.bytes_read(), connection.bytes_written());
        let queued_bytes = connection.queued_bytes();
        let moved = match queued_bytes {
            0 => read - self.bytes_read,
            _ => written - self.bytes_written,
        };
        (self.bytes_read, self.bytes_written) = (read, written);
        let is_mid_frame = connection.is_mid_frame();
        let caught_up = moved as f64 / f64::from(LEAST_RATE);
        let period = period.as_secs_f64();
        let fallen = if queued_bytes > 0 || (is_mid_frame && connection.unanswered() == 0) {
            period
        } else if is_mid_frame {
            // Reading is paused: that is not the caller's doing.
            0.0
        } else {
            -period * TAKEN_BACK
        };
        self.behind = (self.behind + fallen - caught_up).max(0.0);
        (self.behind >= stall.as_secs_f64()).then_some(match queued_bytes {
            0 => CloseReason::Stalled,
            _ => CloseReason::NotReading { queued_bytes },
        })
    }

    /// Counts one more period of a caller that has proven nothing. True: its time is over, which is `to_begin` while it asks nothing.
    pub(super) fn overstays(&mut self, period: Duration, to_begin: Duration) -> bool {
        if self.origin != Origin::Anonymous {
            return false;
        }
        self.unproven += period;
        let time = match self.connection.unanswered() {
            0 => to_begin.min(STRANGERS_TIME),
            _ => STRANGERS_TIME,
        };
        self.unproven >= time
    }

    /// Closes it if the certificate of the caller, or its ticket, counts no longer. True: it does.
    pub(super) fn close_if_distrusted(&self, tls: &Tls) -> bool {
        if self.connection.close_if_distrusted(Some(tls)) {
            return true;
        }
        let Origin::Key(ticket) = &self.origin else {
            return false;
        };
        let Err(error) = tls.still_counts(ticket) else {
            return false;
        };
        let sentence = error.to_string();
        self.connection.close(CloseReason::Distrusted { sentence });
        true
    }

    /// True if others may take its place: it does nothing, or lags.
    pub(super) fn is_displaceable(&self, stall: Duration) -> bool {
        let connection = &self.connection;
        let is_idle = connection.unanswered() == 0
            && connection.queued_bytes() == 0
            && !connection.is_mid_frame();
        is_idle || self.lags(stall)
    }

    /// True if it is behind: in the middle of a frame, by [`LAGS_IN_A_FRAME`]; with answers unread, by half the time of a stall.
    pub(super) fn lags(&self, stall: Duration) -> bool {
        let connection = &self.connection;
        let half = stall.as_secs_f64() / 2.0;
        match connection.queued_bytes() {
            0 if connection.unanswered() > 0 || !connection.is_mid_frame() => false,
            0 => self.behind >= half.min(LAGS_IN_A_FRAME),
            _ => self.behind >= half,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::pin::Pin;
    use std::task::Poll;

    use areo_wire::frame::{self, BodyPlace, Header, Kind, Limits, SegmentRow};
    use areo_wire::hello::{Channel, Role};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;
    use crate::connection::{ConnectionConfig, Driver, Handler, drive};
    use crate::message::Incoming;
    use crate::pool::Pool;

    const SECOND: Duration = Duration::from_secs(1);
    const STALL: Duration = Duration::from_secs(30);

    /// A service that ignores every message.
    struct Deaf;

    impl Handler for Deaf {
        fn on_frame(&self, _connection: &Connection, _frame: Incoming<'_>) {}

        fn on_batch_end(&self, _connection: &Connection) {}
    }

    /// A caller, and the server's side of its connection.
    struct Pair {
        caller: DuplexStream,
        driver: Driver<DuplexStream, Deaf>,
        watched: WatchedConnection,
    }

    fn pair(socket_bytes: usize) -> Pair {
        let (caller, called) = tokio::io::duplex(socket_bytes);
        let config = ConnectionConfig {
            window_bytes: 0,
            limits: Limits::default(),
            peer_limits: Limits::default(),
            max_queued_bytes: 1 << 20,
            pool: Pool::new(0),
        };
        let remote = SocketAddr::from(([127, 0, 0, 1], 1));
        let (connection, driver) = drive(called, remote, &config, Deaf);
        let hello = Hello::new(Role::Client, Channel::Bulk, 1);
        Pair {
            caller,
            driver,
            watched: WatchedConnection::new(connection, hello, (Origin::Plain, Class::Client)),
        }
    }

    impl Pair {
        /// A second goes by, in which the caller sends these bytes.
        async fn second(&mut self, bytes: &[u8]) -> Option<CloseReason> {
            self.caller.write_all(bytes).await.unwrap();
            self.turn().await;
            self.watched.sweep(SECOND, STALL)
        }

        async fn turn(&mut self) {
            let driver = &mut self.driver;
            let turn = std::future::poll_fn(|context| {
                Poll::Ready(Pin::new(&mut *driver).poll(context).is_pending())
            });
            assert!(turn.await, "the connection stays");
        }
    }

    /// A frame with a payload of so many bytes, and the payload.
    fn frame(payload_bytes: usize) -> Vec<u8> {
        let payload = vec![0; payload_bytes];
        let row = SegmentRow {
            bytes: payload_bytes as u32,
            crc32c: areo_wire::checksum::crc32c(&payload),
        };
        let mut out = Vec::new();
        let header = Header::new(Kind::Note, 1);
        frame::encode(&mut out, &header, [row].into_iter(), b"", BodyPlace::Inline).unwrap();
        out.extend(payload);
        out
    }

    /// A caller that had proven nothing kept its place for half a minute.
    #[tokio::test]
    async fn a_stranger_has_little_time_and_some_more_for_the_answer() {
        let to_begin = Duration::from_secs(5);
        for (origin, is_asking, seconds) in [
            (Origin::Anonymous, false, Some(5)),
            (Origin::Anonymous, true, Some(15)),
            (Origin::Plain, false, None),
        ] {
            let mut pair = pair(1 << 10);
            pair.watched.origin = origin;
            if is_asking {
                pair.watched.connection.request_taken();
            }
            let mut overstays = (1..100).filter(|_| pair.watched.overstays(SECOND, to_begin));
            assert_eq!(overstays.next(), seconds);
        }
    }

    /// One byte of a frame every 29 s kept a place for ever.
    #[tokio::test]
    async fn a_caller_that_trickles_a_frame_is_behind_and_then_closed() {
        for payload_bytes in [100, 1 << 20] {
            let mut pair = pair(1 << 21);
            let frame = frame(payload_bytes);
            assert_eq!(pair.second(&frame[..60]).await, None);
            assert!(!pair.watched.is_displaceable(STALL), "it has just begun");
            for byte in frame[60..].chunks(1).take(15) {
                assert_eq!(pair.second(byte).await, None);
            }
            assert!(pair.watched.is_displaceable(STALL) && pair.watched.lags(STALL));
            let mut rest = frame[75..].chunks(1).take(16);
            let closed = loop {
                let byte = rest.next().expect("it is closed by then");
                if let Some(reason) = pair.second(byte).await {
                    break reason;
                }
            };
            assert_eq!(closed, CloseReason::Stalled);
        }
    }

    /// Regression: a second between two frames made the watch forget earlier delays.
    #[tokio::test]
    async fn a_caller_that_is_mostly_in_the_middle_of_a_frame_falls_behind() {
        let mut pair = pair(1 << 10);
        let frame = frame(1);
        let (mut closed, mut seconds) = (None, 0);
        while closed.is_none() {
            assert!(seconds < 60, "it keeps its place");
            let sent: &[u8] = match seconds % 12 {
                0 => &frame[..1],
                10 => &frame[1..],
                _ => b"",
            };
            closed = pair.second(sent).await;
            seconds += 1;
        }
        assert_eq!(closed, Some(CloseReason::Stalled));
    }

    #[tokio::test]
    async fn an_upload_at_the_least_rate_goes_on_also_in_bursts() {
        let rate = LEAST_RATE as usize;
        let frame = frame(300 * rate);
        for burst_seconds in [1, 25] {
            let mut pair = pair(1 << 21);
            pair.second(&frame[..1]).await;
            for burst in frame[1..].chunks(burst_seconds * rate) {
                for _ in 1..burst_seconds {
                    assert_eq!(pair.second(b"").await, None);
                }
                assert_eq!(pair.second(burst).await, None);
            }
            assert!(!pair.watched.connection.is_mid_frame(), "it is complete");
            assert_eq!(pair.second(b"").await, None);
            assert!(!pair.watched.lags(STALL));
            assert!(pair.watched.is_displaceable(STALL), "it is idle");
        }
    }

    #[tokio::test]
    async fn a_caller_that_reads_a_byte_of_its_answers_now_and_then_is_closed() {
        let mut pair = pair(100);
        let header = Header::new(Kind::Reply, 1);
        let connection = pair.watched.connection.clone();
        connection.send(&header, &[7; 5000][..], &[]).unwrap();
        let mut closed = pair.second(b"").await;
        for _ in 0..30 {
            assert_eq!(closed, None, "it was closed before its time");
            pair.caller.read_exact(&mut [0]).await.unwrap();
            closed = pair.second(b"").await;
            let is_late = pair.watched.behind >= STALL.as_secs_f64() / 2.0;
            assert_eq!(pair.watched.is_displaceable(STALL), is_late);
        }
        assert!(matches!(closed, Some(CloseReason::NotReading { .. })));
    }
}
