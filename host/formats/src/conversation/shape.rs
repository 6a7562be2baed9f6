//! The providers whose form a reply has, told by what only some of them write. A history would
//! otherwise take a reply of another provider for one without calls, and repeat it to an API that
//! does not take it.

use super::Provider;
use super::collector::{first_choice, type_of};
use serde_json::{Map, Value};

/// The keys of a part of Gemini with content.
const PARTS: [&str; 4] = ["text", "inlineData", "functionCall", "functionResponse"];

/// The providers that wrap their messages in an envelope.
const OPENAI: &[Provider] = &[Provider::OpenAi];
const GEMINI: &[Provider] = &[Provider::Gemini];

/// Returns a provider whose form a reply, or an element of a list, has in place of the expected
/// one's. [`REPLY_BOUNDS`](super::REPLY_BOUNDS) bounds the recursion.
pub(super) fn other_form(expected: Provider, reply: &Value) -> Option<Provider> {
    match reply {
        Value::Array(list) => list.iter().find_map(|element| other_form(expected, element)),
        Value::Object(object) => {
            let forms = forms_of(object);
            forms.first().copied().filter(|_| !forms.contains(&expected))
        }
        _ => None,
    }
}

/// Returns the providers that write such an object. Empty if it is of no known form.
fn forms_of(object: &Map<String, Value>) -> &'static [Provider] {
    let in_envelope = |owner: &'static [Provider], within: &Map<String, Value>| {
        let forms = forms_of(within);
        if forms.iter().any(|form| owner.contains(form)) { owner } else { forms }
    };
    let enveloped = first_choice(object, "choices")
        .and_then(|choice| choice.get("message")?.as_object())
        .or_else(|| object.get("message")?.as_object())
        .map(|message| (OPENAI, message));
    let enveloped = enveloped.or_else(|| {
        let content = first_choice(object, "candidates").and_then(|it| it.get("content"));
        let content = content.or_else(|| object.get("content"))?.as_object()?;
        Some((GEMINI, content))
    });
    match enveloped {
        Some((owner, within)) => in_envelope(owner, within),
        None => forms_of_message(object),
    }
}

fn forms_of_message(message: &Map<String, Value>) -> &'static [Provider] {
    let list = |key: &str| message.get(key).and_then(Value::as_array).into_iter().flatten();
    if list("parts").any(|part| PARTS.iter().any(|key| part.get(*key).is_some())) {
        return &[Provider::Gemini];
    }
    if list("tool_calls").any(Value::is_object) {
        return &[Provider::OpenAi];
    }
    let kind = type_of(message);
    if kind == Some("reasoning") || (kind.is_none() && list("output").any(is_item)) {
        return &[Provider::OpenAiResponses];
    }
    if !matches!(kind, None | Some("message")) || !message.contains_key("role") {
        return &[];
    }
    let mut blocks = list("content").filter_map(|block| block.get("type")?.as_str());
    match (message.get("content"), blocks.next()) {
        (Some(Value::String(_)), _) if kind.is_some() => {
            &[Provider::OpenAiResponses, Provider::Anthropic]
        }
        (Some(Value::String(_)), _) => {
            &[Provider::OpenAi, Provider::OpenAiResponses, Provider::Anthropic]
        }
        (_, Some("output_text" | "input_text")) => &[Provider::OpenAiResponses],
        (_, Some("text" | "thinking")) if kind.is_some() => &[Provider::Anthropic],
        (_, Some("text" | "thinking")) if blocks.any(is_of_anthropic) => &[Provider::Anthropic],
        (_, Some("text" | "thinking")) => &[Provider::OpenAi, Provider::Anthropic],
        (_, Some(block)) if is_of_anthropic(block) => &[Provider::Anthropic],
        _ => &[],
    }
}

fn is_item(item: &Value) -> bool {
    matches!(
        item.get("type").and_then(Value::as_str),
        Some("message" | "reasoning" | "function_call" | "custom_tool_call")
    )
}

fn is_of_anthropic(block: &str) -> bool {
    matches!(block, "tool_use" | "tool_result" | "server_tool_use" | "redacted_thinking")
}
