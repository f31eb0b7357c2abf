//! `areo console`: pages in a browser that show the cluster and change it, in the foreground.

use super::server::make_files_private;
use super::tls::{self, CertificateSettings, Encryption};
use crate::args;
use crate::config::{self, Settings};
use crate::exit::{Failure, Outcome, plain};
use crate::output::Output;
use crate::session::{self, Session};
use crate::watch;
use areo_client::units::parse_timeout;
use areo_console::{Accept, Connection, Console, ConsoleOptions, ONCE_LIFE, serve};
use areo_telemetry::Recorder;
use areo_trust::host::Host;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The address without the option `--listen`.
const DEFAULT_LISTEN: &str = "127.0.0.1:7470";
/// The age of a session at its end, without the option `--session`.
const DEFAULT_SESSION: Duration = Duration::from_hours(8);

const CERTIFICATE: CertificateSettings = CertificateSettings {
    cert: "console.cert",
    cert_key: "console.cert-key",
    tls: "console.tls",
};

/// The choices of an operator.
struct Plan {
    listen: String,
    /// The names by which browsers reach it, that of the URL first. Without one they reach it by the address on which it listens.
    names: Vec<Host>,
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
    let given = settings.list(&args.name, "console.name")?;
    let names = names(&given, &listen)?;
    let hosts = || tls::hosts(&given, &[], &listen, "--name");
    let encryption = Encryption::of(settings, &args.certificate, &CERTIFICATE, hosts)?;
    if matches!(encryption, Encryption::Files(_)) {
        // A URL needs a name, too.
        hosts()?;
    }
    let session_life = settings.get(args.session, "console.session", parse_timeout)?;
    Ok(Plan {
        listen,
        names,
        encryption,
        session_life: session_life.unwrap_or(DEFAULT_SESSION),
    })
}

/// The names that are given, and that of the host to listen on.
///
/// # Errors
/// One is no name, or stands for several.
fn names(given: &[String], listen: &str) -> Outcome<Vec<Host>> {
    let mut names = given
        .iter()
        .map(|it| tls::host(it))
        .collect::<Outcome<Vec<Host>>>()?;
    let is_pattern = |it: &&Host| matches!(it, Host::Name(name) if name.starts_with('*'));
    if let Some(pattern) = names.iter().find(is_pattern) {
        return Err(Failure::usage(format!(
            "--name {pattern} stands for several names: pass each name by which browsers reach the console"
        )));
    }
    let own = tls::listening(listen)?;
    names.extend(matches!(own, Host::Name(_)).then_some(own));
    Ok(names)
}

/// The part of a URL that says where the console is.
fn authority(names: &[Host], address: SocketAddr) -> String {
    match names.first() {
        Some(Host::Name(name)) => format!("{name}:{}", address.port()),
        Some(Host::Address(ip)) => SocketAddr::new(*ip, address.port()).to_string(),
        None => address.to_string(),
    }
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
    let (acceptor, renewal) = plan.encryption.begin(&client).await?;
    let host = authority(&plan.names, address);
    let scheme = if acceptor.is_some() { "https" } else { "http" };
    let options = ConsoleOptions {
        connect: target.options(session.timeout()?),
        names: plan.names.iter().map(Host::to_string).collect(),
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
        () = tls::renew(renewal, &client) => {}
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

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn browsers_reach_it_by_the_names_that_are_given_and_that_of_the_host() {
        let address: SocketAddr = "10.0.0.1:7470".parse().unwrap();
        for (given, listen, expected, url) in [
            (&[][..], "127.0.0.1:7470", &[][..], "10.0.0.1:7470"),
            (&[], "Gate:7470", &["gate"], "gate:7470"),
            (&["a.b"], "gate:7470", &["a.b", "gate"], "a.b:7470"),
            (&["::1"], "0.0.0.0:7470", &["::1"], "[::1]:7470"),
        ] {
            let names = names(&texts(given), listen).unwrap();
            let all: Vec<String> = names.iter().map(Host::to_string).collect();
            assert_eq!(all, texts(expected), "{listen}");
            assert_eq!(authority(&names, address), url);
        }
        for (given, word) in [
            ("gate:7470", "without a port"),
            ("https://gate", "no name of a host"),
            ("*.gate.example", "several names"),
        ] {
            let refused = names(&texts(&[given]), "127.0.0.1:7470").unwrap_err();
            assert!(refused.message.contains(word), "{}", refused.message);
        }
    }

    #[test]
    fn a_console_on_every_address_needs_a_name_for_its_url() {
        let args = args::Console {
            listen: Some("0.0.0.0:7470".into()),
            certificate: args::Certificate {
                tls: true,
                ..args::Certificate::default()
            },
            ..args::Console::default()
        };
        let refused = plan(&Settings::default(), &args).err().expect("no name");
        assert!(refused.message.contains("--name"), "{}", refused.message);
    }
}
