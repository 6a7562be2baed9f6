//! Asking whoever made the call, while a tool runs: a person with a form, a model with messages, or for the directories that the client's user works in.
//!
//! Not every client can answer while a call waits. Where it cannot, [`ask`] does not return: the call ends, and the tool is run again from its beginning, where
//! [`ask`] returns what was answered meanwhile. So ask first and act later, and ask the same however often the tool is run: keys and parameters must not depend
//! on time or chance. After the first change to a file, [`ask`] is refused with [`AskError::TooLate`].
//!
//! ```
//! use palisade_guest::client::{self, AskError, Kind, Request};
//! use palisade_guest::{Result, tool};
//!
//! /// Greets whoever it is.
//! #[tool(side_effects = "none")]
//! fn greet_somebody() -> Result<String> {
//!     let schema = serde_json::json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
//!     let answer = match client::ask(&[Request::elicitation("who", "What is your name?", &schema)]) {
//!         Ok(answers) => serde_json::from_str(&answers[0])?,
//!         Err(AskError::Declined | AskError::Unavailable) => serde_json::Value::Null,
//!         Err(error) => return Err(error.into()),
//!     };
//!     Ok(format!("Hello, {}!", answer["name"].as_str().unwrap_or("whoever you are")))
//! }
//!
//! // In a native test nobody can be asked.
//! assert_eq!(greet_somebody()?, "Hello, whoever you are!");
//! # Ok::<(), palisade_guest::Error>(())
//! ```

use serde_json::{Value, json};

pub use crate::bindings::asking::palisade::tool::client::{AskError, Kind, Request};

/// What the client can be asked for.
#[must_use]
pub fn supported() -> Vec<Kind> {
    #[cfg(target_family = "wasm")]
    return crate::bindings::asking::palisade::tool::client::supported();
    #[cfg(not(target_family = "wasm"))]
    Vec::new()
}

/// Returns where the client can be asked for all of these, and otherwise ends the call with an error that names what is missing.
///
/// # Panics
/// In a native test, where nobody can be asked, unless `kinds` is empty.
pub fn need(kinds: &[Kind]) {
    #[cfg(target_family = "wasm")]
    crate::bindings::asking::palisade::tool::client::need(kinds);
    #[cfg(not(target_family = "wasm"))]
    assert!(kinds.is_empty(), "the call ends here: nobody can be asked in a native test");
}

/// Asks, and gives back one JSON text per request, in order. A call asks at most 3 times, each time 1 to 8 requests.
///
/// # Errors
/// Why there is no answer. In a native test, that nobody can be asked.
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
    /// A question of this kind with these parameters, as the Model Context Protocol has them.
    #[must_use]
    pub fn new(kind: Kind, key: &str, params: &Value) -> Self {
        Self { key: key.to_owned(), kind, params: params.to_string() }
    }

    /// A form for a person. The schema is flat: an object of strings, numbers, booleans and choices. The answer is what was filled in.
    #[must_use]
    pub fn elicitation(key: &str, message: &str, schema: &Value) -> Self {
        Self::new(Kind::Elicitation, key, &json!({"message": message, "requestedSchema": schema}))
    }

    /// A text for the client's model, with a bound on its answer, in tokens. The answer is the model's message.
    #[must_use]
    pub fn sampling(key: &str, text: &str, max_tokens: u32) -> Self {
        let message = json!({"role": "user", "content": {"type": "text", "text": text}});
        Self::new(Kind::Sampling, key, &json!({"messages": [message], "maxTokens": max_tokens}))
    }

    /// The directories that the client's user works in. The answer is `{"roots": [{"uri", "name"}]}`.
    #[must_use]
    pub fn roots(key: &str) -> Self {
        Self::new(Kind::Roots, key, &json!({}))
    }
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use super::*;

    #[test]
    fn natively_nobody_can_be_asked() {
        assert!(supported().is_empty());
        assert_eq!(ask(&[Request::roots("r")]), Err(AskError::Unavailable));
        need(&[]);
    }

    #[test]
    #[should_panic(expected = "nobody can be asked")]
    fn natively_what_is_needed_is_not_there() {
        need(&[Kind::Sampling]);
    }

    #[test]
    fn requests_are_those_of_the_protocol() {
        let form = Request::elicitation("k", "Who?", &json!({"type": "object"}));
        assert_eq!(form.params, r#"{"message":"Who?","requestedSchema":{"type":"object"}}"#);
        assert!(Request::sampling("k", "Hi", 5).params.contains(r#""maxTokens":5"#));
        assert_eq!((Request::roots("k").key.as_str(), Request::roots("k").params.as_str()), ("k", "{}"));
    }
}
