//! Conditional writes while servers are away. The user's commands take servers away and bring them back.

use super::{Case, Remarks, race, read_everywhere};
use crate::probe::Plan;
use crate::probe::operation::Condition;
use crate::probe::run::{Observation, Run};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio::time::sleep;

/// Objects that are written while servers are away.
const OBJECTS: usize = 3;
/// The longest time for a store to be read again after servers have come back.
const RECOVERY: Duration = Duration::from_mins(1);

/// Writers of a version, and of an absent object, while servers are away; then everything is read.
pub(super) async fn away(run: &Arc<Run>, case: Case, plan: &Plan) -> Result<Remarks, String> {
    let command = match case {
        Case::MinorityAway => &plan.minority_away,
        _ => &plan.quorum_away,
    };
    let command = command.as_deref().expect("the case is possible");
    let client = run.clients(1)[0];
    let mut objects = Vec::new();
    for _ in 0..OBJECTS {
        let key = run.key(case.name());
        let first = run.put(client, &key, Condition::None).await;
        if first.is_done() {
            objects.push((key, Condition::Match(first.value)));
        }
    }
    objects.push((run.key(case.name()), Condition::Absent));
    run.is_away.store(true, Ordering::Relaxed);
    shell(command).await?;
    for (key, base) in &objects {
        race(run, key, plan.writers, base).await;
    }
    back(run, plan.back.as_deref()).await?;
    let began = Instant::now();
    for (key, _) in &objects {
        loop {
            let observation = read_everywhere(run, key).await;
            if observation != Observation::Nothing {
                break;
            }
            if began.elapsed() > RECOVERY {
                return Err("the store cannot be read since servers have come back".to_owned());
            }
            sleep(Duration::from_millis(200)).await;
        }
    }
    Ok(Remarks::default())
}

/// Brings servers back if they are away.
///
/// # Errors
/// The command failed.
pub(in crate::probe) async fn back(run: &Run, command: Option<&str>) -> Result<(), String> {
    if !run.is_away.swap(false, Ordering::Relaxed) {
        return Ok(());
    }
    match command {
        Some(command) => shell(command).await,
        None => Ok(()),
    }
}

/// Runs a command of the user in a shell, without output.
async fn shell(command: &str) -> Result<(), String> {
    let mut shell = Command::new("sh");
    let shell = shell.arg("-c").arg(command);
    let shell = shell.stdin(Stdio::null()).stdout(Stdio::null());
    let ended = shell.status().await;
    let ended =
        ended.map_err(|error| format!("cannot run a shell: {}", areo::exit::plain(&error)))?;
    match ended.success() {
        true => Ok(()),
        false => Err(format!("the command '{command}' failed: {ended}")),
    }
}
