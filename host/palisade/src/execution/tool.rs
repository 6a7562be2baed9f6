//! The [`Tool`] trait, which native and WebAssembly tools implement, with its factory and the
//! context of a call.

pub(crate) mod account;
pub(crate) mod caught;
pub mod client;
pub(crate) mod clock;
pub mod context;
pub(crate) mod crew;
pub mod factory;
pub(crate) mod inherited;
mod input;
pub(crate) mod offload;
pub(crate) mod owner;
pub(crate) mod share;
mod waiting;

pub(crate) use caught::caught;
pub use client::{AskFailure, Client, NoClient};
pub use context::{Caller, Progress, Report, Severity, Silent, Sink, Times, ToolContext};
pub use factory::{Factory, has_distinct_instances};
pub use input::ValidInput;
pub(crate) use owner::{FirstTick, Owner};
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

/// A tool. A [`Factory`] creates one instance per call.
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
    /// Returns the tool's definition, which is the same for every instance of a factory.
    fn definition(&self) -> &Definition;

    /// Runs the tool once. `input` conforms to the schema. The future may wait but must not block
    /// the thread for long, and must end soon after `context.cancelled()`.
    ///
    /// # Errors
    ///
    /// The reason for the failure, which the host reports in the uniform result.
    fn execute<'a>(
        &'a self,
        input: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>>;

    /// Stops a run from outside. Idempotent, and may overlap with [`execute`](Self::execute).
    /// Returns true only if it stopped the run cleanly.
    fn cancel(&self) -> bool {
        false
    }

    /// Returns the tool's name.
    fn name(&self) -> &str {
        self.definition().name().as_str()
    }

    /// Returns the description for the model.
    fn description(&self) -> &str {
        self.definition().description()
    }

    /// Returns the JSON Schema of the input.
    fn parameters(&self) -> &Value {
        self.definition().parameters()
    }

    /// Returns an identity that differs between instances. A wrapper around a shared inner tool
    /// returns the inner tool's identity.
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

/// The output of a tool that ran to completion.
#[derive(Debug, Clone, Default)]
pub struct ToolOutput {
    /// The blocks for the model, in order.
    pub content: Vec<Content>,
    /// The outcome.
    pub outcome: Outcome,
    /// Metadata for the embedder, never for the model.
    pub metadata: Map<String, Value>,
    /// The changed files, relative to the workspace, under their real names.
    pub files_modified: Vec<PathBuf>,
    /// The executed command, if there is one.
    pub command_executed: Option<String>,
}

impl ToolOutput {
    /// Creates a success with one text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())], ..Self::default() }
    }
}

/// The outcome of a tool that ran to completion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outcome {
    /// The tool did what it was asked to do.
    #[default]
    Success,
    /// The tool reports a failure that the model should see as one.
    Failure,
}

/// Converts a message of the tool to a plain failure.
impl From<String> for ErrorKind {
    fn from(message: String) -> Self {
        Self::execution(ExecutionKind::Failed, message)
    }
}
