//! One line for a person about an event of a server.

use crate::cli::style::{self, faint, heading};
use crate::cli::wrap::wrapped;
use palisade::tool::text::elided;
use serde_json::Value;

/// The displayed length of a message, in characters.
const MESSAGE: usize = 400;
/// The displayed length of a name, in characters.
const NAME: usize = 64;

/// Returns the lines about an event, or `None` for one that a person need not see.
pub(super) fn event_line(name: &str, data: &Value, columns: usize) -> Option<String> {
    let text = |key: &str| data[key].as_str().map(|value| elided(value, MESSAGE));
    let (label, rest) = match name {
        "tool.called" => (faint("runs"), String::new()),
        "tool.completed" if data["success"] == false => (style::error("failed"), took(data)),
        "tool.completed" => (heading("ended"), join(took(data), changed(data))),
        "tool.failed" => {
            let class = text("error_class").unwrap_or_default();
            let message = text("message").unwrap_or_default();
            (style::error(&class), join(message, changed(data)))
        }
        "tool.input_invalid" => (style::error("invalid input"), text("message")?),
        "tool.confirmation_requested" => (heading("asks"), String::new()),
        "tool.confirmation_resolved" => {
            let decision = text("decision").unwrap_or_default();
            // The person has typed `s`. At the prompt of `call`, *always* means something else.
            let typed = if decision == "always" { "session".to_owned() } else { decision };
            (heading("answered"), typed)
        }
        "plugin.loaded" | "plugin.changed" | "plugin.removed" => {
            let what = name.trim_start_matches("plugin.");
            return Some(format!("{} {}\n", heading(what), text("plugin")?));
        }
        "plugin.rejected" => {
            let line = format!("{}: {}", text("file")?, text("reason")?);
            return Some(lines(&style::error("rejected"), &line, columns));
        }
        "journal.gap" | "journal.lost" => {
            return Some(format!("{}\n", faint("some events are missing here")));
        }
        _ => return None,
    };
    let clock = text("time").and_then(|time| Some(format!("{}Z", time.get(11..19)?)));
    let who = [data["tool_name"].as_str(), data["tool_use_id"].as_str()];
    let who: Vec<String> = who.into_iter().flatten().map(|name| elided(name, NAME)).collect();
    let head = format!("{} {label}", faint(&clock.unwrap_or_default()));
    Some(lines(&head, &join(who.join(" "), rest), columns))
}

fn lines(head: &str, rest: &str, columns: usize) -> String {
    /// The columns of the time and the label.
    const HEAD: usize = 21;
    let room = columns.saturating_sub(HEAD).max(HEAD);
    let pieces = if columns == usize::MAX { vec![rest.to_owned()] } else { wrapped(rest, room) };
    format!("{head} {}\n", pieces.join(&format!("\n{}", " ".repeat(HEAD))))
}

fn join(one: String, other: String) -> String {
    match (one.is_empty(), other.is_empty()) {
        (false, false) => format!("{one}: {other}"),
        (false, true) => one,
        (true, _) => other,
    }
}

fn took(data: &Value) -> String {
    data["duration_ms"].as_f64().map(|time| format!("{time:.1} ms")).unwrap_or_default()
}

fn changed(data: &Value) -> String {
    let files: Vec<String> = data["files_modified"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|file| file.as_str().or_else(|| file["path"].as_str()))
        .map(|file| elided(file, NAME))
        .collect();
    if files.is_empty() { String::new() } else { format!("changed {}", files.join(", ")) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use serde_json::json;

    #[test]
    fn hostile_names_stay_on_their_lines() {
        let data = json!({
            "time": "2026-11-25T13:37:00Z", "tool_name": "x\n\u{1b}[2J\u{202e}", "tool_use_id": "c",
            "error_class": "timeout", "message": "a\nb",
        });
        let line = event_line("tool.failed", &data, usize::MAX).unwrap();
        assert_eq!(line.matches('\n').count(), 1, "{line:?}");
        assert!(!line.contains('\u{1b}') && !line.contains('\u{202e}'), "{line:?}");
        assert!(line.starts_with("13:37:00Z timeout"), "{line:?}");
    }

    #[test]
    fn chatter_of_tools_is_not_shown() {
        for name in ["tool.log", "tool.progress", "tool.output_delta"] {
            assert_eq!(event_line(name, &json!({}), 80), None);
        }
    }
}
