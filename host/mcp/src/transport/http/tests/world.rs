//! A test client, and a server with scripted tools.

use super::super::*;
use crate::http::{Access, Caller, ConnectionHandler, Settings, Token};
use crate::lists::filter::Cut;
use crate::messages::extensions::{account, caller};
use crate::sessions::SessionRef;
use palisade::sandbox::limits::Limits;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
    ProgressNotificationParam, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};

pub(super) const TOKEN: &str = "0123456789abcdef";

/// A handler whose tools return at once, wait for a signal, or send progress forever.
#[derive(Clone)]
struct Fake {
    tell: UnboundedSender<&'static str>,
    see: UnboundedSender<Seen>,
    go: Arc<Notify>,
}

/// The identity, the session and the memory account that a handler sees.
type Seen = (Option<Caller>, Option<SessionRef>, Option<Account>);

impl ServerHandler for Fake {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let extensions = &context.extensions;
        let seen = (caller(extensions), extensions.get().cloned(), account(extensions));
        let _ = self.see.send(seen);
        let _ = self.tell.send("started");
        tokio::select! {
            () = self.run(&params.name, &context) => {}
            () = context.ct.cancelled() => {
                let _ = self.tell.send("cancelled");
            }
        }
        Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into())
    }
}

impl Prepare for Fake {
    async fn prepare(&self, _: &mut Value, _: &Account) -> Result<Cut, ErrorData> {
        Ok(Cut::Nothing)
    }
}

impl Fake {
    async fn run(&self, tool: &str, context: &RequestContext<RoleServer>) {
        match tool {
            "quick" => {}
            "wait" => self.go.notified().await,
            _ => {
                let token = context.meta.get_progress_token().unwrap();
                for number in 0.. {
                    let said = ProgressNotificationParam::new(token.clone(), f64::from(number));
                    let _ =
                        context.peer.notify_progress(said.with_message("x".repeat(64 << 10))).await;
                    // The paused clock advances only while all tasks wait.
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

pub(super) struct World {
    handler: Arc<ConnectionHandler>,
    pub(super) told: UnboundedReceiver<&'static str>,
    pub(super) seen: UnboundedReceiver<Seen>,
    pub(super) go: Arc<Notify>,
    pub(super) stop: CancellationToken,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(None)
    }

    pub(super) fn with(token: Option<&str>) -> Self {
        let bound = "127.0.0.1:8000".parse().unwrap();
        let (tell, told) = unbounded_channel();
        let (see, seen) = unbounded_channel();
        let go = Arc::new(Notify::new());
        let fake = Fake { tell, see, go: go.clone() };
        let hosts = vec!["localhost".to_owned()];
        let stop = CancellationToken::new();
        let mut endpoint = McpEndpoint::new(move || Ok(fake.clone()), hosts, stop.clone());
        // The keep-alive of `rmcp` is due by the real clock. Once the paused clock is ahead, it
        // would fire without end.
        endpoint.config.sse_keep_alive = None;
        let settings = Settings::new(
            bound,
            token
                .map_or(Access::Unauthenticated, |token| Access::Token(Token::new(token).unwrap())),
        )
        .unwrap();
        Self {
            handler: Arc::new(ConnectionHandler::new(
                &settings,
                bound,
                vec![(PATH, Arc::new(endpoint))],
                Limits::default(),
            )),
            told,
            seen,
            go,
            stop,
        }
    }

    /// Sends a request over its own connection, and reads the head of the response.
    pub(super) async fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send_from("127.0.0.1", method, headers, body).await
    }

    /// Sends a request as [`send`](Self::send) does, from another address.
    pub(super) async fn send_from(
        &self,
        address: &str,
        method: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let (mut connection, theirs) = duplex(4096);
        let handler = self.handler.clone();
        let address = address.parse().unwrap();
        tokio::spawn(async move {
            handler.serve_stream(theirs, address, &CancellationToken::new()).await;
        });
        let mut head = format!(
            "{method} /mcp HTTP/1.1\r\nhost: localhost:8000\r\ncontent-length: {}\r\n",
            body.len()
        );
        head.push_str("content-type: application/json\r\n");
        if !headers.iter().any(|(name, _)| *name == "accept") {
            head.push_str("accept: application/json, text/event-stream\r\n");
        }
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        connection.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
        let mut answer = Answer { head: String::new(), text: String::new(), read: 0, connection };
        while !answer.text.contains("\r\n\r\n") {
            assert!(answer.more().await, "{}", answer.text);
        }
        let (head, text) = answer.text.split_once("\r\n\r\n").unwrap();
        answer.head = head.to_ascii_lowercase();
        answer.text = text.to_owned();
        answer
    }

    pub(super) async fn post(&self, session: &str, body: Value) -> Answer {
        self.send("POST", &[("mcp-session-id", session)], &body.to_string()).await
    }

    pub(super) async fn call(&self, session: &str, id: u32, tool: &str) -> Answer {
        self.post(session, call(id, tool)).await
    }

    pub(super) async fn initialize(&self) -> Answer {
        self.send("POST", &[], &initialize()).await
    }

    /// Starts a session.
    pub(super) async fn session(&self) -> String {
        let mut answer = self.initialize().await;
        assert_eq!(answer.status(), 200, "{}", answer.head);
        assert!(answer.event().await.unwrap()["result"]["serverInfo"].is_object());
        answer.header("mcp-session-id").unwrap().to_owned()
    }

    pub(super) async fn told(&mut self) -> &'static str {
        timeout(Duration::from_secs(3600), self.told.recv()).await.unwrap().unwrap()
    }
}

pub(super) struct Answer {
    head: String,
    text: String,
    read: usize,
    connection: DuplexStream,
}

impl Answer {
    pub(super) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    async fn more(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let count = self.connection.read(&mut bytes).await.unwrap();
        self.text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        count > 0
    }

    /// Returns the next message of a stream. `None` at its end.
    pub(super) async fn event(&mut self) -> Option<Value> {
        loop {
            while let Some(length) = self.text[self.read..].find('\n') {
                let line = self.text[self.read..self.read + length].trim_end();
                self.read += length + 1;
                if let Some(data) =
                    line.strip_prefix("data:").filter(|data| !data.trim().is_empty())
                {
                    return Some(serde_json::from_str(data).unwrap());
                }
                if line == "0" {
                    return None;
                }
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Returns the text of a call's result, which must be the last message of the stream.
    pub(super) async fn event_text(&mut self) -> String {
        let text = self.event().await.unwrap()["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert_eq!(self.event().await, None);
        text
    }

    /// Returns the id of the event that each call's stream begins with, for a later resume.
    pub(super) async fn first_place(&mut self) -> String {
        while !self.text.contains("\n\n") {
            assert!(self.more().await);
        }
        let id = self.text.lines().find_map(|line| line.strip_prefix("id:")).unwrap();
        id.trim().to_owned()
    }

    /// Returns the body of a response that is not a stream.
    pub(super) async fn body(&mut self) -> Value {
        let length: usize = self.header("content-length").unwrap().parse().unwrap();
        while self.text.len() < length {
            assert!(self.more().await);
        }
        serde_json::from_str(&self.text).unwrap()
    }
}

pub(super) fn initialize() -> String {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string()
}

pub(super) fn call(id: u32, tool: &str) -> Value {
    let params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": id}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

/// Returns a self-contained call, and its headers.
pub(super) fn stateless(tool: &'static str) -> (Vec<(&'static str, &'static str)>, String) {
    let mut call = call(1, tool);
    call["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 1,
    });
    let headers = vec![
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
    ];
    (headers, call.to_string())
}
