//! The factory that creates a new tool for every call.

use super::tool::Tool;
use std::sync::Arc;

/// Creates a tool for each call. Concurrent calls must not share an instance, because they could
/// corrupt its state.
pub type Factory = Arc<dyn Fn() -> Box<dyn Tool> + Send + Sync>;

/// Returns true if a factory creates a new instance each time, as it must: two live instances have
/// two identities.
///
/// Zero-sized tools count as distinct, because they have no state to share.
#[must_use]
pub fn has_distinct_instances(factory: &Factory) -> bool {
    are_distinct(&*factory(), &*factory())
}

/// Returns true if two live tools of a factory are two instances.
pub(crate) fn are_distinct(first: &dyn Tool, second: &dyn Tool) -> bool {
    size_of_val(first) == 0 || first.identity() != second.identity()
}
