//! Hints for a person whose input was refused.

use super::args::Common;
use palisade::tool::nearest_names;
use palisade::tool::text::elided;
use palisade_trust::shell_word as quoted;

/// Returns the command line of a subcommand, with the options of this run on which its tools
/// depend.
pub(super) fn command(common: &Common, words: &str) -> String {
    let mut line = format!("palisade {words}");
    for directory in &common.plugins {
        line.push_str(&format!(" --plugins {}", quoted(&directory.to_string_lossy())));
    }
    for adapted in &common.adapt {
        let component = format!("{}={}", adapted.file.to_string_lossy(), adapted.class);
        line.push_str(&format!(" --adapt {}", quoted(&component)));
    }
    if common.locked {
        line.push_str(" --locked");
    }
    if common.no_builtin {
        line.push_str(" --no-builtin");
    }
    if let Some(file) = &common.config {
        line.push_str(&format!(" --config {}", quoted(&file.to_string_lossy())));
    }
    line
}

/// Returns the command that approves a plugin.
pub(super) fn approve(plugin: &str) -> String {
    named("palisade approve", plugin)
}

/// Returns a command with the name of a plugin behind it, which is no option of the command.
pub(super) fn named(command: &str, plugin: &str) -> String {
    let end = if plugin.starts_with('-') { " --" } else { "" };
    format!("{command}{end} {}", quoted(&elided(plugin, 128)))
}

/// Returns a question about the nearest of these names, or else nothing.
pub(super) fn did_you_mean<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let nearest = nearest_names(name, known).into_iter().next();
    let ask = |nearest: String| format!("; did you mean `{}`?", elided(&nearest, 128));
    nearest.map(ask).unwrap_or_default()
}

/// Returns the hint for an input of which the parser says this, if the slip is a common one.
pub(super) fn on_syntax(input: &str, reason: &str) -> Option<&'static str> {
    let text = input.trim_start();
    if text.is_empty() || reason.starts_with("want object") {
        return Some("an input is a JSON object in quotes, '{…}'");
    }
    if !reason.starts_with("not JSON") {
        return None;
    }
    let says = |words: &str| reason.ends_with(words) || reason.contains(words);
    if !text.starts_with('{') {
        Some("`@FILE` reads an input from a file, and else it is a JSON object in quotes, '{…}'")
    } else if text.contains('\'') && (says("key must be a string") || says("expected value")) {
        Some("JSON writes \"…\" around keys and texts, and never '…'")
    } else if says("key must be a string") || says("expected value") {
        Some(
            "keys and texts stand in \"…\"; a shell takes them away unless the whole input stands in '…'",
        )
    } else if says("trailing comma") {
        Some("JSON has no comma after the last member")
    } else if says("EOF while parsing") {
        Some("the input ends too early: a quote, a `}` or a `]` is missing")
    } else if says("control character") {
        Some("a line feed in a text is written \\n, and a tab \\t")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_plugin_is_one_word_and_no_option() {
        assert_eq!(approve("git"), "palisade approve git");
        assert_eq!(approve("--yes"), "palisade approve -- --yes");
        assert_eq!(approve("a; b"), "palisade approve 'a; b'");
    }

    #[test]
    fn common_slips_have_a_hint() {
        let hint = |input, reason: &str| on_syntax(input, reason).unwrap_or_default();
        let at = |words: &str| format!("not JSON at line 1, column 2 (byte 1): {words}");
        assert!(hint("{'a': 1}", &at("key must be a string")).contains("never '…'"));
        assert!(hint("{a: 1}", &at("key must be a string")).contains("a shell takes them away"));
        assert!(hint("{\"a\": b}", &at("expected value")).contains("a shell takes them away"));
        assert!(hint("{\"a\": 1,}", &at("trailing comma")).contains("no comma"));
        assert!(hint("{\"a\": 1", &at("EOF while parsing an object")).contains("too early"));
        assert!(hint("\"a\"", "want object, got string").contains("a JSON object"));
        assert_eq!(on_syntax("{}", "\"path\" is missing"), None);
    }
}
