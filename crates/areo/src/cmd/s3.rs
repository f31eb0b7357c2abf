//! `areo s3`: a gateway for clients of S3, in the foreground.

mod admin;

use super::server::{certificate, make_files_private, stop_with_supervisor};
use crate::args::{self, DapWord, LogWord};
use crate::config::{self, Settings};
use crate::exit::{Code, Failure, Outcome, plain};
use crate::log;
use crate::metrics;
use crate::output::say;
use crate::session::Session;
use admin::Admin;
use areo_s3::gateway::{Gateway, GatewayOptions, ServeOptions, serve};
use areo_s3::wire::Addressing;
use areo_server::StopSignals;
use areo_telemetry::Recorder;
use std::fs;
use std::future::ready;
use std::path::Path;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ServerConfig};

/// The usual address.
pub(super) const DEFAULT_LISTEN: &str = "127.0.0.1:7480";

pub(super) fn run(session: &Session, args: &args::S3, recorder: &Recorder) -> Outcome {
    let settings = &session.settings;
    let listen = settings.get(args.listen.clone(), "s3.listen", config::text)?;
    let listen = listen.unwrap_or_else(|| DEFAULT_LISTEN.into());
    let options = options(settings, args)?;
    let files = (args.cert.clone(), args.cert_key.clone());
    let files = certificate(settings, files, ("s3.cert", "s3.cert-key"))?;
    let tls = files.map(|files| acceptor(&files.certificate, &files.key));
    let tls = tls.transpose()?;
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
    let mut limits = ServeOptions::default();
    let connections = settings.get(args.connections, "s3.connections", config::number)?;
    if let Some(connections) = connections {
        limits.connections = connections.max(1);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::other(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        let mut stop = StopSignals::new()
            .map_err(|error| Failure::other(format!("cannot start: {}", plain(&error))))?;
        let client = tokio::select! {
            client = session.connect() => client?,
            () = stop.next() => return Ok(()),
        };
        let listener = TcpListener::bind(&listen).await.map_err(|error| {
            Failure::other(format!("cannot listen on {listen}: {}", plain(&error)))
        })?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let address = listener.local_addr().map_or(listen, |it| it.to_string());
        say(&format!(
            "S3 at {scheme}://{address}, region {}",
            options.region
        ));
        let gateway = Arc::new(Gateway::new(client, options));
        admin.serves(&gateway);
        let (stopping, stopped) = watch::channel(false);
        let serving = async {
            match tls {
                None => {
                    let plain = |stream: TcpStream| ready(Ok(stream));
                    serve(gateway, listener, limits, (plain, stopped)).await;
                }
                Some(acceptor) => {
                    let encrypted = move |stream| acceptor.accept(stream);
                    serve(gateway, listener, limits, (encrypted, stopped)).await;
                }
            }
        };
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
        }
        Ok(())
    })
}

fn options(settings: &Settings, args: &args::S3) -> Outcome<GatewayOptions> {
    let usual = GatewayOptions::default();
    let region = settings.get(args.region.clone(), "s3.region", config::text)?;
    let kind = settings.get(args.default_dap, "s3.default-dap", config::word::<DapWord>)?;
    let k = settings.get(args.default_k, "s3.default-k", config::number)?;
    let names = (!args.domain_name.is_empty()).then(|| args.domain_name.join(","));
    let names = settings.get(names, "s3.domain-name", config::text)?;
    let names = names.unwrap_or_default();
    let names = names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    Ok(GatewayOptions {
        region: region.unwrap_or(usual.region),
        addressing: Addressing {
            domains: names.map(str::to_owned).collect(),
        },
        kind: kind.map_or(usual.kind, Into::into),
        k,
    })
}

/// TLS 1.3 with a certificate in files.
///
/// # Errors
/// A file cannot be read, or is not what it is to be.
fn acceptor(certificate: &Path, key: &Path) -> Outcome<TlsAcceptor> {
    let read = |path: &Path| fs::read(path).map_err(|error| Failure::file("read", path, &error));
    let refused =
        |path: &Path, what: &str| Failure::new(Code::Usage, format!("{} {what}", path.display()));
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(certificate)?).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| refused(certificate, "has no certificate in PEM"))?;
    let private = PrivateKeyDer::from_pem_slice(&read(key)?)
        .map_err(|_| refused(key, "has no private key in PEM"))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(chain, private);
    let mut config = config.map_err(|error: rustls::Error| {
        refused(key, &format!("and {}: {error}", certificate.display()))
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
