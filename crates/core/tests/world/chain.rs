//! A domain's sequence on the disks of all servers together (oracle O3).

use super::World;
use areo_core::pointer::{Fork, Pointer};
use areo_core::server::record::Header;

impl World {
    /// Pointers lead upwards, pending ones of a sequence to the next configuration (`[A-2 pointers-rise]`), and there is one configuration
    /// of each index: consensus was kept. In DynaStore that is so of those that are final.
    pub fn assert_one_chain(&self) {
        let mut chain: Vec<Pointer> = Vec::new();
        let mut see = |pointer: Pointer| {
            for other in &chain {
                let comparable = Fork::check(other, &pointer);
                assert_eq!(comparable, Ok(()), "one precedes the other");
            }
            if !chain.contains(&pointer) {
                chain.push(pointer);
            }
        };
        for number in 0..self.servers() {
            self.disk(number, |disk| {
                for header in disk.headers() {
                    match header {
                        Header::Configuration(c) => see(Pointer::pending(c)),
                        Header::Final(c) => see(Pointer::finalized(c)),
                        Header::Pointer { key, pointer } => {
                            assert!(pointer.leads_on_from(key), "{key:?} -> {pointer:?}");
                            see(pointer.clone());
                        }
                        _ => {}
                    }
                }
            });
        }
    }
}
