//! Tool definitions and tool calls in the formats of model providers and MCP clients.

mod conversation;
mod definition;
mod export;

pub use conversation::{
    Block, MAX_CALLS, Messages, OmittedPart, Outcome, Provider, REPLY_BOUNDS, ReplyError, ToolUse,
    UnknownProvider, read_calls, write_results,
};
pub use definition::DefinitionView;
pub use export::{
    Exported, Format, Strictness, UnknownFormat, Weakening, annotations, export, export_all,
};
