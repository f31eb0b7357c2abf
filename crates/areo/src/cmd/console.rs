//! `areo console`: pages in a browser that show the cluster and change it, in the foreground.

use super::server::{certificate, make_files_private};
use super::tls::{self, Encryption};
use crate::args;
use crate::config::{self, Settings};
use crate::exit::{Failure, Outcome, plain};
use crate::output::Output;
use crate::session::{self, Session};
use crate::watch;
use areo_client::units::parse_timeout;
use areo_console::{Accept, Connection, Console, ConsoleOptions, ONCE_LIFE, serve};
use areo_telemetry::Recorder;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The address without the option `--listen`.
const DEFAULT_LISTEN: &str = "127.0.0.1:7470";
/// The age of a session at its end, without the option `--session`.
const DEFAULT_SESSION: Duration = Duration::from_hours(8);

/// The choices of an operator.
struct Plan {
    listen: String,
    names: Vec<String>,
    encryption: Encryption,
    session_life: Duration,
}

pub(super) fn run(session: &Session, args: &args::Console, recorder: &Recorder) -> Outcome {
    let plan = plan(&session.settings, args)?;
    make_files_private();
    session::run(until_stopped(session, plan, recorder.clone()), "")
}

fn plan(settings: &Settings, args: &args::Console) -> Outcome<Plan> {
    let listen = settings.get(args.listen.clone(), "console.listen", config::text)?;
    let listen = listen.unwrap_or_else(|| DEFAULT_LISTEN.into());
    let names = settings.list(&args.name, "console.name")?;
    let files = (args.cert.clone(), args.cert_key.clone());
    let files = certificate(settings, files, ("console.cert", "console.cert-key"))?;
    let encryption = match (files, settings.switch(args.tls, "console.tls")?) {
        (Some(_), true) => {
            return Err(Failure::usage(
                "a certificate of the cluster's CA and one in files cannot be shown at once: leave out --tls, or --cert and --cert-key",
            ));
        }
        (Some(files), false) => Encryption::Files(tls::of_files(&files.certificate, &files.key)?),
        (None, true) => Encryption::Cluster(tls::hosts(&names, &[], &listen, "--name")?),
        (None, false) => Encryption::None,
    };
    let session_life = settings.get(args.session, "console.session", parse_timeout)?;
    Ok(Plan {
        listen,
        names,
        encryption,
        session_life: session_life.unwrap_or(DEFAULT_SESSION),
    })
}

/// Serves until the signal to stop.
async fn until_stopped(session: &Session, plan: Plan, recorder: Recorder) -> Outcome {
    let listen = plan.listen;
    let cannot = |error: std::io::Error| {
        Failure::other(format!("cannot listen on {listen}: {}", plain(&error)))
    };
    let listener = TcpListener::bind(&listen).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    if matches!(plan.encryption, Encryption::None) && !address.ip().is_loopback() {
        return Err(Failure::usage(format!(
            "{address} can be reached by other machines, and pages have data and secrets: pass --tls, or --cert and --cert-key"
        )));
    }
    let client = session.connect().await?;
    let target = session.target()?;
    let (acceptor, renewing) = plan.encryption.begin(&client).await?;
    let host = match plan.names.first() {
        Some(name) => format!("{name}:{}", address.port()),
        None => address.to_string(),
    };
    let scheme = if acceptor.is_some() { "https" } else { "http" };
    let options = ConsoleOptions {
        connect: target.options(session.timeout()?),
        names: plan.names,
        port: address.port(),
        is_encrypted: acceptor.is_some(),
        session_life: plan.session_life,
        remembered: Arc::new(move || {
            let mut spans = watch::kept();
            let ring = recorder.ring();
            spans.extend(ring.since(0));
            spans.extend(ring.slowest());
            spans
        }),
    };
    let console = Console::new(client.clone(), options);
    let origin = format!("{scheme}://{host}");
    let announcing = announce(session.out, &console, &origin);
    tokio::select! {
        () = serve(listener, console.router(), accept(acceptor)) => {}
        announced = announcing => announced?,
        () = tls::renew(renewing, &client) => {}
    }
    Ok(())
}

/// Prints a URL that opens the console once, and another one when it has been used or is too old.
async fn announce(out: Output, console: &Console, origin: &str) -> Outcome {
    loop {
        let url = format!("{origin}{}", console.one_time_path());
        if out.json {
            out.object(&serde_json::json!({ "url": url }))?;
        } else {
            out.line(&url)?;
        }
        // It opens one browser. Where it was used, the next one is for another browser; a log gets no line for one that is too old.
        tokio::select! {
            () = console.opened() => {}
            () = tokio::time::sleep(ONCE_LIFE), if out.terminal => {}
        }
    }
}

/// Connections with TLS, if there is a certificate to be shown.
fn accept(acceptor: Option<TlsAcceptor>) -> Accept {
    Arc::new(move |stream| {
        let acceptor = acceptor.clone();
        Box::pin(async move {
            let stream: Box<dyn Connection> = match acceptor {
                Some(acceptor) => Box::new(acceptor.accept(stream).await?),
                None => Box::new(stream),
            };
            Ok(stream)
        })
    })
}
