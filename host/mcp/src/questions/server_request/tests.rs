//! Tests which questions each client is asked, by its capabilities and revision, and that no call
//! waits for anything else. The clock is paused and advances only by timers, so that a wait shows
//! as elapsed time.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::{Server, Settings};
use palisade::confirm::{Answer, AnswerRefused, ConfirmFn, ConfirmationQueue};
use palisade::plugins::Shipped;
use palisade::{BoxFuture, Factory, Tool, ToolContext, ToolOutput, ValidInput};
use palisade::{Definition, ErrorKind, SideEffects};
use palisade::{Host, HostBuilder};
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

fn builder() -> HostBuilder {
    Host::builder()
        .shipped(Shipped::LeftOut)
        .tool(factory("quiet", SideEffects::None))
        .tool(factory("writes", SideEffects::Write))
}

fn server() -> Server {
    server_of(builder())
}

fn server_of(host: HostBuilder) -> Server {
    Server::new(Arc::new(host.build().unwrap()), Settings::default()).unwrap()
}

/// Returns the parameters of a call of the tool that writes, for a client that cannot ask.
fn writes(version: &str) -> Value {
    match version {
        STATELESS => {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": STATELESS,
                "io.modelcontextprotocol/clientCapabilities": {},
                "progressToken": 7,
            });
            json!({"name": "writes", "arguments": {}, "_meta": meta})
        }
        _ => json!({"name": "writes", "arguments": {}, "_meta": {"progressToken": 7}}),
    }
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

#[tokio::test]
async fn question_of_a_client_that_cannot_ask_is_answered_by_the_hosts_confirmer() {
    for (answer, class) in [(Answer::Allow, Value::Null), (Answer::Deny, "user_denied".into())] {
        let server = server_of(builder().confirmer(Arc::new(ConfirmFn::new(move |_| answer))));
        for version in ["2025-11-25", STATELESS] {
            let mut client = Client::of(&server);
            if version != STATELESS {
                client.shake_hands(version, &json!({})).await;
            }
            let (answer, asked, _) = client.ask("tools/call", &writes(version)).await;
            let error = &answer["result"]["_meta"]["dev.palisade/error"]["class"];
            assert_eq!((error, asked), (&class, 0), "{version} {answer}");
        }
    }
}

#[tokio::test]
async fn client_and_host_are_asked_at_once_and_the_other_question_is_withdrawn() {
    let queue = ConfirmationQueue::default();
    let server = server_of(builder().confirmer(Arc::new(queue.clone())));
    let mut client = Client::of(&server);
    client.shake_hands("2025-11-25", &json!({"elicitation": {}})).await;
    let call = |id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "writes"}});
    client.say(&call("console"));
    let question = client.said.recv().await.unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let request = queue.next().await;
    queue.answer(&request.id, Answer::Allow).unwrap();
    let (mut withdrawn, mut answered) = (None, None);
    while withdrawn.is_none() || answered.is_none() {
        let message = client.said.recv().await.unwrap();
        match message["method"].as_str() {
            Some("notifications/cancelled") => withdrawn = Some(message),
            _ if message["id"] == "console" => answered = Some(message),
            _ => {}
        }
    }
    assert_eq!(withdrawn.unwrap()["params"]["requestId"], question["id"]);
    assert_eq!(answered.unwrap()["result"]["isError"], false);

    client.say(&call("form"));
    let question = client.said.recv().await.unwrap();
    let request = queue.next().await;
    let yes = json!({"action": "accept", "content": {"decision": "allow_once"}});
    client.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": yes}));
    let answered = client.said.recv().await.unwrap();
    assert_eq!((&answered["id"], &answered["result"]["isError"]), (&json!("form"), &json!(false)));
    assert_eq!(queue.answer(&request.id, Answer::Deny), Err(AnswerRefused::Withdrawn));
}

#[tokio::test(start_paused = true)]
async fn progress_keeps_a_client_waiting_while_a_question_waits() {
    let host = builder().confirmer(Arc::new(ConfirmationQueue::default()));
    let server = server_of(host.confirmation_timeout(Duration::from_secs(35)));
    for version in ["2025-11-25", STATELESS] {
        let mut client = Client::of(&server);
        if version != STATELESS {
            client.shake_hands(version, &json!({})).await;
        }
        let call =
            json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": writes(version)});
        client.say(&call);
        let mut told = Vec::new();
        let answer = loop {
            let message = client.said.recv().await.unwrap();
            if message["method"] == "notifications/progress" {
                assert_eq!(message["params"]["progressToken"], 7, "{message}");
                told.push(message["params"].clone());
            } else if message["id"] == "c" {
                break message;
            }
        };
        let texts: Vec<_> = told.iter().map(|step| step["message"].as_str().unwrap()).collect();
        let expected = [10, 20, 30]
            .map(|seconds| format!("the call waits for its confirmation, for {seconds} s so far"));
        assert_eq!(texts, expected, "{version}");
        let values: Vec<_> = told.iter().map(|step| step["progress"].as_f64().unwrap()).collect();
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
        let class = &answer["result"]["_meta"]["dev.palisade/error"]["class"];
        assert_eq!(class, "confirmation_timeout", "{answer}");
    }
}

#[tokio::test]
async fn refusal_names_the_console_where_nobody_can_be_asked() {
    let console = Some("http://127.0.0.1:8080".to_owned());
    let settings = Settings { console, ..Settings::default() };
    let server = Server::new(Arc::new(builder().build().unwrap()), settings).unwrap();
    let mut client = Client::of(&server);
    let (answer, ..) = client.ask("tools/call", &writes(STATELESS)).await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("nobody can be asked"), "{text}");
    assert!(text.contains("this client has declared no `elicitation`"), "{text}");
    assert!(
        text.ends_with("(http://127.0.0.1:8080) is open, such a call waits there for an answer")
    );
}
