//! The output of logs. A client need not read standard error, and tools decide how much is logged,
//! so a full pipe loses lines and holds up neither a server nor the end of a call.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

/// The bytes that a writable pipe takes without blocking: `PIPE_BUF` on Linux.
const PIECE: usize = 4096;

/// An output that takes no longer than the system call, and drops lines that find no room.
#[derive(Debug)]
pub(super) struct LossyOutput<F>(Arc<Mutex<State<F>>>);

#[derive(Debug)]
struct State<F> {
    output: F,
    /// The wait for room, unless lines are being dropped already.
    patience: Timespec,
    /// The number of lines that were dropped since the last one that was written.
    dropped: u64,
}

impl<F: AsFd + Write> LossyOutput<F> {
    pub(super) fn new(output: F) -> Self {
        Self(Arc::new(Mutex::new(State { output, patience: Timespec::default(), dropped: 0 })))
    }

    /// Creates an output that waits for a slow reader, for a second at a time.
    pub(super) fn patient(output: F) -> Self {
        let patience = Timespec { tv_sec: 1, tv_nsec: 0 };
        Self(Arc::new(Mutex::new(State { output, patience, dropped: 0 })))
    }
}

impl<F> Clone for LossyOutput<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F: AsFd + Write> State<F> {
    fn has_room(&self) -> bool {
        let mut fds = [PollFd::new(&self.output, PollFlags::OUT)];
        let wait = if self.dropped == 0 { self.patience } else { Timespec::default() };
        poll(&mut fds, Some(&wait)).is_ok_and(|ready| ready > 0)
    }

    /// Writes a line, or a part of a long one, if there is room for it.
    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        if !self.has_room() {
            self.dropped += 1;
            return Ok(());
        }
        if self.dropped > 0 {
            let dropped = std::mem::take(&mut self.dropped);
            writeln!(self.output, "{dropped} lines of the log were dropped: the output was full")?;
        }
        for piece in line.chunks(PIECE) {
            if !self.has_room() {
                self.dropped += 1;
                return Ok(());
            }
            self.output.write_all(piece)?;
        }
        Ok(())
    }
}

impl<F: AsFd + Write> Write for LossyOutput<F> {
    /// Takes a whole line, as the log gives it.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.write_line(line).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use std::io::Read as _;

    #[test]
    fn full_pipe_loses_lines_and_says_so_later() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut output = LossyOutput::new(writer);
        let line = [vec![b'x'; 999], vec![b'\n']].concat();
        for _ in 0..1_000 {
            assert_eq!(output.write(&line).unwrap(), line.len());
        }
        let mut taken = vec![0; 32 << 10];
        reader.read_exact(&mut taken).unwrap();
        output.write_all(b"the last line\n").unwrap();
        drop(output);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with("the last line\n"), "{:?}", rest.lines().last());
        assert!(rest.contains(" lines of the log were dropped: the output was full\n"));
    }
}
