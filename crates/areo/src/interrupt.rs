//! Ctrl-C, SIGTERM and SIGHUP while a command runs. They are noticed on a thread of their own, so that a command that waits for a
//! reader of its output, or for an answer of its user, can be ended, too.

use crate::args::asked_for_json;
use crate::exit::{Code, Failure, Outcome};
use areo_client::place;
use areo_server::StopSignals;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// The longest time for a command to notice a signal. A command that takes longer waits for something that may never come.
const STUCK: Duration = Duration::from_secs(2);

/// Set with the first signal of the process.
static CAME: Mutex<Option<watch::Receiver<bool>>> = Mutex::new(None);
/// The command knows of it, and ends by itself; a second signal ends it at once.
static NOTICED: AtomicBool = AtomicBool::new(false);

/// The signal that a command must end.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Catches signals, so that they do not end the process by themselves.
    ///
    /// # Errors
    /// The system gives no thread, or no signals.
    pub(crate) fn watch() -> Outcome<Interrupt> {
        let mut came = CAME.lock().expect("no holder of the lock panics");
        if let Some(receiver) = &*came {
            return Ok(Interrupt(receiver.clone()));
        }
        let started = start();
        let receiver = started.map_err(|error| Failure::other(format!("cannot start: {error}")))?;
        *came = Some(receiver.clone());
        Ok(Interrupt(receiver))
    }

    /// Waits for a signal; at once if one came before. Once a local file takes its value, a signal is too late: the command ends
    /// as it would have ended without.
    pub(crate) async fn asked(&mut self) {
        let came = self.0.wait_for(|came| *came).await;
        came.expect("the thread that watches ends with the process");
        if place::is_kept() {
            std::future::pending::<()>().await;
        }
        NOTICED.store(true, Ordering::Relaxed);
    }

    /// Waits for a signal, also after a local file took its value: for a command that writes many, and ends between two of them.
    pub(crate) async fn came(&mut self) {
        let came = self.0.wait_for(|came| *came).await;
        came.expect("the thread that watches ends with the process");
        NOTICED.store(true, Ordering::Relaxed);
    }

    /// True if a signal came.
    pub(crate) fn is_asked(&self) -> bool {
        *self.0.borrow()
    }
}

fn start() -> io::Result<watch::Receiver<bool>> {
    let (sender, receiver) = watch::channel(false);
    let (ready, is_ready) = mpsc::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let watch = move || {
        runtime.block_on(async {
            match StopSignals::new() {
                Ok(signals) => {
                    // The command waits for it.
                    let _ = ready.send(Ok(()));
                    end_at_the_second(signals, &sender).await;
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        });
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(watch)?;
    is_ready.recv().expect("the thread says how it began")?;
    Ok(receiver)
}

async fn end_at_the_second(mut signals: StopSignals, came: &watch::Sender<bool>) {
    signals.next().await;
    came.send_replace(true);
    let unnoticed = async {
        sleep(STUCK).await;
        if NOTICED.load(Ordering::Relaxed) || place::is_kept() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = signals.next() => {}
        () = unnoticed => {}
    }
    for target in place::abandon() {
        let sentence = format!("interrupted: {} is incomplete", target.display());
        // The exit code follows.
        let _ = Failure::new(Code::Interrupted, sentence).report("areo", asked_for_json());
    }
    std::process::exit(Code::Interrupted as i32);
}
