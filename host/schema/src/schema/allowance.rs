//! The bound on the patterns of several schemas together.

/// A bound for the patterns of several schemas, such as those of all tools of a plugin. Each schema
/// is charged before its patterns are compiled, besides its own bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatternAllowance {
    count: usize,
    bytes: usize,
}

impl PatternAllowance {
    /// Creates an allowance of this number of patterns and this many bytes, counted like
    /// [`Schema::pattern_cost`](super::Schema::pattern_cost).
    #[must_use]
    pub fn new(count: usize, bytes: usize) -> Self {
        Self { count, bytes }
    }

    /// No bound besides those of each schema.
    #[must_use]
    pub(super) fn unbounded() -> Self {
        Self::new(usize::MAX, usize::MAX)
    }

    /// Takes a part. Returns false if that much is not left.
    pub(super) fn take(&mut self, count: usize, bytes: usize) -> bool {
        let (Some(count), Some(bytes)) =
            (self.count.checked_sub(count), self.bytes.checked_sub(bytes))
        else {
            return false;
        };
        (self.count, self.bytes) = (count, bytes);
        true
    }
}
