//! The stores of `--targets`, and how each is started or found.

use crate::args::{BucketPlace, Compare, Word};
use crate::{cql, etcd, redis, s3};
use areo::args::DurabilityWord;
use areo::exit::{Failure, Outcome};
use areo_bench::peers::Operation;
use areo_bench::target::{Areo, Target, TargetError, TargetName, TargetOptions};
use areo_client::Shape;
use areo_lab::shared::{dap, data_directory, servers};
use std::time::Duration;

/// The stores, each once.
pub(crate) struct Stores {
    pub(crate) names: Vec<TargetName>,
    wanted: TargetOptions,
    /// The bucket of each store behind S3 that runs already.
    buckets: Vec<(TargetName, BucketPlace)>,
    /// Nodes of clusters that run already.
    cassandra: Vec<String>,
    cassandra_serial: Vec<String>,
}

impl Stores {
    /// Those that the command line names; an operation on them may take so long.
    pub(crate) fn new(args: &Compare, timeout: Duration) -> Outcome<Stores> {
        let count = usize::from(args.servers);
        let dap = dap(args.dap, args.k, count)?;
        Shape::new(dap, count).map_err(|error| Failure::usage(error.to_string()))?;
        let mut stores = Stores {
            names: Vec::new(),
            wanted: TargetOptions {
                program: servers(args.areo.as_deref())?,
                servers: count,
                memory: args.durability == DurabilityWord::Memory,
                dap,
                data: data_directory(args.data.clone())?,
                timeout,
            },
            buckets: Vec::new(),
            cassandra: Vec::new(),
            cassandra_serial: Vec::new(),
        };
        stores.add(&args.targets)?;
        let possible = |operation: &Operation| {
            let mut names = stores.names.iter();
            names.any(|name| operation.is_possible_at(*name))
        };
        if let Some(operation) = args.operations.iter().find(|it| !possible(it)) {
            return Err(Failure::usage(format!(
                "--operations: {} is of none of the stores in --targets: {} are asked for it",
                operation.word(),
                asked_for(*operation)
            )));
        }
        match stores.names.iter().find(|name| runs_already(**name)) {
            Some(name) if args.kill.is_some() => Err(Failure::usage(format!(
                "--kill: the servers of {name} are not ours to kill: leave it out of --targets"
            ))),
            _ => Ok(stores),
        }
    }

    fn add(&mut self, words: &[Word]) -> Outcome {
        let mut cluster = None;
        for word in words {
            let (name, node) = match word {
                Word::Started(name) => (*name, None),
                Word::S3(name, place) => {
                    self.buckets.push((*name, place.clone()));
                    (*name, None)
                }
                Word::Cql(name, node) => (*name, Some(node.clone())),
                Word::Node(node) => match cluster {
                    Some(name) => (name, Some(node.clone())),
                    None => {
                        return Err(Failure::usage(format!(
                            "--targets: '{node}' is an address, and no cassandra=HOST:PORT stands before it"
                        )));
                    }
                },
            };
            cluster = node.is_some().then_some(name);
            match name {
                TargetName::CassandraSerial => self.cassandra_serial.extend(node),
                _ => self.cassandra.extend(node),
            }
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
        Ok(())
    }

    /// Starts one, or connects to it, and waits until it serves.
    pub(crate) async fn start(&self, name: TargetName) -> Result<Box<dyn Target>, TargetError> {
        let wanted = &self.wanted;
        Ok(match name {
            TargetName::Areo => Box::new(Areo::start(wanted).await?),
            TargetName::AreoKeys => Box::new(Areo::start_with_keys(wanted).await?),
            TargetName::AreoConditional => Box::new(Areo::start_conditional(wanted).await?),
            TargetName::AreoS3 => Box::new(s3::start(wanted).await?),
            TargetName::Etcd => Box::new(etcd::start(wanted).await?),
            TargetName::Redis => Box::new(redis::start(wanted, false).await?),
            TargetName::RedisWait => Box::new(redis::start(wanted, true).await?),
            TargetName::S3 | TargetName::Minio => {
                let mut buckets = self.buckets.iter();
                let place = buckets.find(|(of, _)| *of == name);
                let (_, place) = place.expect("its word says where it is");
                Box::new(s3::open(name, place, wanted.timeout).await?)
            }
            TargetName::Cassandra => {
                Box::new(cql::open(&cql::QUORUM, &self.cassandra, wanted).await?)
            }
            TargetName::CassandraSerial => {
                Box::new(cql::open(&cql::SERIAL, &self.cassandra_serial, wanted).await?)
            }
        })
    }
}

/// True if its servers run already, and are not started here.
fn runs_already(name: TargetName) -> bool {
    use TargetName::{Cassandra, CassandraSerial};
    name.is_bucket() || matches!(name, Cassandra | CassandraSerial)
}

/// The words of the stores that are asked for this operation.
fn asked_for(operation: Operation) -> String {
    let able = TargetName::ALL.iter();
    let able = able.filter(|name| operation.is_possible_at(**name));
    let words: Vec<&str> = able.map(|name| name.word()).collect();
    words.join(", ")
}
