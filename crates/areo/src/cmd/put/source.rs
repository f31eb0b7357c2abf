//! The source of a value: a file, or standard input.

use super::stage::{Stage, StageCell};
use crate::exit::{Failure, Outcome, plain};
use crate::interrupt::Interrupt;
use crate::output::Output;
use areo_client::{limits, place};
use indicatif::ProgressBar;
use rustix::fs::{OFlags, fcntl_getfl};
use std::fs;
use std::io::{self, IsTerminal, Seek};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

/// The source of a value. It fails once the command is interrupted, so that the blocks sent so far are removed, as they are when a
/// source fails by itself.
pub(in crate::cmd) struct Source {
    pub(in crate::cmd) name: String,
    reader: File,
    /// A second handle of `reader` if that is a regular file, and the offset at which the value ends.
    file: Option<(fs::File, u64)>,
    /// Number of bytes that were read.
    pub(in crate::cmd) bytes: u64,
    /// The progress bar, which follows the bytes.
    pub(in crate::cmd) bar: ProgressBar,
    interrupt: Interrupt,
    interrupted: Pin<Box<dyn Future<Output = ()> + Send>>,
    stage: StageCell,
    /// True once the end was read: another read would make a terminal wait for more input.
    is_at_end: bool,
}

impl Source {
    pub(in crate::cmd) async fn open(
        out: Output,
        path: Option<&Path>,
        interrupt: &Interrupt,
        stage: &StageCell,
    ) -> Outcome<Source> {
        // By which name it is called makes no difference.
        let is_standard = |path: &&Path| place::descriptor_of(path).is_ok_and(|it| it == Some(0));
        let (name, reader) = match path.filter(|path| !is_standard(path)) {
            None => ("standard input".to_owned(), standard_input(out)?),
            Some(path) => {
                let file = File::open(path).await;
                let file = file.map_err(|error| Failure::file("read", path, &error))?;
                (path.display().to_string(), file.into_std().await)
            }
        };
        let failed = |error| Failure::file("read", Path::new(&name), &error);
        let metadata = reader.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(Failure::other(format!(
                "{name} is a directory, an object holds one file: `areo cp -r` copies folders"
            )));
        }
        let file = match metadata.is_file() {
            true => Some((reader.try_clone().map_err(failed)?, metadata.len())),
            false => None,
        };
        let mut waiting = interrupt.clone();
        Ok(Source {
            name,
            reader: File::from_std(reader),
            file,
            bytes: 0,
            bar: ProgressBar::hidden(),
            interrupt: interrupt.clone(),
            interrupted: Box::pin(async move { waiting.asked().await }),
            stage: stage.clone(),
            is_at_end: false,
        })
    }

    /// Bytes that are to come, if that is known.
    pub(in crate::cmd) fn expected(&self) -> Option<u64> {
        let (file, end) = self.file.as_ref()?;
        // Standard input may have been read before.
        let begin = (&*file).stream_position().unwrap_or(0);
        Some(end.saturating_sub(begin))
    }

    /// True if the value is typed at a terminal, where progress would be written over it.
    pub(in crate::cmd) fn is_typed(&self) -> bool {
        rustix::termios::isatty(&self.reader)
    }

    /// All of it, or one byte more than a coverable write takes.
    pub(in crate::cmd) async fn read_all(&mut self) -> io::Result<Vec<u8>> {
        let mut value = Vec::new();
        let most = limits::DEFAULT_VALUE_BYTES + 1;
        self.take(most).read_to_end(&mut value).await?;
        self.end();
        Ok(value)
    }

    /// Notes that the value is read, so the write itself is under way.
    fn end(&self) {
        if self.stage.replace(Stage::Sent) != Stage::Sent {
            tracing::debug!(bytes = self.bytes, "the value is read");
        }
    }

    /// The last byte has come; all the bytes that the file had?
    fn check_end(&self) -> io::Result<()> {
        let Some((file, end)) = &self.file else {
            return Ok(());
        };
        // Files of the system end where they do, and not where they say.
        let (position, now) = ((&*file).stream_position()?, file.metadata()?.len());
        match position < *end && now < *end {
            true => Err(io::Error::other(format!(
                "it had {end} bytes and was cut to {now} while it was read; nothing was written"
            ))),
            false => Ok(()),
        }
    }
}

impl AsyncRead for Source {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.interrupt.is_asked() || self.interrupted.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::Error::other("interrupted")));
        }
        if self.is_at_end {
            return Poll::Ready(Ok(()));
        }
        let before = out.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(context, out))?;
        let read = out.filled().len() - before;
        self.bar.inc(read as u64);
        if read == 0 && out.remaining() > 0 {
            self.check_end()?;
            self.end();
            self.is_at_end = true;
        }
        self.bytes += read as u64;
        Poll::Ready(Ok(()))
    }
}

/// Standard input, as far as it is one: the standard library reads nothing from a closed one, and no error.
fn standard_input(out: Output) -> Outcome<fs::File> {
    let input = io::stdin();
    if input.is_terminal() {
        out.note("reading the value from the terminal, until Ctrl-D");
    }
    match is_open(input.as_fd()) {
        Ok(true) => {}
        Ok(false) => {
            return Err(Failure::usage(
                "standard input is closed: pass the value there, or name its file (/dev/null for an empty value)",
            ));
        }
        Err(error) => {
            let why = plain(&error);
            return Err(Failure::other(format!("cannot read standard input: {why}")));
        }
    }
    let input = input.as_fd().try_clone_to_owned();
    let input = input.map_err(|error| {
        Failure::other(format!("cannot read standard input: {}", plain(&error)))
    })?;
    Ok(input.into())
}

/// True if a value can be read from this standard input. A process that is started with a closed descriptor finds `/dev/null` there,
/// open for reading and writing: the runtime of the language sees to it that no other file gets that number. Container engines give
/// that to processes that were to have no input. A shell opens `/dev/null` for reading alone.
fn is_open(input: BorrowedFd<'_>) -> io::Result<bool> {
    let nothing = fs::metadata("/dev/null")?.rdev();
    match fcntl_getfl(input)? & OFlags::ACCMODE {
        OFlags::WRONLY => Ok(false),
        OFlags::RDWR => Ok(rustix::fs::fstat(input)?.st_rdev as u64 != nothing),
        _ => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;
    use crate::session;

    const OUT: Output = Output::QUIET;

    /// Reads a file that `change` changes before its last bytes are read. Returns the expected length, and the length or the error.
    fn read(path: &Path, change: impl FnOnce()) -> Outcome<(Option<u64>, Result<usize, String>)> {
        session::run_until(async |interrupt| {
            let stage = StageCell::default();
            let mut source = Source::open(OUT, Some(path), &interrupt, &stage).await?;
            let expected = source.expected();
            change();
            let read = source.read_all().await;
            let read = read.map(|it| it.len()).map_err(|it| it.to_string());
            Ok((expected, read))
        })
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let refused = read(directory.path(), || ()).unwrap_err();
        assert_eq!(refused.code, Code::Other);
        assert!(refused.message.contains("is a directory"), "{refused}");
        let refused = read(&directory.path().join("missing"), || ()).unwrap_err();
        assert_eq!(refused.code, Code::Other);
        let why = "missing: no such file or directory";
        assert!(refused.message.ends_with(why), "{refused}");
        let path = directory.path().join("value");
        fs::write(&path, "seven..").unwrap();
        assert_eq!(read(&path, || ()), Ok((Some(7), Ok(7))));
        let any = read(Path::new("/dev/null"), || ());
        assert_eq!(any, Ok((None, Ok(0))), "of any length");
        let (expected, read) = read(Path::new("/proc/self/status"), || ()).unwrap();
        assert!(expected == Some(0) && read.unwrap() > 0);
    }

    #[test]
    fn a_file_that_is_cut_while_it_is_read_is_no_value() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("value");
        fs::write(&path, "seven..").unwrap();
        let cut = || fs::write(&path, "six").unwrap();
        let (_, read_then) = read(&path, cut).unwrap();
        let error = read_then.unwrap_err();
        assert!(error.contains("had 7 bytes and was cut to 3"), "{error}");
        let grown = || fs::write(&path, "seven of").unwrap();
        assert_eq!(read(&path, grown), Ok((Some(3), Ok(8))));
    }

    /// A value that was typed at a terminal needed Ctrl-D twice.
    #[test]
    fn nothing_is_read_behind_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("value");
        fs::write(&path, "seven..").unwrap();
        let read = session::run_until(async |interrupt| {
            let stage = StageCell::default();
            let mut source = Source::open(OUT, Some(&path), &interrupt, &stage).await?;
            let first = source.read_all().await.unwrap();
            fs::write(&path, "seven.. and more").unwrap();
            Ok((first, source.read_all().await.unwrap()))
        });
        assert_eq!(read, Ok((b"seven..".to_vec(), Vec::new())));
    }

    #[test]
    fn a_closed_input_is_no_empty_value() {
        let null = |read, write| {
            let mut options = fs::File::options();
            let file = options.read(read).write(write).open("/dev/null").unwrap();
            is_open(file.as_fd()).unwrap()
        };
        assert!(null(true, false), "an empty value");
        assert!(!null(true, true) && !null(false, true), "closed");
        let (reader, writer) = io::pipe().unwrap();
        assert!(is_open(reader.as_fd()).unwrap());
        assert!(!is_open(writer.as_fd()).unwrap());
    }
}
