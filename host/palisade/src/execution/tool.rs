//! The [`Tool`] trait, which native and WebAssembly tools implement.

use super::box_future::BoxFuture;
use super::context::ToolContext;
use super::input::ValidInput;
use super::output::ToolOutput;
use super::tool_server::ToolServer;
use crate::tool::{Definition, ErrorKind};
use serde_json::Value;
use std::sync::Arc;

/// A tool. A [`Factory`](super::Factory) creates one instance per call.
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

    /// Returns the server that the tool passes its calls on to, if it does. It is the same for
    /// every instance of a factory.
    fn server(&self) -> Option<ToolServer> {
        None
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

    fn server(&self) -> Option<ToolServer> {
        (**self).server()
    }

    fn identity(&self) -> usize {
        (**self).identity()
    }
}
