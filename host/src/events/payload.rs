//! The form in which events leave the process: one JSON object, the same keys first in each.

use super::{Envelope, Event, PluginFacts, VERSION};
use crate::tool::SideEffects;
use crate::tool::text::{is_deceptive, visible_json};
use serde::{Serialize, Serializer};
use std::time::Duration;

#[derive(Serialize)]
struct Line<'a> {
    v: u8,
    seq: u64,
    time: String,
    event: &'static str,
    session_id: Option<&'a str>,
    turn_id: Option<&'a str>,
    tool_use_id: Option<&'a str>,
    tool_name: Option<&'a str>,
    side_effects: Option<&'static str>,
    #[serde(flatten)]
    payload: Payload<'a>,
}

/// What only some events say.
#[derive(Serialize, Default)]
#[serde(default)]
struct Payload<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_summary: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    projected_modifications: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_class: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_output: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    success: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// One object: `v`, `seq`, `time`, `event`, `session_id`, `turn_id`, `tool_use_id`, `tool_name`, `side_effects`, and then what this event has to say.
impl Serialize for Envelope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let subject = self.event.subject();
        let line = Line {
            v: VERSION,
            seq: self.seq,
            time: humantime::format_rfc3339_micros(self.time).to_string(),
            event: self.event.name(),
            session_id: subject.and_then(|subject| subject.session_id.as_deref()),
            turn_id: subject.and_then(|subject| subject.turn_id.as_deref()),
            tool_use_id: subject.map(|subject| subject.call_id.as_str()),
            tool_name: subject.map(|subject| &*subject.tool),
            side_effects: subject.and_then(|subject| subject.side_effects).map(SideEffects::as_str),
            payload: payload(&self.event),
        };
        line.serialize(serializer)
    }
}

impl Envelope {
    /// The event on one line, with the line's end. What could break the line or draw on a terminal stands there as an escape.
    #[must_use]
    pub fn to_line(&self) -> String {
        // Only maps with keys that are no strings fail to serialise, and there are none.
        let json = serde_json::to_string(self).unwrap_or_default();
        if json.contains(is_deceptive) { visible_json(&json) + "\n" } else { json + "\n" }
    }
}

fn payload(event: &Event) -> Payload<'_> {
    let none = Payload::default();
    match event {
        Event::Called(_) => none,
        Event::Completed(_, done) => {
            Payload { success: Some(done.success), duration_ms: millis(done.duration), ..none }
        }
        Event::Failed(_, failure) => Payload {
            error_class: Some(failure.class.as_str()),
            message: Some(&failure.message),
            partial_output: failure.partial_output.as_deref(),
            duration_ms: millis(failure.duration),
            ..none
        },
        Event::InputInvalid(_, message) => {
            Payload { error_class: Some("validation_error"), message: Some(message), ..none }
        }
        Event::ConfirmationRequested(_, request) => Payload {
            request_id: Some(request.id.as_str()),
            input_summary: Some(&request.input_summary),
            projected_modifications: Some(&request.projected_modifications),
            digest: request.digest.map(|digest| digest.to_string()),
            expires: Some(humantime::format_rfc3339_millis(request.expires).to_string()),
            ..none
        },
        Event::ConfirmationResolved(_, id, decision) => {
            Payload { request_id: Some(id.as_str()), decision: Some(decision.as_str()), ..none }
        }
        Event::OutputDelta(_, text) => Payload { partial_output: Some(text), ..none },
        Event::Progress(_, step) => {
            Payload { done: Some(step.done), total: step.total, message: step.message.as_deref(), ..none }
        }
        Event::Log(_, severity, message) => Payload { level: Some(severity.as_str()), message: Some(message), ..none },
        Event::PluginLoaded(facts) | Event::PluginChanged(facts) => plugin(facts),
        Event::PluginRejected { file, reason } => Payload { file: Some(file), reason: Some(reason), ..none },
    }
}

fn plugin(facts: &PluginFacts) -> Payload<'_> {
    Payload {
        plugin: Some(&facts.plugin),
        digest: Some(facts.digest.to_string()),
        tools: Some(&facts.tools),
        ..Payload::default()
    }
}

#[allow(clippy::unnecessary_wraps, reason = "it fills a field that may be absent")]
fn millis(duration: Duration) -> Option<f64> {
    Some(duration.as_secs_f64() * 1e3)
}
