//! A guest that sends requests to the client, in given steps.

use std::time::{Duration, Instant, SystemTime};

use palisade_guest::client::{self, AskError, Kind, Request};
use palisade_guest::{Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The steps, in order.
    steps: Vec<Step>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Step {
    /// Returns the kinds of requests that the client supports.
    Supported,
    /// Requires these kinds.
    Need(Vec<Name>),
    /// Sends these requests.
    Ask(Vec<Question>),
    /// Sends a different request in each run.
    AskAnew,
    /// Writes this file.
    Write(String),
    /// Creates this file and removes it.
    Touch(String),
    /// Computes for this number of milliseconds.
    Spin(u64),
}

#[derive(Deserialize, JsonSchema)]
struct Question {
    key: String,
    kind: Name,
    #[serde(default)]
    params: Map<String, Value>,
    /// The parameters as text, instead of `params`.
    text: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Name {
    Elicitation,
    Sampling,
    Roots,
}

impl From<Name> for Kind {
    fn from(name: Name) -> Self {
        match name {
            Name::Elicitation => Self::Elicitation,
            Name::Sampling => Self::Sampling,
            Name::Roots => Self::Roots,
        }
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Elicitation => "elicitation",
        Kind::Sampling => "sampling",
        Kind::Roots => "roots",
    }
}

/// Performs the steps.
#[tool(side_effects = "none")]
fn ask(args: Args) -> Result<String> {
    run(args)
}

/// Performs the steps, with write access.
#[tool(side_effects = "write")]
fn ask_and_write(args: Args) -> Result<String> {
    run(args)
}

/// Returns the result of each step as a JSON list.
fn run(args: Args) -> Result<String> {
    let done = args.steps.into_iter().map(step).collect::<Result<Vec<Value>>>()?;
    Ok(Value::from(done).to_string())
}

fn step(step: Step) -> Result<Value> {
    Ok(match step {
        Step::Supported => client::supported().into_iter().map(name).collect::<Vec<_>>().into(),
        Step::Need(kinds) => {
            client::need(&kinds.into_iter().map(Kind::from).collect::<Vec<_>>());
            json!("had")
        }
        Step::Ask(questions) => asked(&questions.into_iter().map(request).collect::<Vec<_>>())?,
        Step::AskAnew => {
            let now =
                SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos().to_string();
            asked(&[Request::elicitation(
                "anew",
                &now,
                &json!({"type": "object", "properties": {}}),
            )])?
        }
        Step::Write(path) => {
            std::fs::write(path, "written")?;
            json!("written")
        }
        Step::Touch(path) => {
            std::fs::write(&path, "written")?;
            std::fs::remove_file(path)?;
            json!("touched")
        }
        Step::Spin(millis) => {
            let (start, time) = (Instant::now(), Duration::from_millis(millis));
            while start.elapsed() < time {}
            json!("spun")
        }
    })
}

fn request(question: Question) -> Request {
    let params = question.text.unwrap_or_else(|| Value::Object(question.params).to_string());
    Request { key: question.key, kind: question.kind.into(), params }
}

fn asked(requests: &[Request]) -> Result<Value> {
    let failure = match client::ask(requests) {
        Ok(answers) => {
            let parsed = answers.iter().map(|answer| serde_json::from_str(answer));
            return Ok(parsed.collect::<serde_json::Result<Vec<Value>>>()?.into());
        }
        Err(failure) => failure,
    };
    Ok(match failure {
        AskError::Unavailable => json!("unavailable"),
        AskError::Unsupported(kind) => json!({"unsupported": name(kind)}),
        AskError::Declined => json!("declined"),
        AskError::TooLate => json!("too late"),
        AskError::Invalid(reason) => json!({"invalid": reason}),
    })
}

palisade_guest::export!(ask, ask_and_write);
