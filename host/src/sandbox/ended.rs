//! How a guest ended when it did not return: judged by what the host knows, not by what the trap says.

use super::ask::Parted;
use super::engine::Runtime;
use super::guard::Exhausted;
use super::limits;
use super::run::Interrupted;
use super::state::State;
use crate::tool::text::{cut, visible};
use crate::tool::{ErrorKind, ExecutionKind, Limit, SideEffects};
use std::time::{Duration, Instant};
use wasmtime::Trap;

/// What wasmtime says when the bound on lifted data is reached; its error type is private. A test breaks when this text changes.
const FUEL_TEXT: &str = "fuel allocated for hostcalls has been exhausted";
/// What wasmtime says when a store's resource table is full.
const TABLE_TEXT: &str = "resource table has no free keys";
/// What it says when a store holds too many handles of the component model.
const HANDLES_TEXT: &str = "store handle limit exceeded";
/// How much of a guest's last words on standard error is passed on, in bytes.
const LAST_WORDS: usize = 2 << 10;

/// The end of a guest that did not return.
#[derive(Debug)]
pub(super) enum Ended {
    /// The time was up.
    Deadline,
    /// The caller gave up.
    Cancelled,
    /// A limit was reached.
    Limit(Limit, u64),
    /// It asked its client for something that ends the call.
    Parted(Parted),
    /// A trap of the guest's own making.
    Trap(String),
}

impl Ended {
    /// No sandbox became free.
    pub(super) fn queue() -> Self {
        Self::Limit(Limit::Queue, limits::QUEUE_MILLIS)
    }

    /// The error of a call that ended like this.
    pub(super) fn into_kind(self, timeout: Duration, class: SideEffects) -> ErrorKind {
        match self {
            Self::Deadline => ErrorKind::Timeout { limit: timeout, class },
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Limit(limit, value) => ErrorKind::ResourceExhausted { limit, value },
            Self::Parted(parted) => parted.into(),
            Self::Trap(message) => ErrorKind::execution(ExecutionKind::Trap, message),
        }
    }
}

/// Judges an error that came out of a guest.
pub(super) fn classify(error: &wasmtime::Error, state: &State) -> Ended {
    if let Some(interrupted) = error.downcast_ref::<Interrupted>() {
        return match interrupted {
            Interrupted::Deadline => Ended::Deadline,
            Interrupted::Cancelled => Ended::Cancelled,
        };
    }
    if let Some(parted) = error.downcast_ref::<Parted>() {
        return Ended::Parted(parted.clone());
    }
    // Its time was up before it trapped: what went wrong after that is no news. A bulk operation or a host call can last beyond the deadline.
    if Instant::now() >= state.deadline {
        return Ended::Deadline;
    }
    if let Some((limit, value)) = limit(error, state) {
        return Ended::Limit(limit, value);
    }
    tracing::debug!("a guest trapped: {error:#}");
    Ended::Trap(trap_text(error, state))
}

fn limit(error: &wasmtime::Error, state: &State) -> Option<(Limit, u64)> {
    if let Some(limit) = state.limiter.denied() {
        return Some(limit);
    }
    if let Some(exhausted) = state.guard.exhausted() {
        return Some(exhausted.into());
    }
    if error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return Some((Limit::Sandboxes, u64::from(limits::LIVE_SANDBOXES)));
    }
    if is_out_of_memory(error) {
        return Some((Limit::Sandboxes, Runtime::shared().map_or(0, |runtime| runtime.live())));
    }
    let text = format!("{error:#}");
    if text.contains(FUEL_TEXT) {
        Some((Limit::HostcallData, limits::HOSTCALL_DATA))
    } else if text.contains(TABLE_TEXT) {
        Some((Limit::Handles, limits::HANDLES as u64))
    } else if text.contains(HANDLES_TEXT) {
        Some((Limit::Handles, limits::COMPONENT_HANDLES as u64))
    } else {
        None
    }
}

/// Whether the system has no memory, or no room in the address space, for one more sandbox. What a guest does later is told to the guest.
fn is_out_of_memory(error: &wasmtime::Error) -> bool {
    let cause = error.root_cause();
    #[cfg(unix)]
    if cause.downcast_ref::<rustix::io::Errno>() == Some(&rustix::io::Errno::NOMEM) {
        return true;
    }
    cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::OutOfMemory)
}

/// What a person can use of a trap: what happened, and the guest's last words. Frames and addresses stay in the log.
fn trap_text(error: &wasmtime::Error, state: &State) -> String {
    let what = match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => "the plugin ran out of stack: it recurses too deeply".to_owned(),
        Some(Trap::UnreachableCodeReached) => "the plugin crashed".to_owned(),
        Some(trap) => format!("the plugin crashed: {trap}"),
        None => match error.downcast_ref::<wasmtime_wasi::I32Exit>() {
            Some(exit) => format!("the plugin exited with code {} in place of returning", exit.0),
            None => format!("the plugin could not be run: {}", cut(&visible(&error.root_cause().to_string()), 512)),
        },
    };
    let (stderr, _) = state.surroundings.take_errors();
    let words = String::from_utf8_lossy(&stderr);
    let words = words.trim();
    let last = &words[words.ceil_char_boundary(words.len().saturating_sub(LAST_WORDS))..];
    if last.is_empty() { what } else { format!("{what}; its last words: {}", visible(last)) }
}

impl From<Exhausted> for (Limit, u64) {
    fn from(exhausted: Exhausted) -> Self {
        match exhausted {
            Exhausted::ReadBytes(limit) => (Limit::BytesRead, limit),
            Exhausted::WriteBytes(limit) => (Limit::BytesWritten, limit),
            Exhausted::NewEntries(limit) => (Limit::NewEntries, limit),
            Exhausted::ListedEntries(limit) => (Limit::ListedEntries, limit),
            Exhausted::Depth(limit) => (Limit::Depth, limit),
            Exhausted::OpenFiles(limit) | Exhausted::PluginFiles(limit) => (Limit::OpenFiles, limit),
        }
    }
}
