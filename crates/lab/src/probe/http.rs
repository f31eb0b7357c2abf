//! Signed requests over connections that are kept.

use super::credentials::Credentials;
use super::endpoint::Endpoint;
use areo_s3::auth::{Timestamp, payload_hash, sign};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// Longer answers are refused.
const ANSWER_BYTES: usize = 16 << 20;
const CONTENT_HASH: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const SESSION_TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// A request before it is signed.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    /// The path and the query, encoded.
    pub(super) target: String,
    pub(super) headers: Vec<(HeaderName, String)>,
    pub(super) body: Bytes,
}

/// The answer of an endpoint.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// The end of a request without an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Lost {
    /// No connection: the endpoint has not seen the request.
    NotSent(String),
    /// The endpoint may have seen it.
    Unknown(String),
}

/// Connections to all endpoints.
pub(super) struct Caller {
    pub(super) endpoints: Vec<Endpoint>,
    credentials: Credentials,
    tls: Option<TlsConnector>,
    patience: Duration,
    idle: Vec<Mutex<Vec<SendRequest<Full<Bytes>>>>>,
}

impl Caller {
    pub(super) fn new(
        endpoints: Vec<Endpoint>,
        credentials: Credentials,
        tls: Option<TlsConnector>,
        patience: Duration,
    ) -> Caller {
        Caller {
            idle: endpoints.iter().map(|_| Mutex::default()).collect(),
            endpoints,
            credentials,
            tls,
            patience,
        }
    }

    /// Sends a request once. An idle connection that the endpoint has closed is not used.
    pub(super) async fn send(&self, endpoint: usize, call: &Call) -> Result<Answer, Lost> {
        let request = self.signed(endpoint, call);
        let mut sender = match timeout(self.patience, self.connection(endpoint)).await {
            Ok(connected) => connected.map_err(Lost::NotSent)?,
            Err(_) => return Err(Lost::NotSent("no connection in time".to_owned())),
        };
        let exchange = async {
            let response = sender.send_request(request).await?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, ANSWER_BYTES).collect().await;
            Ok::<_, hyper::Error>((parts, body))
        };
        let answered = match timeout(self.patience, exchange).await {
            Ok(answered) => answered.map_err(|error| Lost::Unknown(error.to_string()))?,
            Err(_) => return Err(Lost::Unknown("timed out".to_owned())),
        };
        let (parts, body) = answered;
        let body = body.map_err(|error| Lost::Unknown(error.to_string()))?;
        if sender.ready().await.is_ok() {
            self.idle(endpoint).push(sender);
        }
        Ok(Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.to_bytes(),
        })
    }

    fn signed(&self, endpoint: usize, call: &Call) -> http::Request<Full<Bytes>> {
        let mut request = http::Request::builder()
            .method(call.method.clone())
            .uri(&call.target)
            .header(header::HOST, &self.endpoints[endpoint].authority)
            .header(CONTENT_HASH, payload_hash(&call.body));
        if matches!(call.method, Method::PUT | Method::POST) {
            request = request.header(header::CONTENT_LENGTH, call.body.len());
        }
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        if let Some(token) = &self.credentials.session_token {
            request = request.header(SESSION_TOKEN, token);
        }
        let request = request
            .body(())
            .expect("our own names and values are sound");
        let (mut parts, ()) = request.into_parts();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs());
        let now = Timestamp::of_unix_seconds(now).expect("before the year 9999");
        let key = self.credentials.signing_key(now.day());
        let signer = (self.credentials.key_id.as_str(), &key);
        sign(&mut parts, signer, &self.credentials.region, now)
            .expect("our own targets are encoded, and the key id was checked");
        http::Request::from_parts(parts, Full::new(call.body.clone()))
    }

    fn idle(&self, endpoint: usize) -> std::sync::MutexGuard<'_, Vec<SendRequest<Full<Bytes>>>> {
        let idle = self.idle[endpoint].lock();
        idle.expect("no holder of the lock panics")
    }

    async fn connection(&self, endpoint: usize) -> Result<SendRequest<Full<Bytes>>, String> {
        loop {
            let Some(mut sender) = self.idle(endpoint).pop() else {
                break;
            };
            if sender.ready().await.is_ok() {
                return Ok(sender);
            }
        }
        let Endpoint {
            is_https,
            host,
            port,
            ..
        } = &self.endpoints[endpoint];
        let plain = |error: io::Error| areo::exit::plain(&error);
        let stream = TcpStream::connect((host.as_str(), *port)).await;
        let stream = stream.map_err(plain)?;
        stream.set_nodelay(true).map_err(plain)?;
        if !is_https {
            return open(stream).await;
        }
        let tls = self.tls.as_ref().expect("there is an endpoint with https");
        let name = ServerName::try_from(host.clone());
        let name = name.map_err(|_| format!("'{host}' is no name for a certificate"))?;
        let stream = tls.connect(name, stream).await.map_err(plain)?;
        open(stream).await
    }
}

async fn open<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let opened = handshake(TokioIo::new(stream)).await;
    let (sender, connection) = opened.map_err(|error| error.to_string())?;
    // It ends when the sender is dropped.
    tokio::spawn(connection);
    Ok(sender)
}

/// Verifies certificates by the CAs of a file in PEM, or by those of the system.
///
/// # Errors
/// A sentence: the file cannot be read or has no certificate.
pub(super) fn tls(ca: Option<&std::path::Path>) -> Result<TlsConnector, String> {
    use tokio_rustls::rustls::pki_types::CertificateDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};
    const USUAL: [&str; 3] = [
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/cert.pem",
    ];
    let usual = || {
        let named = std::env::var_os("SSL_CERT_FILE").map(std::path::PathBuf::from);
        let mut usual = USUAL.iter().map(std::path::PathBuf::from);
        named.or_else(|| usual.find(|path| path.is_file()))
    };
    let Some(path) = ca.map(Into::into).or_else(usual) else {
        return Err("this system has no file of CAs: pass --ca FILE".to_owned());
    };
    let shown = path.display();
    let text = std::fs::read(&path);
    let text = text.map_err(|error| format!("cannot read the CAs in {shown}: {error}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate =
            certificate.map_err(|_| format!("{shown} is no file of certificates in PEM"))?;
        // A bundle of the system may have certificates that no verifier takes.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() {
        return Err(format!("{shown} has no certificate of a CA"));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config
        .with_safe_default_protocol_versions()
        .expect("the provider has suites for TLS 1.3");
    let config = config.with_root_certificates(roots).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
