//! The shipped plugin `code`: programs that call tools.
//!
//! Programs are JavaScript, because models write it well and the engine is Rust alone:
//! `boa_engine`, of which a component of 3.7 MB is made. A fresh engine takes 0.3 ms, so that it is
//! not initialised in advance: that would need the whole WebAssembly engine in the build script.

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

palisade_guest::export!(run_js, search_tools);
