//! The size of an experiment: every parameter of every scale, and what a scale changes against the publication.

use super::actor::Blocks;
use super::experiment::{Experiment, Parameter, Procedure};
use super::parameters::{KIB, MIB, OBJECT_MAX, Parameters};
use areo_sim::measure::Scale;
use std::time::Duration;

impl Parameters {
    /// These parameters with another value of one of them.
    fn with(&self, what: Parameter, value: usize) -> Parameters {
        let mut with = self.clone();
        match what {
            Parameter::Servers => (with.servers, with.parity) = (value, (value - 1) / 2),
            Parameter::ServersAlone => with.servers = value,
            Parameter::ServersOfStudy => {
                let failing = match value {
                    ..20 => 2,
                    20..30 => 4,
                    30.. => 14,
                };
                (with.servers, with.parity) = (value, 2 * failing);
            }
            Parameter::Readers => with.readers = value,
            Parameter::Writers => with.writers = value,
            Parameter::BlockBytes => with.blocks = (value, value, 2 * value),
            Parameter::K => with.parity = with.servers - value,
            Parameter::Reconfigurers => with.reconfigurers = value,
        }
        with
    }
}

/// The parameters of an experiment at a scale.
pub(super) fn parameters(experiment: &Experiment, scale: Scale) -> Parameters {
    let published = experiment.published.clone();
    match scale {
        Scale::Full => published,
        Scale::Default => Parameters {
            writers: published.writers.min(5),
            readers: published.readers.min(5),
            change_ms: 150,
            operations: 5,
            wait_ms: (50, 150),
            // Where something else is varied, one size is enough.
            sizes: match published.sizes {
                [_, _, ..] => &[MIB, 8 * MIB],
                _ => &[4 * MIB],
            },
            ..published
        },
        Scale::Quick => Parameters {
            servers: 5,
            parity: 2,
            writers: 1,
            readers: 2,
            changes: 2,
            change_ms: 2,
            operations: 2,
            wait_ms: (1, 5),
            sizes: &[64 * KIB],
            blocks: (8 * KIB, 8 * KIB, 16 * KIB),
            runs: 1,
            ..published
        },
    }
}

/// Parameters of an experiment in virtual time at a scale. Size costs no time there: the parameters are the published
/// ones, with fewer operations and runs.
pub(super) fn virtual_parameters(experiment: &Experiment, scale: Scale) -> Parameters {
    let published = experiment.published.clone();
    let (operations, runs) = match scale {
        Scale::Full => (published.operations, published.runs),
        Scale::Default => (
            published.operations.min(10),
            published.runs.div_ceil(4).max(3),
        ),
        Scale::Quick => (2, 2),
    };
    Parameters {
        operations,
        runs,
        sizes: match scale {
            Scale::Quick => &published.sizes[..1],
            Scale::Default | Scale::Full => published.sizes,
        },
        ..published
    }
}

/// The steps of the parameters that vary beside the size: what it is called, and the parameters with it. Of readers and writers at most one number is
/// another than the first of its list.
pub(super) fn steps(experiment: &Experiment, scale: Scale) -> Vec<(String, Parameters)> {
    steps_with(experiment, scale, parameters(experiment, scale))
}

/// The steps of an experiment with these parameters.
pub(super) fn steps_with(
    experiment: &Experiment,
    scale: Scale,
    parameters: Parameters,
) -> Vec<(String, Parameters)> {
    let mut steps = vec![(Vec::new(), parameters, 0)];
    for varied in experiment.varied {
        let values = match scale {
            Scale::Quick => varied.quick,
            Scale::Default => varied.default,
            Scale::Full => varied.full,
        };
        let of_clients = matches!(varied.what, Parameter::Readers | Parameter::Writers);
        let mut next = Vec::new();
        for (words, parameters, unusual) in &steps {
            for value in values {
                let unusual = unusual + u32::from(of_clients && *value != values[0]);
                let word = [words.clone(), vec![varied.what.word(*value)]].concat();
                next.push((word, parameters.with(varied.what, *value), unusual));
            }
        }
        steps = next;
    }
    let usual = steps.into_iter().filter(|(.., unusual)| *unusual <= 1);
    usual
        .map(|(words, parameters, _)| (words.join(" "), parameters))
        .collect()
}

impl Parameter {
    fn word(self, value: usize) -> String {
        match self {
            Parameter::Servers | Parameter::ServersAlone | Parameter::ServersOfStudy => {
                format!("S={value}")
            }
            Parameter::Readers => format!("R={value}"),
            Parameter::Writers => format!("W={value}"),
            Parameter::BlockBytes => format!("blocks {}", show_size(value)),
            Parameter::K => format!("k={value}"),
            Parameter::Reconfigurers => format!("G={value}"),
        }
    }
}

/// The differences of the scale from the publication, one sentence each.
pub(super) fn changes(
    experiment: &Experiment,
    scale: Scale,
    round_trip: Option<Duration>,
) -> Vec<String> {
    let (here, there) = (parameters(experiment, scale), &experiment.published);
    let mut changes = vec![
        "one machine and loopback instead of 39 machines and a LAN; servers keep everything in memory".to_owned(),
    ];
    changes
        .extend(round_trip.map(|trip| format!("a round trip takes {} ms more", trip.as_millis())));
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
    if experiment.procedure == Procedure::AtOnce {
        let each = |of: &Parameters| format!("{} of each client", of.operations);
        change("operations", each(&here), each(there));
        let wait = |of: &Parameters| format!("{} to {} ms", of.wait_ms.0, of.wait_ms.1);
        change("waits between them", wait(&here), wait(there));
    }
    if there.reconfigurers > 0 {
        let each = |of: &Parameters| format!("{} of each, {} ms apart", of.changes, of.change_ms);
        change("reconfigurations", each(&here), each(there));
    }
    let names = |scale| -> String {
        let steps = steps(experiment, scale).into_iter();
        let names: Vec<String> = steps.map(|(name, _)| name).collect();
        names.join("; ")
    };
    change("points", names(scale), names(Scale::Full));
    change("sizes", sizes(here.sizes), sizes(there.sizes));
    let blocks = |of: Blocks| sizes(&[of.0, of.1, of.2]);
    change("blocks of files", blocks(here.blocks), blocks(there.blocks));
    if experiment.variants.iter().any(|of| of.etcd) {
        changes.push(format!(
            "the members of a configuration decide which one comes next, or an etcd of {} members where a variant says so, instead of six nodes of Raft",
            etcd_members(scale)
        ));
    }
    if here.runs < 3 {
        changes.push(format!("runs of each point: {}, not at least 3", here.runs));
    }
    if here.sizes.iter().any(|size| *size > OBJECT_MAX) {
        changes.push("objects of more than 64 MiB are left out: one value has at most so much, only files have more".into());
    }
    if scale == Scale::Full {
        changes.extend(
            experiment
                .left_out
                .iter()
                .map(|sentence| (*sentence).to_owned()),
        );
    }
    changes
}

/// Members of an etcd that decides: as published, or fewer.
pub(super) fn etcd_members(scale: Scale) -> usize {
    match scale {
        Scale::Full => 6,
        Scale::Quick | Scale::Default => 3,
    }
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

    fn of(name: &str) -> &'static Experiment {
        Experiment::find(name).unwrap()
    }

    #[test]
    fn the_full_scale_is_as_published() {
        let e1 = parameters(of("E1"), Scale::Full);
        assert_eq!((e1.servers, e1.writers, e1.readers), (11, 5, 5));
        assert_eq!((e1.sizes[0], e1.sizes[9]), (MIB, 512 * MIB));
        for experiment in Experiment::all() {
            let full = changes(experiment, Scale::Full, None);
            assert!(full.iter().all(|change| !change.contains("instead of 11")));
            assert!(full[0].contains("loopback"), "that is always different");
            let runs = parameters(experiment, Scale::Full).runs;
            assert!(runs == 3 || !experiment.has_processes(), "{runs}");
        }
    }

    #[test]
    fn what_is_varied_is_as_published() {
        let names = |experiment| -> Vec<String> {
            let steps = steps(experiment, Scale::Full).into_iter();
            steps.map(|(name, _)| name).collect()
        };
        // Six pairs in which readers or writers are 5, at five numbers of servers.
        let participation = names(of("E2"));
        assert_eq!(participation.len(), 30);
        assert_eq!(participation[0], "S=3 R=5 W=5");
        assert_eq!(names(of("E4")).len(), 9);
        assert_eq!(names(of("E5")), ["G=1", "G=2", "G=3", "G=4", "G=5"]);
        assert_eq!(names(of("E3")).last().unwrap(), "blocks 32 MiB");
        assert_eq!(names(of("E1")), [""]);
        for scale in Scale::ALL {
            for experiment in Experiment::all() {
                for (name, step) in steps(experiment, scale) {
                    assert!(step.parity < step.servers, "{} {name}", experiment.name);
                    let usual = parameters(experiment, scale).servers;
                    assert!(step.servers <= usual, "{} {name}", experiment.name);
                }
            }
        }
    }

    #[test]
    fn what_a_scale_changes_is_said() {
        let quick = changes(of("E7"), Scale::Quick, None).join("\n");
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
