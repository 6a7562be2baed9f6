//! Where plugins come from and go to: files, web servers and OCI registries, and the folder of the
//! plugins that are installed.
//!
//! A [`Source`] is read from the command line or from a lock. [`fetch()`] gets its bytes within
//! bounds, and [`InstallFolder`] puts them beside a lock of `palisade-trust`, under a name with
//! their digest. An installed plugin runs only once it is approved in that lock, whose replacement
//! is the step in which an installation takes effect. [`publish()`] gives a component to a
//! registry, in the layout of the WebAssembly ecosystem, which `wkg` reads and writes.
//!
//! ```
//! use palisade_store::Source;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let source = Source::parse("oci://ghcr.io/example/git:1.2.0")?;
//! assert_eq!(source.plugin_name()?.as_str(), "git");
//! # Ok(())
//! # }
//! ```
//!
//! Each module uses only modules before it in this order: `limits`, `source_error`, `plugin_name`,
//! `reference`, `source`, `transfer_error`, `redirects`, `credentials`, `challenge`, `layout`,
//! `registry`, `fetch`, `publish`, `install_folder`.

mod challenge;
mod credentials;
mod fetch;
mod install_folder;
mod layout;
pub mod limits;
mod plugin_name;
mod publish;
mod redirects;
mod reference;
mod registry;
mod source;
mod source_error;
mod transfer_error;

pub use credentials::{Credentials, CredentialsOf};
pub use fetch::{Fetched, fetch};
pub use install_folder::{InstallError, InstallFolder, Staged};
pub use plugin_name::PluginName;
pub use publish::{Overwrite, Published, publish};
pub use reference::{OciReference, parse_digest};
pub use source::Source;
pub use source_error::SourceError;
pub use transfer_error::TransferError;
