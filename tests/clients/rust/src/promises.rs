//! What is promised to every client.

use crate::person::Answer;
use crate::tried::Tried;
use crate::{Era, Kept, PATIENCE, QUESTION, QUIET, Wrong, need, until};
use rmcp::ServiceError;
use rmcp::model::{CallToolResponse, CallToolResult, ErrorCode, InputResponses, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The tools of the guests, and some of the shipped ones.
const TOOLS: [&str; 9] =
    ["better", "calculate", "compute", "fail", "good", "promise", "read_file", "test_tool_with_progress", "write_file"];

/// A promise, and how it is tried.
pub(crate) struct Promise {
    pub(crate) name: &'static str,
    pub(crate) keep: for<'a> fn(&'a Tried) -> Pin<Box<dyn Future<Output = Kept> + 'a>>,
}

macro_rules! promises {
    ($($name:ident,)*) => {
        &[$(Promise { name: stringify!($name), keep: |tried| Box::pin($name(tried)) },)*]
    };
}

pub(crate) const PROMISES: &[Promise] = promises![
    the_list_has_every_tool_in_order_and_says_what_it_may_do,
    a_call_is_answered,
    structured_output_is_what_its_schema_promises,
    a_failure_is_the_tools_and_bad_arguments_are_named,
    progress_is_told_before_the_answer,
    an_endless_loop_ends_when_it_is_cancelled_and_nothing_is_sent_after,
    what_is_accepted_is_done_after_a_question_that_names_it,
    what_is_declined_is_not_done,
    what_is_ignored_is_not_done,
];

async fn the_list_has_every_tool_in_order_and_says_what_it_may_do(tried: &Tried) -> Kept {
    let tools = tried.client.list_all_tools().await?;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    need(names.is_sorted(), format!("not in order: {names:?}"))?;
    need(TOOLS.iter().all(|tool| names.contains(tool)), format!("missing in {names:?}"))?;
    let (reads, writes) = (hints(&tools, "read_file")?, hints(&tools, "write_file")?);
    need(reads.read_only_hint == Some(true), format!("{reads:?}"))?;
    need(writes.destructive_hint == Some(true), format!("{writes:?}"))
}

fn hints(tools: &[Tool], name: &str) -> Kept<ToolAnnotations> {
    let tool = tools.iter().find(|tool| tool.name == name);
    tool.and_then(|tool| tool.annotations.clone()).ok_or_else(|| Wrong(format!("{name} has no hints")))
}

async fn a_call_is_answered(tried: &Tried) -> Kept {
    let result = tried.call("good", json!({})).await?;
    need(is_answer(&result, "good"), show(&result))?;
    std::fs::write(tried.path("notes.txt"), "Buy milk.\n")?;
    let result = tried.call("read_file", json!({"path": "notes.txt"})).await?;
    need(is_answer(&result, "Buy milk.\n"), show(&result))
}

async fn structured_output_is_what_its_schema_promises(tried: &Tried) -> Kept {
    let tools = tried.client.list_all_tools().await?;
    let schema = tools.iter().find(|tool| tool.name == "promise").and_then(|tool| tool.output_schema.clone());
    need(schema.as_ref().is_some_and(|schema| schema["required"] == json!(["n"])), format!("{schema:?}"))?;
    let result = tried.call("promise", json!({"give": "right"})).await?;
    need(result.structured_content == Some(json!({"n": 1})), show(&result))?;
    let result = tried.call("promise", json!({"give": "wrong"})).await?;
    need(is_error(&result) && result.structured_content.is_none(), show(&result))
}

async fn a_failure_is_the_tools_and_bad_arguments_are_named(tried: &Tried) -> Kept {
    let result = tried.call("fail", json!({"with": "not-found"})).await?;
    need(is_error(&result) && text(&result).contains("no such thing"), show(&result))?;
    let result = tried.call("read_file", json!({"path": 3})).await?;
    need(failure(&result) == "validation_error" && text(&result).contains("path"), show(&result))?;
    match tried.client.call_tool(tried.request("surely_not", json!({}))?).await {
        Err(ServiceError::McpError(error)) => need(error.code == ErrorCode::INVALID_PARAMS, error),
        other => Err(Wrong(format!("an unknown tool: {other:?}"))),
    }
}

async fn progress_is_told_before_the_answer(tried: &Tried) -> Kept {
    let tool = "test_tool_with_progress";
    let result = tried.call(tool, json!({})).await?;
    need(!is_error(&result), show(&result))?;
    until(|| Ok(tried.person.heard().steps.len() == 3), "the last step of progress").await?;
    let mut steps = tried.person.heard().steps.clone();
    // The library hands each over in a task of its own; in which order they came is looked for below it.
    steps.sort_by(|one, other| one.0.total_cmp(&other.0));
    need(steps == [0.0, 50.0, 100.0].map(|done| (done, Some(100.0))), format!("{steps:?}"))?;
    let book = tried.books.open();
    let call = book.call(tool);
    let (id, token) = (&call["id"], &call["params"]["_meta"]["progressToken"]);
    let of_call = book.received.iter().filter_map(|message| match message {
        answer if answer["id"] == *id => Some("answer".to_owned()),
        step if step["params"]["progressToken"] == *token => Some(step["params"]["progress"].to_string()),
        _ => None,
    });
    let told = of_call.collect::<Vec<_>>().join(" ");
    need(told == "0.0 50.0 100.0 answer", told)
}

async fn an_endless_loop_ends_when_it_is_cancelled_and_nothing_is_sent_after(tried: &Tried) -> Kept {
    let call = tried.client.call_tool(tried.request("compute", json!({}))?);
    tokio::select! {
        ended = call => return Err(Wrong(format!("an endless loop ends: {ended:?}"))),
        // Whoever no longer waits for an answer has cancelled.
        computes = computes(tried) => computes?,
    }
    let before = tried.books.open().received.len();
    let result = tried.call("good", json!({})).await?;
    need(is_answer(&result, "good"), show(&result))?;
    sleep(QUIET).await;
    let busy = tried.busy()?;
    sleep(QUIET).await;
    need(tried.busy()? - busy < QUIET / 10, "the guest computes on")?;
    let book = tried.books.open();
    let cancelled = book.call("compute")["id"].clone();
    let is_later = |sent: &&Value| sent.get("method").is_some() && sent["id"].as_u64() > cancelled.as_u64();
    let asked: Vec<&Value> = book.sent.iter().filter(is_later).map(|sent| &sent["id"]).collect();
    let after: Vec<&Value> = book.received[before..].iter().map(|came| came.get("id").unwrap_or(came)).collect();
    need(
        after == asked,
        format!("after request {cancelled} was cancelled {asked:?} were asked, and there came {after:?}"),
    )
}

/// Returns when the guest is in its loop.
async fn computes(tried: &Tried) -> Kept {
    let has_begun = || Ok(tried.person.heard().said.iter().any(|said| said.contains("started")));
    until(has_begun, "the beginning of the loop").await?;
    let idle = tried.busy()?;
    until(|| Ok(tried.busy()? > idle + Duration::from_millis(100)), "the computing of the loop").await
}

async fn what_is_accepted_is_done_after_a_question_that_names_it(tried: &Tried) -> Kept {
    tried.person.will(Answer::Accept);
    let path = tried.fresh("accepted")?;
    let result = tried.call("write_file", json!({"path": path, "content": "written"})).await?;
    need(!is_error(&result) && tried.written(&path).as_deref() == Some("written"), show(&result))?;
    let questions = tried.person.heard().questions.clone();
    need(questions.len() == 1 && questions[0].contains(&path), format!("{questions:?}"))
}

async fn what_is_declined_is_not_done(tried: &Tried) -> Kept {
    tried.person.will(Answer::Decline);
    let path = tried.fresh("declined")?;
    let result = tried.call("write_file", json!({"path": path, "content": "written"})).await?;
    need(failure(&result) == "user_denied" && tried.written(&path).is_none(), show(&result))?;
    let questions = tried.person.heard().questions.clone();
    need(questions.len() == 1, format!("{questions:?}"))
}

async fn what_is_ignored_is_not_done(tried: &Tried) -> Kept {
    let path = tried.fresh("ignored")?;
    let arguments = json!({"path": path, "content": "written"});
    match tried.era {
        Era::Legacy => an_ignored_question_ends_the_call(tried, arguments).await?,
        Era::Modern => an_answer_that_comes_too_late_counts_for_nothing(tried, arguments).await?,
    }
    let result = tried.call("good", json!({})).await?;
    need(is_answer(&result, "good"), format!("nothing else is answered: {}", show(&result)))?;
    need(tried.written(&path).is_none(), "it was done")
}

async fn an_ignored_question_ends_the_call(tried: &Tried, arguments: Value) -> Kept {
    tried.person.will(Answer::Ignore);
    let begun = Instant::now();
    let result = tried.call("write_file", arguments).await?;
    need(failure(&result) == "confirmation_timeout", show(&result))?;
    need(begun.elapsed() >= QUESTION, "the question stood for less than its time")?;
    let questions = tried.person.heard().questions.clone();
    need(questions.len() == 1, format!("{questions:?}"))
}

/// Here nobody waits but the client: what is ignored is a call that is not made again, or too late.
async fn an_answer_that_comes_too_late_counts_for_nothing(tried: &Tried, arguments: Value) -> Kept {
    let request = tried.request("write_file", arguments)?;
    let asked = match tried.client.call_tool_once(request.clone()).await? {
        CallToolResponse::InputRequired(asked) => asked,
        other => return Err(Wrong(format!("nothing is asked: {other:?}"))),
    };
    sleep(QUESTION + QUIET).await;
    let mut responses = InputResponses::new();
    for name in asked.input_requests.unwrap_or_default().into_keys() {
        responses.insert(name, serde_json::to_value(Answer::Accept.give().await)?);
    }
    let late = request.with_input_responses(responses).with_request_state(asked.request_state.unwrap_or_default());
    match tokio::time::timeout(PATIENCE, tried.client.call_tool_once(late)).await? {
        Err(ServiceError::McpError(error)) => {
            need(error.code == ErrorCode::INVALID_PARAMS && error.message.contains("requestState"), error)
        }
        other => Err(Wrong(format!("a late answer is taken: {other:?}"))),
    }
}

fn is_error(result: &CallToolResult) -> bool {
    result.is_error == Some(true)
}

fn is_answer(result: &CallToolResult, expected: &str) -> bool {
    !is_error(result) && text(result) == expected
}

fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.as_str()).collect()
}

/// The class of an error; nothing where it is none.
fn failure(result: &CallToolResult) -> String {
    let error = result.meta.as_ref().and_then(|meta| meta.get("dev.palisade/error"));
    let class = error.and_then(|error| error["class"].as_str()).filter(|_| is_error(result));
    class.unwrap_or_default().to_owned()
}

fn show(result: &CallToolResult) -> String {
    format!("{result:?}")
}
