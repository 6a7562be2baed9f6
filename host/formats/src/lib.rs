//! Tool definitions in the formats of model providers and MCP clients.

mod export;

pub use export::{
    Exported, Format, Strictness, ToolView, UnknownFormat, Weakening, annotations, export,
    export_all,
};
