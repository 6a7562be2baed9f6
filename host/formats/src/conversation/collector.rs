//! Collects the calls of a reply, in any of a call's forms.

use super::fields::{Fields, IDS, WRAPPERS, find_wrapped, forms_of_call};
use super::{MAX_CALLS, Provider, ReplyError, ToolUse};
use palisade_schema::budget::{Budget, Exhausted, Purse};
use palisade_schema::json::text_within;
use palisade_schema::text::{cut, sanitize_id};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The form of a call, as far as the answer depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A function call.
    Function,
    /// A call of a tool with free-text input.
    Custom,
    /// OpenAI's `function_call`, the predecessor of `tool_calls`, without ids.
    Legacy,
}

/// The memory of a call beside its texts, in bytes: two short ids, and its place in tables.
const CALL: u64 = 2 << 10;

/// The calls that a reader has collected, within a budget.
#[derive(Debug)]
pub(super) struct CallCollector<'b> {
    provider: Provider,
    purse: Purse<'b>,
    calls: Vec<RawCall>,
    /// True if a call was dropped because it is already answered.
    has_dropped: bool,
    /// True if the reader recognized any part of the reply.
    recognized: bool,
}

/// Reads one object of a provider's reply.
type Reader = fn(&Map<String, Value>, &mut CallCollector<'_>) -> Result<(), ReplyError>;

/// A call as written in the reply.
#[derive(Debug)]
struct RawCall {
    id: Option<String>,
    name: String,
    input: String,
    form: Form,
}

impl<'b> CallCollector<'b> {
    /// Creates an empty collection for a reply of this provider.
    pub(super) fn new(provider: Provider, budget: &'b dyn Budget) -> Self {
        let purse = Purse::new(budget);
        Self { provider, purse, calls: Vec::new(), has_dropped: false, recognized: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns true if a call was dropped because it is already answered.
    pub(super) fn has_dropped_calls(&self) -> bool {
        self.has_dropped
    }

    /// Returns true if the reader recognized any part of the reply.
    pub(super) fn is_recognized(&self) -> bool {
        self.recognized
    }

    /// Records that the reader recognized a part of the reply.
    pub(super) fn mark_recognized(&mut self) {
        self.recognized = true;
    }

    /// Reads an object, or each object of a list in order.
    /// [`REPLY_BOUNDS`](super::REPLY_BOUNDS) bounds the recursion into nested lists.
    ///
    /// An empty list, or a list with an object in it, counts as recognized.
    pub(super) fn read_each_object(
        &mut self,
        value: &Value,
        read: Reader,
    ) -> Result<(), ReplyError> {
        match value {
            Value::Array(list) => {
                self.recognized |= list.is_empty() || list.iter().any(Value::is_object);
                list.iter().try_for_each(|element| self.read_each_object(element, read))
            }
            Value::Object(object) => read(object, self),
            _ => Ok(()),
        }
    }

    /// Adds an object as a call.
    pub(super) fn add_call(&mut self, object: &Map<String, Value>) -> Result<(), ReplyError> {
        let custom = matches!(type_of(object), Some("custom" | "custom_tool_call"));
        self.push(object, if custom { Form::Custom } else { Form::Function })
    }

    /// Adds an object as a call in OpenAI's older form.
    pub(super) fn add_legacy_call(
        &mut self,
        object: &Map<String, Value>,
    ) -> Result<(), ReplyError> {
        self.push(object, Form::Legacy)
    }

    /// Reads an object of unknown role: a call, the answer to a call, or another item of a list.
    pub(super) fn read_item(&mut self, object: &Map<String, Value>) -> Result<(), ReplyError> {
        match type_of(object) {
            Some("function_call_output" | "custom_tool_call_output" | "tool_result") => {
                self.drop_answered(object);
            }
            Some(
                "function_call" | "custom_tool_call" | "tool_use" | "function" | "custom"
                | "tool_call",
            ) => return self.add_call_in_form(object),
            None if is_untyped_call(object) => return self.add_call_in_form(object),
            kind => self.recognized |= kind.is_some() || object.contains_key("role"),
        }
        Ok(())
    }

    /// Adds an object as a call, unless it has the form of another provider's calls: the answer in
    /// the named provider's form would be for the wrong API.
    fn add_call_in_form(&mut self, object: &Map<String, Value>) -> Result<(), ReplyError> {
        self.check_form(object)?;
        self.add_call(object)
    }

    /// Refuses a call that has the form of other providers' calls.
    pub(super) fn check_form(&self, object: &Map<String, Value>) -> Result<(), ReplyError> {
        match forms_of_call(object) {
            [found, ..] if !forms_of_call(object).contains(&self.provider) => {
                Err(ReplyError::OtherProvider { expected: self.provider, found: *found })
            }
            _ => Ok(()),
        }
    }

    /// Drops the call that an object answers, by id or else by name, so that a finished call is not
    /// run again.
    pub(super) fn drop_answered(&mut self, answer: &Map<String, Value>) {
        self.recognized = true;
        let id = find_id(answer, &IDS);
        let name = find_name(answer);
        let is_answered = |call: &RawCall| match (&call.id, id) {
            (Some(requested), Some(answered)) => requested == answered,
            _ => name == Some(call.name.as_str()),
        };
        if let Some(index) = self.calls.iter().position(is_answered) {
            self.calls.remove(index);
            self.has_dropped = true;
        }
    }

    /// Returns the calls, each with an id that is unique in the reply, and the number of budget
    /// bytes that they keep, which the caller must release.
    pub(super) fn into_tool_uses(self) -> (Vec<ToolUse>, u64) {
        let provider_ids: HashSet<String> =
            self.calls.iter().filter_map(|call| call.id.as_deref()).map(sanitize_id).collect();
        let mut taken = HashSet::new();
        let mut tool_uses = Vec::with_capacity(self.calls.len());
        for (index, call) in self.calls.into_iter().enumerate() {
            let generated = format!("call_{}", index + 1);
            let preferred = sanitize_id(call.id.as_deref().unwrap_or(&generated));
            let is_free = |id: &String| {
                !taken.contains(id) && (call.id.is_some() || !provider_ids.contains(id))
            };
            let call_id = if is_free(&preferred) {
                preferred
            } else {
                number_id(&preferred, &taken, &provider_ids)
            };
            taken.insert(call_id.clone());
            let RawCall { id, name, input, form } = call;
            tool_uses.push(ToolUse { id, call_id, name, input, form });
        }
        (tool_uses, self.purse.keep())
    }

    /// Copies the texts of a call, whose memory is reserved first.
    fn copy_call(&mut self, object: &Map<String, Value>, form: Form) -> Result<RawCall, Exhausted> {
        let fields = Fields::for_object(object, self.provider);
        let inner = fields.inner(object);
        let find = |key: &&str| inner.get(*key).or_else(|| fields.fallback(object)?.get(*key));
        let input = fields.inputs.iter().filter_map(find).find(|value| !value.is_null());
        let id = find_id(object, fields.ids)
            .or_else(|| find_id(fields.fallback(inner)?, fields.ids))
            .filter(|_| form != Form::Legacy);
        let name =
            find_name(inner).or_else(|| find_name(fields.fallback(object)?)).unwrap_or_default();
        let texts = id.map_or(0, str::len) + name.len();
        self.purse.take(CALL + texts as u64)?;
        Ok(RawCall {
            id: id.map(str::to_owned),
            name: name.to_owned(),
            input: match input {
                None => "{}".to_owned(),
                Some(input) => input_text(input, &mut self.purse)?,
            },
            form,
        })
    }

    fn push(&mut self, object: &Map<String, Value>, form: Form) -> Result<(), ReplyError> {
        if self.calls.len() >= MAX_CALLS {
            return Err(ReplyError::TooManyCalls);
        }
        let call = self.copy_call(object, form)?;
        self.recognized = true;
        self.calls.push(call);
        Ok(())
    }
}

/// Returns an object's `type`.
pub(super) fn type_of(object: &Map<String, Value>) -> Option<&str> {
    object.get("type").and_then(Value::as_str)
}

/// Returns the first of several choices, or null if the list is empty.
pub(super) fn first_choice<'v>(object: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    let list = object.get(key)?.as_array()?;
    Some(list.first().unwrap_or(&Value::Null))
}

/// Removes the first of several choices, or null if the list is empty.
pub(super) fn take_first(object: &mut Map<String, Value>, key: &str) -> Option<Value> {
    let list = object.get_mut(key)?.as_array_mut()?;
    Some(if list.is_empty() { Value::Null } else { list.swap_remove(0) })
}

/// Returns true if a message is the model's. Messages of other roles may quote calls but never
/// request them.
pub(super) fn is_from_model(message: &Map<String, Value>) -> bool {
    matches!(message.get("role").and_then(Value::as_str), None | Some("assistant" | "model"))
}

/// Returns the id with the first free number appended. At most [`MAX_CALLS`] ids are taken, so a
/// low number is free.
fn number_id(id: &str, taken: &HashSet<String>, provider_ids: &HashSet<String>) -> String {
    let stem = cut(id, 240);
    let mut ids = (2..).map(|number: u32| sanitize_id(&format!("{stem}-{number}")));
    ids.find(|id| !taken.contains(id) && !provider_ids.contains(id))
        .unwrap_or_else(|| id.to_owned())
}

fn is_untyped_call(object: &Map<String, Value>) -> bool {
    let is_wrapped = || find_wrapped(object, &WRAPPERS).is_some();
    !object.contains_key("role")
        && (object.get("name").is_some_and(Value::is_string) || is_wrapped())
}

fn find_id<'v>(object: &'v Map<String, Value>, keys: &[&str]) -> Option<&'v str> {
    let mut known = keys.iter().filter_map(|key| object.get(*key)?.as_str());
    known.find(|id| !id.is_empty())
}

fn find_name(object: &Map<String, Value>) -> Option<&str> {
    object.get("name").and_then(Value::as_str)
}

fn input_text(value: &Value, purse: &mut Purse<'_>) -> Result<String, Exhausted> {
    match value {
        Value::String(text) if text.trim().is_empty() => Ok("{}".to_owned()),
        Value::String(text) => {
            purse.take(text.len() as u64)?;
            Ok(text.clone())
        }
        other => text_within(other, purse),
    }
}
