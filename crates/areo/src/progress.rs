//! Bars and spinners on standard error, on a terminal only.

use crate::output::{Output, visible};
use areo_client::Client;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::time::Duration;
use tokio::time::sleep;

/// Values below this are through before a bar could be read.
pub(crate) const SHOWN_BYTES: u64 = 4 << 20;
/// The time after which a person wonders whether anything happens.
const LATE: Duration = Duration::from_secs(1);
/// The interval at which a bar is updated.
const TICK: Duration = Duration::from_millis(100);

/// A bar for `bytes` that are moved; hidden for few of them.
pub(crate) fn bar(out: Output, what: &str, bytes: u64) -> ProgressBar {
    if !out.progress || bytes < SHOWN_BYTES {
        return ProgressBar::hidden();
    }
    shown(bytes.into(), style(bar_template(out)), what)
}

/// A spinner for something that takes a while.
pub fn spinner(out: Output, what: &str) -> ProgressBar {
    if !out.progress {
        return ProgressBar::hidden();
    }
    let template = match out.colour {
        true => "{spinner:.cyan} {msg} {elapsed:.dim}{prefix}",
        false => "{spinner} {msg} {elapsed}{prefix}",
    };
    shown(None, style(template), what)
}

/// A bar for `total` things that are done one after the other.
pub fn count(out: Output, what: &str, total: u64) -> ProgressBar {
    if !out.progress {
        return ProgressBar::hidden();
    }
    let template = match out.colour {
        true => "{msg} {bar:30.cyan/dim} {pos}/{len} {left:.dim}{prefix}",
        false => "{msg} {bar:30} {pos}/{len} {left}{prefix}",
    };
    shown(total.into(), style(template), what)
}

/// No bar at all.
pub(crate) fn hidden() -> ProgressBar {
    ProgressBar::hidden()
}

/// Runs an operation that is mostly over at once; one that is not has a spinner after [`LATE`], which names the servers that owe
/// their answers.
pub(crate) async fn late<T>(out: Output, client: &Client, operation: impl Future<Output = T>) -> T {
    let awaited = async || waiting(&client.awaited(TICK).await);
    late_for(out, awaited, operation).await
}

/// Connects as [`late`] runs an operation. No server has a name yet, and some of these may have answered: one looks for a quorum then.
pub(crate) async fn connecting<T>(
    out: Output,
    addresses: &[String],
    connect: impl Future<Output = T>,
) -> T {
    let connecting = format!("connecting to {}", addresses.join(", "));
    late_for(out, async || connecting.clone(), connect).await
}

async fn late_for<T>(
    out: Output,
    reason: impl AsyncFn() -> String,
    operation: impl Future<Output = T>,
) -> T {
    let mut operation = std::pin::pin!(operation);
    tokio::select! {
        biased;
        result = &mut operation => return result,
        () = sleep(LATE) => {}
    }
    let spinner = spinner(out, &waiting(&[]));
    let tell = async || -> Infallible {
        loop {
            spinner.set_message(visible(&reason().await));
            sleep(LATE).await;
        }
    };
    let result = tokio::select! {
        biased;
        result = operation => result,
        never = tell(), if !spinner.is_hidden() => match never {},
    };
    spinner.finish_and_clear();
    result
}

/// Runs an operation, or a part of one, that the bar shows. If it takes longer than [`LATE`], the bar names the servers that have owed
/// an answer for as long.
pub(crate) async fn naming<T>(
    bar: &ProgressBar,
    client: &Client,
    operation: impl Future<Output = T>,
) -> T {
    let name = async || -> Infallible {
        loop {
            sleep(LATE).await;
            bar.set_prefix(visible(&waiting_too(&client.awaited(LATE).await)));
        }
    };
    let result = tokio::select! {
        biased;
        result = operation => result,
        never = name(), if !bar.is_hidden() => match never {},
    };
    bar.set_prefix("");
    result
}

/// The end of a line that says something else.
fn waiting_too(servers: &[String]) -> String {
    match servers {
        [] => String::new(),
        servers => format!(", {}", waiting(servers)),
    }
}

/// The reason why nothing is seen to happen.
fn waiting(servers: &[String]) -> String {
    match servers {
        [] => "waiting for servers".to_owned(),
        servers => format!("waiting for {}", servers.join(", ")),
    }
}

/// Runs an operation that sends a value, as [`naming`] does; the bar says how much of the value has left, and goes with the operation.
/// All of it is `expected` bytes to servers.
pub(crate) async fn sending<T>(
    (bar, expected): (ProgressBar, u64),
    client: &Client,
    operation: impl Future<Output = T>,
) -> T {
    let sent = async || client.traffic().await.sent_bytes;
    let watch = async |before| watch_sent((&bar, expected), before, sent).await;
    let result = naming(&bar, client, watched(&bar, sent, watch, operation)).await;
    bar.finish_and_clear();
    result
}

/// Runs the operation and, if the bar is visible, updates it from the count before the operation began.
async fn watched<T>(
    bar: &ProgressBar,
    counter: impl AsyncFn() -> u64,
    watch: impl AsyncFnOnce(u64) -> Infallible,
    operation: impl Future<Output = T>,
) -> T {
    if bar.is_hidden() {
        return operation.await;
    }
    let before = counter().await;
    tokio::select! {
        biased;
        result = operation => result,
        never = watch(before) => match never {},
    }
}

async fn watch_sent(
    (bar, expected): (&ProgressBar, u64),
    before: u64,
    counter: impl AsyncFn() -> u64,
) -> Infallible {
    loop {
        sleep(TICK).await;
        advance(bar, counter().await - before, expected);
    }
}

/// Moves the bar to the share of the expected bytes that was sent. What is sent again comes on top of these: the bar waits at its end.
fn advance(bar: &ProgressBar, sent: u64, expected: u64) {
    let length = u128::from(bar.length().unwrap_or(0));
    let share = length * u128::from(sent.min(expected)) / u128::from(expected.max(1));
    bar.set_position(share as u64);
}

fn bar_template(out: Output) -> &'static str {
    match out.colour {
        true => {
            "{msg} {bar:30.cyan/dim} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {left:.dim}{prefix}"
        }
        false => {
            "{msg} {bar:30} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {left}{prefix}"
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("our own templates are well formed");
    style.with_key("left", left)
}

/// The time that is left; nothing before something has moved, because no rate is known then.
fn left(state: &ProgressState, out: &mut dyn fmt::Write) {
    if state.per_sec() > 0.0 {
        // A bar that cannot be written is not shown.
        let _ = write!(out, "{:#} left", HumanDuration(state.eta()));
    }
}

fn shown(length: Option<u64>, style: ProgressStyle, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
    bar.set_style(style);
    bar.set_message(visible(what));
    bar.enable_steady_tick(TICK);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const OUT: Output = Output {
        json: false,
        terminal: false,
        progress: true,
        colour: true,
        quiet: false,
        verbose: 0,
    };

    /// Watches until the bar stands at `position`.
    fn until(bar: &ProgressBar, position: u64, watch: impl Future<Output = Infallible>) {
        let reached = async {
            while bar.position() != position {
                sleep(Duration::from_millis(1)).await;
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = reached => (),
                never = watch => match never {},
                () = sleep(Duration::from_secs(30)) => panic!("stands at {}", bar.position()),
            }
        });
    }

    /// A counter that is at 100 before the operation and has grown by `by` at each later look.
    fn growing(by: u64) -> impl AsyncFn() -> u64 {
        let count = Cell::new(100);
        async move || {
            count.set(count.get() + by);
            count.get()
        }
    }

    #[test]
    fn a_bar_shows_the_sent_share_of_the_value_and_no_more() {
        let bar = ProgressBar::hidden();
        bar.set_length(25);
        until(&bar, 10, watch_sent((&bar, 50), 100, growing(10)));
        until(&bar, 25, watch_sent((&bar, 50), 100, growing(35)));
        advance(&bar, 1000, 50);
        assert_eq!((bar.position(), bar.length()), (25, Some(25)));
        let spinner = ProgressBar::hidden();
        advance(&spinner, 1000, 0);
        assert_eq!(spinner.position(), 0, "of a length that is not known");
    }

    #[test]
    fn what_is_waited_for_has_a_name() {
        assert_eq!(waiting(&[]), "waiting for servers");
        assert_eq!(waiting(&["s2".into(), "s3".into()]), "waiting for s2, s3");
        assert_eq!(waiting_too(&[]), "");
        assert_eq!(waiting_too(&["s2".into()]), ", waiting for s2");
    }

    #[test]
    fn templates_are_well_formed_and_few_bytes_show_nothing() {
        let out = |colour| Output { colour, ..OUT };
        for colour in [true, false] {
            assert_eq!(
                bar(out(colour), "a", SHOWN_BYTES).length(),
                Some(SHOWN_BYTES)
            );
            assert!(bar(out(colour), "a", SHOWN_BYTES - 1).is_hidden());
            assert_eq!(spinner(out(colour), "waiting").message(), "waiting");
            assert_eq!(count(out(colour), "simulating", 7).length(), Some(7));
        }
        let silent = Output {
            progress: false,
            ..out(true)
        };
        assert!(bar(silent, "a", u64::MAX).is_hidden() && spinner(silent, "a").is_hidden());
    }
}
