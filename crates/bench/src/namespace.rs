//! Servers in network namespaces of their own, so that packets between them and all others can be dropped: what a
//! proxy cannot do, because it ends connections and acknowledges for the other side.
//!
//! ```text
//! namespace of server i                 this namespace
//! 198.18.x.4i+2  server  ── veth ──  198.18.x.4i+1  proxy of server i, which all others use
//! ```
//!
//! The addresses are those that RFC 2544 sets aside for measuring.

use crate::cluster::Place;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::process::Output;
use tokio::process::Command;

/// Packets that come in to a server, or go out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    In,
    Out,
}

impl Way {
    fn chain(self) -> &'static str {
        match self {
            Way::In => "in",
            Way::Out => "out",
        }
    }
}

/// One namespace per server; removed when this is dropped.
pub(crate) struct Namespaces {
    block: u64,
    names: Vec<String>,
}

impl Namespaces {
    /// # Errors
    /// Why there are none, in a few words.
    pub(crate) async fn make(servers: usize) -> Result<Namespaces, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("network namespaces need root".into());
        }
        for tool in ["ip", "nft"] {
            let found = Command::new(tool).arg("-V").output().await;
            found.map_err(|_| format!("`{tool}` is not installed"))?;
        }
        let drawn = RandomState::new().hash_one(0_u64);
        let mut made = Namespaces {
            block: drawn % 256,
            names: Vec::new(),
        };
        for server in 0..servers {
            let name = format!("areo{:04x}-{server}", drawn >> 8 & 0xffff);
            made.names.push(name);
            made.make_one(server).await?;
        }
        Ok(made)
    }

    async fn make_one(&self, server: usize) -> Result<(), String> {
        let name = &self.names[server];
        let (inside, outside) = (format!("{name}i"), format!("{name}o"));
        let [here, there] = [1, 2].map(|host| self.address(server, host));
        run(&format!("ip netns add {name}")).await?;
        run(&format!(
            "ip link add {outside} type veth peer name {inside} netns {name}"
        ))
        .await?;
        run(&format!("ip addr add {here}/30 dev {outside}")).await?;
        run(&format!("ip link set {outside} up")).await?;
        run(&format!("ip -n {name} addr add {there}/30 dev {inside}")).await?;
        run(&format!("ip -n {name} link set {inside} up")).await?;
        run(&format!("ip -n {name} link set lo up")).await?;
        run(&format!("ip -n {name} route add default via {here}")).await?;
        let nft = format!("ip netns exec {name} nft add");
        run(&format!("{nft} table inet areo")).await?;
        for (chain, hook) in [("in", "input"), ("out", "output")] {
            let rule =
                format!("{nft} chain inet areo {chain} {{ type filter hook {hook} priority 0 ; }}");
            run(&rule).await?;
        }
        Ok(())
    }

    /// Hosts of a server's two addresses: 1 outside of its namespace, 2 inside.
    fn address(&self, server: usize, host: usize) -> String {
        format!("198.18.{}.{}", self.block, 4 * server + host)
    }

    /// The places of the servers.
    pub(crate) fn places(&self) -> Vec<Place> {
        let place = |(server, name): (usize, &String)| Place {
            data: None,
            listen: format!("{}:7400", self.address(server, 2)),
            advertise: format!("{}:7400", self.address(server, 1)),
            admin: format!("{}:7490", self.address(server, 2)),
            namespace: Some(name.clone()),
        };
        self.names.iter().enumerate().map(place).collect()
    }

    /// Drops this percentage of a server's packets from now on.
    pub(crate) async fn drop_packets(
        &self,
        server: usize,
        way: Way,
        percent: u64,
    ) -> Result<(), String> {
        let (name, chain) = (&self.names[server], way.chain());
        let which = match percent {
            100.. => String::new(),
            percent => format!("numgen random mod 100 < {percent} "),
        };
        let nft = format!("ip netns exec {name} nft add rule inet areo {chain}");
        run(&format!("{nft} {which}counter drop")).await
    }

    /// Drops no more packets of a server. Returns how many were.
    pub(crate) async fn mend(&self, server: usize) -> Result<u64, String> {
        let nft = format!("ip netns exec {} nft", self.names[server]);
        let listed = output(&format!("{nft} list table inet areo")).await?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        for chain in ["in", "out"] {
            run(&format!("{nft} flush chain inet areo {chain}")).await?;
        }
        Ok(packets(&listed))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.names {
            // The pair of devices goes with the namespace; one that was never made cannot be removed.
            let _ = std::process::Command::new("ip")
                .args(["netns", "del", name])
                .output();
        }
    }
}

/// The sum of all counters in a listing of rules.
fn packets(listed: &str) -> u64 {
    let counters = listed.split("counter packets ").skip(1);
    let number = |counter: &str| counter.split_whitespace().next()?.parse::<u64>().ok();
    counters.filter_map(number).sum()
}

/// Runs a command whose words contain no spaces.
async fn run(line: &str) -> Result<(), String> {
    output(line).await.map(drop)
}

async fn output(line: &str) -> Result<Output, String> {
    let mut words = line.split_whitespace();
    let program = words.next().expect("a command has a program");
    let output = Command::new(program).args(words).output().await;
    match output {
        Ok(output) if output.status.success() => Ok(output),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().next().unwrap_or_default();
            Err(format!("`{line}` failed: {first}"))
        }
        Err(error) => Err(format!("`{program}` cannot be run: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_summed() {
        let listed = "table inet areo {\n chain in {\n  numgen random mod 100 < 50 counter packets 12 bytes 700 drop\n }\n \
                      chain out {\n  counter packets 3 bytes 5 drop\n }\n}";
        assert_eq!(packets(listed), 15);
        assert_eq!(packets("table inet areo { }"), 0);
    }
}
