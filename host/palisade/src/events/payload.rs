//! The serialized form of events: one JSON object with a fixed order of the common keys.

use super::{Envelope, Event, VERSION};
use crate::confirm::CallingTool;
use crate::tool::result::millis;
use crate::tool::text::{first_deceptive, visible_json};
use crate::tool::{CallId, SideEffects};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Writes `v`, `seq`, `time`, `event`, `session_id`, `turn_id`, `tool_use_id`, `tool_name`,
/// `side_effects`, then the keys of the event.
impl Serialize for Envelope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let subject = self.event.subject();
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("v", &VERSION)?;
        line.serialize_entry("seq", &self.seq)?;
        line.serialize_entry("time", &humantime::format_rfc3339_micros(self.time).to_string())?;
        line.serialize_entry("event", self.event.name())?;
        line.serialize_entry(
            "session_id",
            &subject.and_then(|subject| subject.session_id.as_deref()),
        )?;
        line.serialize_entry("turn_id", &subject.and_then(|subject| subject.turn_id.as_deref()))?;
        line.serialize_entry("tool_use_id", &subject.map(|subject| subject.call_id.as_str()))?;
        line.serialize_entry("tool_name", &subject.map(|subject| &*subject.tool))?;
        let class = subject.and_then(|subject| subject.side_effects).map(SideEffects::as_str);
        line.serialize_entry("side_effects", &class)?;
        let parent = subject.and_then(|subject| subject.parent.as_ref());
        given(&mut line, "parent_tool_use_id", parent.map(CallId::as_str).as_ref())?;
        details(&self.event, &mut line)?;
        line.end()
    }
}

impl Envelope {
    /// Returns the event as one line with its line end. Characters that could break the line or
    /// control a terminal are escaped.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut line = Vec::new();
        self.append_to(&mut line);
        String::from_utf8(line).unwrap_or_default()
    }

    /// Appends that line to a buffer.
    pub(super) fn append_to(&self, lines: &mut Vec<u8>) {
        let begin = lines.len();
        // Serialization fails only for maps with non-string keys, and there are none.
        let _ = serde_json::to_writer(&mut *lines, self);
        let json = lines.get(begin..).and_then(|json| str::from_utf8(json).ok());
        if let Some(visible) = json.filter(|json| first_deceptive(json).is_some()).map(visible_json)
        {
            lines.truncate(begin);
            lines.extend_from_slice(visible.as_bytes());
        }
        lines.push(b'\n');
    }
}

/// Writes the keys of the event. Readers may rely on their order.
fn details<M: SerializeMap>(event: &Event, line: &mut M) -> Result<(), M::Error> {
    match event {
        Event::Called(_) => Ok(()),
        Event::Completed(_, done) => {
            line.serialize_entry("success", &done.success)?;
            line.serialize_entry("duration_ms", &millis(done.duration))?;
            done.effects.write(line)
        }
        Event::Failed(_, failure) => {
            line.serialize_entry("error_class", failure.class.as_str())?;
            line.serialize_entry("message", &failure.message)?;
            given(line, "partial_output", failure.partial_output.as_ref())?;
            line.serialize_entry("duration_ms", &millis(failure.duration))?;
            failure.effects.write(line)
        }
        Event::InputInvalid(_, message) => {
            line.serialize_entry("error_class", "validation_error")?;
            line.serialize_entry("message", message)
        }
        Event::ConfirmationRequested(_, request) => {
            line.serialize_entry("request_id", request.id.as_str())?;
            if let Some(CallingTool { tool, place, .. }) = request.called_by.as_deref() {
                line.serialize_entry("called_by", tool)?;
                given(line, "place", place.as_ref())?;
            }
            line.serialize_entry("input_summary", &request.input_summary)?;
            line.serialize_entry("projected_modifications", &request.projected_modifications)?;
            line.serialize_entry(
                "expires",
                &humantime::format_rfc3339_millis(request.expires).to_string(),
            )?;
            given(line, "digest", request.digest.map(|digest| digest.to_string()).as_ref())?;
            given(line, "grants", Some(&request.grants).filter(|grants| !grants.is_empty()))
        }
        Event::ConfirmationResolved(_, id, decision) => {
            line.serialize_entry("request_id", id.as_str())?;
            line.serialize_entry("decision", decision.as_str())
        }
        Event::OutputDelta(_, text) => line.serialize_entry("partial_output", text),
        Event::Progress(_, step) => {
            line.serialize_entry("done", &step.done)?;
            given(line, "total", step.total.as_ref())?;
            given(line, "message", step.message.as_ref())
        }
        Event::Log(_, severity, message) => {
            line.serialize_entry("level", severity.as_str())?;
            line.serialize_entry("message", message)
        }
        Event::PluginLoaded(facts) | Event::PluginChanged(facts) | Event::PluginRemoved(facts) => {
            line.serialize_entry("plugin", &*facts.plugin)?;
            line.serialize_entry("digest", &facts.digest.to_string())?;
            line.serialize_entry("tools", &facts.tools)?;
            given(line, "grants", Some(&facts.grants).filter(|grants| !grants.is_empty()))
        }
        Event::PluginRejected { file, reason } => {
            line.serialize_entry("file", file)?;
            line.serialize_entry("reason", reason)
        }
    }
}

/// Writes a key unless it has no value.
fn given<M: SerializeMap, T: Serialize>(
    line: &mut M,
    key: &str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| line.serialize_entry(key, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confirm::{ConfirmationRequest, DisplayedFiles, RequestId, Resolution};
    use crate::events::{Completion, Effects, Failure, PluginFacts, Subject};
    use crate::execution::{Progress, Severity};
    use crate::tool::{Digest, ErrorClass};
    use std::time::Duration;
    use std::time::SystemTime;

    const HEAD: &str = r#""session_id":"s","turn_id":null,"tool_use_id":"c","tool_name":"t","side_effects":"write""#;
    const NOBODY: &str = r#""session_id":null,"turn_id":null,"tool_use_id":null,"tool_name":null,"side_effects":null"#;
    const TIME: Duration = Duration::from_micros(1_500);

    fn subject() -> Subject {
        Subject {
            call_id: CallId::new("c"),
            parent: None,
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
            called_by: None,
            input_summary: "{}".into(),
            input: None,
            input_bytes: 2,
            projected_modifications: vec!["a".into(), "b".into()],
            displayed: DisplayedFiles::default(),
            plugin: None,
            digest,
            grants: Vec::new(),
            valid_for: TIME,
            expires: SystemTime::UNIX_EPOCH + TIME,
        }
    }

    fn failure(partial_output: Option<&str>) -> Failure {
        let partial_output = partial_output.map(str::to_owned);
        Failure {
            class: ErrorClass::Timeout,
            message: "late".into(),
            partial_output,
            duration: TIME,
            effects: Effects::default(),
        }
    }

    fn step(total: Option<f64>, message: Option<&str>) -> Progress {
        Progress { done: 1.0, total, message: message.map(str::to_owned) }
    }

    /// Asserts the keys of a call's event after the common keys.
    #[track_caller]
    fn says(event: Event, more: &str) {
        line(event, HEAD, more);
    }

    #[track_caller]
    fn line(event: Event, head: &str, more: &str) {
        let name = event.name();
        let written = Envelope { seq: 7, time: SystemTime::UNIX_EPOCH, event }.to_line();
        let start = format!(
            r#"{{"v":1,"seq":7,"time":"1970-01-01T00:00:00.000000Z","event":"{name}",{head}"#
        );
        assert_eq!(written, format!("{start}{more}}}\n"));
    }

    #[test]
    fn call_event_keys_are_ordered() {
        let completion = Completion { success: true, duration: TIME, effects: Effects::default() };
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
    fn effects_follow_the_other_keys() {
        let effects = Effects {
            metadata: Some(serde_json::json!({"stop_loop": true}).into()),
            files_modified: vec!["a".into()],
            files_unlisted: 2,
            command_executed: Some("make".to_owned()),
            ..Effects::default()
        };
        let more = r#","metadata":{"stop_loop":true},"files_modified":["a"],"files_modified_unlisted":2,"command_executed":"make""#;
        let done = Completion { success: true, duration: TIME, effects: effects.clone() };
        let head = r#","success":true,"duration_ms":1.5"#;
        says(Event::Completed(subject(), done), &format!("{head}{more}"));
        let head = r#","error_class":"timeout","message":"late","duration_ms":1.5"#;
        let failed = Failure { effects, ..failure(None) };
        says(Event::Failed(subject(), failed), &format!("{head}{more}"));
    }

    #[test]
    fn confirmation_event_keys_are_ordered() {
        let asked = r#","request_id":"cr","input_summary":"{}","projected_modifications":["a","b"],"expires":"1970-01-01T00:00:00.001Z""#;
        says(Event::ConfirmationRequested(subject(), request(None)), asked);
        let digest = Digest::of(b"");
        let more = format!(r#"{asked},"digest":"{digest}""#);
        says(Event::ConfirmationRequested(subject(), request(Some(digest))), &more);
        let resolved =
            Event::ConfirmationResolved(subject(), RequestId::new("cr"), Resolution::TimedOut);
        says(
            resolved,
            &format!(r#","request_id":"cr","decision":"{}""#, Resolution::TimedOut.as_str()),
        );
    }

    #[test]
    fn plugin_event_keys_are_ordered() {
        let digest = Digest::of(b"");
        let tools = || vec!["t".into()];
        let facts =
            || PluginFacts { plugin: "p".into(), digest, tools: tools(), grants: Vec::new() };
        let more = format!(r#","plugin":"p","digest":"{digest}","tools":["t"]"#);
        line(Event::PluginLoaded(facts()), NOBODY, &more);
        line(Event::PluginChanged(facts()), NOBODY, &more);
        line(Event::PluginRemoved(facts()), NOBODY, &more);
        let granted = PluginFacts { grants: vec!["env LANG".into()], ..facts() };
        line(Event::PluginLoaded(granted), NOBODY, &format!(r#"{more},"grants":["env LANG"]"#));
        let rejected = Event::PluginRejected { file: "f".into(), reason: "r".into() };
        line(rejected, NOBODY, r#","file":"f","reason":"r""#);
    }
}
