//! Which fields of an object make a call: the documented ones of its type, or of whatever form, those of the provider that was named first.

use super::Provider;
use super::found::kind;
use serde_json::{Map, Value};

/// Where an id stands in any form. An item of the Responses has two: `call_id`, which is the call's, and `id`, which is the item's.
pub(super) const IDS: [&str; 4] = ["call_id", "tool_call_id", "tool_use_id", "id"];

/// The same for everybody else.
const ID_FIRST: [&str; 4] = ["id", "call_id", "tool_call_id", "tool_use_id"];

/// What a call's name and input may be wrapped in, in any form.
pub(super) const WRAPPERS: [&str; 4] = ["function", "custom", "functionCall", "function_call"];

/// The fields of one form of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    pub(super) ids: &'static [&'static str],
    pub(super) inputs: &'static [&'static str],
    wrappers: &'static [&'static str],
    reach: Reach,
}

/// How far a form goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The fields named, where they are documented.
    Documented,
    /// Any field, in any place; a wrapper comes before the object itself.
    WrappedFirst,
    /// Any field, in any place; a wrapper counts only where the object itself has no name.
    FlatFirst,
}

impl Fields {
    const CHAT: Self = Self::documented(&["id"], &["arguments"], &["function"]);
    const CHAT_CUSTOM: Self = Self::documented(&["id"], &["input"], &["custom"]);
    const ITEM: Self = Self::documented(&["call_id", "id"], &["arguments"], &[]);
    const CUSTOM_ITEM: Self = Self::documented(&["call_id", "id"], &["input"], &[]);
    const BLOCK: Self = Self::documented(&["id"], &["input"], &[]);

    /// Those that count for an object.
    pub(super) fn of(object: &Map<String, Value>, provider: Provider) -> Self {
        match kind(object) {
            Some("tool_use") => Self::BLOCK,
            Some("function_call") => Self::ITEM,
            Some("custom_tool_call") => Self::CUSTOM_ITEM,
            Some("function") if wrapped(object, Self::CHAT.wrappers).is_some() => Self::CHAT,
            Some("custom") if wrapped(object, Self::CHAT_CUSTOM.wrappers).is_some() => Self::CHAT_CUSTOM,
            _ => Self::any(provider),
        }
    }

    const fn documented(
        ids: &'static [&'static str],
        inputs: &'static [&'static str],
        wrappers: &'static [&'static str],
    ) -> Self {
        Self { ids, inputs, wrappers, reach: Reach::Documented }
    }

    /// For an object that does not say what it is.
    fn any(provider: Provider) -> Self {
        let (inputs, reach): (&'static [&'static str], _) = match provider {
            Provider::OpenAi => (&["arguments", "input", "args"], Reach::WrappedFirst),
            Provider::OpenAiResponses => (&["arguments", "input", "args"], Reach::FlatFirst),
            Provider::Anthropic => (&["input", "arguments", "args"], Reach::FlatFirst),
            Provider::Gemini => (&["args", "arguments", "input"], Reach::FlatFirst),
        };
        let ids = if provider == Provider::OpenAiResponses { &IDS } else { &ID_FIRST };
        Self { ids, inputs, wrappers: &WRAPPERS, reach }
    }

    /// The object that holds name and input.
    pub(super) fn inner<'v>(&self, object: &'v Map<String, Value>) -> &'v Map<String, Value> {
        match self.reach {
            Reach::FlatFirst if object.get("name").is_some_and(Value::is_string) => object,
            _ => wrapped(object, self.wrappers).unwrap_or(object),
        }
    }

    /// An object in which the fields are looked for as well, where they may stand in any place.
    pub(super) fn elsewhere<'v>(&self, object: &'v Map<String, Value>) -> Option<&'v Map<String, Value>> {
        (self.reach != Reach::Documented).then_some(object)
    }
}

/// What an object holds under the first of these keys that has an object.
pub(super) fn wrapped<'v>(object: &'v Map<String, Value>, wrappers: &[&str]) -> Option<&'v Map<String, Value>> {
    wrappers.iter().find_map(|key| object.get(*key)?.as_object())
}
