//! The connected callers, and the refused ones.

use areo_core::message::Refusal;
use areo_net::listener::{Class, Counts};
use areo_net::metrics::Adding;
use prometheus::{IntCounter, IntCounterVec, IntGaugeVec};

use super::{raise, whole, word_of};

/// The word for each class, and that of the admin port.
const WORDS: [&str; Class::ALL.len()] = ["waiting", "stranger", "client", "server"];
const ADMIN: &str = "admin";

/// Refusals that a hello can meet.
const OF_HELLOS: [Refusal; 7] = [
    Refusal::Busy,
    Refusal::Draining,
    Refusal::WrongCluster,
    Refusal::WrongServer,
    Refusal::RolledBack,
    Refusal::UnsupportedVersion,
    Refusal::Unauthorised,
];

pub(super) struct Connections {
    open: IntGaugeVec,
    displaced: IntCounterVec,
    refused: IntCounterVec,
    slow: IntCounter,
    unproven: IntCounter,
    distrusted: IntCounter,
}

impl Connections {
    pub(super) fn new(add: &Adding<'_>) -> Connections {
        let connections = Connections {
            open: add.gauges(
                "areo_server_connections",
                "Open connections: of callers without a hello, of strangers that have proven nothing, of clients, of servers, and to the admin port.",
                &["class"],
            ),
            displaced: add.counters(
                "areo_server_displaced_connections_total",
                "Connections that were closed because others wanted their places.",
                &["class"],
            ),
            refused: add.counters(
                "areo_server_refused_hellos_total",
                "Callers who were refused, (none) those who said no hello, and (limited) those who were not heard.",
                &["reason"],
            ),
            slow: add.counter(
                "areo_server_slow_connections_total",
                "Connections that were closed because a frame, or the reading of answers, did not go on.",
            ),
            unproven: add.counter(
                "areo_server_unproven_connections_total",
                "Connections of strangers that were closed because they proved nothing in the time, or with the requests, that they had.",
            ),
            distrusted: add.counter(
                "areo_server_distrusted_connections_total",
                "Connections that were closed because the certificate or the ticket of the other end counts no longer.",
            ),
        };
        connections.set(&Counts::default(), (0, 0));
        connections
    }

    /// Takes over counts that were made elsewhere.
    pub(super) fn set(&self, callers: &Counts, (admin_open, admin_displaced): (usize, u64)) {
        let of_callers = WORDS.into_iter().zip(callers.open).zip(callers.displaced);
        let of_callers = of_callers.map(|((word, open), displaced)| (word, open, displaced));
        for (word, open, displaced) in of_callers.chain([(ADMIN, admin_open, admin_displaced)]) {
            self.open.with_label_values(&[word]).set(whole(open as u64));
            raise(&self.displaced.with_label_values(&[word]), displaced);
        }
        let without = self.refused.with_label_values(&["none"]);
        raise(&without, callers.without_hello);
        let limited = self.refused.with_label_values(&["limited"]);
        raise(&limited, callers.limited);
        raise(&self.slow, callers.slow);
        raise(&self.unproven, callers.unproven);
        raise(&self.distrusted, callers.distrusted);
        for refusal in OF_HELLOS {
            let refused = callers.refused[usize::from(refusal.code()) - 1];
            raise(
                &self.refused.with_label_values(&[word_of(refusal)]),
                refused,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_net::metrics::text;
    use prometheus::Registry;

    #[test]
    fn every_class_and_reason_is_there_and_counted_once() {
        let registry = Registry::new();
        let connections = Connections::new(&Adding(&registry));
        let mut callers = Counts {
            open: [1, 13, 2, 3],
            displaced: [6, 14, 7, 8],
            without_hello: 9,
            limited: 10,
            slow: 11,
            unproven: 15,
            distrusted: 12,
            ..Counts::default()
        };
        callers.refused[usize::from(Refusal::WrongCluster.code()) - 1] = 2;
        for _ in 0..2 {
            connections.set(&callers, (4, 5));
        }
        let text = text(&registry);
        for line in [
            "areo_server_connections{class=\"waiting\"} 1",
            "areo_server_connections{class=\"stranger\"} 13",
            "areo_server_connections{class=\"client\"} 2",
            "areo_server_connections{class=\"server\"} 3",
            "areo_server_connections{class=\"admin\"} 4",
            "areo_server_displaced_connections_total{class=\"client\"} 7",
            "areo_server_displaced_connections_total{class=\"admin\"} 5",
            "areo_server_refused_hellos_total{reason=\"none\"} 9",
            "areo_server_refused_hellos_total{reason=\"limited\"} 10",
            "areo_server_refused_hellos_total{reason=\"wrong_cluster\"} 2",
            "areo_server_slow_connections_total 11",
            "areo_server_unproven_connections_total 15",
            "areo_server_distrusted_connections_total 12",
            "areo_server_refused_hellos_total{reason=\"busy\"} 0",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}: {text}");
        }
    }
}
