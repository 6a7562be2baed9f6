//! Server-sent events (WHATWG HTML, section 9.2), of which only the data is of use here.

/// A reader of events, fed with the pieces of a body.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The bytes of lines without data, such as comments.
    idle: usize,
    was_return: bool,
    has_begun: bool,
}

/// The error of an event that is longer than its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventTooLong;

impl Events {
    /// Reads a piece, and gives the data of each event that it ends to `each`.
    ///
    /// # Errors
    ///
    /// [`EventTooLong`] if an event or a line has more than `most` bytes.
    pub(crate) fn read(
        &mut self,
        piece: &[u8],
        most: usize,
        mut each: impl FnMut(Vec<u8>),
    ) -> Result<(), EventTooLong> {
        for &byte in piece {
            let is_end = match byte {
                b'\n' => !std::mem::take(&mut self.was_return),
                b'\r' => true,
                _ => false,
            };
            self.was_return = byte == b'\r';
            if is_end {
                if let Some(data) = self.end_line() {
                    each(data);
                }
            } else if byte != b'\n' {
                self.line.push(byte);
            }
            if self.line.len() + self.data.len() > most {
                return Err(EventTooLong);
            }
        }
        Ok(())
    }

    /// Returns the bytes of lines without data, since the last time.
    pub(crate) fn take_idle(&mut self) -> usize {
        std::mem::take(&mut self.idle)
    }

    /// Takes the line. Returns the data of the event that an empty line ends.
    fn end_line(&mut self) -> Option<Vec<u8>> {
        if self.line.is_empty() && !self.has_data {
            self.has_begun = true;
            self.idle += 1;
            return None;
        }
        let line = std::mem::take(&mut self.line);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        // The stream may begin with a byte order mark.
        let mark = if is_first { "\u{FEFF}".as_bytes() } else { &[] };
        let line = line.strip_prefix(mark).unwrap_or(&line);
        if line.is_empty() {
            self.idle += 1;
            let data = std::mem::take(&mut self.data);
            return std::mem::take(&mut self.has_data).then_some(data);
        }
        let Some(value) = line.strip_prefix(b"data:").or((line == b"data").then_some(&[])) else {
            self.idle += line.len() + 1;
            return None;
        };
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&str], most: usize) -> Result<Vec<String>, EventTooLong> {
        let mut all = Vec::new();
        let mut events = Events::default();
        for piece in pieces {
            events.read(piece.as_bytes(), most, |data| {
                all.push(String::from_utf8_lossy(&data).into_owned());
            })?;
        }
        Ok(all)
    }

    #[test]
    fn data_of_each_event_is_read() {
        for pieces in [
            &["data: one\n\n: a comment\n\nid: 7\ndata:two\ndata: three\n\n"][..],
            &["data: o", "ne\r", "\n\r\n: a comment\r\n\r\ndata:two\r\ndata: three\r\n\r\n"],
            &["data: one\r\rdata:two\rdata: three\r\r"],
        ] {
            let read = events(pieces, 100);
            assert_eq!(read, Ok(vec!["one".to_owned(), "two\nthree".to_owned()]), "{pieces:?}");
        }
        assert_eq!(events(&["data: cut off"], 100), Ok(Vec::new()));
        assert_eq!(events(&["data\n\n"], 100), Ok(vec![String::new()]));
    }

    #[test]
    fn lines_without_data_are_counted() {
        let mut events = Events::default();
        let text = b": comment\nid: 7\ndata: one\n\n\n";
        assert_eq!(events.read(text, 100, drop), Ok(()));
        assert_eq!((events.take_idle(), events.take_idle()), (18, 0));
    }

    #[test]
    fn event_is_bounded_over_its_lines() {
        let long = "data: 0123456789\n".repeat(20);
        assert_eq!(events(&[&long], 100), Err(EventTooLong));
        assert_eq!(events(&[&"x".repeat(101)], 100), Err(EventTooLong));
        let many = "data: 0123456789\n\n".repeat(20);
        assert_eq!(events(&[&many], 100).map(|all| all.len()), Ok(20));
    }
}
