//! The sandbox: it compiles, describes and calls plugins, with a fresh store for each call.
//!
//! Only this module and its submodules use wasmtime. Each of its folders may use only those after
//! it in this order: `call` (the tools of plugins), `load` (from bytes to a plugin that can be
//! called), `output` (conversion and checks), `powers` (imports that other crates
//! add), `run` (stores and limits), `adapt` (components of
//! other worlds), `cache`, `compile`, `bulk_memory`, `precheck`, `engine`,
//! `plugin_settings` (what the operator sets for one plugin).

mod adapt;
mod bindings;
mod bulk_memory;
mod cache;
pub(crate) mod call;
mod compile;
mod description;
mod deserialize;
pub(crate) mod engine;
mod error_text;
mod guest_files;
mod handle;
pub mod limits;
mod load;
mod output;
mod plugin_settings;
pub(crate) mod powers;
mod precheck;
mod refusal;
mod run;
mod stored_description;
#[cfg(test)]
mod tests;

pub use adapt::{Adaptation, Docs, World};
#[cfg(test)]
pub(crate) use cache::identities;
pub use cache::{Cache, CacheError, CacheUsage};
pub(crate) use cache::{Identity, has_settled};
pub(crate) use call::Offered;
pub use compile::{
    ChildCompiler, ChildError, CompileError, CompileLimits, Compiler, answer_compilation,
};
pub use description::LeftOut;
pub use engine::{Allocation, CompileStrategy, EngineError};
pub use handle::Sandbox;
pub(crate) use limits::Limits;
pub(crate) use load::{ByteSource, PastCompilation};
pub use load::{Freshness, Import, PluginRefused, Prepared, Trust};
pub(crate) use output::{Promiser, Terms, conforming};
pub(crate) use plugin_settings::UnusableNames;
pub use plugin_settings::{CONFIG_KEY, PluginSettings, PluginSettingsError};
pub use precheck::{Cap, Feature, Foreign, PrecheckError};
