//! Native tools for the suites: made of a name and a function.

use std::sync::Arc;

use palisade::{
    BoxFuture, Definition, ErrorKind, Factory, SideEffects, Tool, ToolContext, ToolOutput, ValidInput, json,
};

type Run = Arc<dyn for<'a> Fn(&'a Value, &'a ToolContext) -> Result<ToolOutput, ErrorKind> + Send + Sync>;

use serde_json::Value;

/// A native tool.
pub struct Native {
    definition: Definition,
    run: Run,
}

impl Native {
    /// A tool of class none that takes any object.
    ///
    /// # Panics
    ///
    /// Where the name is not valid.
    #[must_use]
    pub fn new(
        name: &str,
        run: impl for<'a> Fn(&'a Value, &'a ToolContext) -> Result<ToolOutput, ErrorKind> + Send + Sync + 'static,
    ) -> Self {
        let definition = Definition::new(name, "A native tool.", SideEffects::None, json!({"type": "object"}));
        Self { definition: definition.expect("a valid definition"), run: Arc::new(run) }
    }

    /// With another definition.
    #[must_use]
    pub fn defined(self, definition: Definition) -> Self {
        Self { definition, ..self }
    }

    /// A factory that makes a new instance each time.
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

/// The factory of a tool that answers with its own name.
#[must_use]
pub fn echo(name: &str) -> Factory {
    let text = name.to_owned();
    Native::new(name, move |_, _| Ok(ToolOutput::text(text.clone()))).factory()
}
