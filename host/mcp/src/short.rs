//! The short way: of a request of the current revision that is nothing but a call of a tool, which is what most requests are.
//!
//! Nothing is said while such a call runs, and nothing is asked: it has one answer. So the library's loop for one connection, with a task, a channel and a second
//! reading of the message for each request, is left out, and the handler asked right away. Whatever is out of the ordinary, a mistake above all, goes the
//! library's way, so that there is one place that says what is wrong with a message.

use super::era::{CAPABILITIES, VERSION};
use super::guarded::guarded;
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

/// What such a message has, and its parameters. With anything else it is none.
const KEYS: (&[&str], &[&str]) =
    (&["jsonrpc", "id", "method", "params"], &["_meta", "name", "arguments"]);
/// The method of calls.
pub(super) const CALL: &str = "tools/call";
/// By these a client says that it wants to hear of a call while it runs.
const LISTENS: [&str; 2] = ["progressToken", "io.modelcontextprotocol/logLevel"];

/// A request that is nothing but a call.
#[derive(Debug, PartialEq)]
pub(super) struct Plain {
    id: RequestId,
    params: CallToolRequestParams,
    meta: RequestMetaObject,
    capabilities: ClientCapabilities,
}

impl Plain {
    /// Takes a message for what it may be; gives it back where it is something else.
    pub(super) fn of(message: Value) -> Result<Self, Value> {
        let Some((id, capabilities)) = plain(&message) else { return Err(message) };
        let Value::Object(mut message) = message else { return Err(message) };
        let Some(Value::Object(mut given)) = message.remove("params") else {
            return Err(Value::Object(message));
        };
        let mut params = CallToolRequestParams::new(text(given.remove("name")));
        params.arguments = given.remove("arguments").map(members);
        Ok(Self {
            id,
            params,
            meta: members(given.remove("_meta").unwrap_or_default()).into(),
            capabilities,
        })
    }

    pub(super) fn id(&self) -> &RequestId {
        &self.id
    }

    /// Its answer, whatever comes of it.
    pub(super) async fn answered(
        self,
        handler: &impl ServerHandler,
        ct: CancellationToken,
        extensions: Extensions,
    ) -> ServerJsonRpcMessage {
        let mut context = RequestContext::new(self.id.clone(), nobody());
        (context.ct, context.meta, context.extensions) = (ct, self.meta, extensions);
        context.extensions.insert(Known(self.capabilities));
        match guarded(handler.call_tool(self.params, context)).await {
            Ok(response) => JsonRpcMessage::response(ServerResult::from(response), self.id),
            Err(error) => JsonRpcMessage::error(error, Some(self.id)),
        }
    }
}

/// What the client of a request can do, where it was read already.
#[derive(Debug, Clone)]
pub(super) struct Known(pub(super) ClientCapabilities);

/// The id of a plain call, and what its client can do.
fn plain(message: &Value) -> Option<(RequestId, ClientCapabilities)> {
    let message = message.as_object()?;
    let params = message.get("params")?.as_object()?;
    let meta = params.get("_meta")?.as_object()?;
    let is_plain = message.get("jsonrpc")? == "2.0"
        && message.get("method")? == CALL
        && has_only(message, KEYS.0)
        && has_only(params, KEYS.1)
        && params.get("name")?.is_string()
        && params.get("arguments").is_none_or(Value::is_object)
        && !LISTENS.iter().any(|key| meta.contains_key(*key));
    let id = RequestId::deserialize(message.get("id").filter(|_| is_plain)?).ok()?;
    let is_current = meta.get(VERSION)? == ProtocolVersion::V_2026_07_28.as_str();
    let capabilities =
        ClientCapabilities::deserialize(meta.get(CAPABILITIES).filter(|_| is_current)?).ok()?;
    Some((id, capabilities))
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

/// A client to whom nothing can be said. The library wants one with each request; of what goes the short way, nobody asks for it.
fn nobody() -> Peer<RoleServer> {
    static NOBODY: OnceLock<Peer<RoleServer>> = OnceLock::new();
    // What serves it ends at once; what is said to it comes to an error.
    NOBODY.get_or_init(|| serve_directly(Silent, Silence, None).peer().clone()).clone()
}

struct Silent;

impl ServerHandler for Silent {}

struct Silence;

impl Transport<RoleServer> for Silence {
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
    fn plain_call_equals_the_librarys_parse() {
        let plain = Plain::of(call()).unwrap();
        let ClientJsonRpcMessage::Request(read) = serde_json::from_value(call()).unwrap() else {
            panic!("a request")
        };
        let rmcp::model::ClientRequest::CallToolRequest(request) = read.request else {
            panic!("a call")
        };
        assert_eq!((plain.id, plain.params), (read.id, request.params));
        assert_eq!(Some(&plain.meta), request.extensions.get::<RequestMetaObject>());
    }

    #[test]
    fn required_metadata_keys_match_the_library() {
        let missing =
            RequestMetaObject::default().missing_required_keys(&ProtocolVersion::V_2026_07_28);
        assert_eq!(missing, [VERSION, CAPABILITIES]);
    }

    #[test]
    fn unusual_call_is_left_unchanged_to_the_slow_path() {
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
            assert_eq!(Plain::of(message.clone()), Err(message), "{place}");
        }
        assert_eq!(Plain::of(json!([])), Err(json!([])));
    }

    fn put(message: &mut Value, place: &str, value: Value) {
        let (parent, key) = place.rsplit_once('/').unwrap();
        let key = key.replace("~1", "/");
        message.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(key, value);
    }
}
