//! The fields that make up a call: the documented fields of a typed object, or else those of any
//! form, the named provider's first.

use super::Provider;
use super::collector::type_of;
use serde_json::{Map, Value};

/// The id fields of all forms. An item of the Responses has two: `call_id` is the call's id and
/// `id` is the item's.
pub(super) const IDS: [&str; 4] = ["call_id", "tool_call_id", "tool_use_id", "id"];

/// The id fields in lookup order for the other providers.
const ID_FIRST: [&str; 4] = ["id", "call_id", "tool_call_id", "tool_use_id"];

/// The keys of the objects that may wrap a call's name and input, in all forms.
pub(super) const WRAPPERS: [&str; 4] = ["function", "custom", "functionCall", "function_call"];

/// The fields of one form of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    pub(super) ids: &'static [&'static str],
    pub(super) inputs: &'static [&'static str],
    wrappers: &'static [&'static str],
    lookup: Lookup,
}

/// The places in which a form's fields are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lookup {
    /// The documented fields in their documented places only.
    Documented,
    /// Any field in any place; a wrapper takes precedence over the object itself.
    WrapperFirst,
    /// Any field in any place; a wrapper is used only if the object itself has no name.
    ObjectFirst,
}

impl Fields {
    const CHAT: Self = Self::documented(&["id"], &["arguments"], &["function"]);
    const CHAT_CUSTOM: Self = Self::documented(&["id"], &["input"], &["custom"]);
    const ITEM: Self = Self::documented(&["call_id", "id"], &["arguments"], &[]);
    const CUSTOM_ITEM: Self = Self::documented(&["call_id", "id"], &["input"], &[]);
    const BLOCK: Self = Self::documented(&["id"], &["input"], &[]);

    /// Returns the fields that apply to an object.
    pub(super) fn for_object(object: &Map<String, Value>, provider: Provider) -> Self {
        match type_of(object) {
            Some("tool_use") => Self::BLOCK,
            Some("function_call") => Self::ITEM,
            Some("custom_tool_call") => Self::CUSTOM_ITEM,
            Some("function") if find_wrapped(object, Self::CHAT.wrappers).is_some() => Self::CHAT,
            Some("custom") if find_wrapped(object, Self::CHAT_CUSTOM.wrappers).is_some() => {
                Self::CHAT_CUSTOM
            }
            _ => Self::untyped(provider),
        }
    }

    const fn documented(
        ids: &'static [&'static str],
        inputs: &'static [&'static str],
        wrappers: &'static [&'static str],
    ) -> Self {
        Self { ids, inputs, wrappers, lookup: Lookup::Documented }
    }

    /// Returns the fields for an object without a known type.
    fn untyped(provider: Provider) -> Self {
        let (inputs, lookup): (&'static [&'static str], _) = match provider {
            Provider::OpenAi => (&["arguments", "input", "args"], Lookup::WrapperFirst),
            Provider::OpenAiResponses => (&["arguments", "input", "args"], Lookup::ObjectFirst),
            Provider::Anthropic => (&["input", "arguments", "args"], Lookup::ObjectFirst),
            Provider::Gemini => (&["args", "arguments", "input"], Lookup::ObjectFirst),
        };
        let ids = if provider == Provider::OpenAiResponses { &IDS } else { &ID_FIRST };
        Self { ids, inputs, wrappers: &WRAPPERS, lookup }
    }

    /// Returns the object that holds name and input.
    pub(super) fn inner<'v>(&self, object: &'v Map<String, Value>) -> &'v Map<String, Value> {
        match self.lookup {
            Lookup::ObjectFirst if object.get("name").is_some_and(Value::is_string) => object,
            _ => find_wrapped(object, self.wrappers).unwrap_or(object),
        }
    }

    /// Returns the outer object as a second place to look, unless only documented places count.
    pub(super) fn fallback<'v>(
        &self,
        object: &'v Map<String, Value>,
    ) -> Option<&'v Map<String, Value>> {
        (self.lookup != Lookup::Documented).then_some(object)
    }
}

/// Returns the providers whose calls have the form of this object: by its type, or else by the
/// object that wraps the name. Empty if the form is nobody's own, such as a name with its input.
pub(super) fn forms_of_call(object: &Map<String, Value>) -> &'static [Provider] {
    let wraps = |key: &str| object.get(key).is_some_and(Value::is_object);
    match type_of(object) {
        Some("tool_use") => &[Provider::Anthropic],
        Some("function_call" | "custom_tool_call") => &[Provider::OpenAiResponses],
        Some("function") if wraps("function") => &[Provider::OpenAi],
        Some("custom") if wraps("custom") => &[Provider::OpenAi],
        Some(_) => &[],
        None if object.get("name").is_some_and(Value::is_string) => &[],
        None if wraps("function") || wraps("custom") => &[Provider::OpenAi],
        None if wraps("functionCall") => &[Provider::Gemini],
        None => object.get("function_call").and_then(Value::as_object).map_or(&[], older_forms),
    }
}

/// Returns the providers whose calls have this object under `function_call`: the predecessor of
/// `tool_calls`, or a part of Gemini as some libraries print it.
fn older_forms(call: &Map<String, Value>) -> &'static [Provider] {
    match (call.contains_key("arguments"), call.contains_key("args")) {
        (true, false) => &[Provider::OpenAi],
        (false, true) => &[Provider::Gemini],
        _ => &[Provider::OpenAi, Provider::Gemini],
    }
}

/// Returns the object under the first of these keys that holds an object.
pub(super) fn find_wrapped<'v>(
    object: &'v Map<String, Value>,
    wrappers: &[&str],
) -> Option<&'v Map<String, Value>> {
    wrappers.iter().find_map(|key| object.get(*key)?.as_object())
}
