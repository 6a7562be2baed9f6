//! The names that a plugin shares with loaded plugins: which of them load after an approval.

use crate::cli::args::Common;
use crate::cli::exit::Failure;
use crate::cli::{setup, trust, unconnected};
use crate::config::Settings;
use palisade::plugins::{Approvals, Cause, NotApproved, Plugin, PluginApproval};
use palisade::registry::Registered;
use palisade::tool::offer::Offer;
use palisade::tool::text::{elided, toml_key};
use palisade::{Host, HostBuilder};
use palisade_trust::LockedPlugins;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most plugins that a sentence names.
const LISTED: usize = 3;

/// A plugin with the name of a tool, a document or a prompt of a loaded plugin.
#[derive(Debug)]
pub(in crate::cli) struct NameClash {
    plugin: String,
    effect: Effect,
}

/// The effect of an approval.
#[derive(Debug)]
enum Effect {
    /// The plugin does not load, for this reason.
    DoesNotLoad(String),
    /// The plugin loads, and these plugins do not load any more: its file comes before theirs.
    TakesNames {
        /// The plugins that it takes names from.
        from: Vec<String>,
        /// A tool of one of them, if it has taken that.
        tool: Option<String>,
    },
    /// Another plugin has one of the names. Which of them loads depends on the place of the file.
    Shares(String),
}

impl fmt::Display for NameClash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plugin, effect } = self;
        match effect {
            Effect::DoesNotLoad(reason) => {
                write!(f, "`{plugin}` will not load, also if it is approved: {reason}")?;
            }
            Effect::TakesNames { from, tool } => {
                let listed: Vec<String> =
                    from.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
                let more = match from.len().saturating_sub(LISTED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let taken = match tool {
                    Some(tool) => format!("the tool `{tool}`"),
                    None => "the name of a document or a prompt".to_owned(),
                };
                write!(
                    f,
                    "`{plugin}` takes {taken} from {}{more}, which will not load any more, since its file comes first",
                    listed.join(", ")
                )?;
            }
            Effect::Shares(reason) => write!(
                f,
                "`{plugin}` has a name of a loaded plugin, and only one of the two will load: {reason}"
            )?,
        }
        write!(
            f,
            "; for names of tools, a `prefix` avoids that (`[plugins.{}]` in palisade.toml)",
            toml_key(plugin)
        )
    }
}

impl NameClash {
    /// Returns true if a loaded plugin could be lost.
    pub(super) fn loses_a_plugin(&self) -> bool {
        match self.effect {
            Effect::TakesNames { .. } | Effect::Shares(_) => true,
            Effect::DoesNotLoad(_) => false,
        }
    }
}

/// Returns the clash of a plugin that a host has found with the plugins that it has loaded.
pub(super) fn of(
    common: &Common,
    settings: &Settings,
    host: &Host,
    plugin: &Plugin,
) -> Result<Option<NameClash>, Failure> {
    if !may_share(host, plugin) {
        return Ok(None);
    }
    let trial = Trial { now: trust::of_all(common)?, plugin: plugin.clone(), replaces: None };
    let after = trial.host(common, settings, |base| base)?;
    let effect = match taken(&after, plugin) {
        Some(reason) => Effect::DoesNotLoad(reason),
        None => {
            // Others may be absent for want of an approval: those that this run alone has.
            let mut lost = host.plugins();
            lost.retain(|loaded| taken(&after, loaded).is_some());
            if lost.is_empty() {
                return Ok(None);
            }
            let from = lost.iter().map(|it| elided(it.name(), 128)).collect();
            Effect::TakesNames { from, tool: shared_tool(plugin, &lost) }
        }
    };
    Ok(Some(NameClash { plugin: elided(plugin.name(), 128), effect }))
}

/// Returns the clash of a plugin that is about to be installed, in this folder, with the plugins
/// that load in this workspace. The installed file of its name does not count.
pub(in crate::cli) fn of_incoming(
    common: &Common,
    settings: &Settings,
    plugin: &Plugin,
    folder: &Path,
) -> Result<Option<NameClash>, Failure> {
    let (now, replaces) = (trust::of_all(common)?, trust::installed(common));
    let trial = Trial { now, plugin: plugin.clone(), replaces };
    // Behind all others, since it is not in its place yet.
    let after = trial.host(common, settings, |base| base.plugins(folder))?;
    let Some(reason) = taken(&after, plugin) else { return Ok(None) };
    let effect = match is_behind_an_owner(&after, plugin, trust::installed(common).as_deref()) {
        true => Effect::DoesNotLoad(reason),
        // A plugin that the former file keeps out is not lost with the new file.
        false if !is_shared_now(common, settings, plugin)? => return Ok(None),
        false => Effect::Shares(reason),
    };
    Ok(Some(NameClash { plugin: elided(plugin.name(), 128), effect }))
}

/// Returns true if a plugin has a tool whose owner comes before it. Installed plugins come
/// last, in the order of their files.
fn is_behind_an_owner(host: &Host, plugin: &Plugin, installed: Option<&Path>) -> bool {
    let is_before = |owner: &Registered| {
        let file = owner.origin().file().map(Path::new);
        let is_installed = file.is_some_and(|file| file.parent() == installed);
        !is_installed || file.and_then(Path::file_name) < plugin.path().and_then(Path::file_name)
    };
    let registry = host.registry();
    let mut names = plugin.tools().iter().map(|tool| tool.definition().name().as_str());
    names.any(|name| registry.get(name).is_ok_and(|owner| is_before(&owner)))
}

/// Returns true if a plugin of another name that is loaded now may have a name of this one.
fn is_shared_now(common: &Common, settings: &Settings, plugin: &Plugin) -> Result<bool, Failure> {
    let base = setup::builder(common, settings)?.approvals(Arc::new(trust::of_all(common)?));
    let now = unconnected::add_to(base, common, settings)?.build()?;
    let mut others = now.plugins().into_iter().filter(|other| other.name() != plugin.name());
    let own = [plugin.clone()];
    Ok(others.any(|other| shared_tool(&other, &own).is_some() || both_offer(&other, plugin)))
}

/// Returns true if a loaded tool has the name of one of the plugin's, or if another plugin offers
/// documents or prompts as well.
fn may_share(host: &Host, plugin: &Plugin) -> bool {
    let registry = host.registry();
    let mut names = plugin.tools().iter().map(|tool| tool.definition().name().as_str());
    names.any(|name| registry.has(name))
        || host.plugins().iter().any(|other| both_offer(other, plugin))
}

/// Returns true if both plugins offer documents or prompts.
fn both_offer(one: &Plugin, other: &Plugin) -> bool {
    *one.offer() != Offer::default() && *other.offer() != Offer::default()
}

/// Returns the name of a tool that a plugin shares with others.
fn shared_tool(plugin: &Plugin, others: &[Plugin]) -> Option<String> {
    let has = |other: &Plugin, name: &str| {
        other.tools().iter().any(|tool| tool.definition().name().as_str() == name)
    };
    let mut names = plugin.tools().iter().map(|tool| tool.definition().name().as_str());
    let shared = names.find(|name| others.iter().any(|other| has(other, name)));
    shared.map(str::to_owned)
}

/// Returns the reason why a plugin does not load, if one of its names is taken.
fn taken(host: &Host, plugin: &Plugin) -> Option<String> {
    let is_taken = |cause: Cause| cause == Cause::NameTaken;
    let mut rejected = host.rejected().into_iter();
    let found = rejected.find(|it| it.file == plugin.file() && is_taken(it.cause))?;
    Some(elided(&found.reason, 512))
}

/// The approvals of a host, as they are once a plugin is approved.
struct Trial {
    now: LockedPlugins,
    plugin: Plugin,
    /// The folder whose file of the plugin's name is replaced.
    replaces: Option<PathBuf>,
}

impl Trial {
    /// Starts a host with these approvals.
    fn host(
        self,
        common: &Common,
        settings: &Settings,
        add: impl FnOnce(HostBuilder) -> HostBuilder,
    ) -> Result<Host, Failure> {
        let base = add(setup::builder(common, settings)?).approvals(Arc::new(self));
        Ok(unconnected::add_to(base, common, settings)?.build()?)
    }

    /// Returns true if a file is the former one of the plugin.
    fn is_replaced(&self, plugin: &Plugin) -> bool {
        let folder = plugin.path().and_then(Path::parent);
        let is_in_folder = folder.is_some() && folder == self.replaces.as_deref();
        plugin.name() == self.plugin.name() && is_in_folder
    }
}

impl Approvals for Trial {
    fn of(&self, plugin: &Plugin) -> PluginApproval {
        // An approval of the user does not lift the refusal of a project.
        if plugin.file() == self.plugin.file() && self.now.refused_by_project(plugin).is_none() {
            return PluginApproval::Approved;
        }
        if self.is_replaced(plugin) {
            let reason = NotApproved::new("another file is about to take its place", "");
            return PluginApproval::Missing(Arc::new(reason));
        }
        self.now.of(plugin)
    }
}
