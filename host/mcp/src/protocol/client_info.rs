//! The name, version and capabilities that a client claims, reduced to the fields that are read.

use palisade::tool::text::cut;
use rmcp::model::{Implementation, InitializeRequestParams};
use serde_json::{Value, json};

/// The maximum length of a client's name and version, in bytes.
const MAX_LENGTH: usize = 256;

/// Reduces a client's `initialize` parameters to the fields that are read later. They are kept for
/// the whole session, and a client could fill the rest with mebibytes.
pub(crate) fn reduced(mut params: InitializeRequestParams) -> InitializeRequestParams {
    let Implementation { name, version, .. } = &params.client_info;
    params.client_info = Implementation::new(cut(name, MAX_LENGTH), cut(version, MAX_LENGTH));
    params.meta = None;
    let capabilities = &mut params.capabilities;
    capabilities.experimental = None;
    capabilities.extensions = None;
    if let Some(sampling) = &mut capabilities.sampling {
        // Only the presence of these fields matters.
        sampling.tools = sampling.tools.take().map(|_| Default::default());
        sampling.context = sampling.context.take().map(|_| Default::default());
    }
    params
}

/// Returns the name and version of a client, shortened; its other fields are dropped.
pub(crate) fn name_and_version(client: &Value) -> Option<Value> {
    let text = |key| client.get(key).and_then(Value::as_str);
    let name = cut(text("name")?, MAX_LENGTH);
    let version = cut(text("version")?, MAX_LENGTH);
    Some(json!({"name": name, "version": version}))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn stored_introduction_is_minimal() {
        let long = "x".repeat(1 << 20);
        let introduction = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {
                "experimental": {"a": {"b": long}},
                "extensions": {"c": {"d": long}},
                "sampling": {"tools": {"e": long}, "context": {"f": long}},
                "elicitation": {"form": {}},
                "roots": {"listChanged": true},
            },
            "clientInfo": {"name": long, "version": long, "title": long, "description": long, "websiteUrl": long},
        });
        let kept =
            serde_json::to_value(reduced(serde_json::from_value(introduction).unwrap())).unwrap();
        assert!(kept.to_string().len() < 1024, "{kept}");
        assert_eq!(
            kept["capabilities"],
            json!({
                "sampling": {"tools": {}, "context": {}},
                "elicitation": {"form": {}},
                "roots": {"listChanged": true},
            })
        );
    }
}
