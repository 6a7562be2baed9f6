//! The data types of tools, calls and results: pure data, without a runtime, file system or clock.

pub(crate) mod ask;
pub(crate) mod call;
pub(crate) mod content;
pub(crate) mod definition;
pub(crate) mod digest;
pub(crate) mod error;
pub(crate) mod name;
pub mod offer;
mod provider_formats;
pub(crate) mod result;
pub(crate) mod sandbox_contents;
pub mod schema;
pub(crate) mod side_effects;
mod tool_pattern;
pub(crate) mod uri;

pub(crate) use ask::{AskKind, AskKinds, AskRequest};
pub use call::CallInput;
pub(crate) use call::{Call, CallId};
pub use content::Body;
pub(crate) use content::Content;
pub use definition::Idempotence;
pub(crate) use definition::{Definition, DefinitionError};
pub use digest::Digest;
pub(crate) use error::{
    Advice, ErrorClass, ErrorKind, ExecutionKind, Limit, PermissionReason, Places, ToolError,
};
pub use name::{InvalidName, ToolName};
pub use palisade_schema::{budget, json, nearest_names, text};
pub use result::Usage;
pub(crate) use result::{ToolResult, UNLISTED};
pub(crate) use schema::{Schema, Violation, Violations};
pub use side_effects::UnknownSideEffects;
pub(crate) use side_effects::{FileAccess, SideEffects};
pub use tool_pattern::{InvalidToolPattern, ToolPattern};
