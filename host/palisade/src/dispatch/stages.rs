//! The stages of one call, from the check of its input to the run of its tool.

use super::approve::{self, Approval};
use super::call_recorder::{CallRecorder, CallStart};
use super::call_threads::CallThreads;
use super::input::{self, InputBudget, InputMemory, QuickCheck, RawInput};
use super::late_rules::not_hidden;
use super::nested::NestedCaller;
use super::pipeline::Pipeline;
use super::{panics, queue, run};
use crate::execution::account::Account;
use crate::execution::offload::exhaustion_error;
use crate::execution::{BoxFuture, Caller, Times, ToolContext, ValidInput};
use crate::tool::budget::Exhausted;
use crate::tool::{Call, ErrorKind, ToolResult};
use crate::workspace::{Subdirectory, not_opened};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

impl Pipeline<'_> {
    /// Runs the stages until their end or a cancellation. A cancellation by the caller's token is
    /// forwarded to the tool's token.
    pub(super) fn run_cancellable(
        &self,
        call: Call,
    ) -> impl Future<Output = Result<ToolResult, ErrorKind>> + Send {
        // Boxed, because the state of a call is large and the futures that contain this one may be
        // moved.
        let stages: BoxFuture<'_, _> = Box::pin(self.run_stages(call));
        async move {
            let stages = self.stops.guard(self.cancel, panics::catch_panic(stages));
            let mut stages = pin!(stages);
            loop {
                tokio::select! {
                    biased;
                    result = &mut stages => return result,
                    // The guard forwards it.
                    () = self.stops.caller().cancelled(), if !self.cancel.is_cancelled() => {}
                }
            }
        }
    }

    /// Runs the stages. A plain `async fn` would hold the call twice, so it is destructured first.
    fn run_stages(&self, call: Call) -> impl Future<Output = Result<ToolResult, ErrorKind>> + Send {
        let Call { id, input, nulls, turn_id, context, metadata, .. } = call;
        async move {
            self.session.workspace().keep_rules_of(&self.dispatcher.rules);
            self.dispatcher.check_bound(&self.tool, self.session.workspace())?;
            if let Some(path) = self.tool.subdirectory() {
                Box::pin(self.open_subdirectory(path)).await?;
            }
            let (account, memory) = match (&self.requester.parent, &self.requester.account) {
                (Some(parent), _) => (parent.account.nested(), InputMemory::Unreserved),
                (None, Some(account)) => (account.clone(), InputMemory::Reserved),
                (None, None) => (self.dispatcher.limits.account(), InputMemory::Unreserved),
            };
            if let Some(memory) = self.tool.memory() {
                account.allow_call(memory);
            }
            if let Some(unused) = self.unused {
                unused.hold(&account);
            }
            let raw = RawInput::new(input, nulls, memory).kept_in(self.unused);
            self.charge_to_session(&account)?;
            let CheckedInput { input, mut spent } =
                match self.dispatcher.threads_for_paths(&self.tool) {
                    Some(threads) => {
                        Box::pin(self.check_on_thread(threads, raw, account.clone())).await?
                    }
                    None => match self.check_in_place(raw, &account)? {
                        QuickCheck::Valid(input) => CheckedInput { input, spent: Spent::default() },
                        QuickCheck::Long(raw) => {
                            Box::pin(self.check_offloaded(raw, account.clone())).await?
                        }
                    },
                };
            let mut approval = approve::approve(self, input.with_account(account.clone())).await?;
            match approval.is_large() {
                false => approval.compact()?,
                true => {
                    (approval, spent) =
                        Box::pin(self.compact_offloaded(approval, spent, account.clone())).await?;
                }
            }
            let permits = queue::admit(self, spent.waiting).await?;
            self.check_time_of_parent()?;
            approval.check_expiry()?;
            approval.check_displayed(self, &account).await?;
            self.hide_late_paths(&account).await?;
            if let Some(recorder) = &self.dispatcher.recorder {
                self.record_start(&**recorder, &approval).await?;
            }
            self.check_not_stopped()?;
            approval.begin();
            self.sink.tell_start();
            let session_id = self.session.id().cloned();
            let caller = Caller { call_id: id.clone(), session_id, turn_id, context, metadata };
            let times = Times { run: self.time, queue: permits.patience };
            let context = self.tool_context(caller, times, account, spent.checking);
            Ok(run::run(self, approval, Arc::new(context), id).await)
        }
    }

    /// Refuses a call that another call makes, if the time of the other call is over: it has waited
    /// for its turn.
    fn check_time_of_parent(&self) -> Result<(), ErrorKind> {
        match &self.requester.parent {
            Some(parent) if parent.clock.left().is_zero() => {
                let class = self.tool.definition().side_effects();
                Err(exhaustion_error(Exhausted::Deadline, self.time, class))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Opens the directory that the tool sees, on the host's own threads if it has some, because
    /// the workspace may not respond.
    async fn open_subdirectory(&self, path: &Subdirectory) -> Result<(), ErrorKind> {
        let workspace = self.session.workspace().clone();
        let path = path.clone();
        let open = move || workspace.below(&path).map_err(|why| not_opened(&why));
        let opened = match self.dispatcher.threads.as_deref() {
            None => open()?,
            Some(threads) => threads.run_within(self.time, self.queue(), self.cancel, open).await?,
        };
        let _ = self.subdirectory.set(opened);
        Ok(())
    }

    /// Charges the call to the shares of its session from the start, if it has its own: the input
    /// is kept for this session. Otherwise a plugin is charged once it runs, because no plugin
    /// answers for the inputs that clients send.
    fn charge_to_session(&self, account: &Account) -> Result<(), ErrorKind> {
        let Some(shares) = &self.shares else { return Ok(()) };
        let class = self.tool.definition().side_effects();
        account.assign(&shares.memory).map_err(|why| exhaustion_error(why, self.time, class))
    }

    /// Checks the input here, unless that may take long.
    fn check_in_place(&self, raw: RawInput, account: &Account) -> Result<QuickCheck, ErrorKind> {
        input::check_in_place(self.tool.definition(), self.workspace(), raw, account)
    }

    /// Checks the input on the host's own threads, because its paths are looked up in a workspace
    /// that may not respond. Returns the time spent as well.
    async fn check_on_thread(
        &self,
        threads: &CallThreads,
        raw: RawInput,
        account: Account,
    ) -> Result<CheckedInput, ErrorKind> {
        let tool = self.tool.clone();
        let workspace = self.workspace().clone();
        let cancel = self.cancel.clone();
        let time = self.time;
        let memory = input::reserve_waiting(&raw, &account)?;
        let start = Instant::now();
        // The time limit and the memory account apply from the start of the thread's work.
        let check = move || {
            let check_start = Instant::now();
            drop(memory);
            let budget = InputBudget::new(account, time, cancel);
            let input = input::check_in_turns(tool.definition(), &workspace, raw, &budget)?;
            Ok((input, check_start.elapsed()))
        };
        let (input, checking) = threads.run_within(time, self.queue(), self.cancel, check).await?;
        let waiting = start.elapsed().saturating_sub(checking);
        Ok(CheckedInput { input, spent: Spent { checking, waiting } })
    }

    /// Checks a long input outside the runtime's threads. Returns the time spent as well.
    async fn check_offloaded(
        &self,
        raw: RawInput,
        account: Account,
    ) -> Result<CheckedInput, ErrorKind> {
        let tool = self.tool.clone();
        let workspace = self.workspace().clone();
        let start = Instant::now();
        let budget = InputBudget::new(account, self.time, self.cancel.clone());
        let check = move |budget| input::check(tool.definition(), &workspace, raw, &budget);
        let input = budget.offload(self.tool.definition().side_effects(), check).await?;
        let spent = Spent { checking: start.elapsed(), waiting: Duration::ZERO };
        Ok(CheckedInput { input: input?, spent })
    }

    /// Compacts a large input outside the runtime's threads. Returns the time spent as well.
    async fn compact_offloaded(
        &self,
        mut approval: Approval,
        spent: Spent,
        account: Account,
    ) -> Result<(Approval, Spent), ErrorKind> {
        let budget = InputBudget::new(account, self.time, self.cancel.clone());
        let start = Instant::now();
        let compact = move |_| {
            let outcome = approval.compact();
            Ok(outcome.map(|()| approval))
        };
        let approval = budget.offload(self.tool.definition().side_effects(), compact).await?;
        Ok((approval?, Spent { checking: spent.checking + start.elapsed(), ..spent }))
    }

    /// Adds the outstanding rules for a call that runs in place, outside its thread because that
    /// accesses files.
    async fn hide_late_paths(&self, account: &Account) -> Result<(), ErrorKind> {
        let sees_files = self.tool.definition().side_effects().sees_files();
        let is_in_place = self.dispatcher.threads.is_none();
        let late_rules = &self.dispatcher.late_rules;
        if sees_files && is_in_place && !late_rules.are_current_in(self.session.workspace()) {
            let budget = InputBudget::new(account.clone(), self.time, self.cancel.clone());
            return Box::pin(self.apply_late_rules(budget)).await;
        }
        Ok(())
    }

    async fn apply_late_rules(&self, budget: InputBudget) -> Result<(), ErrorKind> {
        let late_rules = self.dispatcher.late_rules.clone();
        let workspace = self.session.workspace().clone();
        let apply = move |_| Ok(late_rules.apply_to(&workspace));
        let applied = budget.offload(self.tool.definition().side_effects(), apply).await?;
        applied.map_err(|error| not_hidden(&error))
    }

    /// Records that the call is about to run. A cancellation ends the wait.
    async fn record_start(
        &self,
        recorder: &dyn CallRecorder,
        approval: &Approval,
    ) -> Result<(), ErrorKind> {
        let start = CallStart::new(self.sink.subject(), &self.tool, approval.input());
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(ErrorKind::Cancelled),
            recorded = recorder.before_run(start) => Ok(recorded?),
        }
    }

    /// Returns the context of the tool. `checked_for` is the time that the call has already used.
    fn tool_context(
        &self,
        caller: Caller,
        times: Times,
        account: Account,
        checked_for: Duration,
    ) -> ToolContext {
        let workspace = self.workspace().clone();
        let mut context =
            ToolContext::new(caller, workspace, self.cancel.clone(), times, self.sink.clone());
        context.set_class(self.tool.definition().side_effects());
        context.set_account(account);
        context.set_shares(self.shares.clone());
        if !checked_for.is_zero() {
            context.set_spent(checked_for);
        }
        if let Some(client) = &self.requester.client {
            context.set_client(client.clone());
        }
        match (&self.requester.parent, self.tool.callees()) {
            (Some(parent), _) => {
                context.set_nesting(parent.nesting.clone());
                context.set_outer_clock(parent.clock.clone());
            }
            (None, Some(_)) => {
                let tools = NestedCaller::new(self, &context);
                context.set_tools(Arc::new(tools));
            }
            (None, None) => {}
        }
        context
    }
}

/// An input that passed its checks.
struct CheckedInput {
    input: ValidInput,
    spent: Spent,
}

/// The time spent on checking an input.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    /// Counted towards the time limit of the call.
    checking: Duration,
    /// Counted towards the time limit of the queues.
    waiting: Duration,
}
