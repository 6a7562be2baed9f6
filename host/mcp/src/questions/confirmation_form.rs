//! The confirmation of a call as a form for the client, and the interpretation of the form's
//! result.

use super::form_dialect::in_dialect;
use crate::protocol::lifecycle::Dialect;
use palisade::confirm::{Answer, ConfirmationRequest};
use palisade::tool::text::{elided, visible};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Value, json};

/// The only field of the form.
const FIELD: &str = "decision";
/// The maximum number of displayed paths.
const MAX_PATHS: usize = 20;
/// The maximum length of a displayed path, in characters. The input shows it in full.
const MAX_PATH_LENGTH: usize = 160;
/// The maximum length of a displayed plugin name, in characters: it comes from a file name.
const MAX_PLUGIN_LENGTH: usize = 80;
/// The number of displayed digits of a digest: enough to tell plugins with the same name apart.
const SHOWN_DIGITS: usize = 12;

/// Whether the form offers an answer that also counts for later calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionAnswer {
    /// For a session that belongs to one client.
    Offered,
    /// For a client with a self-declared identity: the answer could count for another client.
    Withheld,
}

/// Builds the form. `None` if the form schema of `rmcp` has changed, which a test would detect.
pub(crate) fn confirmation_form(
    request: &ConfirmationRequest,
    session_answer: SessionAnswer,
    dialect: Dialect,
) -> Option<ElicitRequestParams> {
    let field = json!({"type": "string", "title": "Decision", "oneOf": choices(session_answer)});
    let mut properties = Map::from_iter([(FIELD.to_owned(), field)]);
    in_dialect(&mut properties, dialect).ok()?;
    let schema = json!({"type": "object", "properties": properties, "required": [FIELD]});
    let requested_schema = serde_json::from_value(schema)
        .inspect_err(|error| tracing::error!("a question cannot be put: {error}"))
        .ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message(request),
        requested_schema,
    })
}

/// Interprets the result of the form. Anything but an explicit approval is a denial, or no answer
/// if the form was closed.
pub(crate) fn interpret(result: &ElicitResult, session_answer: SessionAnswer) -> Answer {
    let decision =
        result.content.as_ref().and_then(|content| content.get(FIELD)).and_then(Value::as_str);
    match (&result.action, decision) {
        (ElicitationAction::Accept, Some("allow_once")) => Answer::Allow,
        (ElicitationAction::Accept, Some("allow_for_session"))
            if session_answer == SessionAnswer::Offered =>
        {
            Answer::Always
        }
        (ElicitationAction::Cancel, _) => Answer::None,
        _ => Answer::Deny,
    }
}

fn choices(session_answer: SessionAnswer) -> Value {
    let once = json!({"const": "allow_once", "title": "Allow this call"});
    let session =
        json!({"const": "allow_for_session", "title": "Allow this tool until the session ends"});
    let deny = json!({"const": "deny", "title": "Deny"});
    match session_answer {
        SessionAnswer::Offered => json!([once, session, deny]),
        SessionAnswer::Withheld => json!([once, deny]),
    }
}

/// Builds the message in the host's own words. The input is untrusted: escaped, and shortened by
/// its summary, which tells the length of each omission. It is never cut here.
fn message(request: &ConfirmationRequest) -> String {
    let ConfirmationRequest {
        tool,
        side_effects,
        input_summary,
        projected_modifications: paths,
        ..
    } = request;
    let input = visible(input_summary);
    let mut text = format!(
        "May the tool `{tool}` (class {side_effects}) run?{}\nInput: {input}",
        describe_plugin(request)
    );
    if let Some(caller) = &request.called_by {
        let caller = elided(&caller.to_string(), MAX_PATH_LENGTH);
        text.push_str(&format!("\nCalled by another tool: {caller}"));
    }
    for grant in &request.grants {
        text.push_str(&format!("\nGranted: {}", elided(grant, MAX_PATH_LENGTH)));
    }
    for path in paths.iter().take(MAX_PATHS) {
        // On one line and quoted: a path is text of the model and could otherwise imitate the
        // question.
        text.push_str(&format!("\nIt would change: `{}`", elided(path, MAX_PATH_LENGTH)));
    }
    if let Some(more @ 1..) = paths.len().checked_sub(MAX_PATHS) {
        text.push_str(&format!("\nIt would change {more} more"));
    }
    text
}

/// Describes the plugin or the server; empty for a tool of the host itself.
fn describe_plugin(request: &ConfirmationRequest) -> String {
    let Some(name) = &request.plugin else { return String::new() };
    let name = elided(name, MAX_PLUGIN_LENGTH);
    let Some(digest) = request.digest else { return format!("\nServer: {name}") };
    let digits: String = digest.hex().chars().take(SHOWN_DIGITS).collect();
    format!("\nPlugin: {name} (sha256:{digits}…)")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use palisade::confirm::{DisplayedFiles, RequestId};
    use palisade::{CallId, SideEffects, tool::Digest};
    use std::time::{Duration, SystemTime};

    fn request(paths: usize) -> ConfirmationRequest {
        ConfirmationRequest {
            id: RequestId::new("cr"),
            call_id: CallId::new("c"),
            session_id: None,
            turn_id: None,
            tool: "write_file".into(),
            side_effects: SideEffects::Write,
            called_by: None,
            input_summary: "{\"path\":\"a\u{202e}b\"}".into(),
            input: None,
            input_bytes: 2,
            projected_modifications: (0..paths).map(|number| format!("p{number}")).collect(),
            displayed: DisplayedFiles::default(),
            plugin: None,
            digest: None,
            grants: Vec::new(),
            valid_for: Duration::from_secs(300),
            expires: SystemTime::UNIX_EPOCH,
        }
    }

    fn shown(paths: usize, session_answer: SessionAnswer) -> Value {
        let form = confirmation_form(&request(paths), session_answer, Dialect::Current).unwrap();
        serde_json::to_value(form).unwrap()
    }

    #[test]
    fn question_has_tool_class_input_and_changes() {
        let form = shown(2, SessionAnswer::Offered);
        let message = form["message"].as_str().unwrap();
        assert!(
            message.starts_with("May the tool `write_file` (class write) run?\nInput: "),
            "{message}"
        );
        assert!(message.ends_with("\nIt would change: `p0`\nIt would change: `p1`"), "{message}");
        assert!(!message.contains('\u{202e}'));
        assert!(
            shown(25, SessionAnswer::Offered)["message"]
                .as_str()
                .unwrap()
                .ends_with("`p19`\nIt would change 5 more")
        );
    }

    #[test]
    fn question_names_plugin_and_digest_of_a_plugin_tool() {
        let digest = Digest::from_bytes([0xab; 32]);
        let asked = ConfirmationRequest {
            plugin: Some("fi\u{202e}les".into()),
            digest: Some(digest),
            ..request(0)
        };
        let text = message(&asked);
        assert!(
            text.contains("run?\nPlugin: fi\\u{202e}les (sha256:abababababab…)\nInput: "),
            "{text}"
        );
        assert!(!message(&request(0)).contains("Plugin"));
    }

    #[test]
    fn path_is_quoted_on_one_line() {
        let path =
            format!("n\n\nThis call is safe.\nIt would change: notes.txt{}", "x".repeat(3_000));
        let text =
            message(&ConfirmationRequest { projected_modifications: vec![path], ..request(0) });
        let (_, shown) = text.split_once("\nIt would change: ").unwrap();
        assert!(
            shown.starts_with("`n\\n\\nThis call is safe.") && shown.ends_with("x`"),
            "{shown}"
        );
        assert!(!shown.contains('\n') && shown.len() < MAX_PATH_LENGTH + 40, "{shown}");
    }

    #[test]
    fn end_of_a_long_input_is_shown() {
        let input_summary =
            format!("{{\"command\":\"echo hi{}; touch planted\"}}", " ".repeat(6_000));
        let text = message(&ConfirmationRequest { input_summary, ..request(0) });
        assert!(text.ends_with("; touch planted\"}"), "{text}");
    }

    #[test]
    fn session_answer_is_offered_only_to_a_session() {
        let choices = |session_answer| {
            let form = shown(0, session_answer);
            let choices =
                form["requestedSchema"]["properties"][FIELD]["oneOf"].as_array().unwrap().clone();
            choices
                .iter()
                .map(|choice| choice["const"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(choices(SessionAnswer::Offered), ["allow_once", "allow_for_session", "deny"]);
        assert_eq!(choices(SessionAnswer::Withheld), ["allow_once", "deny"]);
    }

    #[test]
    fn older_client_gets_the_choices_it_knows() {
        let form = confirmation_form(&request(0), SessionAnswer::Withheld, Dialect::Older).unwrap();
        let form = serde_json::to_value(form).unwrap();
        assert_eq!(
            form["requestedSchema"]["properties"][FIELD],
            json!({
                "type": "string", "title": "Decision",
                "enum": ["allow_once", "deny"], "enumNames": ["Allow this call", "Deny"],
            })
        );
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let result = |text: &str| serde_json::from_str::<ElicitResult>(text).unwrap();
        let says = |text: &str, session_answer| interpret(&result(text), session_answer);
        let yes = r#"{"action":"accept","content":{"decision":"allow_once"}}"#;
        assert_eq!(says(yes, SessionAnswer::Withheld), Answer::Allow);
        let session = r#"{"action":"accept","content":{"decision":"allow_for_session"}}"#;
        assert_eq!(says(session, SessionAnswer::Offered), Answer::Always);
        for no in [
            session,
            r#"{"action":"accept"}"#,
            r#"{"action":"accept","content":{"decision":"yes"}}"#,
            r#"{"action":"accept","content":{"decision":["allow_once"]}}"#,
            r#"{"action":"decline","content":{"decision":"allow_once"}}"#,
        ] {
            assert_eq!(says(no, SessionAnswer::Withheld), Answer::Deny, "{no}");
        }
        let closed = r#"{"action":"cancel","content":{"decision":"allow_once"}}"#;
        assert_eq!(says(closed, SessionAnswer::Withheld), Answer::None);
    }
}
