//! Loading of plugins: from their bytes, or from the cache, to plugins that can be called.

mod compilation;
mod definition;
mod describe;
mod error;
mod imports;
mod lazy_code;
mod prepare;
mod prepared;
mod provenance;

pub(crate) use compilation::PastCompilation;
pub use error::PluginRefused;
pub use imports::Import;
#[cfg(test)]
pub(super) use imports::{check as check_imports, names as import_names};
pub(crate) use lazy_code::ByteSource;
pub(super) use lazy_code::CodeError;
pub use prepared::Prepared;
pub use provenance::{Freshness, Trust};
