//! The data types of tools, calls and results: pure data, without a runtime, file system or clock.

pub mod ask;
pub mod call;
pub mod content;
pub mod definition;
pub mod digest;
pub mod error;
pub mod name;
pub mod offer;
mod provider_formats;
pub mod result;
pub mod schema;
pub mod side_effects;
pub(crate) mod uri;

pub use ask::{AskKind, AskKinds, AskRequest};
pub use call::{Call, CallId, CallInput};
pub use content::{Body, Content};
pub use definition::{Definition, DefinitionError};
pub use digest::Digest;
pub use error::{
    Advice, ErrorClass, ErrorKind, ExecutionKind, Limit, PermissionReason, Places, ToolError,
};
pub use name::{InvalidName, ToolName};
pub use palisade_schema::{budget, json, nearest_names, text};
pub use result::{ToolResult, Usage};
pub use schema::{Schema, SchemaError, Violation, Violations};
pub(crate) use side_effects::FileAccess;
pub use side_effects::SideEffects;
