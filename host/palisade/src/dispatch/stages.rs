//! The stages of one call, from the check of its input to the run of its tool.

use super::approve::{self, Approval};
use super::input::{self, Counted, Given, Glance, Purse};
use super::{Dispatcher, Party, Threads, queue, run};
use crate::events::CallSink;
use crate::execution::account::Account;
use crate::execution::offload::{Turned, offload};
use crate::execution::owner::input_turns;
use crate::execution::{BoxFuture, Caller, Times, ToolContext, ValidInput};
use crate::registry::Registered;
use crate::session::Session;
use crate::tool::budget::Budget;
use crate::tool::{Call, ErrorKind, ToolResult};
use crate::workspace::Workspace;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The pipeline of one call.
pub(super) struct Road<'a> {
    pub(super) dispatcher: &'a Dispatcher,
    pub(super) session: &'a Session,
    pub(super) message: Option<&'a Semaphore>,
    pub(super) party: &'a Party,
    pub(super) sink: &'a Arc<CallSink>,
    pub(super) tool: Arc<Registered>,
    /// The time limit of the call.
    pub(super) time: Duration,
    pub(super) cancel: &'a CancellationToken,
}

impl Road<'_> {
    /// Runs the pipeline until its end or a cancellation. A cancellation by the caller's token is
    /// forwarded to the tool's token.
    pub(super) fn travel(
        &self,
        call: Call,
    ) -> impl Future<Output = Result<ToolResult, ErrorKind>> + Send {
        let asked = call.cancel.clone();
        // Boxed, because the state of a call is large and the futures that contain this one may be
        // moved.
        let steps: BoxFuture<'_, _> = Box::pin(self.steps(call));
        async move {
            if asked.is_cancelled() {
                self.cancel.cancel();
            }
            let mut steps = pin!(run::caught(steps));
            loop {
                tokio::select! {
                    biased;
                    result = &mut steps => return result,
                    () = asked.cancelled(), if !self.cancel.is_cancelled() => self.cancel.cancel(),
                }
            }
        }
    }

    /// Runs the stages. A plain `async fn` would hold the call twice, so it is destructured first.
    fn steps(&self, call: Call) -> impl Future<Output = Result<ToolResult, ErrorKind>> + Send {
        let Call { id, input, nulls, turn_id, context, metadata, .. } = call;
        async move {
            self.session.workspace().keep_rules_of(&self.dispatcher.rules);
            let (account, memory) = match &self.party.account {
                Some(account) => (account.clone(), Counted::Already),
                None => (self.dispatcher.limits.account(), Counted::NotYet),
            };
            let given = Given { input, nulls, memory };
            let (input, mut spent) = match self.dispatcher.threads.as_deref() {
                Some(threads) if input::names_paths(self.tool.definition()) => {
                    Box::pin(self.check_away(threads, given, account.clone())).await?
                }
                _ => match input::glance(
                    self.tool.definition(),
                    self.session.workspace(),
                    given,
                    &account,
                )? {
                    Glance::Checked(input) => (input, Spent::default()),
                    Glance::Long(given) => {
                        Box::pin(self.check_long(given, account.clone())).await?
                    }
                },
            };
            let mut approval = approve::approve(self, input.held_in(account.clone())).await?;
            match approval.is_large() {
                false => approval.compact()?,
                true => {
                    (approval, spent) =
                        Box::pin(self.compacted(approval, spent, account.clone())).await?;
                }
            }
            let place = queue::admit(self, spent.waiting).await?;
            approval.still_stands()?;
            self.hide_late(&account).await?;
            self.sink.tell_start();
            let session_id = self.session.id().cloned();
            let caller = Caller { call_id: id.clone(), session_id, turn_id, context, metadata };
            let times = Times { run: self.time, queue: place.patience };
            let workspace = self.session.workspace().clone();
            let mut context =
                ToolContext::new(caller, workspace, self.cancel.clone(), times, self.sink.clone());
            context.set_class(self.tool.definition().side_effects());
            context.set_account(account);
            if !spent.checking.is_zero() {
                context.set_spent(spent.checking);
            }
            if let Some(client) = &self.party.client {
                context.set_client(client.clone());
            }
            let context = Arc::new(context);
            let threads = self.dispatcher.threads.as_deref();
            let late = &self.dispatcher.late;
            Ok(run::run(approval, context, threads, late, self.sink, id).await)
        }
    }

    /// Checks the input on the host's own threads, because its paths are looked up in a workspace
    /// that may not respond. Returns the time spent as well.
    async fn check_away(
        &self,
        threads: &Threads,
        given: Given,
        account: Account,
    ) -> Result<(ValidInput, Spent), ErrorKind> {
        let tool = self.tool.clone();
        let workspace = self.session.workspace().clone();
        let cancel = self.cancel.clone();
        let time = self.time;
        let memory = input::waiting(&given, &account)?;
        let begun = Instant::now();
        // The time limit and the memory account apply from the start of the thread's work.
        let check = move || {
            let start = Instant::now();
            drop(memory);
            let input = checked(&tool, &workspace, given, &Purse::new(account, time, cancel))?;
            Ok((input, start.elapsed()))
        };
        let (input, checking) = threads.within(time, &self.tool, self.cancel, check).await?;
        Ok((input, Spent { checking, waiting: begun.elapsed().saturating_sub(checking) }))
    }

    /// Checks a long input outside the runtime's threads. Returns the time spent as well.
    async fn check_long(
        &self,
        given: Given,
        account: Account,
    ) -> Result<(ValidInput, Spent), ErrorKind> {
        let tool = self.tool.clone();
        let workspace = self.session.workspace().clone();
        let start = Instant::now();
        let purse = Purse::new(account, self.time, self.cancel.clone());
        let check = move |budget| input::check(tool.definition(), &workspace, given, &budget);
        let input = offload(purse.budget(), input_turns(), check).await;
        let input =
            input.map_err(|why| purse.exhausted(why, self.tool.definition().side_effects()))?;
        Ok((input?, Spent { checking: start.elapsed(), waiting: Duration::ZERO }))
    }

    /// Compacts a large input outside the runtime's threads. Returns the time spent as well.
    async fn compacted(
        &self,
        mut approval: Approval,
        spent: Spent,
        account: Account,
    ) -> Result<(Approval, Spent), ErrorKind> {
        let purse = Purse::new(account, self.time, self.cancel.clone());
        let start = Instant::now();
        let compact = move |_| {
            let compacted = approval.compact();
            Ok(compacted.map(|()| approval))
        };
        let approval = offload(purse.budget(), input_turns(), compact).await;
        let approval =
            approval.map_err(|why| purse.exhausted(why, self.tool.definition().side_effects()))?;
        Ok((approval?, Spent { checking: spent.checking + start.elapsed(), ..spent }))
    }
}

/// The time spent on checking an input.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    /// Counted towards the time limit of the call.
    checking: Duration,
    /// Counted towards the time limit of the queues.
    waiting: Duration,
}

/// Checks an input within its budget, in the turns that all checks of inputs share.
pub(super) fn checked(
    tool: &Registered,
    workspace: &Workspace,
    given: Given,
    purse: &Purse,
) -> Result<ValidInput, ErrorKind> {
    let budget: Arc<dyn Budget> =
        Arc::new(Turned::begin(purse.budget().clone(), input_turns(), None));
    let checked = input::check(tool.definition(), workspace, given, &budget);
    checked.map_err(|why| purse.exhausted(why, tool.definition().side_effects()))?
}
