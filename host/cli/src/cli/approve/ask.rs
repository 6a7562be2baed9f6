//! The question about a plugin that a call needs, once, at a terminal.

use super::{question, review, shown, write};
use crate::cli::args::Common;
use crate::cli::exit::Failure;
use crate::cli::prompt::{self, YesNo};
use crate::cli::{output, trust};
use crate::config::Settings;
use palisade::Host;
use palisade::plugins::Plugin;
use palisade::tool::text::elided;
use palisade_trust::{LockedPlugins, Obstacle, Review};

/// Asks about the plugins that are not approved and have one of these tools, if a person can be
/// asked, and loads those that are approved then. Without a person the calls are refused.
pub(in crate::cli) fn before_calls(
    common: &Common,
    settings: &Settings,
    host: &Host,
    tools: &[&str],
) -> Result<(), Failure> {
    if common.locked || !prompt::can_ask() {
        return Ok(());
    }
    let is_wanted = |name: &str| tools.contains(&name) && !host.registry().has(name);
    let has_wanted =
        |plugin: &Plugin| plugin.definitions().iter().any(|tool| is_wanted(tool.name().as_str()));
    let mut wanted = host.unapproved();
    wanted.retain(has_wanted);
    if wanted.is_empty() {
        return Ok(());
    }
    let locked = trust::of_all(common)?;
    let keys = trust::keys(settings);
    let mut is_changed = false;
    for plugin in &wanted {
        let review = review(&locked, &keys, plugin)?;
        is_changed |= ask(&locked, plugin, &review)? == YesNo::Yes;
    }
    if is_changed {
        host.rescan();
    }
    Ok(())
}

/// Asks about one plugin. All of it is on the terminal: standard output is the tool's.
fn ask(locked: &LockedPlugins, plugin: &Plugin, review: &Review) -> Result<YesNo, Failure> {
    let is_final = |obstacle: &Obstacle| !matches!(obstacle, Obstacle::Rollback { .. });
    if let Some(obstacle) = review.obstacles().iter().find(|obstacle| is_final(obstacle)) {
        let name = elided(plugin.name(), 128);
        output::problem("not approved:", &format!("`{name}`: {}", super::remedy(obstacle)));
        return Ok(YesNo::No);
    }
    let shown = shown::text(plugin, review, prompt::columns());
    let text = format!("\n{shown}{}", question(plugin));
    let answer = prompt::yes_or_no(&text).unwrap_or(YesNo::No);
    if answer == YesNo::Yes {
        write(locked, review)?;
    }
    Ok(answer)
}
