//! An S3 endpoint that runs already, through `object_store`: one bucket of it.

use areo_bench::target::{
    About, Answer, CallError, Caller, Cost, Target, TargetError, TargetName, start_failed,
};
use bytes::Bytes;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{ClientOptions, Error, ObjectStoreExt, RetryConfig};
use std::rc::Rc;
use std::time::Duration;

/// A bucket that is there.
pub(crate) struct Bucket {
    about: About,
    store: Rc<AmazonS3>,
}

/// Asks the bucket of this endpoint, so that one which does not answer or refuses is found before anything is measured.
pub(crate) async fn open(
    (endpoint, bucket): &(String, String),
    timeout: Duration,
) -> Result<Bucket, TargetError> {
    let start_failed = start_failed(TargetName::S3);
    if std::env::var_os("AWS_ACCESS_KEY_ID").is_none() {
        let why = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to its credentials";
        return Err(start_failed(&why));
    }
    let client = ClientOptions::new()
        .with_timeout(timeout)
        .with_connect_timeout(timeout)
        .with_allow_http(true);
    // An operation that failed is one: it is not tried again behind the back of what is measured.
    let retry = RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    };
    let store = AmazonS3Builder::from_env()
        .with_endpoint(endpoint)
        .with_bucket_name(bucket)
        .with_client_options(client)
        .with_retry(retry)
        .build();
    let store = Rc::new(store.map_err(|error| start_failed(&error))?);
    read(&store, "areo/ready")
        .await
        .map_err(|why| start_failed(&why))?;
    let about = About {
        target: TargetName::S3,
        version: "not told".into(),
        servers: 0,
        keeps: format!(
            "what {endpoint} does; CPU time, memory and disk of its servers are not known"
        ),
        durability: "what the endpoint means by it".into(),
        connections: "object_store: a pool shared by all clients, HTTP, requests signed".into(),
    };
    Ok(Bucket { about, store })
}

async fn read(store: &AmazonS3, key: &str) -> Result<Option<Bytes>, String> {
    match store.get(&Path::from(key)).await {
        Ok(found) => {
            let value = found.bytes().await;
            value.map(Some).map_err(|error| error.to_string())
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
        let caller: Box<dyn Caller> = Box::new(S3Caller(self.store.clone()));
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

struct S3Caller(Rc<AmazonS3>);

impl Caller for S3Caller {
    fn put<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            let put = self.0.put(&Path::from(key), value.into()).await;
            put.map_err(|error| error.to_string())?;
            Ok(Cost::default())
        })
    }

    fn get<'a>(&'a mut self, key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), CallError> {
        Box::pin(async move { Ok((read(&self.0, key).await?, Cost::default())) })
    }
}
