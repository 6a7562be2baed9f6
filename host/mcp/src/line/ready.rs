//! Non-blocking I/O on pipes and sockets. A message that is read and written inline saves two
//! thread wake-ups, which take longer than most calls.

use super::reader::AT_ONCE;
use super::split::{Line, Splitter};
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
const AT_ONCE_WRITTEN: usize = 4096;

/// Returns true if the kernel reports the readiness of this file: a pipe or a socket.
pub(super) fn tells(fd: &impl AsFd) -> bool {
    fstat(fd).is_ok_and(|stat| {
        matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket)
    })
}

/// A reader that runs on the runtime's thread.
///
/// `O_NONBLOCK` is not set, since it is shared with other processes that hold the same open file.
/// So each read follows a poll that reported data, and there must be no other reader.
pub(super) struct Ready {
    input: AsyncFd<OwnedFd>,
    buffer: Vec<u8>,
    unread: Range<usize>,
    splitter: Splitter,
}

impl Ready {
    /// Wraps an input. Must be called inside a runtime.
    ///
    /// # Errors
    ///
    /// Fails if the kernel does not report the readiness of this file.
    pub(super) fn new(input: OwnedFd) -> io::Result<Self> {
        #[expect(
            deprecated,
            reason = "wrong for what does not own its descriptor, as this does; the successor is not safe"
        )]
        let input = AsyncFd::with_interest(input, Interest::READABLE)?;
        Ok(Self { input, buffer: vec![0; AT_ONCE], unread: 0..0, splitter: Splitter::default() })
    }

    /// Returns the next line; `None` at the end of the input, or after an error.
    pub(super) async fn next(&mut self) -> Option<Line> {
        loop {
            while !self.unread.is_empty() {
                let (taken, line) = self.splitter.take(&self.buffer[self.unread.clone()]);
                self.unread.start += taken;
                if line.is_some() {
                    return line;
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
            if !is_now(&self.input, PollFlags::IN) {
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
pub(super) struct Room(OwnedFd);

impl Room {
    pub(super) fn new(output: OwnedFd) -> Self {
        Self(output)
    }

    /// Writes without blocking. Returns the number of bytes written, which is 0 if the write could
    /// block.
    pub(super) fn write(&self, line: &[u8]) -> io::Result<usize> {
        if line.len() > AT_ONCE_WRITTEN || !is_now(&self.0, PollFlags::OUT) {
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
pub(super) struct Patient(pub(super) File);

impl Patient {
    fn patiently<T>(
        &mut self,
        what: PollFlags,
        mut tries: impl FnMut(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match tries(&mut self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Interrupted or not, try again.
                    let _ = poll(&mut [PollFd::new(&self.0, what)], None);
                }
                done => return done,
            }
        }
    }
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.patiently(PollFlags::IN, |file| file.read(buffer))
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(PollFlags::OUT, |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Polls a file once. Returns true also at the end of the file or after an error, which the
/// following read or write reports.
fn is_now(fd: &impl AsFd, what: PollFlags) -> bool {
    let mut asked = [PollFd::new(fd, what)];
    poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use std::io::pipe;

    fn whole(text: &str) -> Option<Line> {
        Some(Line::Whole(text.as_bytes().to_vec()))
    }

    #[tokio::test]
    async fn lines_are_read_as_they_arrive() {
        let (input, mut output) = pipe().unwrap();
        let mut ready = Ready::new(input.into()).unwrap();
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
        let mut ready = Ready::new(input.into()).unwrap();
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
        let room = Room::new(output.into());
        let line = [b'x'; AT_ONCE_WRITTEN];
        assert_eq!(room.write(&[b'x'; AT_ONCE_WRITTEN + 1]).unwrap(), 0);
        let mut written = 0;
        while room.write(&line).unwrap() == line.len() {
            written += line.len();
        }
        let mut read = vec![0; written];
        input.read_exact(&mut read).unwrap();
        assert_eq!(room.write(&line).unwrap(), line.len(), "there is room again");
        drop(input);
        assert!(room.write(&line).is_err(), "nobody reads any more");
    }

    #[test]
    fn nonblocking_pipe_is_written_completely() {
        use rustix::fs::{OFlags, fcntl_setfl};
        let (mut input, output) = pipe().unwrap();
        fcntl_setfl(&output, OFlags::NONBLOCK).unwrap();
        let written = std::thread::spawn(move || {
            Patient(File::from(OwnedFd::from(output))).write_all(&vec![b'x'; 1 << 20]).unwrap();
        });
        let mut read = Vec::new();
        input.read_to_end(&mut read).unwrap();
        written.join().unwrap();
        assert_eq!(read.len(), 1 << 20);
        let (input, mut output) = pipe().unwrap();
        fcntl_setfl(&input, OFlags::NONBLOCK).unwrap();
        let read = std::thread::spawn(move || {
            io::read_to_string(Patient(File::from(OwnedFd::from(input)))).unwrap()
        });
        output.write_all(b"late").unwrap();
        drop(output);
        assert_eq!(read.join().unwrap(), "late");
    }

    #[test]
    fn readiness_is_known_for_pipes_and_sockets_only() {
        let (input, output) = pipe().unwrap();
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(tells(&input) && tells(&output) && tells(&one));
        assert!(
            !tells(&File::open("/dev/null").unwrap()) && !tells(&tempfile::tempfile().unwrap())
        );
    }
}
