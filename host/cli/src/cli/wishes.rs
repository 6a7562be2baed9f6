//! The grants that a plugin would like to have, with the commands that give them.

use super::args::Common;
use super::hint;
use super::inspect::fact;
use palisade::plugins::Plugin;
use palisade_net::{Grant, Wishes};
use palisade_trust::shell_word;
use serde_json::{Value, json};

/// The words behind `palisade grant` that are no names of plugins.
const ACTIONS: [&str; 7] = ["net", "env", "secret", "tools", "list", "revoke", "help"];

/// Formats the wishes of a plugin that are not granted, in lines of at most `room` columns. `path`
/// is the file of a plugin that has been named by it.
pub(super) fn text(common: &Common, plugin: &Plugin, path: Option<&str>, room: usize) -> String {
    let granted = plugin.grants();
    let wishes = Wishes::of(plugin.definitions());
    let open = wishes.grants().iter().filter(|wish| !is_granted(&granted, wish));
    open.map(|wish| {
        let command = command(common, plugin, path, wish);
        fact("wishes", &format!("would like: {wish} (`{command}` grants it)"), room)
    })
    .collect()
}

/// Returns the wishes of a plugin.
pub(super) fn json(common: &Common, plugin: &Plugin, path: Option<&str>) -> Value {
    let granted = plugin.grants();
    let shown = |wish: &Grant| {
        json!({
            "grant": wish.to_string(),
            "granted": is_granted(&granted, wish),
            "command": command(common, plugin, path, wish),
        })
    };
    Wishes::of(plugin.definitions()).grants().iter().map(shown).collect()
}

/// Returns true if a plugin with these grants has what it would like: a grant is shown with a
/// remark behind it if its variable is not set.
fn is_granted(granted: &[String], wish: &Grant) -> bool {
    let wish = wish.to_string();
    granted.iter().any(|grant| *grant == wish || grant.starts_with(&format!("{wish} (")))
}

/// Returns the command that grants a wish.
fn command(common: &Common, plugin: &Plugin, path: Option<&str>, wish: &Grant) -> String {
    let subject = subject(plugin, path);
    let given = match wish {
        Grant::Net(rule) => format!("net {}", shell_word(&rule.to_string())),
        Grant::Env(name) => format!("env {}", shell_word(name)),
        Grant::Tools(pattern) => format!("tools {}", shell_word(pattern.as_str())),
        Grant::Secret(secret) => format!(
            "secret {} --for {} --header={}",
            shell_word(&secret.name),
            shell_word(&secret.host.to_string()),
            shell_word(&secret.header_text())
        ),
    };
    hint::command(common, &format!("grant {} {given}", shell_word(&subject)))
}

/// Returns the name of a plugin, or the path of its file where a name would be an option or another
/// word of the command.
fn subject(plugin: &Plugin, path: Option<&str>) -> String {
    let name = plugin.name();
    let is_word = |name: &str| name.starts_with('-') || ACTIONS.contains(&name);
    match (path, plugin.path()) {
        (Some(path), _) if path.starts_with('-') => format!("./{path}"),
        (Some(path), _) => path.to_owned(),
        (None, Some(file)) if is_word(name) => file.display().to_string(),
        (None, _) => name.to_owned(),
    }
}
