//! The prediction of a call's treatment, without running it.

use super::approve::question;
use super::dispatcher::Dispatcher;
use super::errors::not_allowed;
use super::input::{self, InputBudget, InputMemory, RawInput};
use super::panics;
use crate::execution::ValidInput;
use crate::policy::Decision;
use crate::registry::Registered;
use crate::session::Session;
use crate::tool::{Call, ErrorKind};
use std::fmt;
use std::sync::Arc;

/// The predicted treatment of a call.
pub struct Explanation {
    /// The tool.
    pub tool: Arc<Registered>,
    /// The policy's decision and its rule.
    pub decision: Decision,
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
        let time = self.time_limit(&tool, call.timeout);
        let cancel = call.cancel.clone();
        let input = self
            .check_bound(&tool, session.workspace())
            .and_then(|()| panics::catch_panic_sync(|| self.check_here(&tool, session, call)));
        let changes = input.and_then(|input| {
            let definition = tool.definition();
            let budget = InputBudget::new(self.limits.account(), time, cancel);
            let changes = question::projected_changes(
                definition,
                &input,
                session.workspace(),
                budget.call_budget(),
            );
            changes.map_err(|why| budget.exhausted(why, definition.side_effects()))?
        });
        Ok(Explanation { tool, decision, changes })
    }

    /// Checks the input synchronously. A thread is waited for as in a call, and an unresponsive
    /// workspace blocks it no longer than the call's timeout.
    fn check_here(
        &self,
        tool: &Arc<Registered>,
        session: &Session,
        call: Call,
    ) -> Result<ValidInput, ErrorKind> {
        let time = self.time_limit(tool, call.timeout);
        let raw = RawInput::new(call.input, call.nulls, InputMemory::Unreserved);
        let workspace = session.workspace().clone();
        let account = self.limits.account();
        let check = {
            let tool = tool.clone();
            let late_rules = self.late_rules.clone();
            let cancel = call.cancel.clone();
            move || {
                // The time limit applies from the start of the work.
                let budget = InputBudget::new(account, time, cancel);
                if !late_rules.are_current_in(&workspace) {
                    // The call itself reports an error here.
                    let _ = late_rules.apply_to(&workspace);
                }
                input::check_in_turns(tool.definition(), &workspace, raw, &budget)
            }
        };
        match self.threads_for_paths(tool) {
            Some(threads) => threads.run_blocking(time, tool.queue(), &call.cancel, check),
            None => check(),
        }
    }
}
