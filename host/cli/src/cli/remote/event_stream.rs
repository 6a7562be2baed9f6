//! The client's side of a stream of server-sent events (WHATWG HTML, section 9.2).

use std::io::{self, BufRead, BufReader, Read};

/// The longest line, and the longest data of an event, in bytes. A longer one ends the stream.
const LINE: u64 = 8 << 20;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::cli) struct ServerEvent {
    /// The id to resume after. Empty if the event has none.
    pub(in crate::cli) id: String,
    /// The name.
    pub(in crate::cli) name: String,
    /// The data.
    pub(in crate::cli) data: String,
}

/// A stream of events.
pub(in crate::cli) struct EventStream(BufReader<Box<dyn Read + Send>>);

impl EventStream {
    pub(super) fn new(body: impl Read + Send + 'static) -> Self {
        Self(BufReader::new(Box::new(body)))
    }

    /// Waits for the next event.
    ///
    /// # Errors
    ///
    /// An error if the stream ends, breaks, or has a line or an event of more than 8 MiB.
    pub(in crate::cli) fn next(&mut self) -> io::Result<ServerEvent> {
        let mut event = ServerEvent::default();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                // A comment alone, or an event without data, is none.
                if event.data.is_empty() {
                    event = ServerEvent::default();
                    continue;
                }
                event.data.pop();
                return Ok(event);
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => value.clone_into(&mut event.id),
                "event" => value.clone_into(&mut event.name),
                "data" => {
                    if (event.data.len() + value.len()) as u64 > LINE {
                        return Err(io::Error::other("an event of the server is too long"));
                    }
                    event.data.push_str(value);
                    event.data.push('\n');
                }
                _ => {}
            }
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.0.by_ref().take(LINE).read_until(b'\n', &mut line)?;
        match line.pop() {
            Some(b'\n') => {}
            Some(_) => return Err(io::Error::other("a line of the server is too long")),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        String::from_utf8(line).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn events_are_read_and_comments_are_skipped() {
        let text =
            ": hello\n\nid: 1\nevent: a\ndata: x\ndata:y\n\n:\nid:2\r\ndata: z\r\n\r\nid: 3\n\n";
        let mut stream = EventStream::new(text.as_bytes());
        let event = |id: &str, name: &str, data: &str| ServerEvent {
            id: id.to_owned(),
            name: name.to_owned(),
            data: data.to_owned(),
        };
        assert_eq!(stream.next().unwrap(), event("1", "a", "x\ny"));
        assert_eq!(stream.next().unwrap(), event("2", "", "z"));
        assert_eq!(stream.next().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn event_of_endless_lines_ends_the_stream() {
        let line = format!("data: {}\n", "x".repeat(1 << 20));
        let mut stream = EventStream::new(io::Cursor::new(line.repeat(9)));
        assert!(stream.next().unwrap_err().to_string().contains("an event"));
    }

    #[test]
    fn endless_line_ends_the_stream() {
        let mut stream = EventStream::new(io::repeat(b'x'));
        assert!(stream.next().unwrap_err().to_string().contains("too long"));
    }
}
