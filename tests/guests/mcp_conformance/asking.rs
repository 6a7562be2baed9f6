//! The tools of the conformance suite that send requests to the client: elicitation, sampling and
//! roots.

use palisade_guest::client::{AskError, Kind, Request, ask, need, supported};
use palisade_guest::{Context, Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Returns an elicitation with a form whose fields are all required.
pub(crate) fn form(key: &str, message: &str, fields: &Value) -> Request {
    let names: Vec<&String> =
        fields.as_object().into_iter().flat_map(serde_json::Map::keys).collect();
    loose_form(key, message, fields, &json!(names))
}

/// Returns an elicitation with a form in which only some fields are required.
fn loose_form(key: &str, message: &str, fields: &Value, required: &Value) -> Request {
    let schema = json!({ "type": "object", "properties": fields, "required": required });
    let params = json!({ "message": message, "requestedSchema": schema });
    Request { key: key.to_owned(), kind: Kind::Elicitation, params: params.to_string() }
}

/// Returns a sampling request.
fn question(key: &str, text: &str, tokens: u32) -> Request {
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    let params = json!({ "messages": [message], "maxTokens": tokens });
    Request { key: key.to_owned(), kind: Kind::Sampling, params: params.to_string() }
}

fn roots(key: &str) -> Request {
    Request { key: key.to_owned(), kind: Kind::Roots, params: "{}".to_owned() }
}

/// Sends the requests, and returns their answers in the same order.
fn answers(requests: &[Request]) -> Result<Vec<Value>> {
    let answers = ask(requests)?;
    answers.iter().map(|answer| Ok(serde_json::from_str(answer)?)).collect()
}

/// Sends one request and returns its answer, or null if the request was declined.
pub(crate) fn answer(request: Request) -> Result<Value> {
    match ask(&[request]) {
        Err(AskError::Declined) => Ok(Value::Null),
        answers => Ok(serde_json::from_str(answers?.first().map_or("null", String::as_str))?),
    }
}

fn name_field() -> Value {
    json!({ "name": { "type": "string" } })
}

fn confirmation() -> Request {
    form("confirm", "Please confirm", &json!({ "ok": { "type": "boolean" } }))
}

/// Returns the text of a sampling result, if the result is text.
fn text_of(answer: &Value) -> &str {
    answer["content"]["text"].as_str().unwrap_or("nothing in words")
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Prompt {
    /// The prompt to send to the model.
    prompt: String,
}

/// Asks the client's model.
#[tool(side_effects = "none")]
pub(crate) fn test_sampling(args: Prompt) -> Result<String> {
    let said = answers(&[question("answer", &args.prompt, 100)])?;
    Ok(format!("LLM response: {}", said.first().map_or("none", text_of)))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Message {
    /// The message to show to the user.
    message: String,
}

/// Asks the user for a name and an address.
#[tool(side_effects = "none")]
pub(crate) fn test_elicitation(args: Message) -> Result<String> {
    let fields = json!({
        "username": { "type": "string", "description": "What you are called" },
        "email": { "type": "string", "description": "Where you can be written to" },
    });
    Ok(format!("User response: {}", answer(form("user", &args.message, &fields))?))
}

/// Asks the user with a form that is filled in already.
#[tool(side_effects = "none")]
pub(crate) fn test_elicitation_sep1034_defaults() -> Result<String> {
    let fields = json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    });
    let request = loose_form(
        "details",
        "Please look through these and change what is wrong",
        &fields,
        &json!([]),
    );
    Ok(format!("Elicitation completed: {}", answer(request)?))
}

/// Asks the user to choose, with each kind of choice.
#[tool(side_effects = "none")]
pub(crate) fn test_elicitation_sep1330_enums() -> Result<String> {
    let title = |value: &str, title: String| json!({ "const": value, "title": title });
    let titled = |word: &str| {
        json!([title("value1", format!("First {word}")), title("value2", format!("Second {word}"))])
    };
    let fields = json!({
        "untitledSingle": { "type": "string", "enum": ["option1", "option2"] },
        "titledSingle": { "type": "string", "oneOf": titled("option") },
        "legacyEnum": { "type": "string", "enum": ["opt1", "opt2"], "enumNames": ["First option", "Second option"] },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": ["option1", "option2"] } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("choice") } },
    });
    let request = loose_form("choices", "Please choose", &fields, &json!([]));
    Ok(format!("Elicitation completed: {}", answer(request)?))
}

/// Requires the client's model, without a request to it.
#[tool(side_effects = "none")]
pub(crate) fn test_missing_capability() -> &'static str {
    need(&[Kind::Sampling]);
    "The client has a model."
}

/// Asks the user while it reports progress.
#[tool(side_effects = "none")]
pub(crate) fn test_streaming_elicitation(ctx: &Context) -> Result<String> {
    ctx.progress(50.0, Some(100.0), "half way");
    let name = answer(form("user_name", "What is your name?", &name_field()))?;
    Ok(format!("Streaming is complete, {}.", name["name"]))
}

/// Asks for a name, and greets.
#[tool(side_effects = "none")]
pub(crate) fn test_input_required_result_elicitation() -> Result<String> {
    let name = answer(form("user_name", "What is your name?", &name_field()))?;
    Ok(format!("Hello, {}!", name["name"].as_str().unwrap_or("stranger")))
}

/// Asks the client's model for a capital.
#[tool(side_effects = "none")]
pub(crate) fn test_input_required_result_sampling() -> Result<String> {
    let said = answers(&[question("capital_question", "What is the capital of France?", 100)])?;
    Ok(format!("The model says: {}", said.first().map_or("none", text_of)))
}

/// Asks for the client's roots.
#[tool(side_effects = "none")]
pub(crate) fn test_input_required_result_list_roots() -> Result<String> {
    let said = answers(&[roots("client_roots")])?;
    let roots = said.first().map(|answer| answer["roots"].to_string()).unwrap_or_default();
    Ok(format!("The client's roots: {roots}"))
}

/// Asks for consent. The client returns the host's state with the answer, and the host checks it.
#[tool(side_effects = "none")]
pub(crate) fn test_input_required_result_request_state() -> Result<String> {
    Ok(format!("state-ok: {}", answer(confirmation())?))
}

/// Asks for consent, of a client that modifies the host's state.
#[tool(side_effects = "none")]
pub(crate) fn test_input_required_result_tampered_state() -> Result<String> {
    Ok(format!("integrity-ok: {}", answer(confirmation())?))
}

/// Asks for three things at once.
#[tool(side_effects = "none")]
pub(crate) fn test_input_required_result_multiple_inputs() -> Result<String> {
    let said = answers(&[
        form("user_name", "What is your name?", &name_field()),
        question("greeting", "Generate a greeting", 50),
        roots("client_roots"),
    ])?;
    let [name, greeting, roots] = said.as_slice() else {
        return Ok("Not everything was answered.".to_owned());
    };
    Ok(format!(
        "{} is told {}, and has the roots {}",
        name["name"],
        text_of(greeting),
        roots["roots"]
    ))
}

/// Asks for one thing, and then for another.
#[tool(side_effects = "none")]
pub(crate) fn test_input_required_result_multi_round() -> Result<String> {
    let name = answer(form("step1", "Step 1: What is your name?", &name_field()))?;
    let color = json!({ "color": { "type": "string" } });
    let color = answer(form("step2", "Step 2: What is your favorite color?", &color))?;
    Ok(format!("{} likes {}", name["name"], color["color"]))
}

/// Asks for everything that the client supports.
#[tool(side_effects = "none")]
pub(crate) fn test_input_required_result_capabilities() -> Result<String> {
    let request = |kind: &Kind| match kind {
        Kind::Elicitation => {
            form("form", "What do you say?", &json!({ "value": { "type": "string" } }))
        }
        Kind::Sampling => question("model", "Say something", 50),
        Kind::Roots => roots("roots"),
    };
    let requests: Vec<Request> = supported().iter().map(request).collect();
    if requests.is_empty() {
        return Ok("The client can give nothing.".to_owned());
    }
    Ok(format!("The client has given {} answers.", answers(&requests)?.len()))
}
