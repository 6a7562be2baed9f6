//! The form in which events leave the process: one JSON object, the same keys first in each.

use super::{Envelope, Event, PluginFacts, VERSION};
use crate::tool::SideEffects;
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
    /// The event on one line, with the line's end.
    #[must_use]
    pub fn to_line(&self) -> String {
        // Only maps with keys that are no strings fail to serialise, and there are none.
        serde_json::to_string(self).unwrap_or_default() + "\n"
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confirm::{ConfirmationRequest, Decision, RequestId};
    use crate::events::{Completion, Failure, Subject};
    use crate::execution::{Progress, Severity};
    use crate::tool::{CallId, Digest, ErrorClass};
    use std::time::SystemTime;

    const HEAD: &str = r#""session_id":"s","turn_id":null,"tool_use_id":"c","tool_name":"t","side_effects":"write""#;
    const NOBODY: &str = r#""session_id":null,"turn_id":null,"tool_use_id":null,"tool_name":null,"side_effects":null"#;
    const TIME: Duration = Duration::from_micros(1_500);

    fn subject() -> Subject {
        Subject {
            call_id: CallId::new("c"),
            session_id: Some("s".into()),
            turn_id: None,
            tool: "t".into(),
            side_effects: Some(SideEffects::Write),
        }
    }

    fn request(digest: Option<Digest>) -> ConfirmationRequest {
        ConfirmationRequest {
            id: RequestId::new("cr"),
            call_id: CallId::new("c"),
            session_id: None,
            turn_id: None,
            tool: "t".into(),
            side_effects: SideEffects::Write,
            input_summary: "{}".into(),
            projected_modifications: vec!["a".into(), "b".into()],
            digest,
            valid_for: TIME,
            expires: SystemTime::UNIX_EPOCH + TIME,
        }
    }

    fn failure(partial_output: Option<&str>) -> Failure {
        let partial_output = partial_output.map(str::to_owned);
        Failure { class: ErrorClass::Timeout, message: "late".into(), partial_output, duration: TIME }
    }

    fn step(total: Option<f64>, message: Option<&str>) -> Progress {
        Progress { done: 1.0, total, message: message.map(str::to_owned) }
    }

    /// What a line says after what all lines say, for an event of a call.
    #[track_caller]
    fn says(event: Event, more: &str) {
        line(event, HEAD, more);
    }

    #[track_caller]
    fn line(event: Event, head: &str, more: &str) {
        let name = event.name();
        let written = Envelope { seq: 7, time: SystemTime::UNIX_EPOCH, event }.to_line();
        let start = format!(r#"{{"v":1,"seq":7,"time":"1970-01-01T00:00:00.000000Z","event":"{name}",{head}"#);
        assert_eq!(written, format!("{start}{more}}}\n"));
    }

    #[test]
    fn what_an_event_of_a_call_says_has_its_keys_in_their_order() {
        let completion = Completion { success: true, duration: TIME };
        says(Event::Called(subject()), "");
        says(Event::Completed(subject(), completion), r#","success":true,"duration_ms":1.5"#);
        let failed = r#","error_class":"timeout","message":"late""#;
        says(Event::Failed(subject(), failure(None)), &format!(r#"{failed},"duration_ms":1.5"#));
        let more = format!(r#"{failed},"partial_output":"so far","duration_ms":1.5"#);
        says(Event::Failed(subject(), failure(Some("so far"))), &more);
        let more = r#","error_class":"validation_error","message":"no \"x\"""#;
        says(Event::InputInvalid(subject(), "no \"x\"".into()), more);
        says(Event::OutputDelta(subject(), "a\nb".into()), r#","partial_output":"a\nb""#);
        says(Event::Progress(subject(), step(None, None)), r#","done":1.0"#);
        let more = r#","done":1.0,"total":2.0,"message":"m""#;
        says(Event::Progress(subject(), step(Some(2.0), Some("m"))), more);
        says(Event::Log(subject(), Severity::Warn, "m".into()), r#","level":"warn","message":"m""#);
    }

    #[test]
    fn what_a_question_says_has_its_keys_in_their_order() {
        let asked = r#","request_id":"cr","input_summary":"{}","projected_modifications":["a","b"],"expires":"1970-01-01T00:00:00.001Z""#;
        says(Event::ConfirmationRequested(subject(), request(None)), asked);
        let digest = Digest::of(b"");
        let more = format!(r#"{asked},"digest":"{digest}""#);
        says(Event::ConfirmationRequested(subject(), request(Some(digest))), &more);
        let resolved = Event::ConfirmationResolved(subject(), RequestId::new("cr"), Decision::TimedOut);
        says(resolved, &format!(r#","request_id":"cr","decision":"{}""#, Decision::TimedOut.as_str()));
    }

    #[test]
    fn what_an_event_of_a_plugin_says_has_its_keys_in_their_order() {
        let digest = Digest::of(b"");
        let facts = || PluginFacts { plugin: "p".into(), digest, tools: vec!["t".into()] };
        let more = format!(r#","plugin":"p","digest":"{digest}","tools":["t"]"#);
        line(Event::PluginLoaded(facts()), NOBODY, &more);
        line(Event::PluginChanged(facts()), NOBODY, &more);
        let rejected = Event::PluginRejected { file: "f".into(), reason: "r".into() };
        line(rejected, NOBODY, r#","file":"f","reason":"r""#);
    }
}
