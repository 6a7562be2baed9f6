//! The shipped plugin `code`: programs that call tools.
//!
//! Programs are JavaScript, because models write it well and the engine is Rust alone:
//! `boa_engine`. Making an engine takes longer than running a small program. The build therefore
//! makes it in advance, as part of the definitions, and stores the memory with the component.

mod search;
mod tool;

#[cfg(target_family = "wasm")]
mod console;
#[cfg(target_family = "wasm")]
mod engine;
#[cfg(target_family = "wasm")]
mod json;
#[cfg(target_family = "wasm")]
mod random;
#[cfg(target_family = "wasm")]
mod rejections;
#[cfg(target_family = "wasm")]
mod result;
#[cfg(target_family = "wasm")]
mod sort;
#[cfg(target_family = "wasm")]
mod tools_object;

use search::search_tools;
use tool::run_js;

#[cfg(target_family = "wasm")]
use engine::prepare;
/// Programs run in the sandbox alone, so that a native build has no engine.
#[cfg(not(target_family = "wasm"))]
fn prepare() {}

palisade_guest::export!(run_js, search_tools; prepare = prepare);
