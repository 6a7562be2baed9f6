//! The author's side of Palisade: new projects, builds, and the check of a plugin.
//!
//! Each module uses only modules before it in this order: `bounded`, `language`, `name`, `sdk`,
//! `project`, `component`, `case`, `trial`, `build`, `files`, `check`, `dev`. `wit` uses none of
//! them. The crate prints nothing.

mod bounded;
pub mod build;
pub mod case;
pub mod check;
mod component;
pub mod dev;
pub mod files;
pub mod language;
pub mod name;
pub mod project;
pub mod sdk;
pub mod trial;
pub mod wit;

pub use language::Language;
pub use name::PluginName;
pub use sdk::Sdk;
pub use trial::Engine;
