//! The tool `run_js`.

use palisade_guest::{Output, Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// A program.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The program: statements of JavaScript. Its result is what it returns.
    code: String,
}

/// Runs a JavaScript program that calls tools, in one step in place of many. Return a value, or
/// print with `console.log`. Each tool is a function: `tools.read_file({path: "a.txt"})` returns
/// its output at once (`await` is allowed, not needed): a text, or a value where the declaration
/// says so. It throws an error with `class` and `message` if the call fails or is refused. Texts of
/// tools are for people: they may be cut, or have notes in `[…]`; parse them with care, and ask for
/// whole files with a large `limit`. `tools.all([["read_file", {path: "a"}], …])` makes up to 32
/// calls at once and returns for each `{value}` or `{error: {class, message}}`.
/// `tools.search("words")` finds more tools. A program makes at most 256 calls, and its time
/// includes theirs. It is plain JavaScript, without types, modules, `require`, timers, network,
/// files or a real clock: only tools have effects.
#[tool(side_effects = "none", title = "Run a program", metadata = r#"{"lists-callees": true}"#)]
pub(crate) fn run_js(args: Args) -> Result<Output> {
    #[cfg(target_family = "wasm")]
    return crate::engine::run(&args.code);
    #[cfg(not(target_family = "wasm"))]
    {
        let _ = args.code;
        Err(palisade_guest::Error::failed("programs run in the sandbox alone"))
    }
}
