//! Native tools for the suites, each made of a name and a function.

use std::sync::Arc;

use palisade::{
    BoxFuture, Definition, ErrorKind, Factory, SideEffects, Tool, ToolContext, ToolOutput,
    ValidInput, json,
};

use palisade_shell::{Shell, ShellOptions};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Returns the tool `shell` with its default options, as a program adds it to the shipped plugins.
#[must_use]
pub fn shell() -> Factory {
    Shell::factory(ShellOptions::default())
}

/// The function that implements a native tool.
type Run =
    Arc<dyn for<'a> Fn(&'a Value, &'a ToolContext) -> Result<ToolOutput, ErrorKind> + Send + Sync>;

/// A native tool.
pub struct Native {
    definition: Definition,
    run: Run,
}

impl Native {
    /// Creates a tool without side effects that accepts any object.
    ///
    /// # Panics
    ///
    /// If the name is invalid.
    #[must_use]
    pub fn new(
        name: &str,
        run: impl for<'a> Fn(&'a Value, &'a ToolContext) -> Result<ToolOutput, ErrorKind>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let definition =
            Definition::new(name, "A native tool.", SideEffects::None, json!({"type": "object"}));
        Self { definition: definition.expect("a valid definition"), run: Arc::new(run) }
    }

    /// Replaces the definition.
    #[must_use]
    pub fn defined(self, definition: Definition) -> Self {
        Self { definition, ..self }
    }

    /// Returns a factory that creates a new instance for each call.
    #[must_use]
    pub fn factory(self) -> Factory {
        let (definition, run) = (self.definition, self.run);
        Arc::new(move || Box::new(Self { definition: definition.clone(), run: run.clone() }))
    }
}

impl Tool for Native {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn execute<'a>(
        &'a self,
        input: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        Box::pin(async move { (self.run)(input.value(), context) })
    }
}

/// Returns the factory of a tool whose output is its own name.
#[must_use]
pub fn echo(name: &str) -> Factory {
    let text = name.to_owned();
    Native::new(name, move |_, _| Ok(ToolOutput::text(text.clone()))).factory()
}

/// The signal that makes a waiting tool stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// The cancellation of the call's context.
    ByContext,
    /// A call of `cancel()`.
    ByCancel,
}

/// A native tool that waits for a signal to stop.
#[derive(Clone)]
pub struct Waiting {
    definition: Definition,
    told: StopSignal,
    stop: Arc<Notify>,
    started: Arc<Notify>,
    cancelled: Arc<AtomicUsize>,
    then: Arc<dyn Fn() -> Result<ToolOutput, ErrorKind> + Send + Sync>,
}

impl Waiting {
    /// Creates a tool that returns the result of `then` after its signal.
    ///
    /// # Panics
    ///
    /// If the name is invalid.
    #[must_use]
    pub fn new(
        name: &str,
        told: StopSignal,
        then: impl Fn() -> Result<ToolOutput, ErrorKind> + Send + Sync + 'static,
    ) -> Self {
        let definition =
            Definition::new(name, "Waits.", SideEffects::None, json!({"type": "object"}));
        Self {
            definition: definition.expect("a valid definition"),
            told,
            stop: Arc::default(),
            started: Arc::default(),
            cancelled: Arc::default(),
            then: Arc::new(then),
        }
    }

    /// Replaces the definition.
    #[must_use]
    pub fn defined(self, definition: Definition) -> Self {
        Self { definition, ..self }
    }

    /// Returns a factory of this tool; all instances share their signals.
    #[must_use]
    pub fn factory(&self) -> Factory {
        let tool = self.clone();
        Arc::new(move || Box::new(tool.clone()))
    }

    /// Completes when a call has started.
    pub async fn started(&self) {
        self.started.notified().await;
    }

    /// Returns the number of calls of `cancel()`.
    #[must_use]
    pub fn cancellations(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }
}

impl Tool for Waiting {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn execute<'a>(
        &'a self,
        _: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        self.started.notify_one();
        Box::pin(async move {
            match self.told {
                StopSignal::ByContext => context.cancelled().await,
                StopSignal::ByCancel => self.stop.notified().await,
            }
            (self.then)()
        })
    }

    fn cancel(&self) -> bool {
        self.stop.notify_one();
        self.cancelled.fetch_add(1, Ordering::SeqCst) == 0
    }
}
