//! Non-blocking I/O on pipes and sockets. A message that is read and written inline saves two
//! thread wake-ups, which take longer than most calls.

use super::line_splitter::{Line, LineSplitter, READ_BUFFER};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, read, write};
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The number of bytes that a writable pipe takes without blocking: `PIPE_BUF` on Linux.
const MAX_WRITE: usize = 4096;

/// Returns true if the kernel reports the readiness of this file: a pipe or a socket.
pub(super) fn is_pollable(fd: &impl AsFd) -> bool {
    fstat(fd).is_ok_and(|stat| {
        matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket)
    })
}

/// A reader that runs on the runtime's thread.
///
/// `O_NONBLOCK` is not set, since it is shared with other processes that hold the same open file.
/// So each read follows a poll that reported data, and there must be no other reader.
pub(super) struct NonblockingReader {
    input: AsyncFd<OwnedFd>,
    buffer: Vec<u8>,
    unread: Range<usize>,
    splitter: LineSplitter,
}

impl NonblockingReader {
    /// Wraps an input. Must be called inside a runtime.
    ///
    /// # Errors
    ///
    /// Fails if the kernel does not report the readiness of this file.
    pub(super) fn new(input: OwnedFd) -> io::Result<Self> {
        #[expect(
            deprecated,
            reason = "unsound for types that do not own their descriptor; this one does, and the successor has no safe constructor"
        )]
        let input = AsyncFd::with_interest(input, Interest::READABLE)?;
        Ok(Self {
            input,
            buffer: vec![0; READ_BUFFER],
            unread: 0..0,
            splitter: LineSplitter::default(),
        })
    }

    /// Returns the next line; `None` at the end of the input, or after an error.
    pub(super) async fn next(&mut self) -> Option<Line> {
        loop {
            while !self.unread.is_empty() {
                let taken = self.splitter.take(&self.buffer[self.unread.clone()]);
                self.unread.start += taken.bytes;
                if taken.line.is_some() {
                    return taken.line;
                }
            }
            self.unread = 0..self.fill().await.ok().filter(|read| *read > 0)?;
        }
    }

    /// Waits for data and reads it. Returns the number of bytes.
    async fn fill(&mut self) -> io::Result<usize> {
        loop {
            let mut ready = self.input.readable().await?;
            // The runtime's readiness may be stale, from data that was read since.
            if !is_ready(&self.input, PollFlags::IN) {
                ready.clear_ready();
                continue;
            }
            match read(self.input.get_ref(), &mut self.buffer) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                Ok(read) if (1..self.buffer.len()).contains(&read) => {
                    // A short read has drained the input: wait for the next event.
                    ready.clear_ready();
                    return Ok(read);
                }
                read => return Ok(read?),
            }
        }
    }
}

/// An output that is written inline as far as it does not block.
pub(super) struct NonblockingWriter(OwnedFd);

impl NonblockingWriter {
    /// Wraps an output.
    pub(super) fn new(output: OwnedFd) -> Self {
        Self(output)
    }

    /// Writes without blocking. Returns the number of bytes written, which is 0 if the write could
    /// block.
    pub(super) fn write(&self, line: &[u8]) -> io::Result<usize> {
        if line.len() > MAX_WRITE || !is_ready(&self.0, PollFlags::OUT) {
            return Ok(0);
        }
        match write(&self.0, line) {
            Err(Errno::INTR | Errno::AGAIN) => Ok(0),
            written => Ok(written?),
        }
    }
}

/// A file that blocks even if `O_NONBLOCK` is set. The flag is shared with other processes that
/// hold the same open file, so that it must not be cleared.
pub(super) struct BlockingFile(pub(super) File);

impl BlockingFile {
    fn retry_when_ready<T>(
        &mut self,
        event: PollFlags,
        mut attempt: impl FnMut(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match attempt(&mut self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Interrupted or not, try again.
                    let _ = poll(&mut [PollFd::new(&self.0, event)], None);
                }
                done => return done,
            }
        }
    }
}

impl Read for BlockingFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.retry_when_ready(PollFlags::IN, |file| file.read(buffer))
    }
}

impl Write for BlockingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.retry_when_ready(PollFlags::OUT, |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Polls a file once. Returns true also at the end of the file or after an error, which the
/// following read or write reports.
fn is_ready(fd: &impl AsFd, event: PollFlags) -> bool {
    let mut polled = [PollFd::new(fd, event)];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use std::io::pipe;

    fn whole(text: &str) -> Option<Line> {
        Some(Line::Whole(text.to_owned().into()))
    }

    #[tokio::test]
    async fn lines_are_read_as_they_arrive() {
        let (input, mut output) = pipe().unwrap();
        let mut ready = NonblockingReader::new(input.into()).unwrap();
        output.write_all(b"a\nb\nc").unwrap();
        assert_eq!((ready.next().await, ready.next().await), (whole("a"), whole("b")));
        let later = async {
            tokio::task::yield_now().await;
            output.write_all(b"d\ne").unwrap();
            drop(output);
        };
        assert_eq!(tokio::join!(ready.next(), later).0, whole("cd"));
        assert_eq!((ready.next().await, ready.next().await), (None, None));
    }

    #[tokio::test]
    async fn empty_input_does_not_block() {
        let (input, mut output) = pipe().unwrap();
        let mut ready = NonblockingReader::new(input.into()).unwrap();
        for _ in 0..3 {
            let nothing =
                tokio::time::timeout(std::time::Duration::from_millis(1), ready.next()).await;
            assert!(nothing.is_err(), "nobody has written");
            output.write_all(b"a\n").unwrap();
            assert_eq!(ready.next().await, whole("a"));
        }
    }

    #[test]
    fn full_pipe_accepts_no_partial_line() {
        let (mut input, output) = pipe().unwrap();
        let writer = NonblockingWriter::new(output.into());
        let line = [b'x'; MAX_WRITE];
        assert_eq!(writer.write(&[b'x'; MAX_WRITE + 1]).unwrap(), 0);
        let mut written = 0;
        while writer.write(&line).unwrap() == line.len() {
            written += line.len();
        }
        let mut read = vec![0; written];
        input.read_exact(&mut read).unwrap();
        assert_eq!(writer.write(&line).unwrap(), line.len(), "there is room again");
        drop(input);
        assert!(writer.write(&line).is_err(), "the reader is gone");
    }

    #[test]
    fn nonblocking_pipe_is_written_completely() {
        use rustix::fs::{OFlags, fcntl_setfl};
        let (mut input, output) = pipe().unwrap();
        fcntl_setfl(&output, OFlags::NONBLOCK).unwrap();
        let written = std::thread::spawn(move || {
            BlockingFile(File::from(OwnedFd::from(output)))
                .write_all(&vec![b'x'; 1 << 20])
                .unwrap();
        });
        let mut read = Vec::new();
        input.read_to_end(&mut read).unwrap();
        written.join().unwrap();
        assert_eq!(read.len(), 1 << 20);
        let (input, mut output) = pipe().unwrap();
        fcntl_setfl(&input, OFlags::NONBLOCK).unwrap();
        let read = std::thread::spawn(move || {
            io::read_to_string(BlockingFile(File::from(OwnedFd::from(input)))).unwrap()
        });
        output.write_all(b"late").unwrap();
        drop(output);
        assert_eq!(read.join().unwrap(), "late");
    }

    #[test]
    fn readiness_is_known_for_pipes_and_sockets_only() {
        let (input, output) = pipe().unwrap();
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(is_pollable(&input) && is_pollable(&output) && is_pollable(&one));
        assert!(
            !is_pollable(&File::open("/dev/null").unwrap())
                && !is_pollable(&tempfile::tempfile().unwrap())
        );
    }
}
