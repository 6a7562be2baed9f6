//! Asks the client while a tool runs: a person with a form, a model with messages, or for the
//! directories that the user works in.
//!
//! Not every client can answer during a call. If it cannot, [`ask`] does not return: the call ends,
//! and the tool runs again from its beginning, where [`ask`] then returns the answers. Therefore
//! ask first and act later, and ask the same questions in each run: keys and parameters must not
//! depend on time or randomness. After the first change to a file, [`ask`] fails with
//! [`AskError::TooLate`].
//!
//! ```
//! use palisade_guest::client::{self, AskError, Kind, Request};
//! use palisade_guest::{Result, tool};
//!
//! /// Greets the user.
//! #[tool(side_effects = "none")]
//! fn greet_user() -> Result<String> {
//!     let name = serde_json::json!({"type": "string"});
//!     let form = serde_json::json!({"type": "object", "properties": {"name": name}});
//!     let question = Request::elicitation("who", "What is your name?", &form);
//!     let answer = match client::ask(&[question]) {
//!         Ok(answers) => serde_json::from_str(&answers[0])?,
//!         Err(AskError::Declined | AskError::Unavailable) => serde_json::Value::Null,
//!         Err(error) => return Err(error.into()),
//!     };
//!     Ok(format!("Hello, {}!", answer["name"].as_str().unwrap_or("stranger")))
//! }
//!
//! // In a native test there is no client.
//! assert_eq!(greet_user()?, "Hello, stranger!");
//! # Ok::<(), palisade_guest::Error>(())
//! ```

use serde_json::{Value, json};

pub use crate::bindings::asking::palisade::tool::client::{AskError, Kind, Request};

/// Returns the kinds of requests that the client supports.
#[must_use]
pub fn supported() -> Vec<Kind> {
    #[cfg(target_family = "wasm")]
    return crate::bindings::asking::palisade::tool::client::supported();
    #[cfg(not(target_family = "wasm"))]
    Vec::new()
}

/// Returns if the client supports all of these kinds. Otherwise ends the call with an error that
/// names the missing ones.
///
/// # Panics
/// In a native test, where there is no client, unless `kinds` is empty.
pub fn need(kinds: &[Kind]) {
    #[cfg(target_family = "wasm")]
    crate::bindings::asking::palisade::tool::client::need(kinds);
    #[cfg(not(target_family = "wasm"))]
    assert!(kinds.is_empty(), "the call ends here: a native test has no client");
}

/// Asks the client, and returns one JSON text per request, in order. A call can ask at most 3
/// times, each time 1 to 8 requests.
///
/// # Errors
/// The reason why there is no answer. In a native test, [`AskError::Unavailable`].
pub fn ask(requests: &[Request]) -> Result<Vec<String>, AskError> {
    #[cfg(target_family = "wasm")]
    return crate::bindings::asking::palisade::tool::client::ask(requests);
    #[cfg(not(target_family = "wasm"))]
    {
        let _ = requests;
        Err(AskError::Unavailable)
    }
}

impl Request {
    /// Returns a request of this kind. The parameters are those of the Model Context Protocol.
    #[must_use]
    pub fn new(kind: Kind, key: &str, params: &Value) -> Self {
        Self { key: key.to_owned(), kind, params: params.to_string() }
    }

    /// Returns a form for a person. The schema is flat: an object of strings, numbers, booleans and
    /// choices. The answer is the completed form.
    #[must_use]
    pub fn elicitation(key: &str, message: &str, schema: &Value) -> Self {
        Self::new(Kind::Elicitation, key, &json!({"message": message, "requestedSchema": schema}))
    }

    /// Returns a prompt for the client's model, with a limit for its answer, in tokens. The answer
    /// is the model's message.
    #[must_use]
    pub fn sampling(key: &str, text: &str, max_tokens: u32) -> Self {
        let message = json!({"role": "user", "content": {"type": "text", "text": text}});
        Self::new(Kind::Sampling, key, &json!({"messages": [message], "maxTokens": max_tokens}))
    }

    /// Returns a request for the directories that the client's user works in. The answer is
    /// `{"roots": [{"uri", "name"}]}`.
    #[must_use]
    pub fn roots(key: &str) -> Self {
        Self::new(Kind::Roots, key, &json!({}))
    }
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use super::*;

    #[test]
    fn native_client_refuses_questions() {
        assert!(supported().is_empty());
        assert_eq!(ask(&[Request::roots("r")]), Err(AskError::Unavailable));
        need(&[]);
    }

    #[test]
    #[should_panic(expected = "has no client")]
    fn native_client_lacks_required_kinds() {
        need(&[Kind::Sampling]);
    }

    #[test]
    fn requests_match_the_protocol() {
        let form = Request::elicitation("k", "Who?", &json!({"type": "object"}));
        assert_eq!(form.params, r#"{"message":"Who?","requestedSchema":{"type":"object"}}"#);
        assert!(Request::sampling("k", "Hi", 5).params.contains(r#""maxTokens":5"#));
        assert_eq!(
            (Request::roots("k").key.as_str(), Request::roots("k").params.as_str()),
            ("k", "{}")
        );
    }
}
