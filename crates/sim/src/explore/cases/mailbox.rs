//! The mailbox of a configuration ([`areo_core::consensus::mailbox`]): of two reconfigurers that post their changes one proposes both. What
//! becomes of a proposal after that is the business of other cases.

use super::super::{Case, Digest, Judge, Kind, ObservedOperation, Operation, Outcome};
use super::{configuration, plain};
use areo_core::config::{Collect, Configuration, Dap, Descriptor, Options};
use areo_core::consensus::mailbox;
use areo_core::gather::Visit;
use areo_core::reconfig::change::Change;
use std::sync::Arc;

/// One changes delta, the other one an option; a server may stop.
pub(super) fn two() -> Case {
    let c = configuration(3, Dap::Abd);
    let delta = Descriptor {
        delta: 1,
        ..c.descriptor().clone()
    };
    let collect = Collect::Paper;
    let option = Descriptor {
        options: Options {
            collect,
            ..c.options()
        },
        ..c.descriptor().clone()
    };
    let program =
        |(label, wanted): (&str, &Descriptor)| [propose(&c, label, wanted)].into_iter().collect();
    Case {
        description: "mailbox n=3: a change of delta || a change of an option; one server stops"
            .to_owned(),
        clients: [("delta", &delta), ("option", &option)].map(program).into(),
        crashes: 1,
        digest: Digest::Records,
        judge: Judge {
            seen: meet,
            held: |_, _, _| None,
        },
        ..plain(&c)
    }
}

/// The part of a reconfiguration before the proposal. It ends with the changes that the client would propose.
fn propose(c: &Arc<Configuration>, label: &str, wanted: &Descriptor) -> Operation {
    let change = Change::new(c, wanted).expect("a valid change");
    Operation::new(label, Kind::Other, move |client| {
        let change = change.clone();
        async move {
            let at = Visit::new(change.base());
            match mailbox::post(&client.env, &at, change.encode()).await {
                Ok(posted) => {
                    let posted = posted.iter();
                    let others = posted.filter_map(|it| Change::decode(change.base(), it));
                    let others: Vec<Change> = others.collect();
                    let joined = change.join(&others);
                    let descriptor = joined.made().descriptor();
                    let delta = (descriptor.delta == 1).then_some("delta");
                    let option = (descriptor.options.collect == Collect::Paper).then_some("option");
                    let made: Vec<&str> = [delta, option].into_iter().flatten().collect();
                    Outcome::Other(made.join(" "))
                }
                Err(failed) => Outcome::Failed(format!("{failed:?}")),
            }
        }
    })
}

fn meet(observed: &[ObservedOperation]) -> Option<String> {
    let proposed = |of: &ObservedOperation| match &of.ended {
        Some(Outcome::Other(made)) => Some((of.label.clone(), made.clone())),
        _ => None,
    };
    let all: Vec<(String, String)> = observed.iter().filter_map(proposed).collect();
    let lacks_own = all
        .iter()
        .find(|(label, made)| !made.split(' ').any(|change| change == label));
    match lacks_own {
        Some((label, made)) => Some(format!("changes_meet: {label} proposes {made}")),
        None if all.len() == 2 && all.iter().all(|(label, made)| label == made) => {
            Some("changes_meet: neither has heard of the other".to_owned())
        }
        None => None,
    }
}
