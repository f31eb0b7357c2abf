//! The serving members of each domain, as this server sees them.

use super::{Adding, whole};
use crate::cluster::DomainView;
use prometheus::IntGaugeVec;

/// Gauges of the domains of the cluster; those of domains that are gone go.
pub(super) struct Domains {
    members: IntGaugeVec,
    serving: IntGaugeVec,
    quorum: IntGaugeVec,
    spare: IntGaugeVec,
    full: IntGaugeVec,
}

impl Domains {
    pub(super) fn new(add: &Adding<'_>) -> Domains {
        let of_domain = |name, help| add.gauges(name, help, &["domain"]);
        Domains {
            members: of_domain("areo_domain_members", "Servers of the domain."),
            serving: of_domain(
                "areo_domain_serving_members",
                "Members that serve, as this server sees it.",
            ),
            quorum: of_domain(
                "areo_domain_quorum",
                "Members that an operation on the domain needs.",
            ),
            spare: of_domain(
                "areo_domain_spare_members",
                "Members that serve beyond the quorum: so many may stop. Below 0 the domain has no quorum.",
            ),
            full: of_domain(
                "areo_domain_full_members",
                "Members that serve and have no room for writes.",
            ),
        }
    }

    pub(super) fn show(&self, domains: &[DomainView]) {
        let all = [
            &self.members,
            &self.serving,
            &self.quorum,
            &self.spare,
            &self.full,
        ];
        for gauges in all {
            gauges.reset();
        }
        for domain in domains {
            let count = |number: usize| whole(number as u64);
            let [members, serving, quorum] =
                [domain.members, domain.serving, domain.quorum].map(count);
            let full = count(domain.full.len());
            let numbers = [members, serving, quorum, serving - quorum, full];
            for (gauges, number) in all.into_iter().zip(numbers) {
                gauges.with_label_values(&[&domain.domain]).set(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_core::config::ServerId;
    use areo_net::metrics::text;
    use prometheus::Registry;

    #[test]
    fn each_domain_has_its_spare_members_and_goes_with_them() {
        let registry = Registry::new();
        let domains = Domains::new(&Adding(&registry));
        let view = |domain: &str, serving| DomainView {
            domain: domain.into(),
            configuration: 3,
            members: 5,
            quorum: 4,
            serving,
            full: vec![ServerId(1)],
        };
        domains.show(&[view("gone", 5), view("d", 5)]);
        domains.show(&[view("d", 3)]);
        let text = text(&registry);
        for line in [
            "areo_domain_members{domain=\"d\"} 5",
            "areo_domain_serving_members{domain=\"d\"} 3",
            "areo_domain_quorum{domain=\"d\"} 4",
            "areo_domain_spare_members{domain=\"d\"} -1",
            "areo_domain_full_members{domain=\"d\"} 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
        assert!(!text.contains("gone"), "{text}");
    }
}
