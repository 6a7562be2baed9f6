//! Decodes the output of a command, streams it to the caller, and keeps a bounded part of it.

use palisade::execution::Sink;

/// Maximum size of the output in the result, in bytes: the size that `read_file` returns at once.
/// Half of it is from the start and half from the end, where errors usually are.
pub(super) const KEPT: usize = 256 << 10;
/// Maximum size of the output streamed while the command runs, in bytes: the limit of a guest.
pub(super) const EMITTED: usize = 1 << 20;

const HALF: usize = KEPT / 2;

/// A bounded buffer for output that arrives in chunks of any size.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// The bytes of an incomplete UTF-8 character; at most three.
    partial: Vec<u8>,
    head: String,
    tail: String,
    /// The total size of the text, in bytes.
    total: u64,
    told: usize,
    untold: u64,
}

impl Output {
    /// Appends a chunk and streams it.
    pub(super) fn push(&mut self, bytes: &[u8], sink: &dyn Sink) {
        let text = self.decode(bytes);
        self.tell(&text, sink);
        self.keep(&text);
    }

    /// Ends the output: an incomplete character becomes a replacement character.
    pub(super) fn finish(&mut self, sink: &dyn Sink) {
        if !std::mem::take(&mut self.partial).is_empty() {
            self.tell("\u{fffd}", sink);
            self.keep("\u{fffd}");
        }
    }

    /// Returns the text for the result, with a marker for an omitted middle.
    pub(super) fn text(&self) -> String {
        match self.left_out() {
            0 => [self.head.as_str(), &self.tail].concat(),
            left_out => {
                let head = &self.head;
                let tail = self.end();
                format!("{head}\n[… {left_out} bytes of output are left out here …]\n{tail}")
            }
        }
    }

    /// Returns the number of dropped bytes: omitted from the result, or not streamed.
    pub(super) fn dropped(&self) -> u64 {
        self.left_out() + self.untold
    }

    fn left_out(&self) -> u64 {
        self.total - (self.head.len() + self.end().len()) as u64
    }

    /// Returns the last half of the budget, or less.
    fn end(&self) -> &str {
        &self.tail[self.tail.ceil_char_boundary(self.tail.len().saturating_sub(HALF))..]
    }

    /// Decodes UTF-8 across chunk boundaries. Invalid bytes become U+FFFD.
    fn decode(&mut self, bytes: &[u8]) -> String {
        let joined = [std::mem::take(&mut self.partial).as_slice(), bytes].concat();
        let mut text = String::with_capacity(joined.len());
        let mut chunks = joined.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            if chunks.peek().is_none() && is_begun(chunk.invalid()) {
                self.partial = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }

    fn tell(&mut self, text: &str, sink: &dyn Sink) {
        let now = &text[..text.floor_char_boundary(EMITTED - self.told)];
        // After the first chunk that does not fit, nothing more is streamed: gaps would go
        // unnoticed.
        self.told = if now.len() < text.len() { EMITTED } else { self.told + now.len() };
        self.untold += (text.len() - now.len()) as u64;
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
            let cut = self.tail.len() - self.end().len();
            self.tail.drain(..cut);
        }
    }
}

/// Returns true if the bytes may be the beginning of a character.
fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
