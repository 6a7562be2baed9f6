//! Factories: what is registered makes a new tool for every call.

use super::Tool;
use std::sync::Arc;

/// Makes a fresh tool for each call. Sharing one instance between calls would let concurrent calls corrupt each other.
pub type Factory = Arc<dyn Fn() -> Box<dyn Tool> + Send + Sync>;

/// Whether a factory makes a new instance each time, as it must: two instances that live at once have two identities.
///
/// Tools without any state of their own (zero bytes) count as distinct, since there is nothing that they could share.
#[must_use]
pub fn has_distinct_instances(factory: &Factory) -> bool {
    let (first, second) = (factory(), factory());
    size_of_val(&*first) == 0 || first.identity() != second.identity()
}
