//! The output that a running tool has emitted and that its client has not been sent yet.

/// The maximum length of the output in one notification, in bytes. Of more, the end is sent.
const MAX: usize = 16 << 10;

/// Emitted output, merged until it is sent.
#[derive(Debug, Default)]
pub(super) struct PendingOutput {
    text: String,
    /// The number of bytes left out before the text.
    omitted: usize,
}

impl PendingOutput {
    /// Returns true if there is nothing to send.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Appends a chunk.
    pub(super) fn push(&mut self, chunk: &str) {
        let start = chunk.ceil_char_boundary(chunk.len().saturating_sub(MAX));
        let (_, end) = chunk.split_at(start);
        let room = MAX - end.len();
        let cut = self.text.ceil_char_boundary(self.text.len().saturating_sub(room));
        self.text.drain(..cut);
        self.text.push_str(end);
        self.omitted += cut + start;
    }

    /// Takes the output, which says how much of it was left out. `None` without any.
    pub(super) fn take(&mut self) -> Option<String> {
        let Self { text, omitted } = std::mem::take(self);
        match omitted {
            _ if text.is_empty() => None,
            0 => Some(text),
            omitted => Some(format!("[{omitted} bytes left out]{text}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_merged_until_they_are_taken() {
        let mut output = PendingOutput::default();
        assert_eq!(output.take(), None);
        output.push("one ");
        output.push("two");
        assert!(!output.is_empty());
        assert_eq!(output.take().as_deref(), Some("one two"));
        assert!(output.is_empty() && output.take().is_none());
    }

    #[test]
    fn end_of_a_long_output_is_kept_and_the_rest_counted() {
        for (chunk, count) in [("é", MAX), ("x", MAX + 1), ("xyz", MAX)] {
            let mut output = PendingOutput::default();
            (0..count).for_each(|_| output.push(chunk));
            assert!(output.text.len() <= MAX && output.text.len() + 3 > MAX);
            assert_eq!(output.text.len() + output.omitted, chunk.len() * count);
            let omitted = output.omitted;
            let text = output.take().unwrap_or_default();
            assert!(
                text.starts_with(&format!("[{omitted} bytes left out]")) && text.ends_with(chunk)
            );
        }
        let mut output = PendingOutput::default();
        output.push("before");
        output.push(&format!("{}end", "é".repeat(MAX)));
        assert_eq!(output.text.len() + output.omitted, 2 * MAX + 9);
        assert!(output.text.ends_with("éend"));
    }
}
