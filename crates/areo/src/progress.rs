//! Bars and spinners on standard error, on a terminal only.

use crate::output::Output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Values below this are through before a bar could be read.
const SHOWN_BYTES: u64 = 4 << 20;
const TICK: Duration = Duration::from_millis(100);

/// A bar for `bytes` that are moved; hidden for few of them.
pub(crate) fn bar(out: Output, what: &str, bytes: u64) -> ProgressBar {
    if !out.progress || bytes < SHOWN_BYTES {
        return ProgressBar::hidden();
    }
    let template = match out.colour {
        true => {
            "{msg} {bar:30.cyan/dim} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec}"
        }
        false => "{msg} {bar:30} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec}",
    };
    shown(bytes.into(), template, what)
}

/// A spinner for something that takes a while.
pub(crate) fn spinner(out: Output, what: &str) -> ProgressBar {
    if !out.progress {
        return ProgressBar::hidden();
    }
    let template = match out.colour {
        true => "{spinner:.cyan} {msg} {elapsed:.dim}",
        false => "{spinner} {msg} {elapsed}",
    };
    shown(None, template, what)
}

/// No bar at all.
pub(crate) fn hidden() -> ProgressBar {
    ProgressBar::hidden()
}

fn shown(length: Option<u64>, template: &str, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
    bar.set_style(
        ProgressStyle::with_template(template).expect("our own templates are well formed"),
    );
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(TICK);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_well_formed_and_few_bytes_show_nothing() {
        let out = |colour| Output {
            json: false,
            terminal: false,
            progress: true,
            colour,
            quiet: false,
            verbose: 0,
        };
        for colour in [true, false] {
            assert_eq!(
                bar(out(colour), "a", SHOWN_BYTES).length(),
                Some(SHOWN_BYTES)
            );
            assert!(bar(out(colour), "a", SHOWN_BYTES - 1).is_hidden());
            assert_eq!(spinner(out(colour), "waiting").message(), "waiting");
        }
        let silent = Output {
            progress: false,
            ..out(true)
        };
        assert!(bar(silent, "a", u64::MAX).is_hidden() && spinner(silent, "a").is_hidden());
    }
}
