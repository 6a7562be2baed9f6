//! Reads lines: inline from a pipe or a socket, and otherwise on a thread.

use super::line_splitter::{Line, LineSplitter, READ_BUFFER};
use super::nonblocking::NonblockingReader;
use std::io::{self, Read};
use tokio::sync::mpsc;

/// The maximum number of queued lines. Reading pauses while the queue is full.
const MAX_QUEUED: usize = 16;

/// A source of lines.
pub(super) enum LineReader {
    /// A thread reads the input.
    Thread(mpsc::Receiver<Line>),
    /// The input is read where the next line is awaited.
    Inline(NonblockingReader),
}

impl LineReader {
    /// Reads this input on a thread until it ends or the receiver is dropped. A thread whose input
    /// blocks stays behind.
    pub(super) fn start(input: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, lines) = mpsc::channel(MAX_QUEUED);
        std::thread::Builder::new().name("palisade-input".to_owned()).spawn(move || {
            // An error drops the sender, which ends the receiver.
            let _ = for_each_line(input, |line| sender.blocking_send(line).is_ok());
        })?;
        Ok(Self::Thread(lines))
    }

    /// Returns the next line; `None` at the end of the input, or after an error. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Line> {
        match self {
            Self::Thread(lines) => lines.recv().await,
            Self::Inline(reader) => reader.next().await,
        }
    }
}

/// Passes each line to `receive` until it returns false. An unterminated last line is dropped.
fn for_each_line(mut input: impl Read, mut receive: impl FnMut(Line) -> bool) -> io::Result<()> {
    let mut buffer = vec![0; READ_BUFFER];
    let mut splitter = LineSplitter::default();
    loop {
        let mut bytes = match input.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => &buffer[..read?],
        };
        if bytes.is_empty() {
            return Ok(());
        }
        while !bytes.is_empty() {
            let taken = splitter.take(bytes);
            bytes = &bytes[taken.bytes..];
            if taken.line.is_some_and(|line| !receive(line)) {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::messages::parse::BOUNDS;

    fn lines(input: impl Read) -> Vec<Line> {
        let mut lines = Vec::new();
        let kept = |line| {
            lines.push(line);
            true
        };
        for_each_line(input, kept).unwrap();
        lines
    }

    #[test]
    fn lines_are_read_verbatim_and_blank_ones_skipped() {
        let whole = |text: &str| Line::Whole(text.to_owned().into());
        assert_eq!(lines(&b"a\n\n \r\n b \r\nc"[..]), [whole("a"), whole(" b \r")]);
        assert_eq!(lines(&b""[..]), []);
    }

    #[test]
    fn long_line_is_reported_and_the_next_is_read() {
        let long = vec![b'x'; BOUNDS.bytes];
        let input = [&long[..], b"\n", &long[..], b"y\n", b"z\n"].concat();
        assert_eq!(
            lines(&input[..]),
            [Line::Whole(long.into()), Line::TooLong(None), Line::Whole("z".into())]
        );
    }

    #[test]
    fn endless_line_uses_no_memory() {
        // 1 GiB, which is discarded as it is read.
        let endless = io::repeat(b'x').take(1 << 30).chain(&b"\nz\n"[..]);
        assert_eq!(lines(endless), [Line::TooLong(None), Line::Whole("z".into())]);
    }
}
