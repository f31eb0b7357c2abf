//! A gateway with a certificate of the cluster's CA.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, areo};
use crate::s3_client::Gateway;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The certificates of the CAs of a cluster, as `areo ca export` prints them.
fn authorities(cluster: &Cluster) -> RootCertStore {
    let printed = cluster.run(&["ca", "export"]).done();
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(printed.text().as_bytes()) {
        roots.add(root.unwrap()).unwrap();
    }
    assert!(!roots.is_empty(), "a cluster has a CA");
    roots
}

/// The response to a question about the health of a gateway that has this name, or the reason why it is not believed.
fn ready(gateway: &Gateway, roots: &RootCertStore, name: &str) -> Result<String, String> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(session, TcpStream::connect(&gateway.address).unwrap());
    let request = b"GET /-/health/ready HTTP/1.1\r\nhost: gate\r\nconnection: close\r\n\r\n";
    let mut response = Vec::new();
    let sent = stream.write_all(request);
    let read = sent.and_then(|()| stream.read_to_end(&mut response));
    read.map_err(|error| error.to_string())?;
    Ok(String::from_utf8(response).unwrap())
}

#[test]
fn a_gateway_shows_a_certificate_of_the_cluster_for_its_names() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let options = [
        "--tls",
        "--tls-name",
        "gate.example",
        "--domain-name",
        "s3.example",
    ];
    let gateway = Gateway::start_with(&cluster, &options);
    let roots = authorities(&cluster);
    for name in [
        "gate.example",
        "photos.s3.example",
        "localhost",
        "127.0.0.1",
    ] {
        let response = ready(&gateway, &roots, name).expect(name);
        assert!(response.starts_with("HTTP/1.1 200"), "{name}: {response}");
    }
    let other = ready(&gateway, &roots, "other.example").unwrap_err();
    assert!(other.contains("not valid for name"), "{other}");
    let stranger = Cluster::start(&["--durability", "memory"]);
    let other = ready(&gateway, &authorities(&stranger), "gate.example").unwrap_err();
    assert!(
        other.contains("UnknownIssuer") || other.contains("BadSignature"),
        "{other}"
    );
}

#[test]
fn a_key_that_is_none_of_a_gateway_gets_no_certificate() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let file = cluster.folder().join("user.toml");
    let file = file.to_str().unwrap();
    let grants = "status,reconfig,keys,join,trace";
    let create = ["key", "create", "user", "--grant", grants, "--file", file];
    cluster.run(&create).done();
    let start = ["--cluster", file, "s3", "--listen", "127.0.0.1:0", "--tls"];
    areo(&start, b"").refused(6, &["'gateway'"]);
    let listen = ["s3", "--listen", "0.0.0.0:0", "--tls"];
    cluster.run(&listen).refused(2, &["--tls-name"]);
    let names = ["s3", "--listen", "127.0.0.1:0", "--tls-name", "a"];
    cluster.run(&names).refused(2, &["--tls"]);
}
