//! The messages: a call of one of the two equal tools, and its response.

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

/// The protocol revision, whose requests are stateless.
pub(super) const REVISION: &str = "2026-07-28";

/// The length of the text, in bytes.
const LENGTH: usize = 1024;

/// A tool of all servers, with its input and its expected output.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    /// The name.
    pub(super) name: &'static str,
    params: String,
    answer: String,
}

impl Tool {
    /// Returns a tool that echoes its input and one that computes a checksum.
    pub(super) fn all() -> [Self; 2] {
        let text = text();
        let checksum = format!("{:08x}", fnv(text.as_bytes()));
        [Self::new("echo", &text, text.clone()), Self::new("checksum", &text, checksum)]
    }

    fn new(name: &'static str, text: &str, answer: String) -> Self {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "rivals", "version": "1"},
        });
        let params = json!({"name": name, "arguments": {"text": text}, "_meta": meta}).to_string();
        Self { name, params, answer }
    }

    /// Returns the call as a message on one line, without a newline.
    pub(super) fn call(&self, id: u64) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{}}}"#, self.params)
    }

    /// Returns the ID of the call that a message answers correctly; `None` if the message is not a
    /// response.
    pub(super) fn answered(&self, message: &str) -> anyhow::Result<Option<u64>> {
        // `parse` is not generic: `from_str::<Value>` would be compiled in this crate, without
        // optimisation.
        let value = message.parse::<Value>().with_context(|| format!("no JSON: {message}"))?;
        if value.get("method").is_some() {
            return Ok(None);
        }
        let Some(id) = value["id"].as_u64() else { bail!("an answer to nothing: {message}") };
        let result = &value["result"];
        let is_right = result["isError"] != true && result["content"][0]["text"] == *self.answer;
        ensure!(is_right, "`{}` is answered with {message}", self.name);
        Ok(Some(id))
    }
}

/// Returns ordinary words as the text.
fn text() -> String {
    "the quick brown fox jumps over the lazy dog ".chars().cycle().take(LENGTH).collect()
}

/// Computes the checksum of the tools: 32-bit FNV-1a.
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_has_the_known_value() {
        assert_eq!(fnv(b""), 0x811c_9dc5);
        assert_eq!(fnv(b"hello"), 0x4f9f_2cab);
    }

    #[test]
    fn only_the_expected_answer_counts() {
        let [echo, checksum] = Tool::all();
        let answer = |text: &str| {
            json!({"id": 7, "result": {"content": [{"type": "text", "text": text}]}}).to_string()
        };
        assert_eq!(echo.answered(&answer(&text())).ok(), Some(Some(7)));
        assert!(echo.answered(&answer("something else")).is_err());
        assert!(checksum.answered(&answer(&text())).is_err());
        assert!(echo.answered(r#"{"id":7,"error":{"code":-32602,"message":"no"}}"#).is_err());
        assert_eq!(echo.answered(r#"{"method":"notifications/message"}"#).ok(), Some(None));
    }
}
