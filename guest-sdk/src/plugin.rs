//! The plugin interface for the host: a list of tools, one of which each call names.

use crate::bindings::palisade::tool::types::{Call, Output as WitOutput, ToolError};
use crate::{Context, Definition, Error, Output, Result};

/// Maximum number of tools of a plugin (`wit/tool.wit`, function `definitions`).
const MAX_TOOLS: usize = 256;

/// A tool, implemented by `#[tool]` for its generated type. Not meant for manual implementation.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not a tool",
    note = "a tool is a function with a doc comment, under `#[palisade_guest::tool(side_effects = \"..\")]`"
)]
pub trait Tool {
    /// The tool's name in a call.
    const NAME: &'static str;

    /// Describes the tool. Generates its schemas.
    fn definition() -> Definition;

    /// Runs the tool with `input`, a JSON object as text.
    fn execute(input: &str, context: &Context) -> Result<Output>;
}

/// A tool as a value.
#[derive(Debug)]
pub struct Entry {
    name: &'static str,
    definition: fn() -> Definition,
    execute: fn(&str, &Context) -> Result<Output>,
}

impl Entry {
    /// Returns the entry of the tool `T`.
    #[must_use]
    pub const fn of<T: Tool>() -> Self {
        Self { name: T::NAME, definition: T::definition, execute: T::execute }
    }
}

/// Rejects duplicate tool names and too many tools at compile time.
///
/// # Panics
/// At compile time only: the host would reject such a plugin.
pub const fn check(tools: &[Entry]) {
    assert!(tools.len() <= MAX_TOOLS, "a plugin offers at most 256 tools");
    let mut later = 1;
    while later < tools.len() {
        let mut earlier = 0;
        while earlier < later {
            let differ = !equal(tools[earlier].name.as_bytes(), tools[later].name.as_bytes());
            assert!(
                differ,
                "two tools of a plugin have the same name; give one another with `#[tool(name = \"..\", ..)]`"
            );
            earlier += 1;
        }
        later += 1;
    }
}

/// Returns the definitions of all tools, in the order of their export.
#[must_use]
pub fn definitions(tools: &[Entry]) -> Vec<Definition> {
    tools.iter().map(|tool| (tool.definition)()).collect()
}

/// Runs the tool that `call` names.
///
/// # Errors
/// The error of the tool; `not-found` if the plugin has no tool of that name.
pub fn execute(mut call: Call, tools: &[Entry]) -> std::result::Result<WitOutput, ToolError> {
    let Some(tool) = tools.iter().find(|tool| tool.name == call.tool) else {
        return Err(Error::not_found(format!("this plugin has no tool `{}`", call.tool)).into());
    };
    let input = std::mem::take(&mut call.input);
    let result = (tool.execute)(&input, &Context::of(call));
    result.map(WitOutput::from).map_err(ToolError::from)
}

/// Compares slices at compile time, where `==` is not available.
const fn equal(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::testing::call_of;

    /// Echoes.
    #[crate::tool(side_effects = "none")]
    fn echo(args: serde_json::Value) -> String {
        args.to_string()
    }

    /// Fails.
    #[crate::tool(side_effects = "none", name = "fails")]
    fn fail() -> Result<()> {
        Err(Error::failed("it broke"))
    }

    const TOOLS: &[Entry] = &[Entry::of::<echo>(), Entry::of::<fail>()];

    #[test]
    fn definitions_keep_the_order_of_export() {
        let names: Vec<_> =
            definitions(TOOLS).into_iter().map(|definition| definition.name).collect();
        assert_eq!(names, ["echo", "fails"]);
    }

    #[test]
    fn call_reaches_the_tool_that_it_names() {
        let output = execute(call_of("echo", r#"{"a":1}"#), TOOLS).unwrap();
        assert_eq!(output.content, [crate::Content::Text(r#"{"a":1}"#.to_owned())]);
        assert!(output.success);
        let error = execute(call_of("fails", "{}"), TOOLS).unwrap_err();
        assert_eq!(error, ToolError::Failed("it broke".to_owned()));
    }

    #[test]
    fn unknown_tool_is_not_found() {
        let error = execute(call_of("fail", "{}"), TOOLS).unwrap_err();
        assert_eq!(error, ToolError::NotFound("this plugin has no tool `fail`".to_owned()));
    }

    #[test]
    #[should_panic(expected = "two tools of a plugin have the same name")]
    fn duplicate_tool_names_are_refused() {
        check(&[Entry::of::<echo>(), Entry::of::<fail>(), Entry::of::<echo>()]);
    }

    #[test]
    #[should_panic(expected = "at most 256 tools")]
    fn too_many_tools_are_refused() {
        let tools: Vec<_> = (0..=MAX_TOOLS).map(|_| Entry::of::<echo>()).collect();
        check(&tools);
    }
}
