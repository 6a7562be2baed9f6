//! An input that says when there is something to read, and an output that says when there is room: pipes and sockets. On the way of a message that is read and
//! written in place, no other thread is woken up, which takes longer than most calls do.

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

/// What a pipe takes whole where it says that it has room: POSIX's `PIPE_BUF` on Linux, in bytes.
const AT_ONCE_WRITTEN: usize = 4096;

/// Whether this is something of which the system tells when it may be read or written.
pub(super) fn tells(fd: &impl AsFd) -> bool {
    fstat(fd).is_ok_and(|stat| matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket))
}

/// Lines that are read in place, on the thread of the runtime.
///
/// The input itself is left as it is: who else holds it may not expect that it does not block. So it is read when the system has just said that there is
/// something, and by nobody else.
pub(super) struct Ready {
    input: AsyncFd<OwnedFd>,
    buffer: Vec<u8>,
    unread: Range<usize>,
    splitter: Splitter,
}

impl Ready {
    /// Reads from here on. Called inside of a runtime.
    ///
    /// # Errors
    ///
    /// Where the system does not tell of such an input.
    pub(super) fn new(input: OwnedFd) -> io::Result<Self> {
        #[expect(
            deprecated,
            reason = "wrong for what does not own its descriptor, as this does; the successor is not safe"
        )]
        let input = AsyncFd::with_interest(input, Interest::READABLE)?;
        Ok(Self { input, buffer: vec![0; AT_ONCE], unread: 0..0, splitter: Splitter::default() })
    }

    /// The next line; `None` at the end of the input, or where it fails.
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

    /// Waits for bytes, and reads them: how many.
    async fn fill(&mut self) -> io::Result<usize> {
        loop {
            let mut ready = self.input.readable().await?;
            // What the runtime knows may be of bytes that were read since.
            if !is_now(&self.input, PollFlags::IN) {
                ready.clear_ready();
                continue;
            }
            match read(self.input.get_ref(), &mut self.buffer) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                Ok(read) if (1..self.buffer.len()).contains(&read) => {
                    // That was all: what comes next is told anew.
                    ready.clear_ready();
                    return Ok(read);
                }
                read => return Ok(read?),
            }
        }
    }
}

/// An output into which a line is written in place where it has room for it.
pub(super) struct Room(OwnedFd);

impl Room {
    pub(super) fn new(output: OwnedFd) -> Self {
        Self(output)
    }

    /// Writes what there is room for, without waiting: how many bytes, none where that cannot be known.
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

/// A file that is waited for where somebody has made it one that does not block: that is a matter of all who hold it, and so not to be changed.
pub(super) struct Patient(pub(super) File);

impl Patient {
    fn patiently<T>(&mut self, what: PollFlags, mut tries: impl FnMut(&mut File) -> io::Result<T>) -> io::Result<T> {
        loop {
            match tries(&mut self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Interrupted, it is tried again.
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

/// Whether this may be read, or written, without waiting. An end, or an error, is told by whoever reads or writes then.
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
    async fn lines_are_read_as_they_come_and_what_has_no_end_is_none() {
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
    async fn an_input_that_has_nothing_holds_up_nobody() {
        let (input, mut output) = pipe().unwrap();
        let mut ready = Ready::new(input.into()).unwrap();
        for _ in 0..3 {
            let nothing = tokio::time::timeout(std::time::Duration::from_millis(1), ready.next()).await;
            assert!(nothing.is_err(), "nobody has written");
            output.write_all(b"a\n").unwrap();
            assert_eq!(ready.next().await, whole("a"));
        }
    }

    #[test]
    fn a_full_pipe_takes_nothing_and_a_long_line_is_not_tried() {
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
    fn an_end_that_does_not_block_is_waited_for() {
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
        let read = std::thread::spawn(move || io::read_to_string(Patient(File::from(OwnedFd::from(input)))).unwrap());
        output.write_all(b"late").unwrap();
        drop(output);
        assert_eq!(read.join().unwrap(), "late");
    }

    #[test]
    fn only_pipes_and_sockets_tell() {
        let (input, output) = pipe().unwrap();
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(tells(&input) && tells(&output) && tells(&one));
        assert!(!tells(&File::open("/dev/null").unwrap()) && !tells(&tempfile::tempfile().unwrap()));
    }
}
