//! A member of each store is killed under load.

use super::{Options, of};
use crate::completions::STEP;
use crate::error::RunError;
use crate::load::{GIVEN_UP, History, Load, LoadEnd, Phase, Plan, STEP_MS};
use crate::target::{Target, TargetName};
use serde::Serialize;
use tokio::time::{Instant, sleep, sleep_until};

/// The effect of a killed member on the clients of a store. The names of the fields are those of `--json`, and stay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KillReport {
    pub target: TargetName,
    /// The killed member, and the reaction of the others.
    pub victim: String,
    /// Bytes of a value.
    pub size: usize,
    /// Number of clients that got.
    pub readers: usize,
    /// Number of clients that put.
    pub writers: usize,
    /// The length of a step, in milliseconds.
    pub step_ms: u64,
    /// Operations that succeeded, step by step.
    pub completions: Vec<u64>,
    /// Time of the kill, in milliseconds from the begin of the first step.
    pub killed_at_ms: f64,
    /// Successful operations per second before the kill.
    pub per_second_before: f64,
    /// Successful operations per second after the kill.
    pub per_second_after: f64,
    /// `per_second_after` divided by `per_second_before`; `None` if there was nothing before.
    pub ratio: Option<f64>,
    /// Longest time without a success that ended before the kill, in milliseconds.
    pub longest_gap_before_ms: f64,
    /// Longest time without a success that ended after the kill or lasted until the end of the measurement, in
    /// milliseconds.
    pub longest_gap_ms: f64,
    /// Operations that failed, before and after.
    pub failed: u64,
    /// The first of them, in sentences.
    pub failures: Vec<String>,
}

impl KillReport {
    fn of(target: TargetName, victim: String, plan: &Plan, ended: LoadEnd) -> KillReport {
        let LoadEnd {
            still,
            disturbed,
            steps,
            failures,
            ..
        } = ended;
        // The step in which it happens is one before.
        let before = still.time().as_nanos().div_ceil(STEP.as_nanos()) as usize;
        let (before, after) = steps.split_at(before.min(steps.len()));
        let per_second = |steps: &[u64]| {
            let seconds = STEP.as_secs_f64() * steps.len() as f64;
            match steps {
                [] => 0.0,
                steps => steps.iter().sum::<u64>() as f64 / seconds,
            }
        };
        let (per_second_before, per_second_after) = (per_second(before), per_second(after));
        KillReport {
            target,
            victim,
            size: plan.size,
            readers: plan.readers,
            writers: plan.writers,
            step_ms: STEP_MS,
            killed_at_ms: still.time().as_secs_f64() * 1e3,
            per_second_before,
            per_second_after,
            ratio: (per_second_before > 0.0).then(|| per_second_after / per_second_before),
            longest_gap_before_ms: still.longest_gap().as_secs_f64() * 1e3,
            longest_gap_ms: disturbed.longest_gap().as_secs_f64() * 1e3,
            completions: steps,
            failed: failures.count,
            failures: failures.first,
        }
    }
}

/// Half of the clients get and half of them put, for twice the time; in the middle of it a member is killed.
pub(super) async fn kill(
    options: &Options,
    (name, target): (TargetName, &mut dyn Target),
    history: Option<&History>,
) -> Result<KillReport, RunError> {
    let clients = options.clients.iter().copied().max().unwrap_or(1).max(2);
    let plan = Plan {
        readers: clients / 2,
        writers: clients - clients / 2,
        ..options.plan((options.sizes[0], clients, super::Operation::Get))
    };
    let load = Load::start(target, &plan, history).await;
    let load = load.map_err(of(name))?;
    let time = options.kill.unwrap_or(options.time);
    sleep(plan.warm_up).await;
    load.enter(Phase::Still);
    sleep(time).await;
    load.enter(Phase::Disturbed);
    let over = Instant::now() + time;
    let victim = target.kill().await?;
    sleep_until(over).await;
    let mut ended = load.stop_within(GIVEN_UP).await;
    // The timers end a little late.
    let steps = (2 * time).as_nanos().div_ceil(STEP.as_nanos());
    ended.steps.truncate(steps as usize);
    Ok(KillReport::of(name, victim, &plan, ended))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::failures::Failures;
    use crate::load::Tally;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn killed(steps: &[u64], ms: u64) -> KillReport {
        let plan = Plan {
            readers: 1,
            writers: 2,
            size: 16,
            ..Plan::default()
        };
        let time = Duration::from_millis;
        let mut failures = Failures::default();
        failures.add("no".into());
        let ended = LoadEnd {
            still: Tally::phase(time(ms), time(3)),
            disturbed: Tally::phase(time(100), Duration::from_micros(20_500)),
            steps: steps.to_vec(),
            samples: Vec::new(),
            failures,
            increments: BTreeMap::new(),
            deaths: 0,
            in_time: true,
        };
        KillReport::of(TargetName::Etcd, "m1".into(), &plan, ended)
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }

    #[test]
    fn what_is_done_afterwards_is_set_against_what_was_done_before() {
        let seen = killed(&[4, 4, 1, 0, 0, 3], 24);
        assert_eq!((seen.readers, seen.writers, seen.step_ms), (1, 2, 10));
        // Three steps before, the one in which it happened among them, and three after it.
        close(seen.per_second_before, 300.0);
        close(seen.per_second_after, 100.0);
        close(seen.ratio.unwrap(), 1.0 / 3.0);
        close(seen.killed_at_ms, 24.0);
        close(seen.longest_gap_before_ms, 3.0);
        close(seen.longest_gap_ms, 20.5);
        assert_eq!(seen.failed, 1);
    }

    #[test]
    fn nothing_before_is_no_ratio() {
        assert_eq!(killed(&[0, 0, 7], 20).ratio, None);
        let at_once = killed(&[7, 7], 0);
        assert_eq!(at_once.ratio, None);
        close(at_once.per_second_before, 0.0);
        close(killed(&[7], 100).per_second_after, 0.0);
    }
}
