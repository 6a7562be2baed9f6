//! A tool that runs in a task or on a thread of its own, where it notices a stop of its call.

use crate::dispatch::pipeline::Pipeline;
use crate::dispatch::stops::Stops;
use crate::execution::{BoxFuture, Tool, ToolContext, ToolOutput, ValidInput};
use crate::tool::{Definition, ErrorKind};
use std::sync::Arc;

/// Returns the tool for a run elsewhere than in its call, which may not be polled before the tool
/// is.
pub(super) fn guarded(pipeline: &Pipeline<'_>, tool: Box<dyn Tool>) -> Box<dyn Tool> {
    Box::new(GuardedTool { stops: pipeline.stops.clone(), tool })
}

struct GuardedTool {
    stops: Arc<Stops>,
    tool: Box<dyn Tool>,
}

impl Tool for GuardedTool {
    fn definition(&self) -> &Definition {
        self.tool.definition()
    }

    fn execute<'a>(
        &'a self,
        input: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        Box::pin(async move {
            if self.stops.is_stopped() {
                context.cancel().cancel();
                return Err(ErrorKind::Cancelled);
            }
            self.stops.guard(context.cancel(), self.tool.execute(input, context)).await
        })
    }

    fn cancel(&self) -> bool {
        self.tool.cancel()
    }
}
