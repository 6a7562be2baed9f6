//! The checks that OpenAI makes of the tools in a request, as far as a listed schema can fail them:
//! the names, an object at the root, and the subset of JSON Schema of tools with `strict`. Those of
//! Anthropic are fewer.

use super::reply::Wire;
use anyhow::{Context as _, bail, ensure};
use serde_json::{Map, Value, json};

/// Maximum number of tools of a request.
const TOOLS: usize = 128;
/// Maximum length of the name of a tool, in bytes.
const LONGEST_NAME: usize = 64;
/// The same of Anthropic.
const LONGEST_NAME_OF_ANTHROPIC: usize = 128;
/// The formats of a text in a strict schema.
const FORMATS: [&str; 9] =
    ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"];
/// The keywords that a strict schema cannot have.
const REFUSED: [&str; 9] = [
    "allOf",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "oneOf",
    "patternProperties",
    "then",
];

/// Refuses a request with a tool that OpenAI or Anthropic refuses, in OpenAI's words.
pub(super) fn check(wire: Wire, request: &Value) -> anyhow::Result<()> {
    let tools = request.get("tools").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    ensure!(tools.len() <= TOOLS, "{} tools; {TOOLS} are accepted", tools.len());
    for tool in tools {
        let (function, parameters, longest) = match wire {
            Wire::Chat => (&tool["function"], "parameters", LONGEST_NAME),
            Wire::Responses => (tool, "parameters", LONGEST_NAME),
            Wire::Messages => (tool, "input_schema", LONGEST_NAME_OF_ANTHROPIC),
        };
        let name = function["name"].as_str().context("a tool has a name")?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        ensure!(
            (1..=longest).contains(&name.len()) && name.bytes().all(is_plain),
            "Invalid name of a function: '{name}'"
        );
        let parameters = &function[parameters];
        let checked = match (parameters["type"].as_str(), &function["strict"]) {
            (Some("object"), Value::Bool(true)) => schema(parameters, &mut Vec::new()),
            (Some("object"), _) => Ok(()),
            (_, _) if parameters.is_null() => Ok(()),
            (_, _) => Err(anyhow::anyhow!("schema must be of type 'object'")),
        };
        checked.with_context(|| format!("Invalid schema for function '{name}'"))?;
    }
    Ok(())
}

/// Checks a schema and all schemas in it. `place` is its location, for the message.
fn schema(value: &Value, place: &mut Vec<String>) -> anyhow::Result<()> {
    let Some(keywords) = value.as_object() else { return Ok(()) };
    for keyword in REFUSED {
        ensure!(!keywords.contains_key(keyword), "In context={place:?}, '{keyword}' is refused");
    }
    if let Some(format) = keywords.get("format").and_then(Value::as_str) {
        ensure!(
            FORMATS.contains(&format),
            "In context={place:?}, '{format}' is not a valid format"
        );
    }
    if keywords.get("type") == Some(&json!("object")) {
        object(keywords, place)?;
    }
    for key in ["properties", "$defs"] {
        for (name, inner) in keywords.get(key).and_then(Value::as_object).into_iter().flatten() {
            within(inner, place, [key, name])?;
        }
    }
    for (index, inner) in
        keywords.get("anyOf").and_then(Value::as_array).into_iter().flatten().enumerate()
    {
        within(inner, place, ["anyOf", &index.to_string()])?;
    }
    keywords.get("items").map_or(Ok(()), |inner| within(inner, place, ["items", ""]))
}

fn within(inner: &Value, place: &mut Vec<String>, steps: [&str; 2]) -> anyhow::Result<()> {
    let depth = place.len();
    place.extend(steps.into_iter().filter(|step| !step.is_empty()).map(str::to_owned));
    schema(inner, place)?;
    place.truncate(depth);
    Ok(())
}

/// Checks that an object has no other properties, and all of its properties in each value.
fn object(keywords: &Map<String, Value>, place: &[String]) -> anyhow::Result<()> {
    ensure!(
        keywords.get("additionalProperties") == Some(&json!(false)),
        "In context={place:?}, 'additionalProperties' is required to be supplied and to be false"
    );
    let required = keywords.get("required").and_then(Value::as_array);
    let Some(properties) = keywords.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    for name in properties.keys() {
        if !required.is_some_and(|required| required.contains(&json!(name))) {
            bail!("In context={place:?}, 'required' must name every property. Missing '{name}'");
        }
    }
    Ok(())
}
