//! The question about a plugin that a call needs, once, at a terminal.

use super::name_clash::{self, NameClash};
use super::{Occasion, Position, is_too_long, looked_at, question, shown, too_long};
use crate::cli::args::Common;
use crate::cli::exit::Failure;
use crate::cli::prompt::{self, YesNo};
use crate::cli::{output, trust};
use crate::config::Settings;
use palisade::Host;
use palisade::plugins::Plugin;
use palisade::tool::text::elided;
use palisade_trust::{Obstacle, Review};
use std::path::Path;

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
    let has_wanted = |plugin: &Plugin| {
        plugin.tools().iter().any(|tool| is_wanted(tool.definition().name().as_str()))
    };
    let mut wanted = host.unapproved();
    wanted.retain(has_wanted);
    if wanted.is_empty() {
        return Ok(());
    }
    // Where an approval would not count, the call is refused with the remedy.
    let Ok(lock) = trust::writable_lock(common) else { return Ok(()) };
    let locked = trust::of_all(common)?;
    let keys = trust::keys(settings);
    let mut is_changed = false;
    for (index, plugin) in wanted.iter().enumerate() {
        let Ok(review) = looked_at(&locked, &keys, plugin) else { continue };
        let clash = name_clash::of(common, settings, host, plugin)?;
        let asked = Asked { common, lock: &lock, position: Position { index, of: wanted.len() } };
        is_changed |= asked.about(plugin, &review, clash.as_ref())? == YesNo::Yes;
    }
    if is_changed {
        host.rescan();
    }
    Ok(())
}

/// The facts for a question: the options of the run, the lock, and the place of the plugin.
struct Asked<'a> {
    common: &'a Common,
    lock: &'a Path,
    position: Position,
}

impl Asked<'_> {
    /// Asks about one plugin. All of it is on the terminal: standard output is the tool's.
    fn about(
        &self,
        plugin: &Plugin,
        review: &Review,
        clash: Option<&NameClash>,
    ) -> Result<YesNo, Failure> {
        let name = elided(plugin.name(), 128);
        let refused = |reason: &str| {
            output::quoting_problem("not approved:", &format!("`{name}`: {reason}"));
            Ok(YesNo::No)
        };
        if trust::is_taken(plugin.name()) {
            return refused(super::NAME_IS_TAKEN);
        }
        let is_final = |obstacle: &Obstacle| {
            !matches!(obstacle, Obstacle::Rollback { .. } | Obstacle::BytesOf(_))
        };
        if let Some(obstacle) = review.obstacles().iter().find(|obstacle| is_final(obstacle)) {
            return refused(&super::remedy(obstacle));
        }
        let shown = shown::text(self.common, plugin, review, prompt::columns());
        if is_too_long(&shown) {
            return refused(&too_long(self.common, Occasion::Choice, review));
        }
        let clash = clash.map(|clash| output::prose(&clash.to_string())).unwrap_or_default();
        let text = format!("\n{shown}{clash}{}", question(plugin, self.position));
        let answer = prompt::yes_or_no(&text).unwrap_or(YesNo::No);
        if answer == YesNo::Yes {
            review.approve(self.lock)?;
        }
        Ok(answer)
    }
}
