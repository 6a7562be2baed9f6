//! What every tool implements, native or WebAssembly: the [`Tool`] trait, its factory, and what a call sees.

pub(crate) mod account;
mod caught;
pub mod client;
pub(crate) mod clock;
pub mod context;
pub(crate) mod crew;
pub mod factory;
pub(crate) mod inherited;
mod input;
pub(crate) mod offload;
pub(crate) mod owner;
pub(crate) mod pace;
pub(crate) mod share;
mod waiting;

pub(crate) use caught::caught;
pub use client::{AskFailure, Client, NoClient};
pub use context::{Caller, Progress, Report, Severity, Silent, Sink, Times, ToolContext};
pub use factory::{Factory, has_distinct_instances};
pub use input::ValidInput;
pub(crate) use owner::{FirstTick, Owner};
pub(crate) use pace::Pace;
pub use waiting::WAITING_CALLS;
pub(crate) use waiting::wait;

use crate::tool::{Content, Definition, ErrorKind, ExecutionKind};
use serde_json::{Map, Value};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

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

/// What a tool gives back when it ran to its end.
#[derive(Debug, Clone, Default)]
pub struct ToolOutput {
    /// What the model reads, in order.
    pub content: Vec<Content>,
    /// How it went.
    pub outcome: Outcome,
    /// For the program that embeds the host; never for the model.
    pub metadata: Map<String, Value>,
    /// The files that were changed, relative to the workspace, under their real names.
    pub files_modified: Vec<PathBuf>,
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
