//! A reference agent loop: `cargo run -p embed --bin agent_loop` runs it with a scripted model.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use palisade::formats::{Format, Provider, ReplyError, Strictness};
use palisade::{BoxFuture, Definition, DefinitionError, ErrorKind, Factory, Host, Session};
use palisade::{SideEffects, Tool, ToolContext, ToolOutput, ToolResult, Transcript, ValidInput};
use serde_json::{Value, json};
use std::sync::Arc;

/// A model's API.
pub(crate) trait Model {
    /// Sends a request and returns the body of the reply, which is read as a whole.
    async fn reply(&mut self, request: Value) -> String;
}

/// The reason why the loop ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The model asked for no tool: its last message is the answer.
    Answered,
    /// A tool ended the loop.
    Stopped,
    /// The model asked for tools in every turn that it had.
    OutOfTurns,
}

/// Lets a model call tools until it answers without a call, or a tool ends the loop. The transcript
/// begins with the user's message, and is complete after every turn: store it there.
pub(crate) async fn run(
    host: &Host,
    session: &Session,
    model: &mut impl Model,
    transcript: &mut Transcript,
    turns: usize,
) -> Result<End, ReplyError> {
    for turn in 1..=turns {
        // The host caches nothing here that a plugin could change: the list is that of this turn.
        let exported = host.export(session, Format::OpenAi, Strictness::AsIs);
        let tools = &exported.definitions;
        let request = json!({"model": "any", "messages": transcript.messages(), "tools": tools});
        let reply = model.reply(request).await;
        let turn_id = format!("turn-{turn}");
        let prepare = |call: palisade::Call| call.with_turn(&turn_id);
        let results = host.dispatch_reply(session, &reply, transcript, prepare).await?;
        if results.is_empty() {
            return Ok(End::Answered);
        }
        if results.iter().any(ends_the_loop) {
            return Ok(End::Stopped);
        }
    }
    Ok(End::OutOfTurns)
}

/// A tool speaks to the loop by the metadata of its result, which no model reads.
fn ends_the_loop(result: &ToolResult) -> bool {
    result.metadata().get("stop_loop") == Some(&Value::Bool(true))
}

/// A tool that ends the loop: the model calls it when its work is done.
pub(crate) struct Finish(Definition);

impl Finish {
    pub(crate) fn factory() -> Result<Factory, DefinitionError> {
        let schema = json!({
            "type": "object",
            "properties": {"summary": {"type": "string"}},
            "required": ["summary"],
        });
        let what = "Call this when the work is done.";
        let definition = Definition::new("finish", what, SideEffects::None, schema)?;
        Ok(Arc::new(move || Box::new(Self(definition.clone()))))
    }
}

impl Tool for Finish {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        input: ValidInput,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        let mut output = ToolOutput::text(input.value()["summary"].as_str().unwrap_or_default());
        output.metadata.insert("stop_loop".to_owned(), Value::Bool(true));
        Box::pin(async move { Ok(output) })
    }
}

/// A model whose replies are fixed.
pub(crate) struct Script {
    replies: std::vec::IntoIter<Value>,
    /// The requests so far.
    pub(crate) requests: Vec<Value>,
}

impl Script {
    /// Creates a model with one reply for each list of calls, and a last one without a call.
    pub(crate) fn of(turns: &[&[(&str, Value)]]) -> Self {
        let asks = turns.iter().map(|calls| calls.iter().map(call).collect::<Vec<_>>());
        let messages = asks.map(|calls| json!({"role": "assistant", "tool_calls": calls}));
        let last = json!({"role": "assistant", "content": "That is all."});
        let bodies =
            messages.chain([last]).map(|message| json!({"choices": [{"message": message}]}));
        let replies: Vec<Value> = bodies.collect();
        Self { replies: replies.into_iter(), requests: Vec::new() }
    }
}

fn call((tool, input): &(&str, Value)) -> Value {
    let function = json!({"name": tool, "arguments": input.to_string()});
    json!({"id": format!("call_{tool}"), "type": "function", "function": function})
}

impl Model for Script {
    async fn reply(&mut self, request: Value) -> String {
        self.requests.push(request);
        self.replies.next().unwrap_or_default().to_string()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let host = Host::builder().workspace(".").tool(Finish::factory()?).build()?;
    let session = host.new_session("example").build();
    let mut model = Script::of(&[
        &[("calculate", json!({"expression": "6 * 7"})), ("list_dir", json!({}))],
        &[("finish", json!({"summary": "It is 42."}))],
    ]);
    let mut transcript = Transcript::new(Provider::OpenAi);
    transcript.push(json!({"role": "user", "content": "What is 6 * 7, and what files are here?"}));
    let end = run(&host, &session, &mut model, &mut transcript, 8).await?;
    println!("{end:?} after {} messages", transcript.messages().len());
    println!("{}", serde_json::to_string_pretty(&transcript)?);
    Ok(())
}
