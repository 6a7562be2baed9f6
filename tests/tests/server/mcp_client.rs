//! A client of `/mcp`, of either kind, with the clients' token of a server.

use palisade_tests::api::{Api, Sender};
use palisade_tests::mcp::{MODERN, modern};
use palisade_tests::mcp_http::Answer;
use serde_json::{Value, json};

/// A revision with sessions. Its client says nothing of elicitation.
const STATEFUL: &str = "2025-06-18";

/// Whether a client has a session of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Stateful,
    Stateless,
}

pub(crate) const KINDS: [Kind; 2] = [Kind::Stateful, Kind::Stateless];

impl Kind {
    /// Returns the revision of the protocol.
    pub(crate) fn revision(self) -> &'static str {
        match self {
            Self::Stateful => STATEFUL,
            Self::Stateless => MODERN,
        }
    }
}

/// A client.
#[derive(Debug, Clone)]
pub(crate) struct McpClient {
    pub(crate) kind: Kind,
    name: String,
    capabilities: Value,
    sender: Sender,
}

fn message(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

impl McpClient {
    /// Connects as the client `suite` of version 1.
    #[track_caller]
    pub(crate) fn connect(api: &Api, kind: Kind) -> Self {
        Self::named(api, kind, "suite")
    }

    /// Connects as a client that claims this name, in version 1.
    #[track_caller]
    pub(crate) fn named(api: &Api, kind: Kind, name: &str) -> Self {
        Self::new(api, kind, name, json!({}))
    }

    /// Connects as the client `suite` that declares to show forms.
    #[track_caller]
    pub(crate) fn with_forms(api: &Api, kind: Kind) -> Self {
        Self::new(api, kind, "suite", json!({"elicitation": {"form": {}}}))
    }

    #[track_caller]
    fn new(api: &Api, kind: Kind, name: &str, capabilities: Value) -> Self {
        let sender = api.client.clone();
        let mut client = Self { kind, name: name.to_owned(), capabilities, sender };
        if kind == Kind::Stateful {
            client.shake_hands();
        }
        client
    }

    #[track_caller]
    fn shake_hands(&mut self) {
        let info = json!({"name": self.name, "version": "1"});
        let capabilities = &self.capabilities;
        let opening =
            json!({"protocolVersion": STATEFUL, "capabilities": capabilities, "clientInfo": info});
        let opened = self.sender.post("/mcp", &message("initialize", &opening));
        assert_eq!(opened.message()["result"]["protocolVersion"], STATEFUL, "{opened:?}");
        let id = opened.header("mcp-session-id").unwrap();
        let sender = self.sender.clone().with("Mcp-Session-Id", id);
        self.sender = sender.with("MCP-Protocol-Version", STATEFUL);
        let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.sender.post("/mcp", &told).status, 202);
    }

    /// Calls a tool.
    pub(crate) fn call(&self, tool: &str, input: &Value) -> Answer {
        self.call_with(tool, input, &json!({}))
    }

    /// Calls a tool, with further parameters of the request.
    pub(crate) fn call_with(&self, tool: &str, input: &Value, further: &Value) -> Answer {
        let mut params = json!({"name": tool, "arguments": input});
        for (key, value) in further.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        let (sender, params) = match self.kind {
            Kind::Stateful => (self.sender.clone(), params),
            Kind::Stateless => {
                let sender = self.sender.clone().with("MCP-Protocol-Version", MODERN);
                let sender = sender.with("Mcp-Method", "tools/call").with("Mcp-Name", tool);
                let mut params = modern(params, &self.capabilities);
                params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] = json!(self.name);
                (sender, params)
            }
        };
        sender.post("/mcp", &message("tools/call", &params))
    }

    /// Ends the session of the protocol.
    pub(crate) fn leave(&self) -> Answer {
        self.sender.send("DELETE", "/mcp", "")
    }
}
