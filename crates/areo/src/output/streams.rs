//! The standard streams of this process, and all that is written to them. `cargo xtask tidy` (`printing`) keeps every other file
//! of the programs from them: a macro of the standard library panics when a stream is closed, which turned the death of one
//! server into that of all.
//!
//! Bytes go straight to the descriptor. The standard library keeps what follows the last line break until the process ends,
//! where errors are lost. Its runtime opens `/dev/null` in place of a descriptor that is closed when the process starts, which has
//! room for everything: the program `areo` looks before the runtime does ([`note_closed_streams`]).

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_getfd};
use std::io::{self, ErrorKind, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// The time for which a process that others depend on waits for a reader: once, and then not at all until the reader reads
/// again.
const PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
const NONE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};
/// Bytes that a pipe with room takes without blocking.
const PIPE_BYTES: usize = 4096;

/// This process does not wait for readers of its streams.
static HURRIED: AtomicBool = AtomicBool::new(false);
/// The last write found no room.
static STALLED: AtomicBool = AtomicBool::new(false);
/// Lines in a row for which standard error had no room.
static LOST: AtomicU64 = AtomicU64::new(0);

/// A bit for each standard stream that was closed when the process started.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Notes which standard streams are closed. To be called before the runtime of the language begins, which opens them: it uses
/// numbers of descriptors and system calls alone, and nothing that the runtime prepares.
pub extern "C" fn note_closed_streams() {
    let is_closed = |stream: BorrowedFd<'_>| fcntl_getfd(stream) == Err(Errno::BADF);
    let closed = [
        is_closed(rustix::stdio::stdin()),
        is_closed(rustix::stdio::stdout()),
        is_closed(rustix::stdio::stderr()),
    ];
    let bits = (0..).zip(closed).map(|(bit, it)| u8::from(it) << bit).sum();
    CLOSED.store(bits, Ordering::Relaxed);
}

/// True if this descriptor is a standard stream that was closed when the process started.
pub(crate) fn is_closed(descriptor: i32) -> bool {
    let closed = CLOSED.load(Ordering::Relaxed);
    (0..3).contains(&descriptor) && closed & (1 << descriptor) != 0
}

/// Drops lines from now on where a reader does not take them: it may be stopped, and this process keeps others alive.
pub(crate) fn never_wait_for_readers() {
    HURRIED.store(true, Ordering::Relaxed);
}

/// Lines that were dropped since the last one that standard error took.
pub(crate) fn lost_lines() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Writes all of it to standard output.
///
/// # Errors
/// Standard output does not take all of it.
pub(crate) fn write(bytes: &[u8]) -> io::Result<()> {
    if is_closed(1) {
        return Err(Errno::BADF.into());
    }
    write_to(io::stdout().lock().as_fd(), bytes)
}

/// Writes all of it to standard error, or drops it: there is no other place to complain at.
pub(crate) fn complain(bytes: &[u8]) {
    match write_to(io::stderr().lock().as_fd(), bytes) {
        Ok(()) => LOST.store(0, Ordering::Relaxed),
        Err(_) => drop(LOST.fetch_add(1, Ordering::Relaxed)),
    }
}

/// True if standard output is a terminal.
pub(super) fn output_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// True if standard error is a terminal.
pub(super) fn errors_are_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Columns of the terminal that standard error is, if it is one.
pub(crate) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    Some(size.ws_col.into())
}

/// Writes all of it to a stream.
///
/// # Errors
/// The stream does not take all of it.
fn write_to(stream: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    let hurried = HURRIED.load(Ordering::Relaxed);
    while !bytes.is_empty() {
        if hurried {
            wait_shortly(stream)?;
        }
        let most = if hurried { PIPE_BYTES } else { usize::MAX };
        match rustix::io::write(stream, &bytes[..bytes.len().min(most)]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            // Another process that shares the stream has asked for that.
            Err(Errno::AGAIN) if !hurried => drop(has_room(stream, None)?),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn wait_shortly(stream: BorrowedFd<'_>) -> io::Result<()> {
    let patience = match STALLED.load(Ordering::Relaxed) {
        true => NONE,
        false => PATIENCE,
    };
    let room = has_room(stream, Some(&patience))?;
    STALLED.store(!room, Ordering::Relaxed);
    match room {
        true => Ok(()),
        false => Err(ErrorKind::TimedOut.into()),
    }
}

/// True if the stream takes bytes, or fails at once, within this time.
fn has_room(stream: BorrowedFd<'_>, patience: Option<&Timespec>) -> io::Result<bool> {
    let mut streams = [PollFd::from_borrowed_fd(stream, PollFlags::OUT)];
    loop {
        match poll(&mut streams, patience) {
            Err(Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

/// Standard error for the log, which takes whole lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        complain(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, pipe};

    #[test]
    fn what_a_stream_does_not_take_is_an_error() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let error = write_to(full.as_fd(), b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        let not_for_writing = File::open("/dev/null").unwrap();
        assert!(write_to(not_for_writing.as_fd(), b"x").is_err());
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let error = write_to(writer.as_fd(), b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_stream_that_others_made_impatient_is_waited_for() {
        let (mut reader, writer) = pipe().unwrap();
        let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
        rustix::fs::fcntl_setfl(&writer, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
        let value = vec![7; 1 << 20];
        let read = std::thread::spawn(move || {
            let mut read = Vec::new();
            reader.read_to_end(&mut read).map(|_| read)
        });
        write_to(writer.as_fd(), &value).unwrap();
        drop(writer);
        assert!(read.join().unwrap().unwrap() == value);
    }

    #[test]
    fn a_reader_that_has_stopped_is_not_waited_for_long() {
        let (_reader, writer) = pipe().unwrap();
        while has_room(writer.as_fd(), Some(&NONE)).unwrap() {
            rustix::io::write(&writer, &[0; PIPE_BYTES]).unwrap();
        }
        let error = wait_shortly(writer.as_fd()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
