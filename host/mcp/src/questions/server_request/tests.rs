//! Tests which questions each client is asked, by its capabilities and revision, and that no call
//! waits for anything else. The clock is paused and advances only by timers, so that a wait shows
//! as elapsed time.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::{Server, Settings};
use palisade::Host;
use palisade::plugins::Shipped;
use palisade::{BoxFuture, Factory, Tool, ToolContext, ToolOutput, ValidInput};
use palisade::{Definition, ErrorKind, SideEffects};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, PipeWriter, Write as _, pipe};
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const STATEFUL: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];
const STATELESS: &str = "2026-07-28";
const KINDS: [&str; 3] = ["elicitation", "sampling", "roots"];

struct Quiet(Definition);

impl Tool for Quiet {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        _: ValidInput,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        Box::pin(async { Ok(ToolOutput::text("done")) })
    }
}

fn factory(name: &'static str, class: SideEffects) -> Factory {
    let definition = Definition::new(name, "A tool.", class, json!({"type": "object"})).unwrap();
    Arc::new(move || Box::new(Quiet(definition.clone())))
}

/// A client over pipes.
struct Client {
    input: PipeWriter,
    said: UnboundedReceiver<Value>,
    stop: CancellationToken,
    next: u64,
}

impl Client {
    fn of(server: &Server) -> Self {
        let (reads, input) = pipe().unwrap();
        let (output, writes) = pipe().unwrap();
        let server = server.clone();
        let stop = CancellationToken::new();
        let stops = stop.clone();
        tokio::spawn(async move { server.serve_pipes(reads.into(), writes.into(), stops).await });
        let (send, said) = unbounded_channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = send.send(serde_json::from_str(&line).unwrap());
            }
        });
        Self { input, said, stop, next: 1 }
    }

    /// Writes a message. It must fit into the pipe's buffer.
    fn say(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Sends a request, and declines each question. Returns the response, the number of questions,
    /// and the elapsed time.
    async fn ask(&mut self, method: &str, params: &Value) -> (Value, usize, Duration) {
        let id = self.next;
        let begun = Instant::now();
        let mut questions = 0;
        self.next += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.said.recv().await.unwrap();
            if message.get("method").is_none() && message["id"] == id {
                return (message, questions, begun.elapsed());
            }
            if message["method"] == "elicitation/create" {
                questions += 1;
                self.say(&json!({"jsonrpc": "2.0", "id": message["id"], "result": {"action": "decline"}}));
            }
        }
    }

    async fn shake_hands(&mut self, version: &str, capabilities: &Value) {
        let info = json!({"name": "test", "version": "1"});
        let params =
            json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": info});
        let (answer, ..) = self.ask("initialize", &params).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Keeps the clock paused while a thread answers a question. Without this, the runtime is idle and
/// the clock jumps to the question's timeout.
async fn holding_the_clock<T>(work: impl Future<Output = T>) -> T {
    let begun = std::time::Instant::now();
    let awake = tokio::spawn(async move {
        // Bounded, so that a failing test ends.
        while begun.elapsed() < Duration::from_secs(60) {
            tokio::task::yield_now().await;
        }
    });
    let done = work.await;
    awake.abort();
    done
}

fn server() -> Server {
    let host = Host::builder()
        .shipped(Shipped::LeftOut)
        .tool(factory("quiet", SideEffects::None))
        .tool(factory("writes", SideEffects::Write));
    Server::new(Arc::new(host.build().unwrap()), Settings::default()).unwrap()
}

/// Returns each subset of the kinds, as declared capabilities.
fn every_combination() -> impl Iterator<Item = (bool, Value)> {
    (0..1 << KINDS.len()).map(|subset: u32| {
        let declared = (0..KINDS.len()).filter(|kind| subset & (1 << kind) != 0);
        let capabilities: Value = declared
            .map(|kind| (KINDS[kind].to_owned(), json!({})))
            .collect::<serde_json::Map<_, _>>()
            .into();
        (subset & 1 != 0, capabilities)
    })
}

#[tokio::test(start_paused = true)]
async fn a_stateful_client_is_asked_where_it_can_confirm_and_never_made_to_wait() {
    let server = server();
    for version in STATEFUL {
        for (can_confirm, capabilities) in every_combination() {
            let mut client = Client::of(&server);
            client.shake_hands(version, &capabilities).await;
            for (tool, questions) in [("quiet", 0), ("writes", usize::from(can_confirm))] {
                let params = json!({"name": tool, "arguments": {}});
                let asking = client.ask("tools/call", &params);
                let (answer, asked, waited) =
                    if questions == 0 { asking.await } else { holding_the_clock(asking).await };
                let case = format!("{version} {capabilities} {tool}: {answer}");
                assert_eq!((asked, waited), (questions, Duration::ZERO), "{case}");
                let class = &answer["result"]["_meta"]["dev.palisade/error"]["class"];
                let expected = match (tool, can_confirm) {
                    ("quiet", _) => Value::Null,
                    (_, true) => "user_denied".into(),
                    (_, false) => "permission_denied".into(),
                };
                assert_eq!(*class, expected, "{case}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stateless_client_is_asked_by_the_end_of_the_call_where_it_can_confirm_and_never_made_to_wait()
 {
    let server = server();
    let mut client = Client::of(&server);
    for (can_confirm, capabilities) in every_combination() {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        for tool in ["quiet", "writes"] {
            let params = json!({"name": tool, "arguments": {}, "_meta": meta});
            let (answer, asked, waited) = client.ask("tools/call", &params).await;
            let case = format!("{capabilities} {tool}: {answer}");
            assert_eq!((asked, waited), (0, Duration::ZERO), "{case}");
            let is_asked = answer["result"]["inputRequests"]["palisade.confirm"].is_object();
            assert_eq!(is_asked, tool == "writes" && can_confirm, "{case}");
        }
    }
}
