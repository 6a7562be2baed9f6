//! The prediction of a call's treatment, without running it.

use super::approve::paths;
use super::dispatcher::Dispatcher;
use super::errors::not_allowed;
use super::input::{self, InputBudget, InputMemory, RawInput};
use super::panics;
use crate::policy::Decision;
use crate::registry::Registered;
use crate::session::Session;
use crate::tool::{Call, ErrorKind};
use crate::workspace::{Workspace, not_opened};
use std::fmt;
use std::sync::Arc;

/// The predicted treatment of a call.
pub struct Explanation {
    /// The tool.
    pub tool: Arc<Registered>,
    /// The policy's decision and its rule.
    pub decision: Decision,
    /// The refusal of every call of the tool, whatever its input: it precedes the policy.
    pub refused: Option<ErrorKind>,
    /// The paths that the call would change, relative to the workspace, as far as its input tells.
    /// An error is the refusal of the input, which precedes the policy, or of a write-protected
    /// path.
    pub changes: Result<Vec<String>, ErrorKind>,
}

/// Leaves out the paths, which come from the input.
impl fmt::Debug for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Explanation")
            .field("tool", &self.tool)
            .field("decision", &self.decision)
            .finish_non_exhaustive()
    }
}

impl Dispatcher {
    /// Predicts the treatment of a call without running it or asking for confirmation.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if there is no such tool, [`ErrorKind::PermissionDenied`] if the
    /// session may not call it.
    pub(crate) fn explain(&self, session: &Session, call: Call) -> Result<Explanation, ErrorKind> {
        session.workspace().keep_rules_of(&self.rules);
        let tool = self.registry.get(&call.tool).map_err(|missing| self.not_found(&missing))?;
        if !self.floor.permits(session, &tool) {
            return Err(not_allowed(&tool, self.floor.list_without(&tool)));
        }
        let decision = self.floor.rule(session, &tool).decision;
        let bound = self.check_bound(&tool, session.workspace());
        let workspace = match bound.and_then(|()| self.workspace_of(&tool, session, &call)) {
            Ok(workspace) => workspace,
            Err(kind) => {
                let refused = Some(kind);
                return Ok(Explanation { tool, decision, refused, changes: Ok(Vec::new()) });
            }
        };
        let check = || self.check_here(&tool, session, &workspace, call);
        let changes = panics::catch_panic_sync(check);
        Ok(Explanation { tool, decision, refused: None, changes })
    }

    /// Returns the workspace that the tool sees. A directory of it is opened on the host's own
    /// threads if it has some.
    fn workspace_of(
        &self,
        tool: &Registered,
        session: &Session,
        call: &Call,
    ) -> Result<Arc<Workspace>, ErrorKind> {
        let workspace = session.workspace().clone();
        let Some(path) = tool.subdirectory().cloned() else { return Ok(workspace) };
        let time = self.time_limit(tool, call.timeout);
        let open = move || workspace.below(&path).map_err(|why| not_opened(&why));
        match self.threads.as_deref() {
            Some(threads) => threads.run_blocking(time, tool.queue(), &call.cancel, open),
            None => open(),
        }
    }

    /// Checks the input synchronously, and the places that its paths lead to. Returns the paths
    /// that the call would change. A thread is waited for as in a call, and an unresponsive
    /// workspace blocks it no longer than the call's timeout.
    fn check_here(
        &self,
        tool: &Arc<Registered>,
        session: &Session,
        workspace: &Arc<Workspace>,
        call: Call,
    ) -> Result<Vec<String>, ErrorKind> {
        let time = self.time_limit(tool, call.timeout);
        let raw = RawInput::new(call.input, call.nulls, InputMemory::Unreserved);
        let (whole, workspace) = (session.workspace().clone(), workspace.clone());
        let account = self.limits.account();
        let check = {
            let tool = tool.clone();
            let late_rules = self.late_rules.clone();
            let cancel = call.cancel.clone();
            move || {
                // The time limit applies from the start of the work.
                let budget = InputBudget::new(account, time, cancel);
                if !late_rules.are_current_in(&whole) {
                    // The call itself reports an error here.
                    let _ = late_rules.apply_to(&whole);
                }
                let definition = tool.definition();
                let input = input::check_in_turns(definition, &workspace, raw, &budget)?;
                let own = budget.call_budget();
                let judge = || match paths::check_places_of_links(&tool, &input, &workspace, own)? {
                    Ok(()) => paths::projected_changes(&tool, &input, &workspace, own),
                    Err(refused) => Ok(Err(refused)),
                };
                let class = definition.side_effects();
                let changes = judge().map_err(|why| budget.exhausted(why, class))??;
                Ok(changes.into_iter().map(|change| change.place).collect())
            }
        };
        match self.threads_for_paths(tool) {
            Some(threads) => threads.run_blocking(time, tool.queue(), &call.cancel, check),
            None => check(),
        }
    }
}
