//! An S3 endpoint that runs already, as a target: one bucket of it, over plain HTTP, requests signed by AWS' version 4.

mod sign;

use super::{
    About, Answer, Caller, Cost, Target, TargetError, TargetName, Wanted, in_time, start_failed,
};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use sign::{Signer, UNSIGNED};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpStream;

/// Bytes of an error that are shown.
const SHOWN: usize = 200;

/// Where a bucket is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    host: String,
    bucket: String,
}

impl Endpoint {
    /// From `http://HOST:PORT/BUCKET`.
    ///
    /// # Errors
    /// A sentence that says how it is written.
    pub fn parse(url: &str) -> Result<Endpoint, String> {
        let wrong = || {
            format!(
                "'{url}' is no address of a bucket: write http://HOST:PORT/BUCKET (https is not spoken here)"
            )
        };
        let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
        let (host, bucket) = rest
            .trim_end_matches('/')
            .split_once('/')
            .ok_or_else(wrong)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let is_host = |c: char| is_plain(c) || "[]:".contains(c);
        let right = !host.is_empty() && host.chars().all(is_host);
        match right && !bucket.is_empty() && bucket.chars().all(is_plain) {
            true => Ok(Endpoint {
                host: host.into(),
                bucket: bucket.into(),
            }),
            false => Err(wrong()),
        }
    }

    /// Where to connect to.
    fn address(&self) -> String {
        let port = self.host.rsplit_once(':').map(|(_, port)| port);
        match port.is_some_and(|port| port.parse::<u16>().is_ok()) {
            true => self.host.clone(),
            false => format!("{}:80", self.host),
        }
    }
}

/// A bucket that is there.
pub(super) struct S3 {
    about: About,
    endpoint: Endpoint,
    signer: Signer,
    timeout: Duration,
}

impl S3 {
    pub(super) async fn start(wanted: &Wanted) -> Result<S3, TargetError> {
        let start_failed = start_failed(TargetName::S3);
        let endpoint = wanted.s3.clone();
        let endpoint = endpoint.ok_or_else(|| start_failed(&"nobody says where it is"))?;
        let signer = Signer::from_environment().map_err(|error| start_failed(&error))?;
        S3::open(endpoint, signer, wanted.timeout).await
    }

    async fn open(
        endpoint: Endpoint,
        signer: Signer,
        timeout: Duration,
    ) -> Result<S3, TargetError> {
        let about = About {
            target: TargetName::S3,
            version: "not told".into(),
            servers: 0,
            keeps: format!(
                "whatever the endpoint {} does; CPU time, memory and disk of its servers are not known",
                endpoint.host
            ),
            durability: "whatever the endpoint means by it".into(),
            connections: "one for each client, HTTP/1.1; requests signed, contents not".into(),
        };
        let s3 = S3 {
            about,
            endpoint,
            signer,
            timeout,
        };
        // That it does not answer, or refuses us, is told now.
        let mut caller = s3.new_caller();
        let asked = caller.ask(Method::GET, "nothing", Bytes::new()).await;
        asked.map_err(|error| start_failed(TargetName::S3)(&error))?;
        Ok(s3)
    }

    fn new_caller(&self) -> S3Caller {
        S3Caller {
            endpoint: self.endpoint.clone(),
            signer: self.signer.clone(),
            timeout: self.timeout,
            connection: None,
        }
    }
}

impl Target for S3 {
    fn about(&self) -> &About {
        &self.about
    }

    fn caller(&self) -> Answer<'_, Box<dyn Caller>, TargetError> {
        let caller: Box<dyn Caller> = Box::new(self.new_caller());
        Box::pin(async move { Ok(caller) })
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn stored(&self) -> u64 {
        0
    }

    fn kill(&mut self) -> Answer<'_, String, TargetError> {
        Box::pin(async {
            Err(TargetError::Kill {
                target: TargetName::S3,
                why: "its servers are not ours".into(),
            })
        })
    }
}

struct S3Caller {
    endpoint: Endpoint,
    signer: Signer,
    timeout: Duration,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl S3Caller {
    /// The object; `None` if there is none.
    async fn ask(
        &mut self,
        method: Method,
        key: &str,
        body: Bytes,
    ) -> Result<Option<Bytes>, String> {
        let answered = in_time(self.timeout, self.ask_once(method, key, body)).await;
        if answered.is_err() {
            // Nobody knows what would come over it next.
            self.connection = None;
        }
        answered
    }

    async fn ask_once(
        &mut self,
        method: Method,
        key: &str,
        body: Bytes,
    ) -> Result<Option<Bytes>, String> {
        let mut connection = match self.connection.take() {
            Some(connection) if !connection.is_closed() => connection,
            _ => self.connect().await?,
        };
        let request = self.request(method, key, body)?;
        connection
            .ready()
            .await
            .map_err(|error| error.to_string())?;
        let answer = connection.send_request(request).await;
        let (head, body) = answer.map_err(|error| error.to_string())?.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?;
        self.connection = Some(connection);
        let body = body.to_bytes();
        match head.status {
            status if status.is_success() => Ok(Some(body)),
            StatusCode::NOT_FOUND if is_missing_key(&body) => Ok(None),
            status => {
                let said = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).into_owned();
                Err(format!("the endpoint says {status}: {said}"))
            }
        }
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let address = self.endpoint.address();
        let stream = TcpStream::connect(&address).await;
        let stream = stream.map_err(|error| format!("cannot connect to {address}: {error}"))?;
        stream
            .set_nodelay(true)
            .map_err(|error| error.to_string())?;
        let (sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        // How it ends is told to whoever asks next.
        tokio::spawn(async { drop(connection.await) });
        Ok(sender)
    }

    fn request(
        &self,
        method: Method,
        key: &str,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, String> {
        let Endpoint { host, bucket } = &self.endpoint;
        let path = format!("/{bucket}/{key}");
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = sign::time(since.map_or(0, |since| since.as_secs()));
        let mut headers = vec![
            ("host", host.as_str()),
            ("x-amz-content-sha256", UNSIGNED),
            ("x-amz-date", &at),
        ];
        headers.extend(
            self.signer
                .token()
                .map(|token| ("x-amz-security-token", token)),
        );
        let authorization = self
            .signer
            .authorization(method.as_str(), &path, &headers, UNSIGNED);
        headers.push(("authorization", &authorization));
        let mut request = Request::builder().method(method).uri(&path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body));
        request.map_err(|error| error.to_string())
    }
}

/// That there is no object, and not that there is no bucket.
fn is_missing_key(body: &[u8]) -> bool {
    !String::from_utf8_lossy(body).contains("NoSuchBucket")
}

impl Caller for S3Caller {
    fn put<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, String> {
        Box::pin(async move {
            match self.ask(Method::PUT, key, value).await? {
                Some(_) => Ok(Cost::default()),
                None => Err("the endpoint says that there is no such thing".into()),
            }
        })
    }

    fn get<'a>(&'a mut self, key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), String> {
        Box::pin(async move {
            let found = self.ask(Method::GET, key, Bytes::new()).await?;
            Ok((found, Cost::default()))
        })
    }
}

#[cfg(test)]
mod tests;
