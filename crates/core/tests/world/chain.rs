//! What the disks of all servers together say of a domain's sequence (oracle O3).

use super::World;
use areo_core::config::Configuration;
use areo_core::pointer::Fork;
use areo_core::server::record::Header;
use std::collections::BTreeMap;
use std::sync::Arc;

impl World {
    /// Pointers lead upwards, pending ones of a sequence to the next configuration (`[A-2 pointers-rise]`), and there is one configuration
    /// of each index: consensus was kept.
    pub fn assert_one_chain(&self) {
        let mut chain: BTreeMap<_, Arc<Configuration>> = BTreeMap::new();
        let mut see = |c: &Arc<Configuration>| {
            let id = c.id();
            let place = (id.domain, id.partition, id.index);
            let known = chain.entry(place).or_insert_with(|| c.clone());
            assert_eq!(known, c, "two configurations of one index");
            let of_domain =
                chain.range((id.domain, id.partition, 0)..=(id.domain, id.partition, u32::MAX));
            for (_, other) in of_domain {
                let comparable = Fork::check(other, c);
                assert_eq!(comparable, Ok(()), "one precedes the other");
            }
        };
        for number in 0..self.servers() {
            self.disk(number, |disk| {
                for header in disk.headers() {
                    match header {
                        Header::Configuration(c) | Header::Final(c) => see(c),
                        Header::Pointer { key, pointer } => {
                            assert!(pointer.leads_on_from(key), "{key:?} -> {pointer:?}");
                            see(&pointer.configuration);
                        }
                        _ => {}
                    }
                }
            });
        }
    }
}
