//! The results of calls within the value that a test's work returns.

use palisade::ToolResult;

/// A value that contains results of calls, each of which is checked.
pub trait Results {
    /// Returns all results.
    fn results(&self) -> Vec<&ToolResult>;

    /// Returns the memory that the results themselves occupy, in bytes, which is no leak: the text
    /// in raw form and in rendered form.
    fn held(&self) -> usize {
        self.results()
            .iter()
            .map(|result| result.output().map_or(0, |output| output.len() * 3))
            .sum()
    }
}

impl Results for ToolResult {
    fn results(&self) -> Vec<&ToolResult> {
        vec![self]
    }
}

impl Results for Vec<ToolResult> {
    fn results(&self) -> Vec<&ToolResult> {
        self.iter().collect()
    }
}

impl Results for () {
    fn results(&self) -> Vec<&ToolResult> {
        Vec::new()
    }
}
