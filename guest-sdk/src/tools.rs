//! Calls other tools while a tool runs, as far as the operator has granted that.
//!
//! Each call goes the same way as a call of the client: it is validated, decided by the policy,
//! asked about if the policy says so, and run in a sandbox of its own. It takes its time, memory
//! and file quotas from the call that makes it. A tool that another tool has called cannot call
//! others.
//!
//! ```
//! use palisade_guest::{Result, tool, tools};
//!
//! /// Counts the words of the README.
//! #[tool(side_effects = "none")]
//! fn count_words() -> Result<String> {
//!     let file = tools::call("read_file", &serde_json::json!({"path": "README.md"}))?;
//!     Ok(file.text().split_whitespace().count().to_string())
//! }
//!
//! // In a native test there are no other tools.
//! assert!(count_words().is_err());
//! ```

use crate::{Content, Output, SideEffects};
use serde_json::Value;
use std::fmt;

/// A tool that may be called.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// A short name for people.
    pub title: Option<String>,
    /// Its purpose, as a model reads it.
    pub description: String,
    /// The JSON Schema of its input, as JSON text.
    pub input_schema: String,
    /// The JSON Schema of its output, as JSON text. The output is one JSON block then.
    pub output_schema: Option<String>,
    /// The strongest class of effect that it has.
    pub side_effects: SideEffects,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    tool: String,
    input: String,
    place: Option<String>,
}

/// The output of a call that succeeded.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Its blocks.
    pub content: Vec<Content>,
}

/// The reason why a call failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The class of the error, such as `permission_denied`.
    pub class: String,
    /// The reason, as a model reads it.
    pub message: String,
    /// The blocks of its output, if it left any.
    pub content: Vec<Content>,
}

impl Request {
    /// Returns a call of this tool. The input is a JSON object.
    #[must_use]
    pub fn new(tool: &str, input: &Value) -> Self {
        Self { tool: tool.to_owned(), input: input.to_string(), place: None }
    }

    /// Says which part of a program makes the call, such as `line 12`, to a person who is asked.
    #[must_use]
    pub fn at(self, place: &str) -> Self {
        Self { place: Some(place.to_owned()), ..self }
    }
}

impl Reply {
    /// Returns the text of the output: that of its text and JSON blocks, one after the other.
    #[must_use]
    pub fn text(&self) -> String {
        let text = |block: &Content| match block {
            Content::Text(text) | Content::Json(text) => Some(text.clone()),
            _ => None,
        };
        self.content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

impl std::error::Error for Failure {}

/// Returns the tools that may be called: those that the client is shown and the operator has
/// granted.
#[must_use]
pub fn list() -> Vec<Listed> {
    imported::list()
}

/// Calls a tool with this input, a JSON object.
///
/// # Errors
/// The reason why the call failed. In a native test each call is refused.
pub fn call(tool: &str, input: &Value) -> Result<Reply, Failure> {
    imported::call(Request::new(tool, input))
}

/// Makes 1 to 32 calls, of which at most 4 run at once, and returns their results in order.
#[must_use]
pub fn call_all(requests: Vec<Request>) -> Vec<Result<Reply, Failure>> {
    imported::call_all(requests)
}

/// Returns the blocks as the output of the calling tool.
impl From<Reply> for Output {
    fn from(reply: Reply) -> Self {
        Self::new(reply.content)
    }
}

#[cfg(target_family = "wasm")]
mod imported {
    use super::{Failure, Listed, Reply, Request};
    use crate::bindings::calling::palisade::tool::tools as wit;

    pub(super) fn list() -> Vec<Listed> {
        let listed = |tool: wit::Listed| Listed {
            name: tool.name,
            title: tool.title,
            description: tool.description,
            input_schema: tool.input_schema,
            output_schema: tool.output_schema,
            side_effects: tool.side_effects,
        };
        wit::list().into_iter().map(listed).collect()
    }

    pub(super) fn call(request: Request) -> Result<Reply, Failure> {
        result(wit::call(&sent(request)))
    }

    pub(super) fn call_all(requests: Vec<Request>) -> Vec<Result<Reply, Failure>> {
        let requests: Vec<wit::Request> = requests.into_iter().map(sent).collect();
        wit::call_all(&requests).into_iter().map(result).collect()
    }

    fn sent(Request { tool, input, place }: Request) -> wit::Request {
        wit::Request { tool, input, place }
    }

    fn result(result: Result<wit::Reply, wit::Failure>) -> Result<Reply, Failure> {
        match result {
            Ok(reply) => Ok(Reply { content: reply.content }),
            Err(wit::Failure { class, message, content }) => {
                Err(Failure { class, message, content })
            }
        }
    }
}

#[cfg(not(target_family = "wasm"))]
mod imported {
    use super::{Failure, Listed, Reply, Request};

    pub(super) fn list() -> Vec<Listed> {
        Vec::new()
    }

    pub(super) fn call(Request { tool, .. }: Request) -> Result<Reply, Failure> {
        let message = format!("there is no tool `{tool}`: a native test has no others");
        Err(Failure { class: "not_found".to_owned(), message, content: Vec::new() })
    }

    pub(super) fn call_all(requests: Vec<Request>) -> Vec<Result<Reply, Failure>> {
        requests.into_iter().map(call).collect()
    }
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn native_test_has_no_other_tools() {
        assert_eq!(list(), []);
        let failed = call("read_file", &json!({})).expect_err("it is refused");
        assert_eq!((failed.class.as_str(), failed.content.len()), ("not_found", 0));
        let two = vec![Request::new("a", &json!({})), Request::new("b", &json!({})).at("line 1")];
        assert_eq!(call_all(two).len(), 2);
    }

    #[test]
    fn text_of_a_reply_is_that_of_its_text_and_json() {
        let content = vec![Content::Text("a".to_owned()), Content::Json("{}".to_owned())];
        assert_eq!(Reply { content }.text(), "a\n{}");
    }
}
