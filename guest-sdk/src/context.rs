//! What a tool knows of its call, and what it can tell the host while it runs.

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

/// The call that a tool runs for. A tool gets it by taking a `&Context` as its last parameter.
///
/// Nothing here fails or grants anything. In a component it speaks to the host, which bounds what is said: messages are cut at 4 KiB, all log
/// messages of a call at 256 KiB, all emitted chunks at 1 MiB. In a native test it records, see [`testing`](crate::testing).
pub struct Context {
    call: Call,
    started: OnceLock<Instant>,
    caller: OnceLock<Value>,
    metadata: OnceLock<Value>,
    backend: Backend,
}

impl Context {
    /// Writes to the host's log, under the call's id. The model does not see it.
    pub fn log(&self, level: Level, message: &str) {
        self.backend.log(level, message);
    }

    /// Logs something for whoever looks for a defect of the tool.
    pub fn debug(&self, message: &str) {
        self.log(Level::Debug, message);
    }

    /// Logs something worth knowing.
    pub fn info(&self, message: &str) {
        self.log(Level::Info, message);
    }

    /// Logs that something is off, while the tool goes on.
    pub fn warn(&self, message: &str) {
        self.log(Level::Warn, message);
    }

    /// Logs that something failed.
    pub fn error(&self, message: &str) {
        self.log(Level::Error, message);
    }

    /// Says how far the tool has come: `done` of `total`, in any unit. Values should grow. An empty message is none.
    pub fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        self.backend.progress(done, total, Some(message).filter(|message| !message.is_empty()));
    }

    /// Shows a part of the output before the call has ended, to people and programs that watch. The model reads only what the tool returns.
    pub fn emit(&self, chunk: &str) {
        self.backend.emit(chunk);
    }

    /// Whether the caller wants the call to stop. A tool that asks has 25 ms from then on to leave things in order and return
    /// [`Error::cancelled`]; a tool that never asked is stopped at once.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.backend.cancelled()
    }

    /// The same as a result, so that a loop stops with `ctx.checkpoint()?`.
    ///
    /// # Errors
    /// [`Error::cancelled`] where the caller wants the call to stop.
    pub fn checkpoint(&self) -> Result<()> {
        if self.cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Identifies this call in results, events and logs.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call.call_id
    }

    /// The conversation that the call belongs to, if the caller has one.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.call.session_id.as_deref()
    }

    /// The turn within the conversation, if the caller has one.
    #[must_use]
    pub fn turn_id(&self) -> Option<&str> {
        self.call.turn_id.as_deref()
    }

    /// How much time is left before the call is stopped; zero where it is over.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        Duration::from_millis(self.call.remaining_ms).saturating_sub(self.started().elapsed())
    }

    /// What the caller passes along. Opaque to the host; an empty object when the caller said nothing.
    #[must_use]
    pub fn caller(&self) -> &Value {
        self.caller.get_or_init(|| object(&self.call.context))
    }

    /// What the call has no field for: an object, most often empty.
    #[must_use]
    pub fn metadata(&self) -> &Value {
        self.metadata.get_or_init(|| object(&self.call.metadata))
    }

    /// Starts the clock of [`remaining`](Self::remaining). The expansion of `#[tool]` calls it where the function takes the context; the
    /// other tools are spared the question to the host.
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

/// The contract promises an object, and allows the empty string for `{}`.
fn object(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| Value::Object(Map::new()))
}
