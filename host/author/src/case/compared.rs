//! Compares the result of a call with the one that a case keeps.

use palisade::ToolResult;
use serde_json::{Value, json};

/// Returns the members of a result that a case keeps: those that the next run repeats.
#[must_use]
pub fn kept(result: &ToolResult) -> Value {
    let all = result.to_json();
    let Some(error) = result.error() else {
        let is_text = all["content"].as_array().is_some_and(|blocks| blocks.len() == 1)
            && all["content"][0]["type"] == "text";
        return match is_text {
            true => json!({"success": true, "output": all["output"]}),
            false => json!({"success": true, "content": all["content"]}),
        };
    };
    let mut kept = json!({"class": error.class().as_str(), "message": error.reason()});
    if let Some(kind) = all["error"]["detail"].get("kind") {
        kept["kind"] = kind.clone();
    }
    json!({"success": false, "error": kept})
}

/// Compares a result with the one of a case, and returns the first difference.
#[must_use]
pub fn difference(expected: &Value, result: &ToolResult) -> Option<String> {
    let mut actual = result.to_json();
    if let Some(error) = result.error() {
        actual["error"] = json!({
            "class": error.class().as_str(),
            "message": error.reason(),
            "kind": actual["error"]["detail"]["kind"],
        });
    }
    let difference = differs("", expected, &actual)?;
    let unexpected = result.error().filter(|_| expected["error"].is_null());
    Some(match unexpected {
        Some(error) => format!(
            "the call fails with `{}`",
            palisade::tool::text::elided(&error.to_string(), 300)
        ),
        None => difference,
    })
}

fn differs(at: &str, expected: &Value, actual: &Value) -> Option<String> {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            expected.iter().find_map(|(key, value)| {
                let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                differs(&at, value, actual.get(key).unwrap_or(&Value::Null))
            })
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            let mut pairs = expected.iter().zip(actual).enumerate();
            pairs.find_map(|(index, (expected, actual))| {
                differs(&format!("{at}[{index}]"), expected, actual)
            })
        }
        _ if expected == actual => None,
        _ => {
            let (was, is) = (expected.to_string(), actual.to_string());
            let from = beginning(&was, &is);
            Some(format!("`{at}` is {}, and was {}", shown(&is, from), shown(&was, from)))
        }
    }
}

/// Returns the place from which two texts are shown, in bytes: a little before they differ.
fn beginning(one: &str, other: &str) -> usize {
    const BEFORE: usize = 40;
    let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    if same <= 2 * BEFORE { 0 } else { one.floor_char_boundary(same - BEFORE) }
}

fn shown(text: &str, from: usize) -> String {
    let before = if from == 0 { "" } else { "… " };
    let rest = text.get(from..).unwrap_or_default();
    format!("{before}{}", palisade::tool::text::elided(rest, 160))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    #[test]
    fn only_listed_members_are_compared() {
        let expected = json!({"success": true, "output": "x"});
        assert_eq!(differs("", &expected, &json!({"success": true, "output": "x", "id": 1})), None);
        let found = differs("", &expected, &json!({"success": true, "output": "y"}));
        assert_eq!(found.as_deref(), Some("`output` is \"y\", and was \"x\""));
    }

    #[test]
    fn difference_is_shown_by_its_place() {
        let with = |last: u32| {
            let files: Vec<Value> = (0..100).map(|at| json!({"at": at, "last": 0})).collect();
            let mut value = json!({"content": [{"json": {"files": files}}]});
            value["content"][0]["json"]["files"][99]["last"] = json!(last);
            value
        };
        let found = differs("", &with(1), &with(2));
        let expected = "`content[0].json.files[99].last` is 2, and was 1";
        assert_eq!(found.as_deref(), Some(expected));
        let long = |end: &str| json!({"output": "word \u{e9} ".repeat(100) + end});
        let found = differs("", &long("one"), &long("two")).unwrap();
        assert!(found.contains("two\"") && found.contains("one\""), "{found}");
        assert!(found.starts_with("`output` is … ") && found.len() < 200, "{found}");
    }
}
