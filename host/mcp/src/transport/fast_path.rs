//! The fast path of simple calls: stateless `tools/call` requests without notifications and
//! answers, which most requests are.
//!
//! A simple call has one response, and sends nothing before it. So it goes to the handler without
//! the loop of `rmcp`, which costs a task, a channel, and a second parse of each request: nearly
//! half of a quick call. Any other message, above all an invalid one, takes the way through `rmcp`,
//! so that only one place decides what is wrong with a message.

use crate::messages::catch_panic::catch_panic;
use crate::messages::extensions::FastPath;
use crate::protocol::lifecycle::{CAPABILITIES_KEY, VERSION_KEY};
use crate::protocol::methods::TOOLS_CALL;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientJsonRpcMessage, Extensions, JsonRpcMessage,
    ProtocolVersion, RequestId, RequestMetaObject, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{Peer, RequestContext, serve_directly};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServerHandler};
use serde::Deserialize as _;
use serde_json::{Map, Value};
use std::convert::Infallible;
use std::sync::OnceLock;
use tokio_util::sync::CancellationToken;

/// The members of a simple call. A message with any other member is none.
const MEMBERS: &[&str] = &["jsonrpc", "id", "method", "params"];
/// The members of its parameters.
const PARAMS: &[&str] = &["_meta", "name", "arguments"];
/// The metadata keys by which a client requests notifications while the call runs.
const NOTIFICATION_KEYS: [&str; 2] = ["progressToken", "io.modelcontextprotocol/logLevel"];

/// A request that is nothing but a call.
#[derive(Debug, PartialEq)]
pub(super) struct SimpleCall {
    id: RequestId,
    params: CallToolRequestParams,
    meta: RequestMetaObject,
    capabilities: ClientCapabilities,
}

impl SimpleCall {
    /// Converts a message that is a simple call.
    ///
    /// # Errors
    ///
    /// Returns any other message unchanged.
    pub(super) fn from_message(message: Value) -> Result<Self, Value> {
        let Some(Head { id, capabilities }) = Head::of_message(&message) else {
            return Err(message);
        };
        let Value::Object(mut message) = message else { return Err(message) };
        let Some(Value::Object(mut given)) = message.remove("params") else {
            return Err(Value::Object(message));
        };
        let mut params = CallToolRequestParams::new(text(given.remove("name")));
        params.arguments = given.remove("arguments").map(members);
        let meta = members(given.remove("_meta").unwrap_or_default()).into();
        Ok(Self { id, params, meta, capabilities })
    }

    /// Returns the id of the request.
    pub(super) fn id(&self) -> &RequestId {
        &self.id
    }

    /// Runs the call, and returns its response.
    pub(super) async fn run(
        self,
        handler: &impl ServerHandler,
        cancelled: CancellationToken,
        extensions: Extensions,
    ) -> ServerJsonRpcMessage {
        let mut context = RequestContext::new(self.id.clone(), silent_peer());
        context.ct = cancelled;
        context.meta = self.meta;
        context.extensions = extensions;
        context.extensions.insert(FastPath(self.capabilities));
        match catch_panic(handler.call_tool(self.params, context)).await {
            Ok(response) => JsonRpcMessage::response(ServerResult::from(response), self.id),
            Err(error) => JsonRpcMessage::error(error, Some(self.id)),
        }
    }
}

/// The parts of a simple call that are parsed before the message is taken apart.
struct Head {
    id: RequestId,
    capabilities: ClientCapabilities,
}

impl Head {
    /// Returns `None` for a message that is no simple call.
    fn of_message(message: &Value) -> Option<Self> {
        let message = message.as_object()?;
        let params = message.get("params")?.as_object()?;
        let meta = params.get("_meta")?.as_object()?;
        let is_simple = message.get("jsonrpc")? == "2.0"
            && message.get("method")? == TOOLS_CALL
            && has_only(message, MEMBERS)
            && has_only(params, PARAMS)
            && params.get("name")?.is_string()
            && params.get("arguments").is_none_or(Value::is_object)
            && !NOTIFICATION_KEYS.iter().any(|key| meta.contains_key(*key));
        let id = RequestId::deserialize(message.get("id").filter(|_| is_simple)?).ok()?;
        let is_current = meta.get(VERSION_KEY)? == ProtocolVersion::V_2026_07_28.as_str();
        let capabilities = meta.get(CAPABILITIES_KEY).filter(|_| is_current)?;
        let capabilities = ClientCapabilities::deserialize(capabilities).ok()?;
        Some(Self { id, capabilities })
    }
}

fn has_only(map: &Map<String, Value>, keys: &[&str]) -> bool {
    map.keys().all(|key| keys.contains(&key.as_str()))
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn text(value: Option<Value>) -> String {
    match value {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

/// Returns a peer to which nothing can be sent. `rmcp` requires one with each request, and a simple
/// call does not use it.
fn silent_peer() -> Peer<RoleServer> {
    static PEER: OnceLock<Peer<RoleServer>> = OnceLock::new();
    // The service behind it ends at once, so that sending to it fails.
    PEER.get_or_init(|| serve_directly(NoHandler, NoTransport, None).peer().clone()).clone()
}

struct NoHandler;

impl ServerHandler for NoHandler {}

struct NoTransport;

impl Transport<RoleServer> for NoTransport {
    type Error = Infallible;

    fn send(
        &mut self,
        _: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        std::future::ready(Ok(()))
    }

    fn receive(&mut self) -> impl Future<Output = Option<ClientJsonRpcMessage>> + Send {
        std::future::ready(None)
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use rmcp::model::ClientRequest;
    use serde_json::json;

    fn call() -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        let params = json!({"name": "echo", "arguments": {"text": "hello"}, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
    }

    #[test]
    fn simple_call_equals_the_request_that_the_library_parses() {
        let simple = SimpleCall::from_message(call()).unwrap();
        let ClientJsonRpcMessage::Request(read) = serde_json::from_value(call()).unwrap() else {
            panic!("a request")
        };
        let ClientRequest::CallToolRequest(request) = read.request else { panic!("a call") };
        assert_eq!((simple.id, simple.params), (read.id, request.params));
        assert_eq!(Some(&simple.meta), request.extensions.get::<RequestMetaObject>());
    }

    #[test]
    fn required_metadata_is_the_same_as_in_the_library() {
        let missing =
            RequestMetaObject::default().missing_required_keys(&ProtocolVersion::V_2026_07_28);
        assert_eq!(missing, [VERSION_KEY, CAPABILITIES_KEY]);
    }

    #[test]
    fn any_other_message_is_returned_unchanged() {
        let changes: [(&str, Value); 13] = [
            ("/jsonrpc", json!("1.0")),
            ("/id", json!(null)),
            ("/id", json!({})),
            ("/method", json!("tools/list")),
            ("/params/name", json!(3)),
            ("/params/arguments", json!([])),
            ("/params/requestState", json!("sealed")),
            ("/params/inputResponses", json!({})),
            ("/result", json!({})),
            ("/params/_meta/progressToken", json!(1)),
            ("/params/_meta/io.modelcontextprotocol~1logLevel", json!("info")),
            ("/params/_meta/io.modelcontextprotocol~1protocolVersion", json!("2025-11-25")),
            ("/params/_meta/io.modelcontextprotocol~1clientCapabilities", json!(3)),
        ];
        for (place, value) in changes {
            let mut message = call();
            put(&mut message, place, value);
            assert_eq!(SimpleCall::from_message(message.clone()), Err(message), "{place}");
        }
        assert_eq!(SimpleCall::from_message(json!([])), Err(json!([])));
    }

    fn put(message: &mut Value, place: &str, value: Value) {
        let (parent, key) = place.rsplit_once('/').unwrap();
        let key = key.replace("~1", "/");
        message.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(key, value);
    }
}
