//! S3 endpoints through `object_store`: a bucket of one that runs already, and this store behind its gateway.

use crate::args::BucketPlace;
use areo_bench::load::counter;
use areo_bench::system;
use areo_bench::target::{
    About, Answer, AreoGateway, CallError, Caller, Cost, Target, TargetError, TargetName,
    TargetOptions, start_failed,
};
use bytes::Bytes;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    ClientOptions, Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, RetryConfig,
    UpdateVersion,
};
use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::rc::Rc;
use std::time::Duration;

const CONNECTIONS: &str = "object_store: a pool shared by all clients, HTTP, requests signed";

/// A bucket as the target of a measurement.
pub(crate) struct Bucket {
    about: About,
    store: Rc<AmazonS3>,
    /// `None`: the endpoint runs already, and its servers are not ours.
    gateway: Option<AreoGateway>,
    /// The processes of an endpoint that runs already, if they are on this machine.
    processes: Vec<u32>,
}

/// Asks the bucket of this endpoint, so that one which does not answer or refuses is found before anything is measured.
pub(crate) async fn open(
    target: TargetName,
    place: &BucketPlace,
    timeout: Duration,
) -> Result<Bucket, TargetError> {
    let start_failed = start_failed(target);
    let endpoint = &place.endpoint;
    if std::env::var_os("AWS_ACCESS_KEY_ID").is_none() {
        let why = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to its credentials";
        return Err(start_failed(&why));
    }
    let builder = AmazonS3Builder::from_env()
        .with_endpoint(endpoint)
        .with_bucket_name(&place.bucket);
    let store = connect(builder, timeout).await;
    let processes = processes_of(endpoint);
    let what = match processes.is_empty() {
        true => "CPU time, memory and disk of its servers are not known",
        false => {
            "CPU time and memory are those of all processes of the program that listens there; disk is not known"
        }
    };
    let about = About {
        target,
        version: "not told".into(),
        servers: processes.len(),
        keeps: format!("what {endpoint} does; {what}"),
        durability: "what the endpoint means by it".into(),
        connections: CONNECTIONS.into(),
    };
    let store = store.map_err(|why| start_failed(&why))?;
    Ok(Bucket {
        about,
        store,
        gateway: None,
        processes,
    })
}

/// The processes of the program that listens at this endpoint, if that is an address of this machine.
fn processes_of(endpoint: &str) -> Vec<u32> {
    let address = endpoint
        .split_once("://")
        .map(|(_, address)| address.parse::<SocketAddrV4>());
    match address {
        Some(Ok(address)) => system::listener(address).map_or(Vec::new(), system::alike),
        _ => Vec::new(),
    }
}

/// A store whose bucket answers.
async fn connect(builder: AmazonS3Builder, timeout: Duration) -> Result<Rc<AmazonS3>, String> {
    let client = ClientOptions::new()
        .with_timeout(timeout)
        .with_connect_timeout(timeout)
        .with_allow_http(true);
    // An operation that failed is one: it is not tried again behind the back of what is measured.
    let retry = RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    };
    let store = builder
        .with_client_options(client)
        .with_retry(retry)
        .build();
    let store = Rc::new(store.map_err(|error| error.to_string())?);
    read(&store, "areo/ready").await?;
    Ok(store)
}

/// Starts a cluster with a gateway.
pub(crate) async fn start(wanted: &TargetOptions) -> Result<Bucket, TargetError> {
    let gateway = AreoGateway::start(wanted).await?;
    let builder = AmazonS3Builder::new()
        .with_endpoint(&gateway.endpoint)
        .with_bucket_name(gateway.bucket)
        .with_region("us-east-1")
        .with_access_key_id(&gateway.key)
        .with_secret_access_key(&gateway.secret);
    let store = connect(builder, wanted.timeout).await;
    let about = About {
        connections: CONNECTIONS.into(),
        ..gateway.areo.about().clone()
    };
    let store = store.map_err(|why| start_failed(TargetName::AreoS3)(&why))?;
    Ok(Bucket {
        about,
        store,
        gateway: Some(gateway),
        processes: Vec::new(),
    })
}

/// An object with its ETag, if there is one.
async fn read(store: &AmazonS3, key: &str) -> Result<Option<(Option<String>, Bytes)>, String> {
    match store.get(&Path::from(key)).await {
        Ok(found) => {
            let etag = found.meta.e_tag.clone();
            let value = found.bytes().await;
            let value = value.map_err(|error| error.to_string())?;
            Ok(Some((etag, value)))
        }
        Err(Error::NotFound { source, .. }) if !source.to_string().contains("NoSuchBucket") => {
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}

impl Target for Bucket {
    fn about(&self) -> &About {
        &self.about
    }

    fn caller(&self) -> Answer<'_, Box<dyn Caller>, TargetError> {
        let caller = S3Caller::of(&self.store);
        Box::pin(async move { Ok(caller) })
    }

    fn processes(&self) -> Vec<u32> {
        let gateway = self.gateway.as_ref();
        gateway.map_or(self.processes.clone(), AreoGateway::processes)
    }

    fn stored(&self) -> u64 {
        let gateway = self.gateway.as_ref();
        gateway.map_or(0, |gateway| gateway.areo.stored())
    }

    fn kill(&mut self) -> Answer<'_, String, TargetError> {
        let target = self.about.target;
        if let Some(gateway) = &mut self.gateway {
            return gateway.areo.kill();
        }
        Box::pin(async move {
            Err(TargetError::Kill {
                target,
                why: "its servers are not ours".into(),
            })
        })
    }
}

struct S3Caller {
    store: Rc<AmazonS3>,
    /// The ETags that it wrote or read last of objects that it writes on a condition; `None`: there is no object.
    etags: HashMap<String, Option<String>>,
}

impl S3Caller {
    fn of(store: &Rc<AmazonS3>) -> Box<dyn Caller> {
        Box::new(S3Caller {
            store: store.clone(),
            etags: HashMap::new(),
        })
    }

    /// Writes a value if the object has this ETag, or if there is none. The new ETag; `None`: another one was there.
    async fn put_on(
        &self,
        key: &str,
        value: Bytes,
        etag: Option<String>,
    ) -> Result<Option<Option<String>>, CallError> {
        let mode = match etag {
            None => PutMode::Create,
            e_tag => PutMode::Update(UpdateVersion {
                e_tag,
                version: None,
            }),
        };
        let options = PutOptions::from(mode);
        let path = Path::from(key);
        let put = self.store.put_opts(&path, value.into(), options);
        match put.await {
            Ok(put) => Ok(Some(put.e_tag)),
            Err(Error::Precondition { .. } | Error::AlreadyExists { .. }) => Ok(None),
            Err(error) => Err(CallError::Unknown(error.to_string())),
        }
    }

    async fn found(&self, key: &str) -> Result<(Option<String>, Option<Bytes>), CallError> {
        let found = read(&self.store, key).await;
        let found = found.map_err(CallError::NotApplied)?;
        Ok(match found {
            Some((etag, value)) => (etag, Some(value)),
            None => (None, None),
        })
    }
}

impl Caller for S3Caller {
    fn put<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            let put = self.store.put(&Path::from(key), value.into()).await;
            put.map_err(|error| error.to_string())?;
            Ok(Cost::default())
        })
    }

    fn get<'a>(&'a mut self, key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), CallError> {
        Box::pin(async move {
            let found = read(&self.store, key).await?;
            Ok((found.map(|(_, value)| value), Cost::default()))
        })
    }

    fn put_if<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            let known = match self.etags.remove(key) {
                Some(known) => known,
                None => self.found(key).await?.0,
            };
            let Some(etag) = self.put_on(key, value, known).await? else {
                let sentence = format!("'{key}' was written by another client");
                return Err(CallError::NotApplied(sentence));
            };
            self.etags.insert(key.to_owned(), etag);
            Ok(Cost::default())
        })
    }

    fn list<'a>(&'a mut self, folder: Option<&'a str>) -> Answer<'a, (u64, Cost), CallError> {
        Box::pin(async move {
            let folder = folder.map(Path::from);
            let found = self.store.list_with_delimiter(folder.as_ref()).await;
            let found = found.map_err(|error| error.to_string())?;
            let entries = found.objects.len() + found.common_prefixes.len();
            Ok((entries as u64, Cost::default()))
        })
    }

    fn increment<'a>(&'a mut self, key: &'a str) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            loop {
                let (etag, value) = self.found(key).await?;
                let next = counter::value(counter::count(value.as_deref()) + 1);
                if self.put_on(key, next, etag).await?.is_some() {
                    return Ok(Cost::default());
                }
            }
        })
    }
}
