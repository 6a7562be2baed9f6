//! The decision on the result of each call of a message before it counts: whether there is room to
//! keep it until the whole message is answered.

use crate::execution::BoxFuture;
use crate::tool::ToolResult;

/// Admits the results of a message, each as its call ends, in any order.
pub trait Admission: Send + Sync {
    /// Returns the result, or a failure in its place. `index` is the place of its call in the
    /// message. The returned result is the one that events and the recorder see.
    fn admit(&self, index: usize, result: ToolResult) -> BoxFuture<'_, ToolResult>;
}
