//! Decodes the output of a command, streams it to the caller, and keeps a bounded part of it.

use palisade::execution::Sink;

/// Maximum size of the output in the result, in bytes: the size that `read_file` returns at once.
/// Half of it is from the start and half from the end, where errors usually are.
pub(crate) const MAX_KEPT: usize = 256 << 10;
/// Maximum size of the output streamed while the command runs, in bytes: the limit of a guest.
pub(crate) const MAX_STREAMED: usize = 1 << 20;

/// Half of [`MAX_KEPT`], for the start and for the end of the output.
const HALF: usize = MAX_KEPT / 2;

/// A bounded buffer for output that arrives in chunks of any size.
#[derive(Debug, Default)]
pub(crate) struct OutputBuffer {
    /// The bytes of an incomplete UTF-8 character; at most three.
    partial: Vec<u8>,
    head: String,
    tail: String,
    /// The total size of the text, in bytes.
    total: u64,
    /// The size of the streamed text, in bytes; [`MAX_STREAMED`] once some text did not fit.
    streamed: usize,
    /// The size of the text that was not streamed, in bytes.
    unstreamed: u64,
}

impl OutputBuffer {
    /// Appends a chunk and streams it.
    pub(crate) fn push(&mut self, bytes: &[u8], sink: &dyn Sink) {
        let text = self.decode(bytes);
        self.stream(&text, sink);
        self.keep(&text);
    }

    /// Ends the output: an incomplete character becomes a replacement character.
    pub(crate) fn finish(&mut self, sink: &dyn Sink) {
        if !std::mem::take(&mut self.partial).is_empty() {
            self.stream("\u{fffd}", sink);
            self.keep("\u{fffd}");
        }
    }

    /// Returns the text for the result, with a marker for an omitted middle.
    pub(crate) fn text(&self) -> String {
        match self.omitted() {
            0 => [self.head.as_str(), &self.tail].concat(),
            omitted => {
                let head = &self.head;
                let tail = self.kept_tail();
                format!("{head}\n[… {omitted} bytes of output are left out here …]\n{tail}")
            }
        }
    }

    /// Returns the number of dropped bytes: omitted from the result, or not streamed.
    pub(crate) fn dropped(&self) -> u64 {
        self.omitted() + self.unstreamed
    }

    fn omitted(&self) -> u64 {
        self.total - (self.head.len() + self.kept_tail().len()) as u64
    }

    /// Returns the last half of the budget, or less.
    fn kept_tail(&self) -> &str {
        &self.tail[self.tail.ceil_char_boundary(self.tail.len().saturating_sub(HALF))..]
    }

    /// Decodes UTF-8 across chunk boundaries. Invalid bytes become U+FFFD.
    fn decode(&mut self, bytes: &[u8]) -> String {
        let joined = [std::mem::take(&mut self.partial).as_slice(), bytes].concat();
        let mut text = String::with_capacity(joined.len());
        let mut chunks = joined.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            if chunks.peek().is_none() && is_incomplete(chunk.invalid()) {
                self.partial = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }

    fn stream(&mut self, text: &str, sink: &dyn Sink) {
        let now = &text[..text.floor_char_boundary(MAX_STREAMED - self.streamed)];
        // After the first chunk that does not fit, nothing more is streamed: gaps would go
        // unnoticed.
        self.streamed =
            if now.len() < text.len() { MAX_STREAMED } else { self.streamed + now.len() };
        self.unstreamed += (text.len() - now.len()) as u64;
        if !now.is_empty() {
            sink.emit(now);
        }
    }

    fn keep(&mut self, text: &str) {
        self.total += text.len() as u64;
        // Once the tail has content, all further text goes to the tail.
        let room = if self.tail.is_empty() { HALF - self.head.len() } else { 0 };
        let (head, tail) = text.split_at(text.floor_char_boundary(room));
        self.head.push_str(head);
        self.tail.push_str(tail);
        if self.tail.len() > 2 * HALF {
            let cut = self.tail.len() - self.kept_tail().len();
            self.tail.drain(..cut);
        }
    }
}

/// Returns true if the bytes may be the beginning of a character.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
