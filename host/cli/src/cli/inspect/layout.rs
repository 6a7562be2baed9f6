//! How the facts of a tool or a plugin are laid out on a terminal.

use crate::cli::style;
use crate::cli::wrap::{hanging, width};
use palisade::tool::text::visible;
use serde_json::Value;

/// Begins each line of a description, which is text of a plugin.
pub(super) const BAR: &str = "  │ ";
/// The indentation of facts behind their keys.
pub(super) const FACTS: &str = "           ";

/// Returns a heading with words beside it, or below it if they do not fit.
pub(super) fn heading(name: &str, beside: &str, room: usize) -> String {
    let name_columns = width(&visible(name));
    if name_columns + 2 + width(&visible(beside)) <= room {
        return format!("{}  {}\n", style::heading(name), style::faint(beside));
    }
    let below = hanging("  ", "  ", &visible(beside), room);
    format!("{}\n{}", style::heading(name), below.lines().map(faint_line).collect::<String>())
}

fn faint_line(line: &str) -> String {
    style::faint(line) + "\n"
}

/// Formats one fact of a plugin or a tool, escaped.
pub(in crate::cli) fn fact(key: &str, value: &str, room: usize) -> String {
    hanging(&format!("  {key:<9}"), FACTS, &visible(value), room)
}

/// Formats a schema as JSON. A line that does not fit is continued below its own indentation.
pub(super) fn schema(key: &str, schema: &Value, room: usize) -> String {
    let shown = visible(&format!("{schema:#}"));
    let lines = shown.lines().enumerate().map(|(index, line)| {
        let own = " ".repeat(line.len() - line.trim_start().len());
        let begin = if index == 0 { format!("  {key:<9}") } else { format!("{FACTS}{own}") };
        hanging(&begin, &format!("{FACTS}{own}    "), line.trim_start(), room)
    });
    lines.collect()
}
