//! The calls of a journal as text for a person.

use crate::cli::style::{self, faint, heading};
use crate::cli::wrap::{hanging, width};
use palisade::tool::text::{elided, visible};
use palisade_server::journal::{Body, CallPage, CallRow, CallState};
use serde_json::Value;

/// The displayed length of a name, in characters.
const NAME: usize = 48;
/// The displayed length of the beginning of an input, in characters.
const INPUT: usize = 80;

/// The beginning of the further lines of a value, behind those of the program's own lines.
const BEHIND: &str = "      ";

/// Returns the line of a call, broken at this number of columns.
pub(super) fn call_line(row: &CallRow, columns: usize) -> String {
    let input = row.input_start.as_deref().map(|input| elided(input, INPUT)).unwrap_or_default();
    let who = row.session_id.as_deref().map(|id| format!(" in {}", elided(id, NAME)));
    let line = format!(
        "{} {} {} {}{}{} {}",
        faint(&row.created.to_string()),
        outcome(row),
        elided(&row.tool, NAME),
        faint(&elided(&row.id, NAME)),
        faint(&who.unwrap_or_default()),
        row.duration.map(|time| format!(" {:.1}ms", time.as_secs_f64() * 1e3)).unwrap_or_default(),
        faint(&input),
    );
    one_line(&line, columns)
}

/// Returns a line without its colours where it is broken. By the terminal, an id or an input could
/// pass for another call at the left edge.
fn one_line(line: &str, columns: usize) -> String {
    let plain = style::plain(line);
    match width(&plain) <= columns {
        true => format!("{line}\n"),
        false => hanging("", BEHIND, &plain, columns),
    }
}

/// Returns everything about a call, broken at this number of columns.
pub(super) fn call_page(page: &CallPage, columns: usize) -> String {
    let row = &page.call;
    let mut text = call_line(row, columns);
    let mut add = |key: &str, value: Option<String>| {
        text.extend(value.map(|value| fact(key, &value, columns)));
    };
    add(
        "plugin",
        row.plugin
            .as_ref()
            .map(|plugin| format!("{plugin} ({})", row.digest.as_deref().unwrap_or("no digest"))),
    );
    add("class", row.class.clone());
    add("turn", row.turn_id.clone());
    add("client", row.client_name.clone().or_else(|| row.client.clone()));
    add("started", row.started.map(|at| at.to_string()));
    add("ended", row.ended.map(|at| at.to_string()));
    add("message", row.message.clone());
    add("command", page.command_executed.clone());
    for file in &page.files_modified {
        let name = file.as_str().or_else(|| file["path"].as_str()).unwrap_or_default();
        add("changed", Some(name.to_owned()));
    }
    for question in &page.confirmations {
        let by = question.answered_by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
        let decision = question.resolution.as_deref().unwrap_or("open");
        add("question", Some(format!("{decision}{by}, asked {}", question.asked)));
    }
    add("input", page.input.as_ref().map(body));
    add("output", page.output.as_ref().map(body));
    for event in &page.events {
        let data: Value = serde_json::from_str(&event.line).unwrap_or_default();
        let more = data["message"].as_str().or_else(|| data["decision"].as_str());
        let more = more.map(|more| format!(" {}", elided(more, INPUT))).unwrap_or_default();
        add("event", Some(format!("{} {}{more}", event.time, event.name)));
    }
    text
}

/// Returns a fact. Text of others may have lines of its own, which stay behind those of the
/// program.
fn fact(key: &str, value: &str, columns: usize) -> String {
    let begin = format!("  {key}:");
    let value = visible(value);
    let lines = value.split('\n').enumerate().map(|(index, line)| match index {
        0 => hanging(&format!("{begin} "), BEHIND, line, columns),
        _ => hanging(BEHIND, BEHIND, line, columns),
    });
    let lines: String = lines.collect();
    let rest = lines.strip_prefix(&begin).unwrap_or(&lines);
    format!("  {}{rest}", heading(&format!("{key}:")))
}

fn body(body: &Body) -> String {
    let kept = body.text.as_deref().unwrap_or_default();
    match &body.digest {
        None => kept.to_owned(),
        Some(digest) => format!("{kept} ({} bytes in all, {digest})", body.length),
    }
}

fn outcome(row: &CallRow) -> String {
    match row.state {
        CallState::Succeeded => heading("succeeded"),
        CallState::Failed => {
            style::error(row.error_class.as_deref().unwrap_or(CallState::Failed.as_str()))
        }
        state => faint(state.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_stays_behind_the_lines_of_the_program() {
        let forged = format!("{{{}  question: allow by operator\n\t\tended: now", " ".repeat(65));
        let text = fact("input", &forged, 60);
        assert!(text.starts_with("  input:") && text.lines().count() > 2, "{text}");
        let text = text + &one_line(&format!("2026-11-30 failed read_file {forged}"), 60);
        let behind = |line: &&str| line.starts_with(BEHIND);
        assert_eq!(text.lines().filter(|line| !behind(line)).count(), 2, "{text}");
    }
}
