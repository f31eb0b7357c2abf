//! The options of `areo up`, checked.

use crate::args::{self, DapWord, DurabilityWord, LogWord, parse_max_object};
use crate::cmd::domain;
use crate::cmd::server::ADMIN_ABOVE;
use crate::config::{self, number, word};
use crate::exit::{Failure, Outcome};
use crate::session::Session;
use areo_client::units::parse_size;
use areo_client::{Dap, Shape};
use std::path::PathBuf;

const DEFAULT_DATA: &str = "./areo-data";
const DEFAULT_SERVERS: u8 = 5;
const DEFAULT_PORT: u16 = 7400;
/// More would reach the ports of the S3 gateway and of administration, and is no use on one machine.
const SERVERS_MAX: u8 = 64;

/// Flags and configuration together. `None`: not said, so that an existing cluster decides.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) data: PathBuf,
    pub(super) servers: Option<u8>,
    pub(super) port: Option<u16>,
    pub(super) memory: Option<bool>,
    pub(super) max_object: Option<u64>,
    pub(super) repair_rate: Option<u64>,
    pub(super) scrub_rate: Option<u64>,
    pub(super) dap: Option<DapWord>,
    pub(super) k: Option<u8>,
    pub(super) allow_f0: bool,
    pub(super) restart: bool,
    pub(super) log: LogWord,
    /// The address of the gateway for S3, if there is to be one.
    pub(super) s3: Option<String>,
}

impl Plan {
    pub(super) fn new(session: &Session, args: args::Up) -> Outcome<Plan> {
        let settings = &session.settings;
        let durability = settings.get(args.durability, "up.durability", word)?;
        let plan = Plan {
            data: settings
                .get(args.data, "up.data", config::path)?
                .unwrap_or_else(|| DEFAULT_DATA.into()),
            servers: settings.get(args.servers, "up.servers", number)?,
            port: settings.get(args.port, "up.port", number)?,
            memory: durability.map(|word| word == DurabilityWord::Memory),
            max_object: settings.get(args.max_object, "max-object", parse_max_object)?,
            repair_rate: settings.get(args.repair_rate, "repair-rate", parse_size)?,
            scrub_rate: settings.get(args.scrub_rate, "scrub-rate", parse_size)?,
            dap: settings.get(args.dap, "up.dap", word)?,
            k: settings.get(args.k, "up.k", number)?,
            allow_f0: settings.switch(args.allow_f0, "up.allow-f0")?,
            restart: settings.switch(args.restart, "up.restart")?,
            log: settings
                .get(args.log, "log", word)?
                .unwrap_or(LogWord::Text),
            s3: settings.get(args.s3, "up.s3", config::text)?,
        };
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Outcome {
        if self.data.to_str().is_none_or(str::is_empty) {
            return Err(Failure::usage(
                "--data names no directory: its path is empty, or not UTF-8",
            ));
        }
        if !(1..=SERVERS_MAX).contains(&self.servers.unwrap_or(1)) {
            return Err(Failure::usage(format!(
                "a cluster on one machine has 1 to {SERVERS_MAX} servers"
            )));
        }
        if self.port == Some(0) {
            return Err(Failure::usage(
                "port 0 is not possible: servers keep their ports",
            ));
        }
        Ok(())
    }

    /// Servers of a new cluster.
    pub(super) fn new_servers(&self) -> u8 {
        self.servers.unwrap_or(DEFAULT_SERVERS)
    }

    /// The kind of the domain `default` on this number of servers.
    pub(super) fn dap(&self, servers: usize) -> Outcome<Dap> {
        domain::dap(self.dap.unwrap_or(DapWord::Ec), self.k, servers)
    }

    /// Refuses impossible options of the domain `default` of a new cluster, before anything is made.
    pub(super) fn check_shape(&self, servers: usize) -> Outcome {
        let shape = Shape::new(self.dap(servers)?, servers);
        let shape = shape.map_err(|error| Failure::usage(error.to_string()))?;
        if shape.f() > 0 || self.allow_f0 {
            return Ok(());
        }
        let other = if servers < 3 {
            "--servers 3"
        } else {
            "a smaller --k"
        };
        Err(Failure::usage(format!(
            "{shape} tolerates no crash (quorum {} of {servers}): take {other}, or pass --allow-f0",
            shape.quorum()
        )))
    }

    /// Listening port and admin port of each of these servers.
    pub(super) fn ports(&self, servers: usize) -> Outcome<Vec<(u16, u16)>> {
        let first = self.port.unwrap_or(DEFAULT_PORT);
        let pair = |i: usize| {
            let port = first.checked_add(u16::try_from(i).ok()?)?;
            Some((port, port.checked_add(ADMIN_ABOVE)?))
        };
        let ports: Option<Vec<(u16, u16)>> = (0..servers).map(pair).collect();
        ports.ok_or_else(|| {
            Failure::usage(format!(
                "{servers} servers from port {first}, with admin ports {ADMIN_ABOVE} above, go beyond 65535: take a lower --port"
            ))
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Nothing said but where.
    pub(in crate::cmd::up) fn plan(data: impl Into<PathBuf>) -> Plan {
        Plan {
            data: data.into(),
            servers: None,
            port: None,
            memory: None,
            max_object: None,
            repair_rate: None,
            scrub_rate: None,
            dap: None,
            k: None,
            allow_f0: false,
            restart: false,
            log: LogWord::Text,
            s3: None,
        }
    }

    #[test]
    fn shapes_without_tolerance_are_refused_unless_allowed() {
        for (servers, dap, k, fine) in [
            (5, None, None, true),
            (3, None, None, true),
            (2, None, None, false),
            (1, None, None, false),
            (5, Some(DapWord::Ec), Some(4), false),
            (5, Some(DapWord::Abd), None, true),
            (2, Some(DapWord::Abd), None, false),
        ] {
            let plan = Plan {
                dap,
                k,
                ..plan("x")
            };
            assert_eq!(
                plan.check_shape(servers).is_ok(),
                fine,
                "{servers} {dap:?} {k:?}"
            );
            let allowed = Plan {
                allow_f0: true,
                ..plan
            };
            assert_eq!(allowed.check_shape(servers), Ok(()));
        }
        let too_many = Plan {
            k: Some(6),
            allow_f0: true,
            ..plan("x")
        };
        assert!(too_many.check_shape(5).is_err(), "k > n");
        let refused = plan("x").check_shape(2).unwrap_err();
        assert!(refused.message.contains("--servers 3"), "{refused}");
        assert!(refused.message.contains("--allow-f0"), "{refused}");
    }

    #[test]
    fn ports_follow_each_other() {
        let ports = plan("x").ports(3).unwrap();
        assert_eq!(ports, [(7400, 7490), (7401, 7491), (7402, 7492)]);
        let high = Plan {
            port: Some(65_440),
            ..plan("x")
        };
        assert!(high.ports(5).is_ok());
        let refused = high.ports(7).unwrap_err();
        assert!(refused.message.contains("lower --port"), "{refused}");
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(plan("x").check(), Ok(()));
        for wrong in [
            plan(""),
            Plan {
                servers: Some(0),
                ..plan("x")
            },
            Plan {
                servers: Some(65),
                ..plan("x")
            },
            Plan {
                port: Some(0),
                ..plan("x")
            },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
