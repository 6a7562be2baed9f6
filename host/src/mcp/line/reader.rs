//! Reads lines of a bounded length on a thread of its own.

use crate::mcp::frame::BOUNDS;
use std::io::{self, BufRead as _, BufReader, Read};
use tokio::sync::mpsc;

/// Lines that wait to be handled. Beyond them nothing is read.
const WAITING: usize = 16;

/// What stands between two line ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// Longer than a message may be; its bytes were not kept.
    TooLong,
}

/// The lines of an input, as they come.
pub(super) struct Reader(mpsc::Receiver<Line>);

impl Reader {
    /// Reads this input until it ends, or nobody listens. The thread may stay behind where the input blocks.
    pub(super) fn start(input: impl Read + Send + 'static) -> io::Result<Self> {
        let (send, lines) = mpsc::channel(WAITING);
        std::thread::Builder::new().name("palisade-input".to_owned()).spawn(move || {
            let mut input = BufReader::with_capacity(64 << 10, input);
            // An input that fails has ended, too.
            while let Ok(Some(line)) = next(&mut input) {
                if send.blocking_send(line).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self(lines))
    }

    /// The next line; `None` at the end of the input.
    pub(super) async fn next(&mut self) -> Option<Line> {
        self.0.recv().await
    }
}

/// The next line that is not blank. What a line has more than it may have is thrown away as it comes.
fn next(input: &mut BufReader<impl Read>) -> io::Result<Option<Line>> {
    loop {
        let mut line = Vec::new();
        let mut is_too_long = false;
        loop {
            let buffer = match input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            if buffer.is_empty() {
                // What has no end was not sent to its end.
                return Ok(None);
            }
            let (part, ends) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end, true),
                None => (buffer.len(), false),
            };
            if line.len() + part > BOUNDS.bytes {
                is_too_long = true;
                line = Vec::new();
            }
            if !is_too_long {
                line.extend_from_slice(&buffer[..part]);
            }
            input.consume(part + usize::from(ends));
            if ends {
                break;
            }
        }
        if is_too_long {
            return Ok(Some(Line::TooLong));
        }
        if !line.iter().all(u8::is_ascii_whitespace) {
            return Ok(Some(Line::Whole(line)));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn lines(input: impl Read) -> Vec<Line> {
        let mut input = BufReader::with_capacity(1000, input);
        std::iter::from_fn(|| next(&mut input).unwrap()).collect()
    }

    #[test]
    fn lines_are_read_as_they_stand_and_blank_ones_are_passed_over() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(lines(&b"a\n\n \r\n b \r\nc"[..]), [whole("a"), whole(" b \r")]);
        assert_eq!(lines(&b""[..]), []);
    }

    #[test]
    fn a_line_beyond_the_bound_is_told_and_the_next_one_is_read() {
        let long = vec![b'x'; BOUNDS.bytes];
        let input = [&long[..], b"\n", &long[..], b"y\n", b"z\n"].concat();
        assert_eq!(lines(&input[..]), [Line::Whole(long), Line::TooLong, Line::Whole(b"z".to_vec())]);
    }

    #[test]
    fn a_line_without_an_end_costs_no_memory() {
        // Ten gigabytes would not fit.
        let endless = io::repeat(b'x').take(1 << 30).chain(&b"\nz\n"[..]);
        assert_eq!(lines(endless), [Line::TooLong, Line::Whole(b"z".to_vec())]);
    }
}
