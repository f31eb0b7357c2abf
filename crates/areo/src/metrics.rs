//! `--metrics`: what the operations of a command come to, for Prometheus, while the command runs.

use crate::args::Command;
use crate::exit::{Failure, Outcome, plain};
use crate::output::Output;
use areo_client::Metrics;
use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread;

/// The path of metrics.
pub(crate) const PATH: &str = "/metrics";

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
    let metrics = metrics.clone();
    let text = move || {
        let text = metrics.text();
        async move { answer(text) }
    };
    let router = Router::new().route(PATH, get(text));
    serve_router(out, address, router)
}

/// Answers by this router, which has [`PATH`], until the process ends.
///
/// # Errors
/// Others would reach the address, or it is taken.
pub(crate) fn serve_router(out: Output, address: SocketAddr, router: Router) -> Outcome {
    if !address.ip().is_loopback() {
        return Err(Failure::usage(format!(
            "--metrics {address}: other machines reach that, and there is no authentication yet; take 127.0.0.1"
        )));
    }
    let address = listen(address, router).map_err(|error| {
        let reason = plain(&error);
        Failure::other(format!("cannot serve metrics at {address}: {reason}"))
    })?;
    out.note(&format!("metrics at http://{address}{PATH}"));
    Ok(())
}

/// The response with this text.
pub(crate) fn answer(text: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

fn is_client(command: &Command) -> bool {
    match command {
        Command::Up(_) | Command::Completion { .. } => false,
        Command::Server(args) => args.verb.is_some(),
        _ => true,
    }
}

/// On a thread of its own: commands have runtimes that come and go.
fn listen(address: SocketAddr, router: Router) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let serve = async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        axum::serve(listener, router).await
    };
    // Nothing depends on it: it ends with the process, and Prometheus notices if it ended before.
    let thread = thread::Builder::new().name("areo-metrics".into());
    thread.spawn(move || runtime.block_on(serve))?;
    Ok(bound)
}
