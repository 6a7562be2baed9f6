//! A tool of a plugin, as an implementation of the host's `Tool` trait.

use super::answer::{self, Returned};
use super::compact_json::{call_metadata, compact};
use super::failure::Failure;
use super::load_code::load_code;
use super::offered::Offered;
use super::report::report;
use super::request;
use super::with_powers::with_powers;
use crate::execution::account::{Account, CallBudget};
use crate::execution::deferred_drop::drop_later;
use crate::execution::offload::exhaustion_error;
use crate::execution::owner::nested_sandboxes;
use crate::execution::share::{Grant, Share};
use crate::execution::{
    BoxFuture, OwnerShares, Tool, ToolContext, ToolOutput, ValidInput, enter_queue,
};
use crate::sandbox::adapt::{Answered, Function, Lowered, NoAnswer};
use crate::sandbox::bindings::exports::palisade::tool::tool as wit;
use crate::sandbox::engine::Allocation;
use crate::sandbox::guest_files::GuestFiles;
use crate::sandbox::limits::{self, Limits};
use crate::sandbox::load::Prepared;
use crate::sandbox::output::{self, Converted, Promiser, Terms};
use crate::sandbox::plugin_settings::PluginSettings;
use crate::sandbox::powers::whole_memory;
use crate::sandbox::run::{
    ClientRequests, Contract, Limiter, Linked, Messages, RunBounds, State, Stop, ToolCalls,
    new_store, run_bounded, take_sandbox,
};
use crate::tool::{Definition, ErrorKind, ExecutionKind, FileAccess};
use crate::workspace::{is_temporary, not_opened};
use palisade_wasi_fs::{Access, Filesystem, Options};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasmtime::Store;
use wasmtime::component::ComponentExportIndex;

#[cfg(test)]
mod tests;

/// The plugin function that a call invokes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// `execute`.
    Tool,
    /// A function of a component of another world.
    Function,
    /// A function for resources or prompts.
    Offered(Offered),
}

/// The function of a plugin's code that a call invokes, with what it needs.
enum Target<'a> {
    Execute(&'a ComponentExportIndex),
    Function(&'a Function, Lowered),
    Offered(Offered),
}

/// The return value of a guest.
enum Raw {
    Returned(Returned),
    Answered(Result<Answered, NoAnswer>),
}

pub(super) struct WasmTool {
    plugin: Arc<Prepared>,
    definition: Definition,
    entry: Entry,
    limits: Limits,
    /// The settings of the plugin, if there are any.
    settings: Option<Arc<PluginSettings>>,
}

impl Tool for WasmTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn execute<'a>(
        &'a self,
        input: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        Box::pin(async move {
            self.run(&input, context).await.map_err(|failure| {
                failure.into_error_kind(context.time_limit(), self.definition.side_effects())
            })
        })
    }
}

impl WasmTool {
    pub(super) fn new(
        plugin: &Arc<Prepared>,
        definition: &Definition,
        entry: Entry,
        limits: Limits,
    ) -> Self {
        Self {
            plugin: plugin.clone(),
            definition: definition.clone(),
            entry,
            limits,
            settings: None,
        }
    }

    /// Sets the settings of the plugin.
    pub(super) fn with_settings(self, settings: Option<Arc<PluginSettings>>) -> Self {
        Self { settings, ..self }
    }

    async fn run(&self, input: &ValidInput, context: &ToolContext) -> Result<ToolOutput, Failure> {
        let mut patience = context.times().queue;
        let linked = match self.plugin.code.get() {
            Some(linked) => linked,
            None => {
                let start = Instant::now();
                let linked = Box::pin(load_code(&self.plugin, context)).await?;
                patience = patience.saturating_sub(start.elapsed());
                linked
            }
        };
        let sandbox = match self.sandboxes(context).try_take(linked.units) {
            Ok(free) => free,
            Err(_) => Box::pin(self.wait_for_sandbox(linked.units, context, patience)).await?,
        };
        let account = context.account();
        let target = self.target(linked, input, &account, context)?;
        let mut store = self.new_store(linked, context, &account, &target)?;
        let running = linked.runtime.running();
        let ended = self.run_guest(linked, &target, &mut store, input, context).await;
        drop(target);
        let result = match self.returned(ended, &store, context) {
            Ok(raw) => self.convert(raw, &mut store, account, context).await,
            Err(failure) => Err(failure),
        };
        context.set_report(report(&mut store, context.workspace()));
        drop(running);
        self.release(linked, store, sandbox, context);
        result
    }

    /// Returns the shares that the call is charged to: those of its session, or of the plugin.
    fn owner<'a>(&'a self, context: &'a ToolContext) -> &'a OwnerShares {
        context.shares().unwrap_or(&self.plugin.owner)
    }

    /// Returns the share of the sandboxes that the call takes from. A call that another one makes
    /// takes from a pool of its own, so that calls never wait for those that wait for them.
    fn sandboxes(&self, context: &ToolContext) -> Arc<Share> {
        let own = &self.owner(context).sandboxes;
        match context.nesting() {
            None => own.clone(),
            Some(_) => nested_sandboxes().share_of(own.owner()),
        }
    }

    /// Finds the function of the call, and converts its parameters if it has its own.
    fn target<'a>(
        &self,
        linked: &'a Linked,
        input: &ValidInput,
        account: &Account,
        context: &ToolContext,
    ) -> Result<Target<'a>, ErrorKind> {
        let function = match (self.entry, linked.contract()) {
            (Entry::Offered(offered), _) => return Ok(Target::Offered(offered)),
            (Entry::Tool, Contract::Tool(execute)) => return Ok(Target::Execute(execute)),
            (Entry::Function, Contract::Functions(functions)) => {
                functions.get(self.definition.own_name().as_str())
            }
            (Entry::Tool, Contract::Functions(_)) | (Entry::Function, Contract::Tool(_)) => None,
        };
        let missing = "the code of the plugin lacks the function of this tool";
        let function =
            function.ok_or_else(|| ErrorKind::execution(ExecutionKind::Internal, missing))?;
        let class = self.definition.side_effects();
        let parameters = answer::parameters(function, input.value(), account, context, class)?;
        Ok(Target::Function(function, parameters))
    }

    /// Waits for sandboxes of the call's share, for at most `patience`.
    async fn wait_for_sandbox(
        &self,
        units: u64,
        context: &ToolContext,
        patience: Duration,
    ) -> Result<Grant, Failure> {
        let _waiting = enter_queue(&self.owner(context).queue)?;
        let sandboxes = self.sandboxes(context);
        Ok(take_sandbox(&sandboxes, units, context.cancel(), patience).await?)
    }

    /// Creates the store of the call, and starts the call's clock, because the workspace may block.
    fn new_store(
        &self,
        linked: &Linked,
        context: &ToolContext,
        account: &Account,
        target: &Target<'_>,
    ) -> Result<Store<State>, ErrorKind> {
        let deadline = context.deadline();
        let filesystem = self.filesystem(context)?;
        let messages = Messages::new(context.sink().clone(), context.cancel().clone());
        let class = self.definition.side_effects();
        let exhausted = |why| exhaustion_error(why, context.time_limit(), class);
        account.assign(&self.owner(context).memory).map_err(exhausted)?;
        let runtime = &linked.runtime;
        let limiter = Limiter::new(self.limits.memory, runtime.kind.allocation, account);
        let powers = self.plugin.code.powers();
        let whole = whole_memory(runtime, powers.map(|powers| &**powers));
        let limiter = limiter.with_whole(whole).map_err(exhausted)?;
        let requests = ClientRequests::from_context(context);
        let state = State::new(filesystem, limiter, messages, requests, deadline);
        let state = match target {
            Target::Execute(_) | Target::Offered(_) => state,
            Target::Function(function, _) => state.with_hostcall_data(function.fuel),
        };
        let state = match context.tools() {
            None => state,
            Some(_) => state.with_tool_calls(ToolCalls::of(context, self.plugin.granted_tools())),
        };
        let state = match powers {
            None => state,
            Some(powers) => {
                let owner = self.owner(context).descriptors.owner().clone();
                with_powers(state, powers, (class, owner), account)
            }
        };
        Ok(new_store(&runtime.engine, state))
    }

    /// Runs the guest until it returns, its time is up, or the caller cancels the call.
    async fn run_guest(
        &self,
        linked: &Linked,
        target: &Target<'_>,
        store: &mut Store<State>,
        input: &ValidInput,
        context: &ToolContext,
    ) -> Result<Raw, Stop> {
        let owner = self.owner(context);
        let bounds = RunBounds {
            clock: context.clock(),
            cancel: context.cancel(),
            signals: store.data().messages.signals().clone(),
            turns: &owner.turns,
            first_tick: owner.first_tick(),
        };
        let work = pin!(self.call_guest(linked, target, store, input, context));
        run_bounded(work, &bounds).await
    }

    async fn call_guest(
        &self,
        linked: &Linked,
        target: &Target<'_>,
        store: &mut Store<State>,
        input: &ValidInput,
        context: &ToolContext,
    ) -> wasmtime::Result<Raw> {
        let execute = match target {
            Target::Execute(execute) => execute,
            Target::Function(function, parameters) => {
                let account = context.account();
                let answered = answer::call(function, linked, store, parameters, &account).await;
                return answered.map(Raw::Answered);
            }
            Target::Offered(offered) => {
                let pre = linked.instance_pre();
                let sent = Box::pin(request::send(*offered, pre, store, input.value())).await;
                return sent.map(Raw::Returned);
            }
        };
        let caller = context.caller();
        let opaque = compact(&caller.context);
        let config = self.settings.as_ref().and_then(|settings| settings.config());
        let metadata = call_metadata(&caller.metadata, config);
        let call = || wit::Call {
            call_id: caller.call_id.as_str(),
            session_id: caller.session_id.as_deref(),
            turn_id: caller.turn_id.as_deref(),
            tool: self.definition.own_name().as_str(),
            input: input.text(),
            remaining_ms: u64::try_from(context.remaining().as_millis()).unwrap_or(u64::MAX),
            context: &opaque,
            metadata: &metadata,
        };
        linked.execute(execute, store, call).await.map(Raw::Returned)
    }

    /// Returns the output of a guest that returned one.
    fn returned(
        &self,
        ended: Result<Raw, Stop>,
        store: &Store<State>,
        context: &ToolContext,
    ) -> Result<wit::Output, Failure> {
        let class = self.definition.side_effects();
        let raw = ended.map_err(|stop| {
            store.data().filesystem.remove_temp_files(is_temporary);
            stop.into_exit_reason(store)
        })?;
        let returned = match raw {
            Raw::Returned(returned) => returned,
            Raw::Answered(answered) => answer::returned(answered, context, class)?,
        };
        Ok(output::returned(returned, store.data(), class)?)
    }

    /// Converts the output of the guest, and checks it against the tool's schema.
    async fn convert(
        &self,
        raw: wit::Output,
        store: &mut Store<State>,
        account: Account,
        context: &ToolContext,
    ) -> Result<ToolOutput, Failure> {
        let budget = CallBudget::new(account, context.deadline(), context.cancel().clone());
        let terms = Terms {
            budget: &budget,
            turns: &self.owner(context).turns,
            time: context.time_limit(),
            class: self.definition.side_effects(),
            promiser: Promiser::Plugin,
        };
        let Converted { output, left_out } = output::output(raw, &terms).await?;
        if let Some(left_out) = left_out {
            store.data().messages.warn(&left_out);
        }
        Ok(output::conforming(output, &self.definition, &terms).await?)
    }

    /// Releases the memory of the guest, and then its sandbox, which must not be free before. A
    /// large memory takes long to clear, so it is cleared after the answer. Without the pool the
    /// address space is short, and the next call needs it at once.
    fn release(
        &self,
        linked: &Linked,
        mut store: Store<State>,
        sandbox: Grant,
        context: &ToolContext,
    ) {
        if store.data().limiter.peak() > limits::CLEARED_AT_ONCE
            && linked.runtime.kind.allocation == Allocation::Pooled
        {
            store.data_mut().close_files();
            drop_later(&self.owner(context).turns, (store, sandbox));
        } else {
            drop(store);
            drop(sandbox);
        }
    }

    /// Returns the file system with the workspace mounted as the tool's class allows: a tool of
    /// class `read` cannot write, whatever its code does.
    fn filesystem(&self, context: &ToolContext) -> Result<Filesystem, ErrorKind> {
        let access = match self.definition.side_effects().files() {
            FileAccess::None => return Ok(Filesystem::closed()),
            FileAccess::Read => Access::ReadOnly,
            FileAccess::ReadWrite => Access::ReadWrite,
        };
        // The workspace around a subdirectory may have got rules since the call began.
        context.workspace().update_rules().map_err(|why| not_opened(&why))?;
        let mount = context.workspace().mount().map_err(|error| ErrorKind::Execution {
            kind: ExecutionKind::Internal,
            message: "the workspace could not be mounted".to_owned(),
            field: None,
            advice: None,
            source: Some(Arc::new(error)),
        })?;
        let files = context.shares().map_or_else(|| self.plugin.files.clone(), GuestFiles::new);
        let rules = context.workspace().rules();
        let rules = match &self.settings {
            None => rules,
            Some(settings) => settings.narrow(rules),
        };
        let options = Options::new(files);
        let options = match context.nesting() {
            None => options,
            Some(nesting) => options.within(nesting.quotas.clone()),
        };
        Ok(Filesystem::new(mount, access, rules, options))
    }
}
