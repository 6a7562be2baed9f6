//! Collects the calls of a reply, in any of a call's forms.

use super::fields::{Fields, IDS, WRAPPERS, wrapped};
use super::{MAX_CALLS, Provider, ReplyError, ToolUse};
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

/// The calls that a reader has collected.
#[derive(Debug)]
pub(super) struct Found {
    provider: Provider,
    calls: Vec<Asked>,
    answered: bool,
    understood: bool,
}

/// Reads one object of a provider's reply.
type Reader = fn(&Map<String, Value>, &mut Found) -> Result<(), ReplyError>;

/// A call as written in the reply.
#[derive(Debug)]
struct Asked {
    id: Option<String>,
    name: String,
    input: String,
    form: Form,
}

impl Found {
    /// Creates an empty collection for a reply of this provider.
    pub(super) fn new(provider: Provider) -> Self {
        Self { provider, calls: Vec::new(), answered: false, understood: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns true if a call was dropped because it is already answered.
    pub(super) fn has_answered(&self) -> bool {
        self.answered
    }

    /// Returns true if the reader recognized any part of the reply.
    pub(super) fn is_understood(&self) -> bool {
        self.understood
    }

    /// Records that the reader recognized a part of the reply.
    pub(super) fn understand(&mut self) {
        self.understood = true;
    }

    /// Reads an object, or each object of a list in order. [`REPLY`](super::REPLY) bounds the
    /// recursion into nested lists.
    ///
    /// An empty list, or a list with an object in it, counts as recognized.
    pub(super) fn each_object(&mut self, value: &Value, read: Reader) -> Result<(), ReplyError> {
        match value {
            Value::Array(list) => {
                self.understood |= list.is_empty() || list.iter().any(Value::is_object);
                list.iter().try_for_each(|element| self.each_object(element, read))
            }
            Value::Object(object) => read(object, self),
            _ => Ok(()),
        }
    }

    /// Adds an object as a call.
    pub(super) fn call(&mut self, object: &Map<String, Value>) -> Result<(), ReplyError> {
        let custom = matches!(kind(object), Some("custom" | "custom_tool_call"));
        self.push(self.asked(object, if custom { Form::Custom } else { Form::Function }))
    }

    /// Adds an object as a call in OpenAI's older form.
    pub(super) fn legacy_call(&mut self, object: &Map<String, Value>) -> Result<(), ReplyError> {
        self.push(Asked { id: None, ..self.asked(object, Form::Legacy) })
    }

    /// Reads an object of unknown role: a call, the answer to a call, or another item of a list.
    pub(super) fn item(&mut self, object: &Map<String, Value>) -> Result<(), ReplyError> {
        match kind(object) {
            Some("function_call_output" | "custom_tool_call_output" | "tool_result") => {
                self.answered(object);
            }
            Some(
                "function_call" | "custom_tool_call" | "tool_use" | "function" | "custom"
                | "tool_call",
            ) => {
                return self.call(object);
            }
            None if is_lone_call(object) => return self.call(object),
            kind => self.understood |= kind.is_some() || object.contains_key("role"),
        }
        Ok(())
    }

    /// Drops the call that an object answers, by id or else by name, so that a finished call is not
    /// run again.
    pub(super) fn answered(&mut self, answer: &Map<String, Value>) {
        self.understood = true;
        let id = id(answer, &IDS);
        let name = name(answer);
        let is_answered = |call: &Asked| match (&call.id, &id) {
            (Some(asked), Some(answered)) => asked == answered,
            _ => name.as_ref() == Some(&call.name),
        };
        if let Some(place) = self.calls.iter().position(is_answered) {
            self.calls.remove(place);
            self.answered = true;
        }
    }

    /// Returns the calls, each with a unique host id.
    pub(super) fn into_uses(self) -> Vec<ToolUse> {
        let given: HashSet<String> =
            self.calls.iter().filter_map(|call| call.id.as_deref()).map(sanitize_id).collect();
        let mut taken = HashSet::new();
        let mut uses = Vec::with_capacity(self.calls.len());
        for (index, call) in self.calls.into_iter().enumerate() {
            let made_up = format!("call_{}", index + 1);
            let wanted = sanitize_id(call.id.as_deref().unwrap_or(&made_up));
            let is_free =
                |id: &String| !taken.contains(id) && (call.id.is_some() || !given.contains(id));
            let call_id = if is_free(&wanted) { wanted } else { numbered(&wanted, &taken, &given) };
            taken.insert(call_id.clone());
            let Asked { id, name, input, form } = call;
            uses.push(ToolUse { id, call_id, name, input, form });
        }
        uses
    }

    fn asked(&self, object: &Map<String, Value>, form: Form) -> Asked {
        let fields = Fields::of(object, self.provider);
        let inner = fields.inner(object);
        let place = |key: &&str| inner.get(*key).or_else(|| fields.elsewhere(object)?.get(*key));
        let given = fields.inputs.iter().filter_map(place).find(|value| !value.is_null());
        Asked {
            id: id(object, fields.ids).or_else(|| id(fields.elsewhere(inner)?, fields.ids)),
            name: name(inner).or_else(|| name(fields.elsewhere(object)?)).unwrap_or_default(),
            input: given.map_or_else(|| "{}".to_owned(), input),
            form,
        }
    }

    fn push(&mut self, call: Asked) -> Result<(), ReplyError> {
        if self.calls.len() >= MAX_CALLS {
            return Err(ReplyError::TooManyCalls);
        }
        self.understood = true;
        self.calls.push(call);
        Ok(())
    }
}

/// Returns an object's `type`.
pub(super) fn kind(object: &Map<String, Value>) -> Option<&str> {
    object.get("type").and_then(Value::as_str)
}

/// Returns the first of several choices, or null if the list is empty.
pub(super) fn first_of<'v>(object: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    let list = object.get(key)?.as_array()?;
    Some(list.first().unwrap_or(&Value::Null))
}

/// Returns true if a message is the model's. Messages of other roles may quote calls but never
/// request them.
pub(super) fn is_models(message: &Map<String, Value>) -> bool {
    matches!(message.get("role").and_then(Value::as_str), None | Some("assistant" | "model"))
}

/// Returns the id with the first free number appended. At most [`MAX_CALLS`] ids are taken, so a
/// low number is free.
fn numbered(id: &str, taken: &HashSet<String>, given: &HashSet<String>) -> String {
    let stem = cut(id, 240);
    let mut ids = (2..).map(|number: u32| sanitize_id(&format!("{stem}-{number}")));
    ids.find(|id| !taken.contains(id) && !given.contains(id)).unwrap_or_else(|| id.to_owned())
}

fn is_lone_call(object: &Map<String, Value>) -> bool {
    let is_wrapped = || wrapped(object, &WRAPPERS).is_some();
    !object.contains_key("role")
        && (object.get("name").is_some_and(Value::is_string) || is_wrapped())
}

fn id(object: &Map<String, Value>, keys: &[&str]) -> Option<String> {
    let mut known = keys.iter().filter_map(|key| object.get(*key)?.as_str());
    known.find(|id| !id.is_empty()).map(str::to_owned)
}

fn name(object: &Map<String, Value>) -> Option<String> {
    object.get("name").and_then(Value::as_str).map(str::to_owned)
}

fn input(value: &Value) -> String {
    match value {
        Value::String(text) if text.trim().is_empty() => "{}".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
