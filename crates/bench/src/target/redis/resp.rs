//! Redis' protocol, RESP 2: as much of it as four commands need. A library would bring thirty crates for addresses of
//! the internet that are never read here.

use bytes::{Buf, Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a server answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Reply {
    /// That it is done, in words.
    Done(String),
    /// A number.
    Number(i64),
    /// A value.
    Bytes(Bytes),
    /// That there is no value.
    Nothing,
}

/// A connection of one caller.
pub(super) struct Connection {
    stream: TcpStream,
    questions: Vec<u8>,
    answers: BytesMut,
}

impl Connection {
    pub(super) async fn open(address: &str) -> io::Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            questions: Vec::new(),
            answers: BytesMut::new(),
        })
    }

    /// Adds a command to what [`Connection::send`] sends.
    pub(super) fn ask(&mut self, words: &[&[u8]]) {
        let questions = &mut self.questions;
        questions.extend(format!("*{}\r\n", words.len()).bytes());
        for word in words {
            questions.extend(format!("${}\r\n", word.len()).bytes());
            questions.extend_from_slice(word);
            questions.extend(b"\r\n");
        }
    }

    pub(super) async fn send(&mut self) -> io::Result<()> {
        let sent = self.stream.write_all(&self.questions).await;
        self.questions.clear();
        sent
    }

    /// The next answer.
    ///
    /// # Errors
    /// What the server says is wrong, or that the connection ended.
    pub(super) async fn reply(&mut self) -> Result<Reply, String> {
        loop {
            if let Some(reply) = parse(&mut self.answers)? {
                return reply;
            }
            let read = self.stream.read_buf(&mut self.answers).await;
            match read {
                Ok(0) => return Err("the connection ended".into()),
                Ok(_) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// What the server tells of itself.
    pub(super) async fn information(&mut self) -> Result<String, String> {
        self.ask(&[b"INFO"]);
        self.send().await.map_err(|error| error.to_string())?;
        match self.reply().await? {
            Reply::Bytes(told) => Ok(String::from_utf8_lossy(&told).into_owned()),
            other => Err(format!("{other:?}")),
        }
    }
}

/// Takes the first answer off `bytes`; `None` if it is not there whole. What the server calls an error is one inside.
fn parse(bytes: &mut BytesMut) -> Result<Option<Result<Reply, String>>, String> {
    let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else {
        return Ok(None);
    };
    let line = std::str::from_utf8(&bytes[..end]).map_err(|error| error.to_string())?;
    let (kind, rest) = line.split_at_checked(1).ok_or("an empty answer")?;
    let number = || {
        let parsed = rest.parse::<i64>();
        parsed.map_err(|_| format!("'{line}' is no answer of Redis"))
    };
    let reply = match kind {
        "+" => Ok(Reply::Done(rest.to_owned())),
        "-" => Err(rest.to_owned()),
        ":" => Ok(Reply::Number(number()?)),
        "$" => match usize::try_from(number()?) {
            Err(_) => Ok(Reply::Nothing),
            Ok(length) => {
                let from = end + 2;
                if bytes.len() < from + length + 2 {
                    bytes.reserve(from + length + 2 - bytes.len());
                    return Ok(None);
                }
                bytes.advance(from);
                let value = bytes.split_to(length).freeze();
                bytes.advance(2);
                return Ok(Some(Ok(Reply::Bytes(value))));
            }
        },
        _ => return Err(format!("'{line}' is no answer of Redis")),
    };
    bytes.advance(end + 2);
    Ok(Some(reply))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_when_they_are_whole() {
        let whole = b"+OK\r\n:2\r\n$3\r\nabc\r\n$-1\r\n-ERR no\r\n$0\r\n\r\n";
        let expected = [
            Ok(Reply::Done("OK".into())),
            Ok(Reply::Number(2)),
            Ok(Reply::Bytes(Bytes::from_static(b"abc"))),
            Ok(Reply::Nothing),
            Err("ERR no".to_owned()),
            Ok(Reply::Bytes(Bytes::new())),
        ];
        // However they arrive.
        for step in 1..whole.len() {
            let (mut bytes, mut found) = (BytesMut::new(), Vec::new());
            for piece in whole.chunks(step) {
                bytes.extend_from_slice(piece);
                while let Some(reply) = parse(&mut bytes).unwrap() {
                    found.push(reply);
                }
            }
            assert_eq!(found, expected, "in steps of {step}");
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for wrong in ["?\r\n", "\r\n", ":x\r\n", "$x\r\n"] {
            let parsed = parse(&mut BytesMut::from(wrong.as_bytes()));
            assert!(parsed.is_err(), "{wrong:?}");
        }
        let text = parse(&mut BytesMut::from(&b"\xff\xff\r\n"[..]));
        assert!(text.is_err());
    }
}
