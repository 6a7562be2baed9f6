//! A guest that sends requests to the client, in given steps.

use std::time::{Duration, Instant, SystemTime};

use palisade_guest::client::{self, AskError, Kind, Request};
use palisade_guest::{Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// What to do, in order.
    steps: Vec<Step>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Step {
    /// Says what the client can be asked for.
    Supported,
    /// Cannot do without these.
    Need(Vec<Name>),
    /// Asks.
    Ask(Vec<Question>),
    /// Asks the same thing never twice.
    AskAnew,
    /// Writes this file.
    Write(String),
    /// Makes this file and removes it.
    Touch(String),
    /// Computes for so many milliseconds.
    Spin(u64),
}

#[derive(Deserialize, JsonSchema)]
struct Question {
    key: String,
    kind: Name,
    #[serde(default)]
    params: Map<String, Value>,
    /// The parameters as text, in place of those.
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

/// Asks as it is told.
#[tool(side_effects = "none")]
fn ask(args: Args) -> Result<String> {
    run(args)
}

/// Asks as it is told, and can write.
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
