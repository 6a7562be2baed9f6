//! A tool of a plugin, as an implementation of the host's `Tool` trait.

use super::ask::Asking;
use super::bindings::exports::palisade::tool::tool as wit;
use super::conform::conforming;
use super::ended::Ended;
use super::engine::Allocation;
use super::limiter::Limiter;
use super::linked::Linked;
use super::offer::{self, Offered};
use super::recall::CodeLost;
use super::run::{bounded, slot, store};
use super::state::State;
use super::talk::Talk;
use super::turns::Bounds;
use super::{Limits, Prepared, Sandbox, convert, limits};
use crate::execution::account::CallBudget;
use crate::execution::offload::{drop_away, ended};
use crate::execution::{
    BoxFuture, Factory, Report, Tool, ToolContext, ToolOutput, ValidInput, wait,
};
use crate::tool::{Definition, ErrorKind, ExecutionKind, FileAccess, Usage};
use crate::workspace::is_temporary;
use palisade_wasi_fs::{Access, Filesystem, Options};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;
use wasmtime::Store;

#[cfg(test)]
mod tests;

impl Sandbox {
    /// Returns the definitions of a plugin's tools with their factories.
    #[must_use]
    pub fn factories(&self, plugin: &Arc<Prepared>, limits: Limits) -> Vec<(Definition, Factory)> {
        let factory = |definition: &Definition| -> (Definition, Factory) {
            let sandbox = self.clone();
            let plugin = plugin.clone();
            let own = definition.clone();
            let make = move || {
                Box::new(WasmTool::new(&sandbox, &plugin, &own, Entry::Tool, limits))
                    as Box<dyn Tool>
            };
            (definition.clone(), Arc::new(make))
        };
        plugin.definitions().iter().map(factory).collect()
    }
}

/// The plugin function that a call invokes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// `execute`.
    Tool,
    /// A function for resources or prompts.
    Offered(Offered),
}

pub(super) struct WasmTool {
    sandbox: Sandbox,
    plugin: Arc<Prepared>,
    definition: Definition,
    entry: Entry,
    limits: Limits,
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
            let done = self.run(&input, context).await;
            done.unwrap_or_else(|ended| {
                Err(ended.into_kind(context.time_limit(), self.definition.side_effects()))
            })
        })
    }
}

impl WasmTool {
    pub(super) fn new(
        sandbox: &Sandbox,
        plugin: &Arc<Prepared>,
        definition: &Definition,
        entry: Entry,
        limits: Limits,
    ) -> Self {
        Self {
            sandbox: sandbox.clone(),
            plugin: plugin.clone(),
            definition: definition.clone(),
            entry,
            limits,
        }
    }

    async fn run(
        &self,
        input: &ValidInput,
        context: &ToolContext,
    ) -> Result<Result<ToolOutput, ErrorKind>, Ended> {
        let mut patience = context.times().queue;
        let plugin = match self.plugin.code.get() {
            Some(plugin) => plugin,
            None => {
                let begun = Instant::now();
                let loaded = Box::pin(self.loaded(context)).await?;
                patience = patience.saturating_sub(begun.elapsed());
                match loaded {
                    Ok(plugin) => plugin,
                    Err(kind) => return Ok(Err(kind)),
                }
            }
        };
        let runtime = &self.sandbox.runtime;
        let owner = &self.plugin.owner;
        let slot = match owner.sandboxes.try_take(plugin.units) {
            Ok(free) => free,
            Err(_) => match wait(&owner.queue) {
                Ok(_waiting) => {
                    Box::pin(slot(&owner.sandboxes, plugin.units, context.cancel(), patience))
                        .await?
                }
                Err(flooded) => return Ok(Err(flooded)),
            },
        };
        // Starts the call's clock, because the workspace may block.
        let deadline = context.deadline();
        let filesystem = match self.filesystem(context) {
            Ok(filesystem) => filesystem,
            Err(kind) => return Ok(Err(kind)),
        };
        let talk = Talk::new(context.sink().clone(), context.cancel().clone());
        let signs = talk.signs().clone();
        let account = context.account();
        if let Err(why) = account.assign(&owner.memory) {
            return Ok(Err(ended(why, context.time_limit(), self.definition.side_effects())));
        }
        let limiter = Limiter::new(self.limits.memory, runtime.allocation, &account);
        let mut store =
            store(runtime, State::new(filesystem, limiter, talk, Asking::of(context), deadline));
        let _running = runtime.running();
        let ended = {
            let work = pin!(self.call(plugin, &mut store, input, context));
            let clock = context.clock();
            let cancel = context.cancel();
            let first_tick = owner.first_tick();
            bounded(work, &Bounds { clock, cancel, signs, turns: &owner.turns, first_tick }).await
        };
        let result = match ended {
            Ok(returned) => Ok(match convert::returned(returned, store.data()) {
                Ok(raw) => {
                    let budget =
                        CallBudget::new(account, context.deadline(), context.cancel().clone());
                    let time = context.time_limit();
                    let class = self.definition.side_effects();
                    let turns = &owner.turns;
                    match convert::output(raw, class, &budget, turns, time).await {
                        Ok((output, left_out)) => {
                            if let Some(left_out) = left_out {
                                store.data().talk.warn(&left_out);
                            }
                            conforming(output, &self.definition, &budget, turns, time).await
                        }
                        Err(kind) => Err(kind),
                    }
                }
                Err(kind) => Err(kind),
            }),
            Err(stop) => {
                store.data().filesystem.remove_temp_files(is_temporary);
                Err(stop.into_ended(&store))
            }
        };
        context.set_report(report(&mut store));
        // A large memory takes long to clear, so it is cleared after the answer. Without the pool
        // the address space is short, and the next call needs it at once.
        if store.data().limiter.peak() > limits::CLEARED_AT_ONCE
            && runtime.allocation == Allocation::Pooled
        {
            store.data_mut().close_files();
            // In this order: the sandbox must not be free before its memory is.
            drop_away(&owner.turns, (store, slot));
        }
        result
    }

    /// Returns the code of the plugin, and loads it at the first call. The call's own clock is not
    /// running yet. Loading goes on if the call ends first, and a later call uses its result.
    async fn loaded(&self, context: &ToolContext) -> Result<Result<&Linked, ErrorKind>, Ended> {
        let _waiting = match wait(&self.plugin.owner.queue) {
            Ok(waiting) => waiting,
            Err(flooded) => return Ok(Err(flooded)),
        };
        let plugin = self.plugin.clone();
        let loading = async {
            let turn = plugin.code.turn().await;
            if plugin.code.get().is_some() {
                return Ok(());
            }
            away(move || plugin.code.load(plugin.digest, turn)).await
        };
        let loaded = tokio::select! {
            biased;
            () = context.cancel().cancelled() => return Err(Ended::Cancelled),
            loaded = tokio::time::timeout(context.times().queue, loading) => loaded,
        };
        let lost = match loaded {
            Ok(Ok(())) => {
                return Ok(self.plugin.code.get().ok_or_else(|| not_loaded(CodeLost::Gone)));
            }
            Ok(Err(lost)) => lost,
            Err(_) => CodeLost::Slow,
        };
        Ok(Err(not_loaded(lost)))
    }

    async fn call(
        &self,
        plugin: &Linked,
        store: &mut Store<State>,
        input: &ValidInput,
        context: &ToolContext,
    ) -> wasmtime::Result<Result<wit::Output, wit::ToolError>> {
        if let Entry::Offered(offered) = self.entry {
            return Box::pin(offer::called(offered, plugin.instance_pre(), store, input.value()))
                .await;
        }
        let caller = context.caller();
        let opaque = convert::compact(&caller.context);
        let metadata = convert::compact_object(&caller.metadata);
        let call = || wit::Call {
            call_id: caller.call_id.as_str(),
            session_id: caller.session_id.as_deref(),
            turn_id: caller.turn_id.as_deref(),
            tool: self.definition.name().as_str(),
            input: input.text(),
            remaining_ms: u64::try_from(context.remaining().as_millis()).unwrap_or(u64::MAX),
            context: &opaque,
            metadata: &metadata,
        };
        plugin.execute(store, call).await
    }

    /// Returns the file system with the workspace mounted as the tool's class allows: a tool of class
    /// `read` cannot write, whatever its code does.
    fn filesystem(&self, context: &ToolContext) -> Result<Filesystem, ErrorKind> {
        let access = match self.definition.side_effects().files() {
            FileAccess::None => return Ok(Filesystem::closed()),
            FileAccess::Read => Access::ReadOnly,
            FileAccess::ReadWrite => Access::ReadWrite,
        };
        let mount = context.workspace().mount().map_err(|error| ErrorKind::Execution {
            kind: ExecutionKind::Internal,
            message: "the workspace could not be mounted".to_owned(),
            field: None,
            source: Some(Arc::new(error)),
        })?;
        let options = Options::new(self.plugin.files.clone());
        Ok(Filesystem::new(mount, access, context.workspace().rules(), options))
    }
}

/// Runs `work` on a blocking thread of the runtime. `spawn_blocking` panics if the system has no
/// thread, so a thread is spawned as a test first.
async fn away(
    work: impl FnOnce() -> Result<(), CodeLost> + Send + 'static,
) -> Result<(), CodeLost> {
    let asked = std::thread::Builder::new().name("palisade-load".to_owned()).spawn(|| {});
    asked
        .map(std::thread::JoinHandle::join)
        .map_err(CodeLost::NoThread)?
        .map_err(|_| CodeLost::Gone)?;
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|panicked| Err(CodeLost::Panicked(panicked)))
}

/// Returns the error of a plugin whose code cannot be loaded. The message is for the operator.
fn not_loaded(lost: CodeLost) -> ErrorKind {
    ErrorKind::Execution {
        kind: ExecutionKind::Internal,
        message: format!("the plugin cannot be loaded any more: {lost}"),
        field: None,
        source: Some(Arc::new(lost)),
    }
}

/// Returns the host's report of the call.
fn report(store: &mut Store<State>) -> Report {
    let state = store.data_mut();
    let (stdout, stdout_dropped) = state.surroundings.take_output();
    let (stderr, stderr_dropped) = state.surroundings.take_errors();
    for (name, bytes) in [("stdout", stdout), ("stderr", stderr)] {
        if !bytes.is_empty() {
            tracing::debug!(
                stream = name,
                "{}",
                crate::tool::text::visible(&String::from_utf8_lossy(&bytes))
            );
        }
    }
    Report {
        usage: Usage {
            peak_memory_bytes: state.limiter.peak(),
            bytes_read: state.filesystem.bytes_read(),
            bytes_written: state.filesystem.bytes_written(),
            truncated_bytes: state.talk.dropped() + stdout_dropped + stderr_dropped,
        },
        // Unescaped: the code that shows a path to a user or a model escapes it.
        files_modified: state.filesystem.modified().into_iter().map(PathBuf::from).collect(),
        files_unlisted: state.filesystem.modified_unlisted(),
        stopped: None,
    }
}
