//! Calls that a running tool makes of other tools.

use super::box_future::BoxFuture;
use super::report::Report;
use crate::tool::{Definition, ToolPattern, ToolResult};
use crate::workspace::SharedQuotas;
use std::sync::Arc;

/// The most calls that one call makes, also if they are refused.
pub const NESTED_CALLS: usize = 256;

/// One call of another tool.
#[derive(Debug, Clone)]
pub(crate) struct NestedCall {
    /// The name of the tool, as sessions see it.
    pub(crate) tool: String,
    /// The input, as JSON text.
    pub(crate) input: String,
    /// The place in the caller's own program, in the caller's words, for the person who is asked.
    pub(crate) place: Option<String>,
}

/// The way for a running tool to call others. Each call goes through all stages that any call goes
/// through.
pub(crate) trait ToolCaller: Send + Sync {
    /// Returns the tools that the session shows and one of these patterns names.
    fn list(&self, granted: &[ToolPattern]) -> Vec<Definition>;

    /// Makes calls at the same time, and returns their results in the order of the calls. Dropping
    /// the future ends the calls.
    ///
    /// # Errors
    ///
    /// The reason why the calling tool ends in place of going on.
    fn call<'a>(
        &'a self,
        granted: &'a [ToolPattern],
        calls: Vec<NestedCall>,
    ) -> BoxFuture<'a, Result<Vec<ToolResult>, NestedExit>>;

    /// Returns what the calls so far have left: the files that they changed, and their usage.
    fn report(&self) -> Report;
}

/// The reason why a tool that calls others ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NestedExit {
    /// A question reaches the client with the end of the call, which is then run again.
    AwaitsClient,
    /// The tool is run again, and made another call than before.
    OtherCall,
}

/// The state that a call shares with the other call that makes it.
#[derive(Debug, Clone)]
pub(crate) struct Nesting {
    /// The quotas of the file systems of all calls that the other call makes.
    pub(crate) quotas: Arc<SharedQuotas>,
}
