//! Writes that fail because disks are full: the log of every server says so at the change, and again for as long as they do.

use std::time::{Duration, Instant};

use areo_client::{DomainWithoutRoom, show_lack_of_room};
use areo_core::config::ServerId;

use crate::cluster::DomainView;

/// The pause between two lines about a state that lasts.
const AGAIN: Duration = Duration::from_mins(10);

/// The state that the log has.
#[derive(Default)]
pub(super) struct Room {
    said: Option<(Vec<String>, Instant)>,
}

impl Room {
    /// The sentences for the log at this moment: none if it has them, and not for long.
    pub(super) fn due(
        &mut self,
        domains: &[DomainView],
        name: impl Fn(&ServerId) -> String,
        now: Instant,
    ) -> Vec<String> {
        let sentences = sentences(domains, name);
        if sentences.is_empty() {
            // A domain without a quorum says nothing about room.
            if self.said.is_some() && domains.iter().all(DomainView::takes_writes) {
                self.said = None;
                return vec!["disks have room again: writes of every domain are taken".into()];
            }
            return Vec::new();
        }
        let is_known = |(said, at): &(Vec<String>, Instant)| {
            *said == sentences && now.saturating_duration_since(*at) < AGAIN
        };
        if self.said.as_ref().is_some_and(is_known) {
            return Vec::new();
        }
        self.said = Some((sentences.clone(), now));
        sentences
    }
}

fn sentences(domains: &[DomainView], name: impl Fn(&ServerId) -> String) -> Vec<String> {
    let lacking = domains.iter().filter(|it| it.lacks_room());
    show_lack_of_room(lacking.map(|it| DomainWithoutRoom {
        domain: &it.domain,
        full: it.full.iter().map(&name).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ROOT;

    fn view(domain: &str, serving: usize, full: &[u128]) -> DomainView {
        DomainView {
            domain: domain.into(),
            configuration: 0,
            members: 3,
            quorum: 2,
            serving,
            full: full.iter().copied().map(ServerId).collect(),
        }
    }

    #[test]
    fn writes_that_fail_for_want_of_room_are_said_for_as_long_as_they_do() {
        let (mut room, begun) = (Room::default(), Instant::now());
        let mut due = |views: &[DomainView], after: Duration| {
            room.due(views, |id| format!("s{}", id.0), begun + after)
        };
        let seconds = Duration::from_secs;
        let sound = [view("default", 3, &[1]), view("photos", 3, &[])];
        assert!(due(&sound, seconds(0)).is_empty(), "a quorum has room");
        let full = [
            view("default", 3, &[3, 2]),
            view(ROOT, 3, &[2, 3]),
            view("photos", 3, &[3]),
        ];
        let said = "s2, s3: disk full, writes of 'default' and the root domain fail";
        assert_eq!(due(&full, seconds(5)), [said]);
        assert!(due(&full, seconds(10)).is_empty(), "it is in the log");
        assert!(due(&[view("default", 1, &[2])], seconds(15)).is_empty());
        assert_eq!(due(&full, AGAIN + seconds(5)), [said], "it lasts");
        let more = [view("default", 3, &[1, 2, 3])];
        assert_eq!(due(&more, AGAIN + seconds(10)).len(), 1, "it is worse");
        let again = due(&sound, AGAIN + seconds(15));
        assert_eq!(
            again,
            ["disks have room again: writes of every domain are taken"]
        );
        assert!(due(&sound, AGAIN * 3).is_empty());
    }
}
