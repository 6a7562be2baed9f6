//! The methods that clients may use, by lifecycle, and the errors for all others.

use super::lifecycle::Lifecycle;
use palisade::tool::text::elided;
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;

/// The method of tool calls.
pub(crate) const TOOLS_CALL: &str = "tools/call";
/// The methods of both lifecycles whose parameters can be invalid.
const METHODS: &[&str] = &[
    "tools/list",
    TOOLS_CALL,
    "server/discover",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
];
/// The methods of the stateful lifecycle only.
const STATEFUL_METHODS: &[&str] =
    &["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
/// The method by which stateless clients subscribe to changes.
const LISTEN: &str = "subscriptions/listen";
/// The place of the resources in a message of this method.
const FILTER: &str = "/params/notifications/resourceSubscriptions";
/// The maximum number of resources that a client subscribes to. A plugin with templates has any
/// number of resources.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 256;

/// Returns true if the lifecycle has this method. The method for subscriptions depends on whether
/// the server watches for changes.
pub(crate) fn is_known(method: &str, lifecycle: Lifecycle, watches: bool) -> bool {
    METHODS.contains(&method)
        || match lifecycle {
            Lifecycle::Stateful => STATEFUL_METHODS.contains(&method),
            Lifecycle::Stateless => method == LISTEN && watches,
        }
}

/// Returns true for a message that subscribes to changes.
pub(crate) fn is_subscription(message: &Value) -> bool {
    message.get("method").and_then(Value::as_str) == Some(LISTEN)
}

/// Returns the resources in the filter of a message that subscribes, if it has any.
pub(crate) fn subscribed_resources(message: &Value) -> Option<&Vec<Value>> {
    let uris = message.pointer(FILTER).filter(|_| is_subscription(message))?.as_array()?;
    (!uris.is_empty()).then_some(uris)
}

/// Same as [`subscribed_resources`], to change them.
pub(crate) fn subscribed_resources_mut(message: &mut Value) -> Option<&mut Vec<Value>> {
    subscribed_resources(message)?;
    message.pointer_mut(FILTER)?.as_array_mut()
}

/// Refuses a message that subscribes to more resources than a client can.
pub(crate) fn check_filter(message: &Value) -> Result<(), ErrorData> {
    match subscribed_resources(message).map_or(0, Vec::len) {
        ..=MAX_SUBSCRIPTIONS => Ok(()),
        count => {
            let text = format!(
                "the filter has {count} resources; a client can subscribe to {MAX_SUBSCRIPTIONS}"
            );
            Err(ErrorData::invalid_params(text, None))
        }
    }
}

/// Builds the error for a method that this server does not have.
pub(crate) fn unknown_method(method: &str) -> ErrorData {
    let method = elided(method, 64);
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{method}` here"), None)
}

/// Builds the error for parameters that `rmcp` cannot parse.
pub(crate) fn invalid_params(method: &str, params: Option<&Value>) -> ErrorData {
    let is_nameless =
        method == TOOLS_CALL && params.is_none_or(|params| params.get("name").is_none());
    let message = match is_nameless {
        true => format!("`{method}` needs `name`, the name of the tool"),
        false => format!("the parameters are none of `{method}`"),
    };
    ErrorData::invalid_params(message, None)
}
