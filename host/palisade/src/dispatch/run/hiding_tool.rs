//! A tool on the host's own threads, which hides late paths there before it runs.

use crate::dispatch::late_rules::{LateRules, not_hidden};
use crate::execution::{BoxFuture, Tool, ToolContext, ToolOutput, ValidInput};
use crate::tool::{Definition, ErrorKind};
use crate::workspace::Workspace;
use std::sync::Arc;

/// A tool on the host's own threads, which adds the outstanding rules there.
pub(super) struct HidingTool {
    pub(super) late_rules: Arc<dyn LateRules>,
    pub(super) workspace: Arc<Workspace>,
    pub(super) tool: Box<dyn Tool>,
}

impl Tool for HidingTool {
    fn definition(&self) -> &Definition {
        self.tool.definition()
    }

    fn execute<'a>(
        &'a self,
        input: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        Box::pin(async move {
            if !self.late_rules.are_current_in(&self.workspace) {
                self.late_rules.apply_to(&self.workspace).map_err(|error| not_hidden(&error))?;
            }
            self.tool.execute(input, context).await
        })
    }

    fn cancel(&self) -> bool {
        self.tool.cancel()
    }
}
