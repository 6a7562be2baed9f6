//! Hides paths that became secret after the host started, before each run with access to files.

use super::input::Purse;
use super::pipeline::Road;
use crate::execution::account::Account;
use crate::execution::offload::offload;
use crate::execution::owner::input_turns;
use crate::execution::{BoxFuture, Tool, ToolContext, ToolOutput, ValidInput};
use crate::tool::{Definition, ErrorKind, ExecutionKind};
use crate::workspace::Workspace;
use std::io;
use std::sync::Arc;

/// The source of rules that are added while the host runs.
pub(crate) trait LateRules: Send + Sync {
    /// Returns true if there are no rules to add. It must be cheap, because it runs before each
    /// call.
    fn hold_in(&self, workspace: &Arc<Workspace>) -> bool;

    /// Adds the outstanding rules. It accesses files and may take long.
    ///
    /// # Errors
    ///
    /// An error if a path that a tool could reach cannot be protected.
    fn add_to(&self, workspace: &Arc<Workspace>) -> io::Result<()>;
}

pub(super) type Late = Arc<dyn LateRules>;

impl Road<'_> {
    /// Adds the outstanding rules for a call that runs in place, outside its thread because that
    /// accesses files.
    pub(super) async fn hide_late(&self, account: &Account) -> Result<(), ErrorKind> {
        let sees_files = self.tool.definition().side_effects().sees_files();
        let is_in_place = self.dispatcher.threads.is_none();
        if sees_files && is_in_place && !self.dispatcher.late.hold_in(self.session.workspace()) {
            return Box::pin(self.hide_away(Purse::new(
                account.clone(),
                self.time,
                self.cancel.clone(),
            )))
            .await;
        }
        Ok(())
    }

    async fn hide_away(&self, purse: Purse) -> Result<(), ErrorKind> {
        let late = self.dispatcher.late.clone();
        let workspace = self.session.workspace().clone();
        let hidden =
            offload(purse.budget(), input_turns(), move |_| Ok(late.add_to(&workspace))).await;
        let class = self.tool.definition().side_effects();
        hidden.map_err(|why| purse.exhausted(why, class))?.map_err(|error| refused(&error))
    }
}

/// A tool on the host's own threads, which adds the outstanding rules there.
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
