//! The promises to every client.

use crate::connection::Connection;
use crate::user::Answer;
use crate::{Broken, Era, Outcome, PATIENCE, QUESTION, QUIET, ensure, wait_until};
use rmcp::ServiceError;
use rmcp::model::{
    CallToolResponse, CallToolResult, ErrorCode, InputResponses, Tool, ToolAnnotations,
};
use serde_json::{Value, json};
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The tools of the guests, and some of the shipped ones.
const TOOLS: [&str; 9] = [
    "better",
    "calculate",
    "compute",
    "fail",
    "good",
    "promise",
    "read_file",
    "test_tool_with_progress",
    "write_file",
];

/// A promise with its check.
pub(crate) struct Promise {
    pub(crate) name: &'static str,
    pub(crate) check: for<'a> fn(&'a Connection) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>,
}

macro_rules! promises {
    ($($name:ident,)*) => {
        &[$(Promise { name: stringify!($name), check: |connection| Box::pin($name(connection)) },)*]
    };
}

pub(crate) const PROMISES: &[Promise] = promises![
    list_is_sorted_and_has_hints,
    call_is_answered,
    structured_output_matches_its_schema,
    tool_failures_and_invalid_arguments_are_reported,
    progress_precedes_the_answer,
    cancelled_loop_ends_without_further_messages,
    accepted_call_runs_after_a_question_with_its_path,
    declined_call_does_not_run,
    ignored_call_does_not_run,
];

async fn list_is_sorted_and_has_hints(connection: &Connection) -> Outcome {
    let tools = connection.client.list_all_tools().await?;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    ensure(names.is_sorted(), format!("not in order: {names:?}"))?;
    ensure(TOOLS.iter().all(|tool| names.contains(tool)), format!("missing in {names:?}"))?;
    let (reads, writes) = (hints(&tools, "read_file")?, hints(&tools, "write_file")?);
    ensure(reads.read_only_hint == Some(true), format!("{reads:?}"))?;
    ensure(writes.destructive_hint == Some(true), format!("{writes:?}"))
}

fn hints(tools: &[Tool], name: &str) -> Outcome<ToolAnnotations> {
    let tool = tools.iter().find(|tool| tool.name == name);
    tool.and_then(|tool| tool.annotations.clone())
        .ok_or_else(|| Broken(format!("{name} has no hints")))
}

async fn call_is_answered(connection: &Connection) -> Outcome {
    let result = connection.call("good", json!({})).await?;
    ensure(is_answer(&result, "good"), show(&result))?;
    std::fs::write(connection.path("notes.txt"), "Buy milk.\n")?;
    let result = connection.call("read_file", json!({"path": "notes.txt"})).await?;
    ensure(is_answer(&result, "Buy milk.\n"), show(&result))
}

async fn structured_output_matches_its_schema(connection: &Connection) -> Outcome {
    let tools = connection.client.list_all_tools().await?;
    let schema = tools
        .iter()
        .find(|tool| tool.name == "promise")
        .and_then(|tool| tool.output_schema.clone());
    ensure(
        schema.as_ref().is_some_and(|schema| schema["required"] == json!(["n"])),
        format!("{schema:?}"),
    )?;
    let result = connection.call("promise", json!({"give": "right"})).await?;
    ensure(result.structured_content == Some(json!({"n": 1})), show(&result))?;
    let result = connection.call("promise", json!({"give": "wrong"})).await?;
    ensure(is_error(&result) && result.structured_content.is_none(), show(&result))
}

async fn tool_failures_and_invalid_arguments_are_reported(connection: &Connection) -> Outcome {
    let result = connection.call("fail", json!({"with": "not-found"})).await?;
    ensure(is_error(&result) && text(&result).contains("no such thing"), show(&result))?;
    let result = connection.call("read_file", json!({"path": 3})).await?;
    ensure(
        failure(&result) == "validation_error" && text(&result).contains("path"),
        show(&result),
    )?;
    match connection.client.call_tool(connection.request("surely_not", json!({}))?).await {
        Err(ServiceError::McpError(error)) => {
            ensure(error.code == ErrorCode::INVALID_PARAMS, error)
        }
        other => Err(Broken(format!("an unknown tool: {other:?}"))),
    }
}

async fn progress_precedes_the_answer(connection: &Connection) -> Outcome {
    let tool = "test_tool_with_progress";
    let result = connection.call(tool, json!({})).await?;
    ensure(!is_error(&result), show(&result))?;
    wait_until(|| Ok(connection.user.received().steps.len() == 3), "the last step of progress")
        .await?;
    let mut steps = connection.user.received().steps.clone();
    // The library delivers each step in a separate task. Their order is checked in the log below
    // it.
    steps.sort_by(|one, other| one.0.total_cmp(&other.0));
    ensure(steps == [0.0, 50.0, 100.0].map(|done| (done, Some(100.0))), format!("{steps:?}"))?;
    let log = connection.log.open();
    let call = log.call(tool);
    let (id, token) = (&call["id"], &call["params"]["_meta"]["progressToken"]);
    let of_call = log.received.iter().filter_map(|message| match message {
        answer if answer["id"] == *id => Some("answer".to_owned()),
        step if step["params"]["progressToken"] == *token => {
            Some(step["params"]["progress"].to_string())
        }
        _ => None,
    });
    let told = of_call.collect::<Vec<_>>().join(" ");
    ensure(told == "0.0 50.0 100.0 answer", told)
}

async fn cancelled_loop_ends_without_further_messages(connection: &Connection) -> Outcome {
    let call = connection.client.call_tool(connection.request("compute", json!({}))?);
    tokio::select! {
        ended = call => return Err(Broken(format!("an endless loop ends: {ended:?}"))),
        // Dropping the call's future cancels the call.
        computes = computes(connection) => computes?,
    }
    let before = connection.log.open().received.len();
    let result = connection.call("good", json!({})).await?;
    ensure(is_answer(&result, "good"), show(&result))?;
    sleep(QUIET).await;
    let busy = connection.processor_time()?;
    sleep(QUIET).await;
    ensure(connection.processor_time()? - busy < QUIET / 10, "the guest computes on")?;
    let log = connection.log.open();
    let cancelled = log.call("compute")["id"].clone();
    let is_later =
        |sent: &&Value| sent.get("method").is_some() && sent["id"].as_u64() > cancelled.as_u64();
    let asked: Vec<&Value> = log.sent.iter().filter(is_later).map(|sent| &sent["id"]).collect();
    let after: Vec<&Value> =
        log.received[before..].iter().map(|came| came.get("id").unwrap_or(came)).collect();
    ensure(
        after == asked,
        format!(
            "after the cancellation of request {cancelled}: requests {asked:?}, messages {after:?}"
        ),
    )
}

/// Waits until the guest is in its loop.
async fn computes(connection: &Connection) -> Outcome {
    let has_begun =
        || Ok(connection.user.received().log_messages.iter().any(|said| said.contains("started")));
    wait_until(has_begun, "the start of the loop").await?;
    let idle = connection.processor_time()?;
    wait_until(
        || Ok(connection.processor_time()? > idle + Duration::from_millis(100)),
        "the computation of the loop",
    )
    .await
}

async fn accepted_call_runs_after_a_question_with_its_path(connection: &Connection) -> Outcome {
    connection.user.answer_with(Answer::Accept);
    let path = connection.fresh_name("accepted")?;
    let result = connection.call("write_file", json!({"path": path, "content": "written"})).await?;
    ensure(
        !is_error(&result) && connection.contents(&path).as_deref() == Some("written"),
        show(&result),
    )?;
    let questions = connection.user.received().questions.clone();
    ensure(questions.len() == 1 && questions[0].contains(&path), format!("{questions:?}"))
}

async fn declined_call_does_not_run(connection: &Connection) -> Outcome {
    connection.user.answer_with(Answer::Decline);
    let path = connection.fresh_name("declined")?;
    let result = connection.call("write_file", json!({"path": path, "content": "written"})).await?;
    ensure(
        failure(&result) == "user_denied" && connection.contents(&path).is_none(),
        show(&result),
    )?;
    let questions = connection.user.received().questions.clone();
    ensure(questions.len() == 1, format!("{questions:?}"))
}

async fn ignored_call_does_not_run(connection: &Connection) -> Outcome {
    let path = connection.fresh_name("ignored")?;
    let arguments = json!({"path": path, "content": "written"});
    match connection.era {
        Era::Legacy => ignored_question_ends_the_call(connection, arguments).await?,
        Era::Modern => late_answer_is_refused(connection, arguments).await?,
    }
    let result = connection.call("good", json!({})).await?;
    ensure(is_answer(&result, "good"), format!("nothing else is answered: {}", show(&result)))?;
    ensure(connection.contents(&path).is_none(), "it was done")
}

async fn ignored_question_ends_the_call(connection: &Connection, arguments: Value) -> Outcome {
    connection.user.answer_with(Answer::Ignore);
    let begun = Instant::now();
    let result = connection.call("write_file", arguments).await?;
    ensure(failure(&result) == "confirmation_timeout", show(&result))?;
    ensure(begun.elapsed() >= QUESTION, "the question stood for less than its time")?;
    let questions = connection.user.received().questions.clone();
    ensure(questions.len() == 1, format!("{questions:?}"))
}

/// Repeats the call after the timeout of the question. In this revision the server does not wait:
/// the client repeats the call with the answer.
async fn late_answer_is_refused(connection: &Connection, arguments: Value) -> Outcome {
    let request = connection.request("write_file", arguments)?;
    let asked = match connection.client.call_tool_once(request.clone()).await? {
        CallToolResponse::InputRequired(asked) => asked,
        other => return Err(Broken(format!("nothing is asked: {other:?}"))),
    };
    sleep(QUESTION + QUIET).await;
    let mut responses = InputResponses::new();
    for name in asked.input_requests.unwrap_or_default().into_keys() {
        responses.insert(name, serde_json::to_value(Answer::Accept.give().await)?);
    }
    let late = request
        .with_input_responses(responses)
        .with_request_state(asked.request_state.unwrap_or_default());
    match tokio::time::timeout(PATIENCE, connection.client.call_tool_once(late)).await? {
        Err(ServiceError::McpError(error)) => ensure(
            error.code == ErrorCode::INVALID_PARAMS && error.message.contains("requestState"),
            error,
        ),
        other => Err(Broken(format!("a late answer is taken: {other:?}"))),
    }
}

fn is_error(result: &CallToolResult) -> bool {
    result.is_error == Some(true)
}

fn is_answer(result: &CallToolResult, expected: &str) -> bool {
    !is_error(result) && text(result) == expected
}

fn text(result: &CallToolResult) -> String {
    result
        .content
        .iter()
        .filter_map(|block| block.as_text())
        .map(|text| text.text.as_str())
        .collect()
}

/// Returns the class of an error; empty for a success.
fn failure(result: &CallToolResult) -> String {
    let error = result.meta.as_ref().and_then(|meta| meta.get("dev.palisade/error"));
    let class = error.and_then(|error| error["class"].as_str()).filter(|_| is_error(result));
    class.unwrap_or_default().to_owned()
}

fn show(result: &CallToolResult) -> String {
    format!("{result:?}")
}
