//! What a command writes: put together to text, told as it comes, and kept within bounds.

use crate::execution::Sink;

/// How much of the output the result holds, in bytes: as much as `read_file` gives at once, half of it from the start and half from the end, where errors stand.
pub const KEPT: usize = 256 << 10;
/// How much of the output is told while the command runs, in bytes: as much as a guest may emit.
pub const EMITTED: usize = 1 << 20;

const HALF: usize = KEPT / 2;

/// Takes the output in pieces of any size.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// The bytes of a character whose end has not come yet; at most three.
    partial: Vec<u8>,
    head: String,
    tail: String,
    /// Bytes of text in all.
    total: u64,
    told: usize,
    untold: u64,
}

impl Output {
    /// Takes the next bytes, and tells them.
    pub(super) fn push(&mut self, bytes: &[u8], sink: &dyn Sink) {
        let text = self.decode(bytes);
        self.tell(&text, sink);
        self.keep(&text);
    }

    /// Takes the end: a character that was cut off there is none.
    pub(super) fn finish(&mut self, sink: &dyn Sink) {
        if !std::mem::take(&mut self.partial).is_empty() {
            self.tell("\u{fffd}", sink);
            self.keep("\u{fffd}");
        }
    }

    /// The text as the result holds it, with a marker for what was left out.
    pub(super) fn text(&self) -> String {
        match self.left_out() {
            0 => [self.head.as_str(), &self.tail].concat(),
            left_out => {
                let (head, tail) = (&self.head, self.end());
                format!("{head}\n[… {left_out} bytes of output are left out here …]\n{tail}")
            }
        }
    }

    /// Bytes that were dropped: left out of the result, or not told.
    pub(super) fn dropped(&self) -> u64 {
        self.left_out() + self.untold
    }

    fn left_out(&self) -> u64 {
        self.total - (self.head.len() + self.end().len()) as u64
    }

    /// The last half, or less.
    fn end(&self) -> &str {
        &self.tail[self.tail.ceil_char_boundary(self.tail.len().saturating_sub(HALF))..]
    }

    /// What is not UTF-8 becomes U+FFFD; a character that is split over two reads is put together.
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
        // Once a piece did not fit, no later one is told: a stream with holes would read as if it had none.
        self.told = if now.len() < text.len() { EMITTED } else { self.told + now.len() };
        self.untold += (text.len() - now.len()) as u64;
        if !now.is_empty() {
            sink.emit(now);
        }
    }

    fn keep(&mut self, text: &str) {
        self.total += text.len() as u64;
        // As soon as something has gone to the tail, all that follows does.
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

/// Whether the bytes could be the beginning of a character.
fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
