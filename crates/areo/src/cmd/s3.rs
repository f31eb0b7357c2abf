//! `areo s3`: a gateway for clients of S3, in the foreground.

mod admin;

use super::server::{make_files_private, stop_with_supervisor};
use super::tls::{self, CertificateSettings, Encryption};
use crate::args::{self, DapWord, LogWord};
use crate::config::{self, Settings};
use crate::exit::{Failure, Outcome, plain};
use crate::log;
use crate::metrics;
use crate::output::say;
use crate::session::Session;
use admin::Admin;
use areo_client::units::parse_timeout;
use areo_s3::gateway::{
    Duplex, Gateway, GatewayOptions, Secure, ServeOptions, plain as plain_connections, serve,
};
use areo_s3::wire::Addressing;
use areo_server::StopSignals;
use areo_telemetry::Recorder;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// The address without the option `--listen`.
pub(super) const DEFAULT_LISTEN: &str = "127.0.0.1:7480";

const CERTIFICATE: CertificateSettings = CertificateSettings {
    cert: "s3.cert",
    cert_key: "s3.cert-key",
    tls: "s3.tls",
};

/// The choices of an operator.
struct Plan {
    listen: String,
    options: GatewayOptions,
    limits: ServeOptions,
    encryption: Encryption,
}

pub(super) fn run(session: &Session, args: &args::S3, recorder: &Recorder) -> Outcome {
    let plan = plan(&session.settings, args)?;
    let target = session.target()?;
    if session.access(&target)?.is_none() {
        return Err(Failure::usage(
            "a gateway needs an access key with the grant 'gateway', and this cluster has none: clusters have keys from their first start, as `areo up` makes them",
        ));
    }
    make_files_private();
    log::of_server(session.out, LogWord::Text, recorder);
    if args.supervised {
        stop_with_supervisor()?;
    }
    let admin = Admin::new(session.metrics.clone());
    if let Some(address) = session.global.metrics {
        metrics::serve_router(session.out, address, admin.router())?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::other(format!("cannot start: {error}")))?;
    runtime.block_on(until_stopped(session, plan, &admin))
}

fn plan(settings: &Settings, args: &args::S3) -> Outcome<Plan> {
    let listen = settings.get(args.listen.clone(), "s3.listen", config::text)?;
    let listen = listen.unwrap_or_else(|| DEFAULT_LISTEN.into());
    let options = options(settings, args)?;
    let encryption = encryption(settings, args, &listen)?;
    let mut limits = ServeOptions::default();
    let connections = settings.get(args.connections, "s3.connections", config::number)?;
    if let Some(connections) = connections {
        limits.connections = connections.max(1);
    }
    Ok(Plan {
        listen,
        options,
        limits,
        encryption,
    })
}

/// Connections with TLS, if there is a certificate to be shown.
fn secure(tls: Option<TlsAcceptor>) -> Secure {
    let Some(tls) = tls else {
        return plain_connections();
    };
    Arc::new(move |stream| {
        let accepting = tls.accept(stream);
        Box::pin(async { Ok(Box::new(accepting.await?) as Box<dyn Duplex>) })
    })
}

/// Serves until the signal to stop.
async fn until_stopped(session: &Session, plan: Plan, admin: &Admin) -> Outcome {
    let mut stop = StopSignals::new()
        .map_err(|error| Failure::other(format!("cannot start: {}", plain(&error))))?;
    let client = tokio::select! {
        client = session.connect() => client?,
        () = stop.next() => return Ok(()),
    };
    let (tls, renewing) = plan.encryption.begin(&client).await?;
    let (listen, limits) = (plan.listen, plan.limits);
    let listener = TcpListener::bind(&listen)
        .await
        .map_err(|error| Failure::other(format!("cannot listen on {listen}: {}", plain(&error))))?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let address = listener.local_addr().map_or(listen, |it| it.to_string());
    let region = &plan.options.region;
    say(&format!("S3 at {scheme}://{address}, region {region}"));
    let gateway = Arc::new(Gateway::new(client.clone(), plan.options));
    admin.serves(&gateway);
    let (stopping, stopped) = watch::channel(false);
    let serving = serve(gateway, listener, limits, secure(tls), stopped);
    let stop = async {
        stop.next().await;
        admin.stops();
        say("stopping: requests under way are finished");
        let _ = stopping.send(true);
        // A second signal does not wait.
        stop.next().await;
    };
    tokio::select! {
        () = serving => {}
        () = stop => {}
        () = tls::renew(renewing, &client) => {}
    }
    Ok(())
}

fn encryption(settings: &Settings, args: &args::S3, listen: &str) -> Outcome<Encryption> {
    let names = settings.list(&args.tls_name, "s3.tls-name")?;
    let domains = settings.list(&args.domain_name, "s3.domain-name")?;
    let hosts = || tls::hosts(&names, &domains, listen, "--tls-name");
    let encryption = Encryption::of(settings, &args.certificate, &CERTIFICATE, hosts)?;
    if !names.is_empty() && !matches!(encryption, Encryption::Cluster(_)) {
        return Err(Failure::usage(
            "--tls-name is for a certificate of the cluster's CA: pass --tls as well",
        ));
    }
    Ok(encryption)
}

fn options(settings: &Settings, args: &args::S3) -> Outcome<GatewayOptions> {
    let usual = GatewayOptions::default();
    let region = settings.get(args.region.clone(), "s3.region", config::text)?;
    let kind = settings.get(args.default_dap, "s3.default-dap", config::word::<DapWord>)?;
    let k = settings.get(args.default_k, "s3.default-k", config::number)?;
    let every = settings.get(args.lifecycle_every, "s3.lifecycle-every", parse_timeout)?;
    let domains = settings.list(&args.domain_name, "s3.domain-name")?;
    Ok(GatewayOptions {
        region: region.unwrap_or(usual.region),
        addressing: Addressing { domains },
        lifecycle_every: every.unwrap_or(usual.lifecycle_every),
        kind: kind.map_or(usual.kind, Into::into),
        k,
        part_bytes: usual.part_bytes,
    })
}
