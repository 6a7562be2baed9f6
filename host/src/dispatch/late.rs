//! What has to be hidden from tools since the host began: looked for before each run that sees files.

use super::Road;
use super::input::Purse;
use crate::execution::account::Account;
use crate::execution::offload::offload;
use crate::execution::owner::input_turns;
use crate::execution::{BoxFuture, Tool, ToolContext, ToolOutput, ValidInput};
use crate::tool::{Definition, ErrorKind, ExecutionKind, FileAccess};
use crate::workspace::Workspace;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What adds to the rules of a workspace while a host lives.
pub(crate) trait LateRules: Send + Sync {
    /// Whether there is nothing to add. Cheap: asked before each run.
    fn hold_in(&self, workspace: &Arc<Workspace>) -> bool;

    /// Adds what there is to add. Works on files, and may take long.
    ///
    /// # Errors
    ///
    /// Where something cannot be protected that a tool could reach.
    fn add_to(&self, workspace: &Arc<Workspace>) -> io::Result<()>;
}

pub(super) type Late = Arc<dyn LateRules>;

impl Road<'_> {
    /// Hides what there is to hide from a call that runs in place: away from its thread where that works on files.
    pub(super) async fn hide_late(&self, time: Duration, account: &Account) -> Result<(), ErrorKind> {
        let sees_files = self.tool.definition().side_effects().files() != FileAccess::None;
        let is_in_place = self.dispatcher.threads.is_none();
        if sees_files && is_in_place && !self.dispatcher.late.hold_in(self.session.workspace()) {
            return Box::pin(self.hide_away(Purse::new(account.clone(), time, self.cancel.clone()))).await;
        }
        Ok(())
    }

    async fn hide_away(&self, purse: Purse) -> Result<(), ErrorKind> {
        let (late, workspace) = (self.dispatcher.late.clone(), self.session.workspace().clone());
        let hidden = offload(purse.budget(), input_turns(), move |_| Ok(late.add_to(&workspace))).await;
        let class = self.tool.definition().side_effects();
        hidden.map_err(|why| purse.exhausted(why, class))?.map_err(|error| refused(&error))
    }
}

/// A tool that runs on a thread of the host's own, where the look at files happens too.
pub(super) struct Hiding {
    pub(super) late: Late,
    pub(super) workspace: Arc<Workspace>,
    pub(super) tool: Box<dyn Tool>,
}

impl Tool for Hiding {
    fn definition(&self) -> &Definition {
        self.tool.definition()
    }

    fn execute<'a>(
        &'a self,
        input: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        Box::pin(async move {
            if !self.late.hold_in(&self.workspace) {
                self.late.add_to(&self.workspace).map_err(|error| refused(&error))?;
            }
            self.tool.execute(input, context).await
        })
    }

    fn cancel(&self) -> bool {
        self.tool.cancel()
    }
}

fn refused(error: &io::Error) -> ErrorKind {
    ErrorKind::execution(
        ExecutionKind::Internal,
        format!("a cache of compiled code cannot be hidden from the tool: {error}"),
    )
}
