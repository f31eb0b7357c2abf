//! `--metrics`: what the operations of a command come to, for Prometheus, while the command runs.

use crate::args::Command;
use crate::exit::{Failure, Outcome, plain};
use crate::output::Output;
use areo_client::Metrics;
use axum::Router;
use axum::http::header;
use axum::routing::get;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread;

/// Answers `GET /metrics` at this address until the process ends.
///
/// # Errors
/// The command is no client of a cluster, others would reach the address, or it is taken.
pub(crate) fn serve(
    out: Output,
    command: &Command,
    address: SocketAddr,
    metrics: &Metrics,
) -> Outcome {
    if !is_client(command) {
        return Err(Failure::usage(
            "--metrics is for commands that use a cluster; servers have their metrics on their admin ports",
        ));
    }
    if !address.ip().is_loopback() {
        return Err(Failure::usage(format!(
            "--metrics {address}: other machines reach that, and there is no authentication yet; take 127.0.0.1"
        )));
    }
    let address = listen(address, metrics.clone()).map_err(|error| {
        let reason = plain(&error);
        Failure::other(format!("cannot serve metrics at {address}: {reason}"))
    })?;
    out.note(&format!("metrics at http://{address}/metrics"));
    Ok(())
}

fn is_client(command: &Command) -> bool {
    match command {
        Command::Up(_) | Command::Completion { .. } => false,
        Command::Server(args) => args.verb.is_some(),
        _ => true,
    }
}

/// On a thread of its own: commands have runtimes that come and go.
fn listen(address: SocketAddr, metrics: Metrics) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let text = move || {
        let text = metrics.text();
        async move { ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text) }
    };
    let router = Router::new().route("/metrics", get(text));
    let serve = async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        axum::serve(listener, router).await
    };
    // Nothing depends on it: it ends with the process, and Prometheus notices if it ended before.
    let thread = thread::Builder::new().name("areo-metrics".into());
    thread.spawn(move || runtime.block_on(serve))?;
    Ok(bound)
}
