//! The context of a call: its properties, and the messages that a tool can send to the host.

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::bindings::palisade::tool::types::Call;
use crate::{Error, Level, Result};

#[cfg_attr(target_family = "wasm", path = "context/host.rs")]
#[cfg_attr(not(target_family = "wasm"), path = "context/recorder.rs")]
mod backend;

use backend::Backend;

/// The context of a call. A tool gets it by taking a `&Context` as its last parameter.
///
/// Its functions never fail and grant nothing. In a component, messages go to the host, which
/// limits them: each message to 4 KiB, all log messages of a call to 256 KiB, all emitted chunks to
/// 1 MiB. In a native test, messages are recorded, see [`testing`](crate::testing).
pub struct Context {
    call: Call,
    started: OnceLock<Instant>,
    caller: OnceLock<Value>,
    metadata: OnceLock<Value>,
    backend: Backend,
}

impl Context {
    /// Writes to the host's log, under the ID of the call. The model does not see it.
    pub fn log(&self, level: Level, message: &str) {
        self.backend.log(level, message);
    }

    /// Logs a detail for debugging the tool.
    pub fn debug(&self, message: &str) {
        self.log(Level::Debug, message);
    }

    /// Logs information.
    pub fn info(&self, message: &str) {
        self.log(Level::Info, message);
    }

    /// Logs a problem that does not stop the tool.
    pub fn warn(&self, message: &str) {
        self.log(Level::Warn, message);
    }

    /// Logs a failure.
    pub fn error(&self, message: &str) {
        self.log(Level::Error, message);
    }

    /// Reports progress: `done` of `total`, in any unit. Values should grow. An empty message
    /// counts as none.
    pub fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        self.backend.progress(done, total, Some(message).filter(|message| !message.is_empty()));
    }

    /// Streams a part of the output to observers before the call has ended. The model only reads
    /// the output that the tool returns.
    pub fn emit(&self, chunk: &str) {
        self.backend.emit(chunk);
    }

    /// Returns true if the caller has cancelled the call. A tool that polls has 25 ms from then on
    /// to clean up and return [`Error::cancelled`]; a tool that has never polled is stopped at
    /// once.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.backend.cancelled()
    }

    /// Returns an error if the call is cancelled, so that a loop stops with `ctx.checkpoint()?`.
    ///
    /// # Errors
    /// [`Error::cancelled`] if the caller has cancelled the call.
    pub fn checkpoint(&self) -> Result<()> {
        if self.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Returns the ID of this call in results, events and logs.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call.call_id
    }

    /// Returns the conversation that the call belongs to, if the caller has one.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.call.session_id.as_deref()
    }

    /// Returns the turn within the conversation, if the caller has one.
    #[must_use]
    pub fn turn_id(&self) -> Option<&str> {
        self.call.turn_id.as_deref()
    }

    /// Returns the time left before the deadline of the call; zero after the deadline.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        Duration::from_millis(self.call.remaining_ms).saturating_sub(self.started().elapsed())
    }

    /// Returns the context that the caller passes along. Opaque to the host; an empty object by
    /// default.
    #[must_use]
    pub fn caller(&self) -> &Value {
        self.caller.get_or_init(|| object(&self.call.context))
    }

    /// Returns the metadata of the call: an object, usually empty.
    #[must_use]
    pub fn metadata(&self) -> &Value {
        self.metadata.get_or_init(|| object(&self.call.metadata))
    }

    /// Returns the configuration that the operator has set for the plugin: an object, or `null` if
    /// there is none. No caller can set it.
    #[must_use]
    pub fn config(&self) -> &Value {
        static NONE: Value = Value::Null;
        self.metadata().get("plugin-config").unwrap_or(&NONE)
    }

    /// Starts the clock of [`remaining`](Self::remaining). The expansion of `#[tool]` calls it if
    /// the function takes the context, so that other tools avoid this host call.
    #[doc(hidden)]
    pub fn begin(&self) {
        self.started();
    }

    pub(crate) fn of(call: Call) -> Self {
        Self {
            call,
            started: OnceLock::new(),
            caller: OnceLock::new(),
            metadata: OnceLock::new(),
            backend: Backend::new(),
        }
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn call_mut(&mut self) -> &mut Call {
        &mut self.call
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn backend_mut(&mut self) -> &mut Backend {
        &mut self.backend
    }

    fn started(&self) -> Instant {
        *self.started.get_or_init(Instant::now)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("call_id", &self.call.call_id)
            .field("tool", &self.call.tool)
            .finish_non_exhaustive()
    }
}

/// Parses an object. The contract allows the empty string for `{}`.
fn object(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| Value::Object(Map::new()))
}
