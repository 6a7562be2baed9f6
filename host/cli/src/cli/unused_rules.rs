//! Reports rules of the configuration that match no tool or have no effect, because a misspelled
//! name would silently leave the intended tool without its rule.

use super::args::Common;
use super::exit::Failure;
use super::{hint, output, setup, unused_settings};
use crate::config::{Settings, ToolRule};
use palisade::Host;
use palisade::internal::{NATIVE, shipped_owner, shipped_tools};
use palisade::plugins::Compiling;
use palisade::policy::{Decision, Mode, parts};
use palisade::registry::{Origin, Registered, Source};
use palisade::tool::nearest_names;
use std::sync::Arc;

/// Maximum number of rules that are reported individually.
const MAX_TOLD: usize = 20;

/// Which of these rules are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told<'a> {
    /// All of them.
    All,
    /// Rules with a name near a tool's name, and all rules that restrict a tool. Other rules most
    /// likely concern a plugin that is loaded elsewhere.
    Slips,
    /// The names in the lists of tools, `tools.only` and `tools.hide`. Used where the tools are
    /// listed, so that a name without a tool would be missed in silence.
    Lists,
    /// Rules with a name near one of these tools, or with another plugin for one of these tools.
    /// Used if not every plugin has been loaded, so that nothing is known of other rules.
    SlipsOf(&'a [&'a str]),
}

impl<'a> Told<'a> {
    /// Returns the rules that a subcommand can report after calling these tools.
    pub(super) fn of(tools: &'a [&'a str], host: &Host) -> Self {
        if host.progress().is_complete() { Self::Slips } else { Self::SlipsOf(tools) }
    }
}

/// Reports the rules that match no tool on standard error. With [`Told::All`], also reports the
/// rules that loosen nothing.
pub(super) fn show(common: &Common, settings: &Settings, host: &Host, told: Told<'_>) {
    let registry = host.registry();
    let tools = registry.tools();
    let mut count = 0;
    let idle_rules = settings
        .of_tools()
        .filter(|rule| told != Told::Lists || rule.is_of_list())
        .filter(|rule| !tools.iter().any(|tool| tool.is_named(rule.tool)));
    for rule in idle_rules {
        let meant =
            meant(rule.tool, &tools, host).map(|meant| meant.without_repeat(&rule, settings));
        let hint = match (of_plugin(&rule, &tools, settings, host), meant) {
            (Some(hint), _) => hint,
            (None, Some(meant)) if matches!(told, Told::SlipsOf(tools) if !tools.contains(&&*meant.tool)) =>
            {
                continue;
            }
            (None, Some(meant)) => meant.hint,
            (None, None) if told == Told::Lists => "no tool has a name like it".to_owned(),
            (None, None) if told == Told::All || (told == Told::Slips && rule.holds_back()) => {
                format!("`{}` shows the tools there are", hint::command(common, "list"))
            }
            (None, None) => continue,
        };
        count += 1;
        if count <= MAX_TOLD {
            output::note(&idle(&rule, &hint));
        }
    }
    if count > MAX_TOLD {
        output::note(&format!("{} more rules hold for no tool that is loaded", count - MAX_TOLD));
    }
    if told == Told::All {
        unused_settings::show(settings, host);
        show_unbound(settings, host, None);
    }
}

fn idle(rule: &ToolRule<'_>, hint: &str) -> String {
    format!("`{}` ({}) holds for no tool that is loaded; {hint}", rule.key(), rule.origin)
}

/// Refuses a rule that restricts and bears the name of a plugin in place of a tool: the user
/// believes that it holds. While a plugin file is not compiled, which may have a tool of this name,
/// [`show`] reports the rule.
///
/// # Errors
///
/// A usage error for the first such rule.
pub(super) fn check(settings: &Settings, host: &Host) -> Result<(), Failure> {
    if host.compiling().iter().any(|compiling| !is_shipped(compiling)) {
        return Ok(());
    }
    let tools = host.registry().tools();
    let mut idle_rules =
        settings.of_tools().filter(|rule| !tools.iter().any(|tool| tool.is_named(rule.tool)));
    let found = idle_rules.find_map(|rule| {
        let hint = of_plugin(&rule, &tools, settings, host).filter(|_| rule.holds_back())?;
        Some(idle(&rule, &hint))
    });
    found.map_or(Ok(()), |message| Err(Failure::usage(message)))
}

/// Returns the hint for a permission under the name of a plugin, with the name of one of its tools,
/// if one has no such rule.
fn of_plugin(
    rule: &ToolRule<'_>,
    tools: &[Arc<Registered>],
    settings: &Settings,
    host: &Host,
) -> Option<String> {
    let plugin = rule.tool;
    let is_ruled = |tool: &str| {
        let full = format!("{plugin}/{tool}");
        [tool, full.as_str()].into_iter().any(|name| has_rule_like(settings, rule, name))
    };
    let mut own: Vec<_> = tools.iter().filter(|tool| tool.origin().rule_name() == plugin).collect();
    own.sort_by_key(|tool| tool.definition().name().as_str().to_owned());
    let is_waiting = || {
        host.compiling().iter().any(|compiling| is_shipped(compiling) && compiling.plugin == plugin)
    };
    own.sort_by_key(|tool| tool.definition().side_effects());
    let names: Vec<&str> = match &own[..] {
        [] => shipped_tools(plugin).filter(|_| is_waiting())?.to_vec(),
        own => own.iter().map(|tool| tool.definition().own_name().as_str()).collect(),
    };
    let remedy = match names.iter().rev().find(|tool| !is_ruled(tool)) {
        Some(tool) => format!("write `\"{plugin}/{tool}\"`"),
        None => "its tools have rules already, so take this one out".to_owned(),
    };
    let is_idle = rule.is_permission() && shipped_owner(plugin).is_none();
    is_idle.then(|| format!("`{plugin}` is a plugin, and rules name tools: {remedy}"))
}

/// Returns true if the table of a rule has one under this name as well.
fn has_rule_like(settings: &Settings, rule: &ToolRule<'_>, name: &str) -> bool {
    settings.of_tools().any(|other| other.table == rule.table && other.tool == name)
}

/// Returns true if an uncompiled plugin is part of the program, so that its tools are known.
fn is_shipped(compiling: &Compiling) -> bool {
    compiling.file.starts_with("shipped:")
}

/// The tool that a misspelled rule was probably meant for.
struct Meant {
    tool: String,
    hint: String,
    /// The right name, if the rule has a misspelled one.
    slip: Option<String>,
}

impl Meant {
    fn slip(name: &str) -> Self {
        let name = name.to_owned();
        let hint = format!("did you mean `{name}`?");
        Self { tool: parts(&name).1.to_owned(), hint, slip: Some(name) }
    }

    /// Replaces the advice to write a rule that stands already.
    fn without_repeat(self, rule: &ToolRule<'_>, settings: &Settings) -> Self {
        match &self.slip {
            Some(name) if has_rule_like(settings, rule, name) => {
                let hint = format!("`{name}` has a rule already, so take this one out");
                Self { hint, ..self }
            }
            _ => self,
        }
    }
}

/// Returns the tool that a rule of this name was probably meant for: the tool of the nearest name,
/// qualified by its plugin if the rule names one. A tool that another file provides is no
/// misspelling, so the rule is not suggested for that file.
fn meant(name: &str, tools: &[Arc<Registered>], host: &Host) -> Option<Meant> {
    let (plugin, bare) = parts(name);
    let full = Registered::full_name;
    let owner = tools.iter().find(|tool| tool.definition().name().as_str() == bare);
    if let Some((plugin, owner)) = plugin.zip(owner) {
        // Servers have similar names on purpose, and may have tools of one name.
        let is_of_server = matches!(owner.origin(), Origin::Server(_));
        let is_like = || is_near(plugin, owner.origin().rule_name());
        let is_slip = !is_of_server && !host.has_found(plugin) && is_like();
        return Some(match owner.origin().third_party().filter(|_| !is_slip) {
            Some(file) => Meant {
                tool: bare.to_owned(),
                hint: format!("the tool `{bare}` is of {file}, and not of a plugin `{plugin}`"),
                slip: None,
            },
            None => Meant::slip(&full(owner)),
        });
    }
    match plugin {
        None => nearest(name, tools, own_name),
        Some(plugin) => match of_server(plugin, tools).as_slice() {
            [] => nearest(name, tools, Registered::full_name),
            // The long name of a server makes any two of its tools similar.
            own => nearest(bare, own, own_name).map(|own| format!("{plugin}/{own}")),
        },
    }
    .map(|name| Meant::slip(&name))
}

/// Returns the own name of a tool, which a rule that tightens may have alone.
fn own_name(tool: &Registered) -> String {
    tool.definition().own_name().to_string()
}

/// Returns the tools of the server with this name in rules.
fn of_server(name: &str, tools: &[Arc<Registered>]) -> Vec<Arc<Registered>> {
    let is_its = |tool: &&Arc<Registered>| match tool.origin() {
        Origin::Server(server) => server.name() == name,
        Origin::Native | Origin::Plugin { .. } => false,
    };
    tools.iter().filter(is_its).cloned().collect()
}

/// Returns the nearest of the names of these tools.
fn nearest(
    name: &str,
    tools: &[Arc<Registered>],
    name_of: impl Fn(&Registered) -> String,
) -> Option<String> {
    let names: Vec<String> = tools.iter().map(|tool| name_of(tool)).collect();
    nearest_names(name, names.iter().map(String::as_str)).into_iter().next()
}

/// Returns true if one name may be a misspelling of the other. Transposed letters are compared
/// separately, because they make short names look less similar than they are.
fn is_near(name: &str, other: &str) -> bool {
    let letters = |name: &str| {
        let mut letters: Vec<char> = name.chars().collect();
        letters.sort_unstable();
        letters
    };
    letters(name) == letters(other) || !nearest_names(name, std::iter::once(other)).is_empty()
}

/// Reports the rules that were meant to loosen but have no effect, because they do not name the
/// plugin of a tool from a file. `only` limits the report to rules for these tools.
pub(super) fn show_unbound(settings: &Settings, host: &Host, only: Option<&[&str]>) {
    let policy = host.session().policy();
    let tools = host.registry().tools();
    for (name, rule) in &settings.tools {
        let Some(tool) = bound(name, &tools) else { continue };
        let definition = tool.definition();
        if only.is_some_and(|only| !only.contains(&definition.name().as_str())) {
            continue;
        }
        let origin = tool.origin();
        let plugin = origin.rule_name();
        let Some(owner) = origin.third_party() else { continue };
        let kind = match origin {
            Origin::Server(_) => "server",
            Origin::Native | Origin::Plugin { .. } => "plugin of a file",
        };
        let bare = definition.own_name();
        let decision = policy.explain(definition, origin);
        let remedy = |mode| match origin {
            Origin::Plugin { source: Source::Namesake(_), .. } => {
                format!(
                    "several files bear the plugin's name, `{plugin}`: give each a name of its own"
                )
            }
            Origin::Plugin { source: Source::File(_), .. } if plugin == NATIVE => {
                format!(
                    "`{NATIVE}` names the program's own tools: give the plugin's file another name"
                )
            }
            Origin::Plugin { source: Source::ThisRun(_), .. } => format!(
                "the plugin is not approved, and was named for this run only; `{}` shows it and asks",
                hint::approve(plugin)
            ),
            Origin::Plugin { .. } | Origin::Server(_) | Origin::Native => {
                match deciding(settings, decision, tool) {
                    Some(stricter) => format!("{stricter} holds, so change that"),
                    None => format!(
                        "a rule that loosens names the {kind}, as in `\"{plugin}/{bare}\" = \"{mode}\"`"
                    ),
                }
            }
        };
        let decided = decision.mode;
        // A deny is explicit, and no rule for a single tool would lift it.
        let is_meant = decided != Mode::Deny && rule.value != decided;
        if is_meant && decided.is_at_least_as_strict_as(rule.value) {
            let mode = rule.value;
            let place = &rule.origin;
            output::note(&format!(
                "`{name} = \"{mode}\"` ({place}) loosens nothing for the tool of {owner}, which stays `{decided}`: {}",
                remedy(mode)
            ));
        }
    }
}

/// Returns the tool that a rule of this name is about: the one that has it from its plugin, or else
/// the one that sessions see under it.
fn bound<'a>(name: &str, tools: &'a [Arc<Registered>]) -> Option<&'a Arc<Registered>> {
    let is_own = |tool: &&Arc<Registered>| {
        tool.is_named(name) && tool.definition().own_name().as_str() == parts(name).1
    };
    tools.iter().find(is_own).or_else(|| tools.iter().find(|tool| tool.is_named(name)))
}

/// Returns the rule for a tool that decides about it, with its place, if one does.
fn deciding(settings: &Settings, decision: Decision, tool: &Registered) -> Option<String> {
    let name = decision.rule.tool_name(tool.definition(), tool.origin())?;
    let rule = settings.tools.get(&name)?;
    let shown = if name.contains('/') { format!("\"{name}\"") } else { name };
    Some(format!("`{shown} = \"{}\"` ({})", rule.value, rule.origin))
}

/// Loads the plugins and reports all rules as [`show`] does, for a subcommand that needs no tools
/// otherwise. Load errors are left to the subcommands that call tools.
pub(super) fn show_after_loading(common: &Common, settings: &Settings) {
    if settings.of_tools().next().is_none() && settings.plugins.is_empty() {
        return;
    }
    let host = setup::builder(common, settings).map(palisade::HostBuilder::build);
    if let Ok(Ok(host)) = host {
        show(common, settings, &host, Told::All);
    }
}
