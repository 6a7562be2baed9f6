//! Tool definitions and tool calls in the formats of model providers and MCP clients.
//!
//! A program exports its tools into a request ([`export_all`]), reads the calls of the model's
//! reply ([`read_calls`]), and writes their results as the next messages ([`write_results`], or
//! [`Messages`] without building a value). [`History`] keeps the whole conversation.
//!
//! ```
//! use palisade_formats::{Provider, ReplyError, read_calls, write_results};
//!
//! let reply = r#"{"tool_calls": [{"id": "a", "function": {"name": "echo", "arguments": "{}"}}]}"#;
//! let calls = read_calls(Provider::OpenAi, reply)?;
//! assert_eq!((calls[0].name(), calls[0].input()), ("echo", "{}"));
//!
//! let answered = [(calls[0].clone(), Ok::<_, String>("hello"))];
//! let (messages, _) = write_results(Provider::OpenAi, &answered);
//! assert_eq!(messages[0]["content"], "hello");
//! # Ok::<(), ReplyError>(())
//! ```

mod conversation;
mod definition;
mod export;

pub use conversation::{
    Block, History, MAX_CALLS, Messages, OmittedPart, Outcome, Provider, REPLY_BOUNDS, ReadReply,
    Repeated, ReplyError, ToolUse, UnknownProvider, answer_length, read_calls, write_results,
};
pub use definition::DefinitionView;
pub use export::{
    Exported, Format, Strictness, UnknownFormat, Weakening, annotations, export, export_all,
};

/// Runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
