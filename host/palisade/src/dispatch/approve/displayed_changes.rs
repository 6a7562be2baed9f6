//! The changes of a call that a question has displayed. The answer applies to them: if another
//! program has written one of the files since, the call would overwrite contents that the user has
//! not seen.

use super::paths::{ProjectedChange, last_link};
use crate::confirm::DisplayedFiles;
use crate::dispatch::input::InputBudget;
use crate::dispatch::pipeline::Pipeline;
use crate::execution::account::Account;
use crate::registry::Registered;
use crate::tool::budget::{Budget, Exhausted};
use crate::tool::text::elided;
use crate::tool::{ErrorKind, PermissionReason};
use crate::workspace::Workspace;
use std::sync::Arc;

/// The changes of a call, and the files among them that its question displays.
#[derive(Clone)]
pub(super) struct DisplayedChanges {
    changes: Arc<[ProjectedChange]>,
    displayed: DisplayedFiles,
}

impl DisplayedChanges {
    pub(super) fn new(changes: Vec<ProjectedChange>, displayed: DisplayedFiles) -> Self {
        Self { changes: changes.into(), displayed }
    }

    /// Refuses the call if a displayed file is not as it was displayed. It looks at the files on
    /// the host's own threads if it has some, because the workspace may not respond.
    pub(super) async fn check(
        &self,
        pipeline: &Pipeline<'_>,
        account: &Account,
    ) -> Result<(), ErrorKind> {
        if self.displayed.is_empty() {
            return Ok(());
        }
        let (displayed, tool) = (self.clone(), pipeline.tool.clone());
        let workspace = pipeline.workspace().clone();
        let class = tool.definition().side_effects();
        let budget = InputBudget::new(account.clone(), pipeline.time, pipeline.cancel.clone());
        let look = move |budget: &dyn Budget| displayed.check_states(&tool, &workspace, budget);
        match pipeline.dispatcher.threads_for_paths(&pipeline.tool) {
            None => budget.offload(class, move |budget| look(&*budget)).await?,
            Some(threads) => {
                let look = move || {
                    look(budget.call_budget()).map_err(|why| budget.exhausted(why, class))?
                };
                threads.run_within(pipeline.time, pipeline.queue(), pipeline.cancel, look).await
            }
        }
    }

    fn check_states(
        &self,
        tool: &Registered,
        workspace: &Workspace,
        budget: &dyn Budget,
    ) -> Result<Result<(), ErrorKind>, Exhausted> {
        for ProjectedChange { path, place } in &*self.changes {
            budget.check()?;
            if !self.displayed.has(place) {
                continue;
            }
            let now = workspace.place_of(path, last_link(tool), budget)?;
            let now = now.unwrap_or_else(|| path.clone());
            let is_as_displayed = self.displayed.all_are_of(place, workspace.state_of(&now));
            if !is_as_displayed || workspace.in_whole(now) != *place {
                return Ok(Err(changed(place)));
            }
        }
        Ok(Ok(()))
    }
}

fn changed(place: &str) -> ErrorKind {
    let place = elided(place, 256);
    ErrorKind::denied(
        PermissionReason::FileChanged,
        format!(
            "`{place}` has changed since the user was shown what the call would do to it; make the \
             call again, so that the user is asked about the file as it is"
        ),
    )
}
