//! Reports rules of the configuration that match no tool or have no effect, because a misspelled
//! name would silently leave the intended tool without its rule.

use super::args::Common;
use super::exit::Failure;
use super::{hint, output, setup};
use crate::config::{Settings, ToolRule};
use palisade::Host;
use palisade::internal::{NATIVE, shipped_owner, shipped_tools};
use palisade::plugins::Compiling;
use palisade::policy::{Mode, parts};
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
    for rule in settings.of_tools().filter(|rule| !tools.iter().any(|tool| is_of(rule.tool, tool)))
    {
        let hint = match (of_plugin(&rule, &tools, host), meant(rule.tool, &tools, host)) {
            (Some(hint), _) => hint,
            (None, Some(meant)) if matches!(told, Told::SlipsOf(tools) if !tools.contains(&&*meant.tool)) =>
            {
                continue;
            }
            (None, Some(meant)) => meant.hint,
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
        settings.of_tools().filter(|rule| !tools.iter().any(|tool| is_of(rule.tool, tool)));
    let found = idle_rules.find_map(|rule| {
        let hint = of_plugin(&rule, &tools, host).filter(|_| rule.holds_back())?;
        Some(idle(&rule, &hint))
    });
    found.map_or(Ok(()), |message| Err(Failure::usage(message)))
}

/// Returns the hint for a permission under the name of a plugin, with the name of one of its tools.
fn of_plugin(rule: &ToolRule<'_>, tools: &[Arc<Registered>], host: &Host) -> Option<String> {
    let plugin = rule.tool;
    let mut own: Vec<_> = tools.iter().filter(|tool| tool.origin().rule_name() == plugin).collect();
    own.sort_by_key(|tool| tool.definition().name().as_str().to_owned());
    let is_waiting = || {
        host.compiling().iter().any(|compiling| is_shipped(compiling) && compiling.plugin == plugin)
    };
    let tool = match own.iter().max_by_key(|tool| tool.definition().side_effects()) {
        Some(tool) => tool.definition().name().as_str(),
        None => shipped_tools(plugin).filter(|_| is_waiting())?.last()?,
    };
    let is_idle = rule.is_permission() && shipped_owner(plugin).is_none();
    is_idle.then(|| {
        format!("`{plugin}` is a plugin, and rules name tools: write `\"{plugin}/{tool}\"`")
    })
}

/// Returns true if an uncompiled plugin is part of the program, so that its tools are known.
fn is_shipped(compiling: &Compiling) -> bool {
    compiling.file.starts_with("shipped:")
}

/// Returns true if a rule of this name applies to the tool.
fn is_of(name: &str, tool: &Registered) -> bool {
    let (plugin, name) = parts(name);
    tool.definition().name().as_str() == name
        && plugin.is_none_or(|plugin| tool.origin().rule_name() == plugin)
}

/// The tool that a misspelled rule was probably meant for.
struct Meant {
    tool: String,
    hint: String,
}

impl Meant {
    fn slip(name: &str) -> Self {
        Self { tool: parts(name).1.to_owned(), hint: format!("did you mean `{name}`?") }
    }
}

/// Returns the tool that a rule of this name was probably meant for: the tool of the nearest name,
/// qualified by its plugin if the rule names one. A tool that another file provides is no
/// misspelling, so the rule is not suggested for that file.
fn meant(name: &str, tools: &[Arc<Registered>], host: &Host) -> Option<Meant> {
    let (plugin, bare) = parts(name);
    let full =
        |tool: &Registered| format!("{}/{}", tool.origin().rule_name(), tool.definition().name());
    let owner = tools.iter().find(|tool| tool.definition().name().as_str() == bare);
    if let Some((plugin, owner)) = plugin.zip(owner) {
        let is_slip = !host.has_found(plugin) && is_near(plugin, owner.origin().rule_name());
        return Some(match owner.origin().file().filter(|_| !is_slip) {
            Some(file) => Meant {
                tool: bare.to_owned(),
                hint: format!("the tool `{bare}` is of {file}, and not of a plugin `{plugin}`"),
            },
            None => Meant::slip(&full(owner)),
        });
    }
    let names = tools.iter().map(|tool| match plugin {
        None => tool.definition().name().to_string(),
        Some(_) => full(tool),
    });
    let names: Vec<String> = names.collect();
    nearest_names(name, names.iter().map(String::as_str)).first().map(|name| Meant::slip(name))
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
    let rules = settings
        .tools
        .iter()
        .filter(|(name, _)| only.is_none_or(|only| only.contains(&parts(name).1)));
    for (name, rule) in rules {
        let tool = host.registry().get(parts(name).1).ok().filter(|tool| is_of(name, tool));
        let Some(tool) = tool else { continue };
        let definition = tool.definition();
        let origin = tool.origin();
        let Origin::Plugin { name: plugin, source, .. } = origin else { continue };
        let Some(file) = source.file() else { continue };
        let bare = definition.name();
        let remedy = |mode| match source {
            Source::Namesake(_) => {
                format!(
                    "several files bear the plugin's name, `{plugin}`: give each a name of its own"
                )
            }
            Source::File(_) if &**plugin == NATIVE => {
                format!(
                    "`{NATIVE}` names the program's own tools: give the plugin's file another name"
                )
            }
            Source::Shipped | Source::File(_) => {
                format!(
                    "a rule that loosens names the plugin of a file, as in `\"{plugin}/{bare}\" = \"{mode}\"`"
                )
            }
        };
        let decided = policy.decide(definition, origin);
        // A deny is explicit, and no rule for a single tool would lift it.
        let is_meant = decided != Mode::Deny && rule.value != decided;
        if is_meant && decided.is_at_least_as_strict_as(rule.value) {
            let mode = rule.value;
            let place = &rule.origin;
            output::note(&format!(
                "`{name} = \"{mode}\"` ({place}) loosens nothing for the tool of {file}, which stays `{decided}`: {}",
                remedy(mode)
            ));
        }
    }
}

/// Loads the plugins and reports all rules as [`show`] does, for a subcommand that needs no tools
/// otherwise. Load errors are left to the subcommands that call tools.
pub(super) fn show_after_loading(common: &Common, settings: &Settings) {
    if settings.of_tools().next().is_none() {
        return;
    }
    if let Ok(host) = setup::builder(common, settings).build() {
        show(common, settings, &host, Told::All);
    }
}
