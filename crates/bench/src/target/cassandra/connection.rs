//! A connection that many callers share: each request has a number of its own, and answers come in any order.

use super::frame::{self, Frame, Reply, Request};
use bytes::BytesMut;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;

/// Ends with the last of its clones.
#[derive(Clone)]
pub(super) struct Connection {
    shared: Rc<Shared>,
    /// Those that read and write.
    _tasks: Rc<JoinSet<()>>,
}

#[derive(Default)]
struct Shared {
    questions: RefCell<BytesMut>,
    /// There are some.
    asked: Notify,
    waiting: RefCell<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Who waits for the answer of this number. One that has given up stays: its answer may still come.
    askers: BTreeMap<i16, oneshot::Sender<Frame>>,
    last: i16,
    /// Why nothing can be asked any more.
    ended: Option<String>,
}

impl Connection {
    /// Connects, and waits until it may be asked; on a [`tokio::task::LocalSet`].
    pub(super) async fn open(address: &str) -> Result<Connection, String> {
        let stream = TcpStream::connect(address).await;
        let stream = stream.map_err(|error| format!("cannot connect to {address}: {error}"))?;
        let prepared = stream.set_nodelay(true);
        prepared.map_err(|error| error.to_string())?;
        let (from, to) = stream.into_split();
        let shared = Rc::new(Shared::default());
        let mut tasks = JoinSet::new();
        let (reader, writer) = (shared.clone(), shared.clone());
        tasks.spawn_local(async move {
            let why = reader.read(from).await;
            reader.end(why);
        });
        tasks.spawn_local(async move {
            if let Err(error) = writer.write(to).await {
                writer.end(error.to_string());
            }
        });
        let connection = Connection {
            shared,
            _tasks: Rc::new(tasks),
        };
        match connection.ask(&Request::Startup).await {
            Ok(Reply::Ready) => Ok(connection),
            Ok(Reply::Authenticate(class)) => Err(format!(
                "{address} demands to know who asks ({class}): only clusters that let everybody in (AllowAllAuthenticator) can \
                 be measured"
            )),
            Ok(other) => Err(format!("{address}: unexpected: {}", told(&other))),
            Err(why) => Err(format!(
                "{address}: {why}, when the first thing was asked that Cassandra's protocol has"
            )),
        }
    }

    /// The answer, whatever it is. Dropping the future leaves the connection usable.
    ///
    /// # Errors
    /// That the connection is of no use any more.
    pub(super) async fn ask(&self, request: &Request<'_>) -> Result<Reply, String> {
        let answer = self.shared.send(request)?;
        match answer.await {
            Ok(frame) => frame.reply(),
            Err(_) => Err(self.ended().unwrap_or_default()),
        }
    }

    /// Why it is of no use any more, if so.
    pub(super) fn ended(&self) -> Option<String> {
        self.shared.waiting.borrow().ended.clone()
    }
}

impl Shared {
    fn send(&self, request: &Request<'_>) -> Result<oneshot::Receiver<Frame>, String> {
        let mut waiting = self.waiting.borrow_mut();
        if let Some(why) = &waiting.ended {
            return Err(why.clone());
        }
        let stream = waiting.next().ok_or("too many requests wait for answers")?;
        let (asker, answer) = oneshot::channel();
        waiting.askers.insert(stream, asker);
        request.write(stream, &mut self.questions.borrow_mut());
        self.asked.notify_one();
        Ok(answer)
    }

    /// Writes what is asked. What was asked at the same time goes at once.
    async fn write(&self, mut to: OwnedWriteHalf) -> io::Result<()> {
        loop {
            self.asked.notified().await;
            let questions = self.questions.borrow_mut().split();
            to.write_all(&questions).await?;
        }
    }

    /// Hands answers to those who wait, until there are no more: why.
    async fn read(&self, mut from: OwnedReadHalf) -> String {
        let mut bytes = BytesMut::new();
        loop {
            match frame::take(&mut bytes) {
                Ok(Some(frame)) => {
                    let asker = self.waiting.borrow_mut().askers.remove(&frame.stream);
                    // One that has given up does not want it.
                    let _ = asker.map(|asker| asker.send(frame));
                    continue;
                }
                Ok(None) => {}
                Err(why) => return why,
            }
            match from.read_buf(&mut bytes).await {
                Ok(0) => return "the server ended the connection".into(),
                Ok(_) => {}
                Err(error) => return error.to_string(),
            }
        }
    }

    fn end(&self, why: String) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.ended.get_or_insert(why);
        waiting.askers.clear();
    }
}

impl Waiting {
    /// A number that nobody waits for.
    fn next(&mut self) -> Option<i16> {
        if self.askers.len() > i16::MAX as usize {
            return None;
        }
        loop {
            self.last = self.last.checked_add(1).unwrap_or(0);
            if !self.askers.contains_key(&self.last) {
                return Some(self.last);
            }
        }
    }
}

/// An answer that was not expected, as part of a sentence.
pub(super) fn told(reply: &Reply) -> String {
    match reply {
        Reply::Refused { code, message } => format!("Cassandra says {message} ({code:#06x})"),
        other => format!("an answer that was not asked for: {other:?}"),
    }
}
