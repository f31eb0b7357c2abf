//! How large an experiment is: every parameter of every scale, and what a scale changes against the publication.

use super::actor::Blocks;
use super::experiment::Experiment;
use super::outside;
use std::ops::Range;
use std::str::FromStr;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// The largest object that is one value.
pub(super) const OBJECT_MAX: usize = 64 * MIB;

/// How large.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Seconds.
    Quick,
    /// Minutes on two cores.
    Default,
    /// As published.
    Full,
}

impl Scale {
    /// All of them.
    pub const ALL: [Scale; 3] = [Scale::Quick, Scale::Default, Scale::Full];

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Quick => "quick",
            Scale::Default => "default",
            Scale::Full => "full",
        }
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Scale, String> {
        let found = Scale::ALL.into_iter().find(|scale| scale.name() == text);
        found.ok_or_else(|| format!("there is no scale '{text}': there are quick, default, full"))
    }
}

/// Parameters of a scale.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Parameters {
    pub(super) servers: usize,
    /// Servers whose elements are beside the `k` that make a value: m.
    pub(super) parity: usize,
    pub(super) writers: usize,
    pub(super) readers: usize,
    /// Who change the configuration at the same time.
    pub(super) reconfigurers: usize,
    /// So many changes of each of them, unless the others have ended.
    pub(super) changes: usize,
    /// Between two of them, in milliseconds.
    pub(super) change_ms: u64,
    /// Of each reader and writer.
    pub(super) operations: usize,
    /// Between two of them, in milliseconds: drawn from this range.
    pub(super) wait_ms: Range<u64>,
    pub(super) sizes: Vec<usize>,
    pub(super) blocks: Blocks,
    pub(super) runs: usize,
}

/// THE TABLE: what an experiment is made with at a scale. `Full` is as published.
pub(super) fn parameters(experiment: Experiment, scale: Scale) -> Parameters {
    let published = published(experiment);
    // Where something else is varied, one size is enough.
    let is_sweep = published.sizes.len() > 1;
    match scale {
        Scale::Full => published,
        Scale::Default => Parameters {
            servers: published.servers,
            parity: published.parity,
            writers: published.writers.min(5),
            readers: published.readers.min(5),
            reconfigurers: published.reconfigurers,
            changes: published.changes,
            change_ms: 150,
            operations: 5,
            wait_ms: 50..150,
            sizes: match is_sweep {
                true => vec![MIB, 8 * MIB],
                false => vec![4 * MIB],
            },
            blocks: published.blocks,
            runs: 3,
        },
        Scale::Quick => Parameters {
            servers: 5,
            parity: 2,
            writers: 1,
            readers: 2,
            reconfigurers: published.reconfigurers,
            changes: 2,
            change_ms: 2,
            operations: 2,
            wait_ms: 1..5,
            sizes: vec![64 * KIB],
            blocks: (8 * KIB, 8 * KIB, 16 * KIB),
            runs: 1,
        },
    }
}

fn published(experiment: Experiment) -> Parameters {
    let common = Parameters {
        servers: 11,
        parity: 5,
        writers: 5,
        readers: 5,
        reconfigurers: 0,
        changes: 0,
        change_ms: 0,
        operations: 50,
        wait_ms: 1_000..3_000,
        sizes: (0..10).map(|power| MIB << power).collect(),
        blocks: (512 * KIB, 512 * KIB, MIB),
        runs: 3,
    };
    match experiment {
        Experiment::E1 => common,
        Experiment::E6 => Parameters {
            sizes: vec![MIB, 256 * MIB, 512 * MIB],
            ..common
        },
        Experiment::E2 => Parameters {
            sizes: vec![4 * MIB],
            ..common
        },
        Experiment::E3 => Parameters {
            sizes: vec![512 * MIB],
            ..common
        },
        Experiment::E4 => Parameters {
            readers: 15,
            sizes: vec![4 * MIB],
            ..common
        },
        Experiment::E5 => Parameters {
            readers: 15,
            reconfigurers: 1,
            changes: 15,
            change_ms: 15_000,
            sizes: vec![4 * MIB],
            ..common
        },
        Experiment::P1 | Experiment::P2 | Experiment::P4 => Parameters {
            operations: 20,
            ..common
        },
        Experiment::E7 => Parameters {
            writers: 1,
            readers: 10,
            sizes: vec![MIB, 64 * MIB],
            ..common
        },
    }
}

/// What is varied beside the size: what it is called, and the parameters with it.
pub(super) fn steps(experiment: Experiment, scale: Scale) -> Vec<(String, Parameters)> {
    let base = parameters(experiment, scale);
    match experiment {
        Experiment::E2 => participation(scale, &base),
        Experiment::E3 => {
            let averages: Vec<usize> = match scale {
                Scale::Quick => vec![8 * KIB, 16 * KIB],
                Scale::Default => vec![512 * KIB, MIB, 2 * MIB],
                Scale::Full => (1..6).map(|power| MIB << power).collect(),
            };
            let step = |average: usize| Parameters {
                blocks: (average, average, 2 * average),
                ..base.clone()
            };
            let named = |average| (format!("blocks {}", show_size(average)), step(average));
            averages.into_iter().map(named).collect()
        }
        Experiment::E4 => {
            let ks: Vec<usize> = match scale {
                Scale::Quick => vec![2, 4],
                Scale::Default => vec![2, 6, 10],
                Scale::Full => (2..=10).collect(),
            };
            let step = |k: usize| Parameters {
                parity: base.servers - k,
                ..base.clone()
            };
            ks.into_iter()
                .map(|k| (format!("k={k}"), step(k)))
                .collect()
        }
        Experiment::E5 => {
            let numbers: &[usize] = match scale {
                Scale::Quick => &[1, 2],
                Scale::Default => &[1, 5],
                Scale::Full => &[1, 2, 3, 4, 5],
            };
            let step = |reconfigurers: usize| Parameters {
                reconfigurers,
                ..base.clone()
            };
            let named = |number: &usize| (format!("G={number}"), step(*number));
            numbers.iter().map(named).collect()
        }
        _ => vec![(String::new(), base)],
    }
}

/// Servers, and readers and writers of which one sort is as many as ever.
fn participation(scale: Scale, base: &Parameters) -> Vec<(String, Parameters)> {
    type Numbers = &'static [usize];
    let (servers, readers, writers): (Numbers, Numbers, Numbers) = match scale {
        Scale::Quick => (&[3, 5], &[1, 2], &[1]),
        Scale::Default => (&[3, 11], &[5, 15], &[5, 10]),
        Scale::Full => (&[3, 5, 7, 9, 11], &[5, 15, 50], &[5, 10, 15, 20]),
    };
    let usual = writers[0];
    let mut steps = Vec::new();
    for &servers in servers {
        for &readers in readers {
            for &writers in writers {
                if readers == usual || writers == usual {
                    let step = Parameters {
                        servers,
                        parity: (servers - 1) / 2,
                        readers,
                        writers,
                        ..base.clone()
                    };
                    steps.push((format!("S={servers} R={readers} W={writers}"), step));
                }
            }
        }
    }
    steps
}

/// What the scale changes against the publication, one sentence each.
pub(super) fn changes(experiment: Experiment, scale: Scale) -> Vec<String> {
    let (here, there) = (parameters(experiment, scale), published(experiment));
    let mut changes = vec![
        "one machine and loopback instead of 39 machines and a LAN; servers keep everything in memory".to_owned(),
    ];
    let mut change = |what: &str, here: String, there: String| {
        if here != there {
            changes.push(format!("{what}: {here} instead of {there}"));
        }
    };
    let number = |number: usize| number.to_string();
    change("servers", number(here.servers), number(there.servers));
    change("parity m", number(here.parity), number(there.parity));
    change("writers", number(here.writers), number(there.writers));
    change("readers", number(here.readers), number(there.readers));
    if experiment != Experiment::E7 {
        let each = |of: &Parameters| format!("{} of each client", of.operations);
        change("operations", each(&here), each(&there));
        let wait = |of: &Parameters| format!("{} to {} ms", of.wait_ms.start, of.wait_ms.end);
        change("waits between them", wait(&here), wait(&there));
    }
    if experiment == Experiment::E5 {
        let each = |of: &Parameters| format!("{} of each, {} ms apart", of.changes, of.change_ms);
        change("reconfigurations", each(&here), each(&there));
    }
    let names = |scale| -> String {
        let steps = steps(experiment, scale).into_iter();
        let names: Vec<String> = steps.map(|(name, _)| name).collect();
        names.join("; ")
    };
    change("points", names(scale), names(Scale::Full));
    change("sizes", sizes(&here.sizes), sizes(&there.sizes));
    let blocks = |of: Blocks| sizes(&[of.0, of.1, of.2]);
    change("blocks of files", blocks(here.blocks), blocks(there.blocks));
    if experiment == Experiment::E5 {
        changes.push(format!(
            "the members of a configuration decide which one comes next, or an etcd of {} members where a variant says so, instead of six nodes of Raft",
            outside::members(scale)
        ));
    }
    if here.runs < 3 {
        changes.push(format!("runs of each point: {}, not at least 3", here.runs));
    }
    if here.sizes.iter().any(|size| *size > OBJECT_MAX) {
        changes.push("objects of more than 64 MiB are left out: one value has at most so much, only files have more".into());
    }
    if experiment == Experiment::E3 && scale == Scale::Full {
        changes.push(
            "blocks of 64 MiB and at most 128 MiB are left out: a block has at most 64 MiB".into(),
        );
    }
    changes
}

/// Sizes, as people write them.
pub(super) fn sizes(sizes: &[usize]) -> String {
    let shown: Vec<String> = sizes.iter().map(|size| show_size(*size)).collect();
    shown.join(", ")
}

/// A size, as people write it.
pub(super) fn show_size(size: usize) -> String {
    match size {
        size if size.is_multiple_of(MIB) => format!("{} MiB", size / MIB),
        size if size.is_multiple_of(KIB) => format!("{} KiB", size / KIB),
        size => format!("{size} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_scale_is_as_published() {
        let e1 = parameters(Experiment::E1, Scale::Full);
        assert_eq!((e1.servers, e1.writers, e1.readers), (11, 5, 5));
        assert_eq!((e1.sizes[0], e1.sizes[9]), (MIB, 512 * MIB));
        for experiment in Experiment::ALL {
            let full = changes(experiment, Scale::Full);
            assert!(full.iter().all(|change| !change.contains("instead of 11")));
            assert!(full[0].contains("loopback"), "that is always different");
            assert_eq!(parameters(experiment, Scale::Full).runs, 3);
        }
    }

    #[test]
    fn what_is_varied_is_as_published() {
        let names = |experiment| -> Vec<String> {
            let steps = steps(experiment, Scale::Full).into_iter();
            steps.map(|(name, _)| name).collect()
        };
        // Six pairs in which readers or writers are 5, at five numbers of servers.
        let participation = names(Experiment::E2);
        assert_eq!(participation.len(), 30);
        assert_eq!(participation[0], "S=3 R=5 W=5");
        assert_eq!(names(Experiment::E4).len(), 9);
        assert_eq!(names(Experiment::E5), ["G=1", "G=2", "G=3", "G=4", "G=5"]);
        assert_eq!(names(Experiment::E3).last().unwrap(), "blocks 32 MiB");
        assert_eq!(names(Experiment::E1), [""]);
        for scale in Scale::ALL {
            for experiment in Experiment::ALL {
                for (name, step) in steps(experiment, scale) {
                    assert!(step.parity < step.servers, "{experiment:?} {name}");
                    let usual = parameters(experiment, scale).servers;
                    assert!(step.servers <= usual, "{experiment:?} {name}");
                }
            }
        }
    }

    #[test]
    fn what_a_scale_changes_is_said() {
        let quick = changes(Experiment::E7, Scale::Quick).join("\n");
        for words in [
            "servers: 5 instead of 11",
            "sizes: 64 KiB instead of 1 MiB, 64 MiB",
            "runs of each point: 1",
        ] {
            assert!(quick.contains(words), "{words}: {quick}");
        }
        assert!(!quick.contains("waits"), "nobody waits: {quick}");
        assert_eq!("large".parse::<Scale>().unwrap_err().lines().count(), 1);
        assert_eq!("quick".parse(), Ok(Scale::Quick));
    }
}
