//! What every tool implements, native or WebAssembly: the [`Tool`] trait, its factory, and what a call sees.

mod caught;
pub mod client;
pub(crate) mod clock;
pub mod context;
pub mod factory;
pub(crate) mod inherited;
pub(crate) mod pace;
mod waiting;

pub(crate) use caught::caught;
pub use client::{AskFailure, Client, NoClient};
pub use context::{Caller, Progress, Report, Severity, Silent, Sink, Times, ToolContext};
pub use factory::{Factory, has_distinct_instances};
pub(crate) use pace::Pace;
pub(crate) use waiting::wait;
pub use waiting::{WAITING_CALLS, WAITING_CALLS_OF_ONE};

use crate::tool::{Content, Definition, ErrorKind, ExecutionKind};
use serde_json::{Map, Value};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

/// A boxed future that can move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A tool. One instance serves one call: it is made by a [`Factory`] for it and dropped after it.
///
/// ```
/// use palisade::{BoxFuture, Definition, ErrorKind, SideEffects, Tool, ToolContext, ToolOutput, ValidInput, json};
///
/// struct Shout(Definition);
///
/// impl Shout {
///     fn new() -> Self {
///         let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
///         Self(Definition::new("shout", "Says it loudly.", SideEffects::None, schema).expect("a valid definition"))
///     }
/// }
///
/// impl Tool for Shout {
///     fn definition(&self) -> &Definition {
///         &self.0
///     }
///     fn execute<'a>(&'a self, input: ValidInput, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
///         Box::pin(async move { Ok(ToolOutput::text(input.value()["text"].as_str().unwrap_or_default().to_uppercase())) })
///     }
/// }
/// ```
pub trait Tool: Send + Sync {
    /// What the tool is. The same for every instance of one factory.
    fn definition(&self) -> &Definition;

    /// Runs the tool once. `input` conforms to the schema. May wait, but does not block the thread for long; stops soon after `context.cancelled()`.
    ///
    /// # Errors
    ///
    /// What went wrong; the host reports it in the uniform result.
    fn execute<'a>(
        &'a self,
        input: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>>;

    /// Stops a run from outside. May overlap with [`execute`](Self::execute); idempotent; true only where it stopped something cleanly.
    fn cancel(&self) -> bool {
        false
    }

    /// The tool's name.
    fn name(&self) -> &str {
        self.definition().name().as_str()
    }

    /// What the model reads.
    fn description(&self) -> &str {
        self.definition().description()
    }

    /// The JSON Schema of the input.
    fn parameters(&self) -> &Value {
        self.definition().parameters()
    }

    /// Tells instances apart: wrappers that share one inner tool pass the inner one's identity on.
    fn identity(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>().addr()
    }
}

impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn definition(&self) -> &Definition {
        (**self).definition()
    }

    fn execute<'a>(
        &'a self,
        input: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        (**self).execute(input, context)
    }

    fn cancel(&self) -> bool {
        (**self).cancel()
    }

    fn identity(&self) -> usize {
        (**self).identity()
    }
}

/// An input that has been validated against the tool's schema, its paths checked.
#[derive(Debug)]
pub struct ValidInput {
    value: Value,
    text: OnceLock<String>,
}

impl ValidInput {
    /// Only the dispatcher makes these, after the checks.
    pub(crate) fn new(value: Value) -> Self {
        Self { value, text: OnceLock::new() }
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The canonical text: keys sorted, no duplicates, no spaces.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.get_or_init(|| self.value.to_string())
    }
}

/// What a tool gives back when it ran to its end.
#[derive(Debug, Clone, Default)]
pub struct ToolOutput {
    /// What the model reads, in order.
    pub content: Vec<Content>,
    /// How it went.
    pub outcome: Outcome,
    /// For the program that embeds the host; never for the model.
    pub metadata: Map<String, Value>,
    /// The files that were changed, relative to the workspace.
    pub files_modified: Vec<String>,
    /// The command that was run, if one was.
    pub command_executed: Option<String>,
}

impl ToolOutput {
    /// A success with one text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())], ..Self::default() }
    }
}

/// Whether a tool that ran to its end did what it was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It did.
    #[default]
    Success,
    /// It did its work, and the outcome is a failure that the model should see as one.
    Failure,
}

/// A plain failure in the tool's own words.
impl From<String> for ErrorKind {
    fn from(message: String) -> Self {
        Self::execution(ExecutionKind::Failed, message)
    }
}
