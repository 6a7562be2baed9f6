//! Rules of the configuration that hold for no tool: a slip in a name would leave the tool that was meant without its rule, and nobody would notice.

use super::args::Common;
use super::{open, output};
use crate::config::Settings;
use crate::host::Host;
use crate::tool::nearest_names;

/// How many of them are told one by one.
const MAX_TOLD: usize = 20;

/// Which of these rules are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told<'a> {
    /// All.
    All,
    /// Those whose name is near a tool's. Others are most likely about a plugin that is loaded elsewhere, and no news with every call.
    Slips,
    /// Those whose name is near this tool's: where not every plugin has been loaded, nothing can be said of the others.
    SlipsOf(&'a str),
}

impl<'a> Told<'a> {
    /// What a program can say that calls this one tool.
    pub(super) fn of_one(tool: &'a str, host: &Host) -> Self {
        if host.progress().is_complete() { Self::Slips } else { Self::SlipsOf(tool) }
    }
}

/// Says on standard error which rules hold for none of these tools.
pub(super) fn show(settings: &Settings, host: &Host, told: Told<'_>) {
    let registry = host.registry();
    let (tools, mut count) = (registry.tool_names(), 0);
    for (key, tool, origin) in settings.of_tools().filter(|(_, tool, _)| !registry.has(tool)) {
        let nearest = nearest_names(tool, tools.iter().map(String::as_str)).into_iter().next();
        let hint = match nearest {
            Some(name) if matches!(told, Told::SlipsOf(tool) if tool != name) => continue,
            Some(name) => format!("did you mean `{name}`?"),
            None if told != Told::All => continue,
            None => "`palisade list` shows the tools there are".to_owned(),
        };
        count += 1;
        if count <= MAX_TOLD {
            output::note(&format!("`{key}` ({origin}) holds for no tool that is loaded; {hint}"));
        }
    }
    if count > MAX_TOLD {
        output::note(&format!("{} more rules hold for no tool that is loaded", count - MAX_TOLD));
    }
}

/// As [`show`], of all rules, for a verb that needs no tools otherwise. What keeps them from being loaded is for the verbs that call them to tell.
pub(super) fn show_after_loading(common: &Common, settings: &Settings) {
    if settings.of_tools().next().is_none() {
        return;
    }
    if let Ok(host) = open::builder(common, settings).build() {
        show(settings, &host, Told::All);
    }
}
